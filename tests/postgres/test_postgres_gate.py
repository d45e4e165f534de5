"""The gate with log and views in PostgreSQL comes to what it comes to with files."""

from __future__ import annotations

from pathlib import Path

from face_world import U1, contents, dump_hashes, open_memory, rebuilt_hashes, texts
from mnemolog import Memory
from mnemolog.infra.settings import Settings
from postgres_world import new_schema

POLICY = """version: 1
memory: {expiry: {preference: 30}}
topics: {health: {rule: conditional, words: [allergy, 알레르기]}}
systems: {crm: {attributes: [address], verify: the CRM}}
"""
EVERY = ("admitted", "evidence", "needs confirmation", "quarantined", "log only")


def lived(memory: Memory) -> list[object]:
    """Statements, findings, a review, consent and an erasure; what each came to, in words."""
    said = [
        "I live in Daejeon.",
        "I moved to Jeju.",
        "No shellfish any more, allergy.",
        "My address is 1 Elm St.",
    ]
    events = [memory.record_turn(U1, role="user", content=text).event_id for text in said]
    memory.record_turn(U1, role="user", content="주민번호 010101-3000000 입니다")
    for at in range(3):
        memory.record_tool_result(U1, output="We use vendor Z.", name="web", key=str(at))
    memory.operations.extract()
    found: list[object] = [contents(memory, U1), texts(memory, U1, "주민번호")]
    memory.review.approve(U1, memory.review.list(U1)[0].record_id)
    memory.operations.adopt_policy(POLICY)
    found += [contents(memory, U1), [one.question for one in memory.review.list(U1)]]
    memory.grant_consent(U1, "health")
    found.append(contents(memory, U1))
    memory.withdraw_consent(U1, "health")
    memory.erase(U1, event=events[1]).apply()
    found += [contents(memory, U1), contents(memory, U1, history=True)]
    found.append([(one.status, one.reasons, one.voices) for one in memory.review.list(U1, status=EVERY)])
    return found


def test_the_gate_is_the_same_in_postgresql(tmp_path: Path, postgres_url: str) -> None:
    """The same life in both stores: the same memory, the same outcomes, and a rebuild equals the live view."""
    settings = Settings.load(database_url=postgres_url, database_schema=new_schema(), durability="os")
    with open_memory(tmp_path / "files") as memory:
        expected = lived(memory)
    with open_memory(tmp_path / "data", settings=settings) as memory:
        assert lived(memory) == expected
        before = dump_hashes(memory)
        assert rebuilt_hashes(memory, 2) == before

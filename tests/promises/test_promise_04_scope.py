"""Promise 4: scope before similarity."""

from __future__ import annotations

from pathlib import Path

import pytest

from face_world import U1, everything, open_memory
from mnemolog import Memory, Principal, Role, Scope
from mnemolog.errors import AccessDenied

QUERIES = ("when does the walrus deploy", "배포는 금요일", "report format walrus", "deploy deploy friday")
NEIGHBOURS = (
    Scope("acme", user="u-2", project="billing", session="s-1"),
    Scope("acme", user="u-1", project="other", session="s-1"),
    Scope("other", user="u-1", project="billing", session="s-1"),
)


def fill(memory: Memory) -> None:
    for number in range(30):
        memory.record_turn(
            U1, role="user", content=f"the walrus deploys on friday {'again ' * (number % 5)}{number}"
        )
        memory.record_turn(U1, role="assistant", content=f"배포는 금요일에 합니다 {number}")
        memory.remember(U1, f"report {number} has the walrus format")


def digits(memory: Memory) -> str:
    """Every score, order and token count of every read, to the last digit."""
    hits = [
        [(hit.text, hit.score.hex(), {k: v.hex() for k, v in hit.signals.items()}) for hit in found]
        for query in QUERIES
        for found in (memory.recall(U1, query, k=20), memory.recall(U1, query, k=1000, history=True))
    ]
    contexts = [memory.context(U1, query, budget=budget) for query in QUERIES for budget in (200, 900)]
    shown = [(c.text, c.receipt.tokens, [e["tokens"] for e in c.receipt.entries]) for c in contexts]
    left = [len(c.receipt.left_out) for c in contexts]
    records = [(r.content, r.status, r.confidence) for r in memory.records(U1, history=True)]
    return repr((hits, shown, left, records))


def move_in(memory: Memory) -> None:
    """1,500 events of three neighbours, with the same words and many more of them."""
    for neighbour in NEIGHBOURS:
        items = [
            {
                "type": "turn",
                "scope": neighbour,
                "role": "user",
                "content": f"walrus walrus friday deploy report 배포 금요일 kumquat {number} "
                * (1 + number % 4),
            }
            for number in range(490)
        ]
        memory.record_batch(items)
        for number in range(10):
            memory.remember(
                neighbour, f"the kumquat report format walrus {number}", slot=("report", str(number))
            )


def test_promise_4_a_neighbour_changes_no_digit(memory: Memory) -> None:
    """Scores, order, contexts and token counts of a scope are the same with and without 1,500 neighbouring events."""
    fill(memory)
    alone = digits(memory)
    head = memory.operations.status().head
    move_in(memory)
    written = memory.log(after=head, limit=2000)
    assert sum(each.envelope.topic in ("TurnRecorded", "MemoryStated") for each in written) == 1500
    assert digits(memory) == alone
    for name in ("turns", "curated"):
        memory.operations.rebuild(name, batch_size=97)
    assert digits(memory) == alone


def test_promise_4_the_order_of_arrival_does_not_matter(tmp_path: Path) -> None:
    """A scope that fills up after its neighbours reads like one that was there alone."""
    with open_memory(tmp_path / "alone") as alone, open_memory(tmp_path / "late") as late:
        fill(alone)
        move_in(late)
        fill(late)
        scores = [
            [[(hit.text, hit.score.hex()) for hit in each.recall(U1, query, k=1000)] for query in QUERIES]
            for each in (alone, late)
        ]
        assert scores[0] == scores[1]


def test_promise_4_no_read_hints_at_a_neighbour(memory: Memory) -> None:
    """No read of any kind returns, counts or names anything of a neighbour, also for a word that only it uses."""
    memory.remember(U1, "report format is PDF", slot=("report", "1"))
    others = [memory.remember(scope, "kumquat report", slot=("report", "1")) for scope in NEIGHBOURS]
    turns = [memory.record_turn(scope, role="user", content="kumquat") for scope in NEIGHBOURS]
    assert memory.recall(U1, "kumquat", k=1000, history=True) == []
    found = everything(memory, U1, "kumquat report")
    assert "kumquat" not in found
    assert not any(receipt.event_id in found or receipt.stream in found for receipt in others + turns)
    (record,) = memory.records(U1)
    assert (record.supersedes, record.superseded_by, record.version) == (None, None, 1)


def test_promise_4_who_sees_one_scope_gets_no_count_of_all(memory: Memory) -> None:
    """Counts, sizes and parked events of the whole store are for principals of all scopes; a log shows one's own."""
    for scope in NEIGHBOURS:
        memory.record_turn(scope, role="user", content="kumquat")
    mine = memory.record_turn(U1, role="user", content="mine")
    auditor = memory.acting_as(Principal("a", Role.AUDITOR, (Scope("acme", user="u-1", project="billing"),)))
    of = auditor.operations
    for look in (of.status, of.projections, of.parked, of.verify_log):
        with pytest.raises(AccessDenied):
            look()
    topics = {"TurnRecorded"}
    assert [each.envelope.id for each in auditor.log(limit=1, topics=topics)] == [mine.event_id]
    for each in memory.log(topics=topics):
        if each.envelope.id != mine.event_id:
            with pytest.raises(LookupError):
                auditor.names(each.envelope.scope)

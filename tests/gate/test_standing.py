"""What became of a statement: told by one call, and by the command line, once the gate's view has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from face_world import U1, agent, open_memory
from mnemolog import Memory
from mnemolog.errors import NotFound, NotKept
from mnemolog.infra.cli import app

SECRETS = ["my password is hunter2xyzQ9", "내 비밀번호는 hunter2xyzQ9 입니다"]
HEALTH = """
version: 1
topics:
  health: {rule: conditional, words: [diagnosis, 진단]}
"""


def run(data: Path, *words: str, code: int = 0) -> Any:
    scope = ["--tenant", "acme", "--user", "u-1", "--project", "billing"]
    done = CliRunner().invoke(app, [*words, *scope, "--data", str(data)], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("text", ["Reports go out as PDF", "보고서는 PDF로 보냅니다"])
def test_a_kept_statement_is_current(memory: Memory, text: str) -> None:
    """What is memory stands as its record does; said again it was known, and an append names what it stands by."""
    first = memory.standing(U1, memory.remember(U1, text))
    assert (first.status, first.kept, first.known, first.reasons) == ("current", True, False, ())
    again = memory.standing(U1, memory.remember(U1, text))
    assert (again.status, again.known, again.record_id) == ("current", True, first.record_id)


@pytest.mark.parametrize("text", SECRETS)
def test_what_the_gate_drops_is_told(memory: Memory, text: str) -> None:
    """A statement with a secret is dropped, with the reason; `why` and `why_not` say the same."""
    receipt = memory.remember(U1, text)
    standing = memory.standing(U1, receipt)
    assert (standing.status, standing.kept, standing.reasons) == ("dropped", False, ("holds a secret",))
    assert memory.why(U1, receipt.record_id).standing.status == "dropped"
    assert memory.why_not(U1, receipt.event_id).reason == "dropped: holds a secret"


@pytest.mark.parametrize("text", ["The diagnosis is asthma", "진단은 천식입니다"])
def test_what_waits_and_what_is_withdrawn_is_told(memory: Memory, text: str) -> None:
    """A topic that needs consent holds a statement for review; given, it is current; taken back, it is withheld."""
    memory.operations.adopt_policy(HEALTH)
    receipt = memory.remember(U1, text)
    held = memory.standing(U1, receipt)
    assert (held.status, held.reasons) == ("held for review", ("is about a topic that needs consent",))
    memory.grant_consent(U1, "health")
    assert memory.standing(U1, receipt).status == "current"
    memory.withdraw_consent(U1, "health")
    withdrawn = memory.standing(U1, receipt)
    assert (withdrawn.status, withdrawn.reasons[-1]) == ("withheld", "its subject has withdrawn consent")
    assert memory.why(U1, receipt.record_id).standing.status == "withheld"


def test_all_consent_taken_back_withholds_plain_statements(memory: Memory) -> None:
    """A statement that the gate had nothing to say of is withheld too, until consent is granted again."""
    before = memory.remember(U1, "Tea at four")
    memory.withdraw_consent(U1)
    later = memory.remember(U1, "Coffee at five")
    for receipt in (before, later):
        assert memory.standing(U1, receipt).status == "withheld"
        why = memory.why(U1, receipt.record_id)
        assert (why.record, why.standing.reasons) == (None, ("its subject has withdrawn consent",))
    memory.grant_consent(U1)
    assert memory.standing(U1, later).status == "current"


def test_what_was_erased_is_told_and_not_known(memory: Memory) -> None:
    """An erased statement stands as erased; the same content said again is new."""
    first = memory.remember(U1, "Tea at four")
    memory.erase(U1, record=first.record_id).apply()
    assert memory.standing(U1, first).status == "erased"
    assert memory.why(U1, first.record_id).standing.reasons == ("its content was erased",)
    assert memory.why_not(U1, first.event_id).reason == "its content was erased"
    again = memory.standing(U1, memory.remember(U1, "Tea at four"))
    assert (again.status, again.known) == ("current", False)


def test_a_correction_without_authority_is_told(memory: Memory) -> None:
    """What an agent corrects of a person's words is recorded, and stands as outranked."""
    record = memory.remember(U1, "Tea at four").record_id
    said = memory.acting_as(agent()).correct(U1, record, "Tea at five")
    standing = memory.acting_as(agent()).standing(U1, said)
    assert (standing.status, standing.kept) == ("outranked", True)
    assert "higher authority" in standing.reasons[0]


def test_only_statements_have_a_standing(memory: Memory) -> None:
    """A turn is no statement, and no record: the errors name the call that tells of it."""
    turn = memory.record_turn(U1, role="user", content="hello")
    with pytest.raises(NotFound, match="why_not"):
        memory.standing(U1, turn)
    with pytest.raises(NotFound, match="why-not"):
        memory.why(U1, turn.event_id)


@pytest.mark.parametrize("text", SECRETS)
def test_a_person_cannot_keep_what_the_policy_blocks(memory: Memory, text: str) -> None:
    """A correction or an edit with a secret is refused before it is in the log; redacting, it is kept masked."""
    record = memory.remember(U1, "The server is in Seoul").record_id
    head = memory.operations.status().head
    with pytest.raises(NotKept, match=r"personal\.secret: block"):
        memory.correct(U1, record, text)
    assert memory.operations.status().head == head
    memory.operations.adopt_policy("version: 1\npersonal: {secret: redact, email: block}\n")
    memory.correct(U1, record, text)
    (kept,) = memory.records(U1)
    assert "hunter2" not in str(kept.content)
    with pytest.raises(NotKept, match=r"personal\.email: block"):
        memory.correct(U1, record, "mail a@example.com")


def test_an_edit_in_the_review_cannot_keep_it_either(memory: Memory) -> None:
    """Other words with a secret are refused."""
    memory.operations.adopt_policy(HEALTH)
    waits = memory.remember(U1, "The diagnosis is asthma").record_id
    with pytest.raises(NotKept):
        memory.review.edit(U1, waits, SECRETS[0])


def test_the_command_line_says_what_became_of_it(tmp_path: Path) -> None:
    """`remember` and `correct` tell dropped, held and withheld with the reason, as text and as JSON; `why` does too."""
    data = tmp_path / "data"
    with open_memory(data) as memory:
        memory.operations.adopt_policy(HEALTH)
    done = run(data, "remember", SECRETS[1])
    assert done.stdout.startswith("dropped: ") and "(holds a secret)" in done.stdout
    assert "mnemolog why" in done.stderr
    held = json.loads(run(data, "remember", "진단은 천식입니다", "--json").stdout)
    assert (held["status"], held["reasons"]) == ("held for review", ["is about a topic that needs consent"])
    assert "review approve" in run(data, "remember", "진단은 감기입니다").stderr
    record = json.loads(run(data, "remember", "Tea at four", "--json").stdout)["record_id"]
    assert run(data, "remember", "Tea at four").stdout.startswith("already known, evidence added: ")
    run(data, "erase", "--record", record, "--yes")
    assert "not in memory: erased" in run(data, "why", record).stdout
    assert run(data, "remember", "Tea at four").stdout.startswith("remembered: ")
    assert "personal.secret" in run(data, "correct", record, SECRETS[0], code=2).stderr
    assert "dropped" not in run(data, "status").stdout.partition("people did")[2]
    withdrawn = run(data, "consent", "withdraw")
    assert "what was said" in withdrawn.stderr and "mnemolog erase --subject u-1" in withdrawn.stderr
    assert "not in memory: withheld" in run(data, "why", record).stdout
    assert run(data, "correct", record, "Tea at six").stdout.startswith("withheld: ")

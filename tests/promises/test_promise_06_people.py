"""Promise 6: people outrank machines."""

from __future__ import annotations

import pytest

from face_world import U1, contents, rebuilt_hashes, user
from mnemolog import Memory

POLICIES = (
    "memory: {least_confidence: 0.99}",
    "memory: {kinds: [episode]}",
    "memory: {extractor: other-9}",
    "trust: {ceilings: {user: import, assistant: import, tool: import}}",
    "topics: {everything: {rule: forbidden, words: [fee, ledger, orders, 결제]}}",
    "topics: {everything: {rule: conditional, words: [fee, ledger, orders, 결제]}}",
)


def found(memory: Memory, text: str, tool: str | None = None) -> str:
    """The record that a text would make."""
    if tool is None:
        event = memory.record_turn(U1, role="user", content=text).event_id
    else:
        event = memory.record_tool_result(U1, output=text, name=tool).event_id
    memory.operations.extract()
    return memory.why_not(U1, event).outcomes[0].record_id


def decided(memory: Memory) -> list[str]:
    """One record of each decision that a person can make, by somebody who is no operator."""
    person = memory.acting_as(user("u-1"))
    corrected = found(memory, "Remember that the fee is 3%.")
    person.correct(U1, corrected, "the fee is 2%")
    approved = found(memory, "We use Postgres for the ledger.", tool="web")
    person.review.approve(U1, approved)
    edited = found(memory, "우리는 결제에 토스를 씁니다.", tool="web")
    person.review.edit(U1, edited, "결제는 토스로 한다")
    rejected = found(memory, "We use Fax for the orders.", tool="web")
    person.review.reject(U1, rejected)
    return [corrected, approved, edited, rejected]


WANTED = ["We use Postgres for the ledger", "the fee is 2%", "결제는 토스로 한다"]


@pytest.mark.parametrize("document", POLICIES)
def test_promise_6_decisions_survive_every_policy_and_every_replay(memory: Memory, document: str) -> None:
    """A correction, an approval, an edit and a rejection stand under any policy, however the log is folded."""
    decided(memory)
    assert sorted(map(str, contents(memory, U1))) == WANTED
    memory.operations.adopt_policy(f"version: 1\n{document}\n")
    assert sorted(map(str, contents(memory, U1))) == WANTED
    before = memory.operations.dump_hash("curated")
    assert rebuilt_hashes(memory, 1)["curated"] == before


def test_promise_6_what_was_rejected_does_not_come_back_by_repetition(memory: Memory) -> None:
    """After a person's rejection a tool is not heard; when the user says it themselves they are asked."""
    rejected = decided(memory)[-1]
    found(memory, "We use Fax for the orders.", tool="other")
    assert memory.review.list(U1) == []
    found(memory, "We use Fax for the orders.")
    (asked,) = memory.review.list(U1)
    assert (asked.record_id, asked.status) == (rejected, "needs confirmation")
    assert "was rejected by a person" in asked.reasons
    assert sorted(map(str, contents(memory, U1))) == WANTED
    memory.review.approve(U1, rejected)
    assert "We use Fax for the orders" in contents(memory, U1)


def test_promise_6_a_machine_does_not_undo_a_correction(memory: Memory) -> None:
    """The statement that was corrected, found again, changes nothing; a person's retraction brings nothing back."""
    corrected = decided(memory)[0]
    found(memory, "Remember that the fee is 3%.")
    assert "the fee is 2%" in contents(memory, U1)
    memory.retract(U1, corrected)
    found(memory, "Remember that the fee is 3%.", tool="web")
    assert not [text for text in contents(memory, U1) if "%" in str(text)]


def test_promise_6_an_approval_gives_no_trust(memory: Memory) -> None:
    """What a person let in keeps the trust of its source, also where only their decision is left of it."""
    approved = decided(memory)[1]
    before = memory.get(U1, approved).trust  # type: ignore[union-attr]
    memory.operations.adopt_policy("version: 1\nmemory: {kinds: [episode]}\n")
    assert memory.get(U1, approved).trust == before  # type: ignore[union-attr]
    assert before.name == "UNTRUSTED_TOOL"

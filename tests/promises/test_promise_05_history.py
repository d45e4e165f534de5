"""Promise 5: nothing is overwritten."""

from __future__ import annotations

import sqlite3

import pytest

from face_world import U1, agent, contents
from mnemolog import Memory, Receipt

SLOT = ("report", "format")
SAID = ("Reports go out as Excel", "Reports go out as PDF", "Reports go out as CSV")


def say_all(memory: Memory) -> list[Receipt]:
    return [memory.remember(U1, content, slot=SLOT) for content in SAID]


def stored(memory: Memory) -> list[tuple[object, ...]]:
    """The bytes of the log."""
    with sqlite3.connect(memory.path / "log.db") as connection:
        rows = connection.execute(
            "SELECT position, leaf, state FROM stored_events ORDER BY position"
        ).fetchall()
    connection.close()
    return rows


def test_promise_5_a_newer_fact_supersedes_and_the_older_ones_answer(memory: Memory) -> None:
    """Of three values the last is current; history and as-of reads give the others, with their links."""
    receipts = say_all(memory)
    assert contents(memory, U1) == [SAID[2]]
    for receipt, content in zip(receipts, SAID, strict=True):
        assert contents(memory, U1, believed_at=receipt.position) == [content]
        assert memory.get(U1, receipt.record_id).content == content
    assert [step.content for step in memory.history(U1, receipts[0].record_id)] == list(SAID)
    chain = [memory.get(U1, receipt.record_id) for receipt in receipts]
    ids = [receipt.record_id for receipt in receipts]
    assert [record.superseded_by for record in chain] == [ids[1], ids[2], None]
    assert [record.supersedes for record in chain] == [None, ids[0], ids[1]]


@pytest.mark.parametrize("how", ["retract", "event", "record"])
def test_promise_5_the_older_fact_returns_without_its_superseder(memory: Memory, how: str) -> None:
    """When the last of three values is retracted or erased, the second is current; then the first."""
    receipts = say_all(memory)
    for last in (2, 1):
        if how == "retract":
            memory.retract(U1, receipts[last].record_id, reason="withdrawn")
        else:
            target = receipts[last].event_id if how == "event" else receipts[last].record_id
            memory.erase(U1, **{how: target}).apply()
        assert contents(memory, U1) == [SAID[last - 1]]
        assert [hit.text for hit in memory.recall(U1, "reports")] == [SAID[last - 1]]
    statuses = [record.status for record in memory.records(U1, history=True)]
    assert sorted(statuses) == sorted(["current", *["retracted" if how == "retract" else "forgotten"] * 2])


def test_promise_5_a_corrected_text_is_kept_in_history(memory: Memory) -> None:
    """A correction changes what the record says now; what it said before stands in history and in as-of reads."""
    note = memory.remember(U1, SAID[0])
    memory.correct(U1, note.record_id, SAID[1], reason="asked")
    memory.retract(U1, note.record_id)
    assert contents(memory, U1) == []
    assert contents(memory, U1, believed_at=note.position) == [SAID[0]]
    assert contents(memory, U1, believed_at=note.position + 1) == [SAID[1]]
    steps = [(str(step.act), step.content, step.reason) for step in memory.history(U1, note.record_id)]
    assert steps == [("stated", SAID[0], None), ("corrected", SAID[1], "asked"), ("retracted", None, None)]


@pytest.mark.embedded
def test_promise_5_the_log_only_grows(memory: Memory) -> None:
    """No act changes a stored byte of an earlier event: not a correction, a retraction, an erasure or a rebuild."""
    note = say_all(memory)[0]
    turn = memory.record_turn(U1, role="user", content="hello")
    acts = [
        lambda: memory.correct(U1, note.record_id, "other"),
        lambda: memory.dispute(U1, note.record_id),
        lambda: memory.acting_as(agent()).retract(U1, note.record_id),
        lambda: memory.feedback(U1, turn.event_id, "up"),
        lambda: memory.erase(U1, event=turn.event_id).apply(),
        lambda: memory.erase(U1, session="s-1").apply(),
        lambda: memory.operations.rebuild("curated"),
        memory.operations.rotate_root_key,
    ]
    for act in acts:
        before = stored(memory)
        act()
        assert stored(memory)[: len(before)] == before
    assert memory.operations.verify_log() == memory.operations.status().head


def test_promise_5_what_was_said_in_a_chat_is_superseded_and_comes_back(memory: Memory) -> None:
    """Found statements too are superseded, never overwritten; when the newer turn is erased the older is current."""
    memory.record_turn(U1, role="user", content="I live in Daejeon.")
    later = memory.record_turn(U1, role="user", content="I moved to Jeju.")
    memory.operations.extract()
    assert contents(memory, U1) == ["I moved to Jeju"]
    assert contents(memory, U1, history=True) == ["I live in Daejeon", "I moved to Jeju"]
    position = memory.records(U1, history=True)[0].believed_from
    assert contents(memory, U1, believed_at=position) == ["I live in Daejeon"]
    memory.erase(U1, event=later.event_id).apply()
    assert contents(memory, U1) == ["I live in Daejeon"]

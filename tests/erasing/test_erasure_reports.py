"""What an erasure says of itself, and what a record keeps when a part of it is erased."""

import sqlite3
from pathlib import Path

import pytest

from face_world import open_memory
from mnemolog import Memory, Scope
from mnemolog.errors import InvalidInput

FIRST = Scope(tenant="a", user="u", session="s1")
SECOND = Scope(tenant="a", user="u", session="s2")


def test_a_correction_keeps_its_slot_when_the_statement_is_erased(memory: Memory) -> None:
    """A later value still supersedes: the correction stands in the slot that it corrected, not beside it."""
    note = memory.remember(FIRST, "Min lives at 12 Elm St", slot=("min", "address"), kind="preference")
    memory.correct(SECOND, note.record_id, "Min lives at 14 Elm St")
    assert memory.erase(Scope(tenant="a", user="u"), session="s1").apply().complete
    (left,) = memory.records(SECOND)
    assert (left.slot, left.kind, left.content) == (
        ("min", "address"),
        "preference",
        "Min lives at 14 Elm St",
    )
    memory.remember(SECOND, "Min lives at 99 Oak St", slot=("min", "address"))
    memory.operations.rebuild("curated")
    assert [record.status for record in memory.records(SECOND, history=True)].count("current") == 1


def test_a_restatement_is_about_whom_the_record_is_about(memory: Memory) -> None:
    """Saying it again without naming the person does not keep it from going with the person."""
    note = memory.remember(FIRST, "Kim sings on Mondays", subjects=["kim"])
    memory.remember(FIRST, "Kim sings on Mondays.")
    memory.erase(Scope(tenant="a"), subject="kim").apply()
    assert not memory.get(FIRST, note.record_id)
    assert memory.records(FIRST) == []


def test_erasing_again_finds_nothing(memory: Memory) -> None:
    """The second receipt counts nothing, because nothing was left to erase; the plan says so beforehand."""
    note = memory.remember(FIRST, "once")
    first = memory.erase(FIRST, record=note.record_id).apply()
    assert {store.store: store.found for store in first.stores}["log"] == 1
    plan = memory.erase(FIRST, record=note.record_id)
    assert plan.counts == {}
    assert all(store.found == store.removed == 0 for store in plan.apply().stores)


def test_a_plan_counts_what_holds_content_and_names_sessions(memory: Memory) -> None:
    """Events without content are not erased; a person can judge the plan by the session's name."""
    memory.open_session(FIRST)
    memory.record_turn(FIRST, role="user", content="hello")
    plan = memory.erase(Scope(tenant="a", user="u"), session="s1")
    assert (plan.counts, plan.sessions) == ({"TurnRecorded": 1}, ("s1",))


def test_an_erasure_that_a_reader_held_up_is_finished_later(tmp_path: Path) -> None:
    """While another process reads a view its purge is due: the receipt and the status say so, once, until done."""
    with open_memory(tmp_path / "data") as memory:
        memory.record_turn(FIRST, role="user", content="the marker is zebra")
        memory.operations.catch_up()
        (view,) = (tmp_path / "data" / "views").glob("turns-*.db")
        reader = sqlite3.connect(view)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM turns").fetchone()
        receipt = memory.erase(Scope(tenant="a"), subject="u").apply()
        assert receipt.pending and not receipt.complete
        assert memory.operations.status().pending_erasures == (receipt.erasure_id,)
        head = memory.operations.status().head
        reader.close()
        (finished,) = memory.operations.finish_erasures()
        assert finished.complete and finished.position == receipt.position
        assert memory.operations.status().head == head
        assert memory.operations.status().pending_erasures == ()
        assert b"zebra" not in view.read_bytes()


def test_the_log_can_be_read_by_scope(memory: Memory) -> None:
    """Only events that have all the levels asked for, whatever else is in the store."""
    memory.record_turn(FIRST, role="user", content="mine")
    memory.record_turn(Scope(tenant="b", user="v", session="s"), role="user", content="theirs")
    assert [each.event.content for each in memory.log(scope=Scope(tenant="b"))] == ["theirs"]
    assert memory.log(scope=Scope(tenant="nosuch")) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"since": "2026-02-01T00:00Z", "until": "2026-01-01T00:00Z"},
        {"kinds": ["foo"]},
        {"at_least": 10**6},
    ],
)
def test_what_no_answer_can_meet_is_refused(memory: Memory, asked: dict[str, object]) -> None:
    """A swapped range, an unknown kind and a position behind the head are mistakes, not empty answers."""
    memory.record_turn(FIRST, role="user", content="hello")
    with pytest.raises(InvalidInput):
        memory.recall(FIRST, "hello", **asked)  # type: ignore[arg-type]

"""Complaints about erasure elsewhere, and what is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from face_world import (
    ACME,
    U1,
    U2,
    contents,
    dump_hashes,
    everything,
    files_with,
    open_memory,
    rebuilt_hashes,
    texts,
)
from mnemolog import FORGOTTEN, Memory, Scope
from mnemolog.errors import ErasedScope, InvalidInput

CODE = "K-7741"
SECRET = f"Dana Oh's locker code is {CODE}"


@pytest.mark.embedded
def test_an_erased_record_leaves_no_row_no_slot_and_no_byte(memory: Memory) -> None:
    """A01: after erasing a record its slot is empty, nothing finds it, and no file holds its text."""
    note = memory.remember(U1, SECRET, slot=("Dana Oh", "locker code"))
    assert texts(memory, U1, "locker code") == [SECRET]
    assert files_with(memory.path / "views", CODE) != set()
    receipt = memory.erase(U1, record=note.record_id).apply()
    assert receipt.complete
    assert memory.recall(U1, "locker code", history=True) == []
    assert memory.records(U1) == []
    assert memory.get(U1, note.record_id) is FORGOTTEN
    assert files_with(memory.path, CODE, "Dana Oh", "locker") == set()


def test_what_is_left_of_an_erased_record_is_its_id(memory: Memory) -> None:
    """A02: history and log keep the ids of an erased record and its acts, never a text or a reason."""
    note = memory.remember(U1, SECRET)
    memory.correct(U1, note.record_id, f"{SECRET} B", reason=f"the reason says {CODE}")
    memory.erase(U1, record=note.record_id, reason="asked").apply()
    steps = memory.history(U1, note.record_id)
    assert [(step.record, step.content, step.reason, step.effect) for step in steps] == [
        (note.record_id, None, None, "forgotten")
    ] * 2
    assert CODE not in repr(memory.log(limit=1000))
    assert {each.envelope.topic for each in memory.log(limit=1000) if each.event is FORGOTTEN} == {
        "MemoryStated",
        "MemoryCorrected",
    }


def test_the_older_fact_is_current_again_without_its_superseder(memory: Memory) -> None:
    """A04: erasing what superseded a fact makes the fact current again, and as-of reads show nothing erased."""
    slot = ("Min", "home")
    old = memory.remember(U1, "Min lives in Daejeon", slot=slot)
    new = memory.remember(U1, "Min moved to Jeju", slot=slot)
    assert contents(memory, U1) == ["Min moved to Jeju"]
    memory.erase(U1, record=new.record_id).apply()
    assert contents(memory, U1) == ["Min lives in Daejeon"]
    assert "Jeju" not in everything(memory, U1, "Min lives moved Jeju Daejeon")
    assert "Jeju" not in repr(memory.records(U1, believed_at=new.position, history=True))
    assert memory.get(U1, old.record_id).status == "current"


def test_a_late_event_of_an_erased_session_is_refused_and_counted(memory: Memory) -> None:
    """A08: what arrives late for an erased session is refused and counted, and a replay does not bring it back."""
    memory.record_turn(U1, role="user", content="the wine cellar is open")
    memory.erase(U1, session="s-1").apply()
    before = memory.operations.status().refused_late
    with pytest.raises(ErasedScope):
        memory.record_turn(
            U1, role="user", content="the wine cellar again", occurred_at="2025-12-31T00:00:00Z"
        )
    with pytest.raises(ErasedScope):
        memory.record_messages(U1, [{"role": "user", "content": "the wine cellar, now"}])
    assert memory.operations.status().refused_late == before + 2
    rebuilt_hashes(memory)
    assert "cellar" not in everything(memory, U1, "wine cellar")


def test_a_rebuild_brings_nothing_back(memory: Memory) -> None:
    """A10: views that are built anew after an erasure equal the live ones, and show nothing of it."""
    kept = memory.remember(U1, "Reports go out as PDF")
    note = memory.remember(U1, SECRET)
    memory.erase(U1, record=note.record_id).apply()
    live = dump_hashes(memory)
    for batch in (1, 3, 1000):
        assert rebuilt_hashes(memory, batch) == live
    assert CODE not in everything(memory, U1, "locker code Dana reports")
    assert [record.record_id for record in memory.records(U1)] == [kept.record_id]


@pytest.mark.embedded
def test_deleted_text_leaves_the_files(memory: Memory) -> None:
    """A13: of three turns, one of them large, the erased one is in no view and no blob, also not in free pages."""
    for word in ("alpha", "gamma"):
        memory.record_turn(U1, role="user", content=f"about {word}")
    doomed = memory.record_tool_result(U1, output=f"{CODE} " + "filler " * 40_000)
    assert memory.read_output(U1, doomed.event_id, 0, 6).text == CODE
    assert len(list((memory.path / "blobs").iterdir())) == 1
    receipt = memory.erase(U1, event=doomed.event_id).apply()
    assert receipt.complete
    assert files_with(memory.path, CODE, "filler") == set()
    assert list((memory.path / "blobs").iterdir()) == []
    assert files_with(memory.path / "views", "alpha") != set()


def test_an_erasure_is_not_complete_while_bytes_are_left(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A13: where a file could not be written anew the receipt says so, and the next opening makes up for it."""
    note = memory.remember(U1, SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(memory._store.runner, "purge", lambda name: False)
        receipt = memory.erase(U1, record=note.record_id).apply()
    assert not receipt.complete
    assert {store.store for store in receipt.stores if store.due} == {
        "view catalog",
        "view turns",
        "view curated",
        "view summaries",
        "view working",
        "view access",
    }
    assert memory.get(U1, note.record_id) is FORGOTTEN
    path = memory.path
    memory.close()
    with open_memory(path) as again:
        assert files_with(path, CODE) == set()
        assert again.operations.status().pending_erasures == ()
        assert again.get(U1, note.record_id) is FORGOTTEN


@pytest.mark.embedded
def test_the_log_is_kept_and_cannot_be_read(memory: Memory, tmp_path: Path) -> None:
    """A14: the log of an erased person stays, verifies and says FORGOTTEN; a copy from before opens no more."""
    said = memory.record_turn(U1, role="user", content=SECRET)
    memory._store.log.checkpoint()
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(memory.path / "log.db", copy / "log.db")
    receipt = memory.erase(ACME, subject="u-1").apply()
    log = next(store for store in receipt.stores if store.store == "log")
    assert (log.found, log.removed, log.readable) == (1, 1, 0)
    assert memory.operations.verify_log() == memory.operations.status().head
    assert memory.log()[0].event is FORGOTTEN
    for name in ("keys.db", "root.key"):
        shutil.copy(memory.path / name, copy / name)
    with open_memory(copy) as old:
        assert [each.envelope.id for each in old.log()] == [said.event_id]
        assert old.log()[0].event is FORGOTTEN
        assert files_with(copy, CODE) == set()


def test_a_record_goes_on_with_the_evidence_that_is_left(memory: Memory) -> None:
    """A16: without one of its two statements a record stays, with less confidence and the reason why."""
    first = memory.remember(U1, "Min prefers tea", key="e1")
    second = memory.remember(U1, "Min prefers tea.", key="e4")
    assert first.record_id == second.record_id
    memory.erase(U1, event=first.event_id).apply()
    record = memory.get(U1, first.record_id)
    assert record.content == "Min prefers tea."
    assert record.event_ids == (second.event_id,)
    assert record.confidence == 0.5
    assert record.weakened == "1 of 2 pieces of evidence were erased"


def test_erasing_one_person_leaves_the_other(memory: Memory) -> None:
    """A18: erasing a person with three records leaves the neighbour's five; an erasure needs a target."""
    for number in range(3):
        memory.remember(U1, f"first person's fact {number}")
    for number in range(5):
        memory.remember(U2, f"second person's fact {number}")
    for wrong in ({}, {"subject": ""}, {"session": " "}, {"subject": "u-1", "event": "x"}):
        with pytest.raises(InvalidInput):
            memory.erase(ACME, **wrong)
    with pytest.raises(InvalidInput):
        memory.erase(Scope(""), subject="u-1")
    memory.erase(ACME, subject="u-1").apply()
    assert memory.records(U1) == []
    assert len(memory.records(U2)) == 5
    assert len(memory.recall(U2, "fact")) == 5


def test_a_large_output_is_unlinked_with_its_event(memory: Memory) -> None:
    """A19: each event has a blob of its own, so erasing one of two equal outputs unlinks one file."""
    text = "row 4711, " * 30_000
    one, two = (memory.record_tool_result(U1, output=text) for _ in range(2))
    assert {path.name for path in (memory.path / "blobs").iterdir()} == {one.event_id, two.event_id}
    memory.erase(U1, event=one.event_id).apply()
    assert {path.name for path in (memory.path / "blobs").iterdir()} == {two.event_id}
    assert memory.read_output(U1, one.event_id) is FORGOTTEN
    assert memory.read_output(U1, two.event_id, 0, 8).text == "row 4711"


def test_a_plan_lists_what_its_application_erases(memory: Memory) -> None:
    """J08: a plan changes nothing and lists the ids; applying it erases exactly those."""
    cited = memory.record_turn(U1, role="user", content="call me at noon")
    note = memory.remember(U1, "Call at noon", evidence=[cited.event_id])
    other = memory.remember(U1, "Call by name")
    plan = memory.erase(U1, record=note.record_id)
    assert set(plan.events) == {cited.event_id, note.event_id}
    assert plan.records == (note.record_id,)
    assert plan.counts == {"TurnRecorded": 1, "MemoryStated": 1}
    assert set(contents(memory, U1)) == {"Call at noon", "Call by name"}
    assert plan.apply().events == 2
    forgotten = {each.envelope.id for each in memory.log() if each.event is FORGOTTEN}
    assert forgotten == set(plan.events)
    assert memory.get(U1, other.record_id).content == "Call by name"


def test_evidence_that_is_kept_is_named(memory: Memory) -> None:
    """J08: with keep_evidence the cited turn stays, and the receipt is not complete because of it."""
    cited = memory.record_turn(U1, role="user", content="call me at noon")
    note = memory.remember(U1, "Call at noon", evidence=[cited.event_id])
    receipt = memory.erase(U1, record=note.record_id, keep_evidence=True).apply()
    assert receipt.evidence_left == (cited.event_id,)
    assert not receipt.complete
    assert memory.get(U1, cited.event_id).text == "call me at noon"
    assert memory.get(U1, note.record_id) is FORGOTTEN

"""Promise 8: erased means erased."""

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
)
from mnemolog import FORGOTTEN, Memory, Receipt, Scope
from mnemolog.errors import ErasedScope

ENGLISH, KOREAN = "zyxwombatqk", "뷁쀍춃뽥"
MARKER = f"{ENGLISH} {KOREAN}"


def leave_traces(memory: Memory) -> tuple[Receipt, Receipt]:
    """The marker in everything that a person can leave behind: turns, tools, blobs, records, reasons, comments."""
    turn = memory.record_turn(U1, role="user", content=f"say {MARKER}", author=f"{ENGLISH} Kim")
    note = memory.remember(U1, f"note {MARKER}", slot=(KOREAN, ENGLISH), evidence=[turn.event_id])
    memory.correct(U1, note.record_id, f"corrected {MARKER}", reason=f"because {MARKER}")
    memory.dispute(U1, note.record_id, reason=f"doubt {MARKER}")
    return turn, note


def leave_session_traces(memory: Memory) -> None:
    memory.open_session(U1, timezone="Asia/Seoul", title=MARKER)
    memory.record_tool_call(U1, name=ENGLISH, arguments={KOREAN: MARKER}, call_id=ENGLISH)
    memory.record_tool_result(U1, output=f"{MARKER} " * 20_000, source=(ENGLISH, KOREAN), call_id=ENGLISH)
    memory.record_chunk(U1, role="user", content=MARKER, utterance=ENGLISH, index=0)
    memory.record_messages(U1, [{"role": "user", "content": f"message {MARKER}"}])
    turn = memory.record_turn(U1, role="user", content="judge me")
    memory.feedback(U1, turn.event_id, "down", comment=MARKER)
    memory.context(U1, MARKER, budget=2000)
    memory.recall(U1, MARKER)
    memory.close_session(U1, reason=MARKER)


@pytest.mark.embedded
@pytest.mark.parametrize("what", ["event", "record", "session", "subject"])
def test_promise_8_no_byte_is_left_of_what_was_erased(memory: Memory, tmp_path: Path, what: str) -> None:
    """After erasing an event, a record, a session or a person no file holds the text; before, the views did."""
    memory.record_turn(U2, role="user", content="the neighbour's turn")
    kept = memory.remember(U2, "the neighbour's fact")
    turn, note = leave_traces(memory)
    if what in ("session", "subject"):
        leave_session_traces(memory)
    memory.operations.catch_up()
    for marker in (ENGLISH, KOREAN):
        assert files_with(memory.path / "views", marker), (
            "the control: without an erasure the scan finds the text"
        )
        assert not {name for name in files_with(memory.path, marker) if not name.startswith("views/")}
    copy = tmp_path / "copy"
    memory._store.log.checkpoint()
    copy.mkdir()
    shutil.copy(memory.path / "log.db", copy)

    scope = ACME if what == "subject" else U1
    target = {"event": turn.event_id, "record": note.record_id, "session": "s-1", "subject": "u-1"}[what]
    plan = memory.erase(scope, **{what: target}, reason=f"they said {MARKER}" if what == "subject" else None)
    receipt = plan.apply()
    assert receipt.complete
    assert receipt.events == len(plan.events)
    if what == "event":
        # The record rested on the erased turn and went with it; its later acts are statements of their own.
        memory.erase(U1, record=note.record_id).apply()
    assert files_with(memory.path, ENGLISH, KOREAN) == set()
    assert ENGLISH not in everything(memory, U1, MARKER)
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory, 3) == live
    assert files_with(memory.path, ENGLISH, KOREAN) == set()
    assert contents(memory, U2) == ["the neighbour's fact"]
    assert len(memory.recall(U2, "neighbour")) == 2
    assert memory.get(U2, kept.record_id).version == 1

    path = memory.path
    memory.close()
    assert files_with(path, ENGLISH, KOREAN) == set()
    for name in ("keys.db", "root.key"):
        shutil.copy(path / name, copy)
    with open_memory(copy) as old:
        events = {each.envelope.id: each.event for each in old.log(limit=1000)}
        assert all(events[event_id] is FORGOTTEN for event_id in plan.events)
        assert files_with(copy, ENGLISH, KOREAN) == set()


def test_promise_8_a_person_who_comes_back_is_new(memory: Memory) -> None:
    """The same name may come back in a new session, under a new id; nothing of before is seen or can be sent late."""
    memory.record_turn(U1, role="user", content="before", key="k")
    memory.remember(U1, "the old fact")
    old = memory.log()[0].envelope.scope.user
    memory.erase(ACME, subject="u-1").apply()
    with pytest.raises(ErasedScope):
        memory.record_turn(U1, role="user", content="before", key="k")
    again = Scope("acme", user="u-1", session="s-2")
    with pytest.raises(ErasedScope):
        memory.record_turn(again, role="user", content="late", occurred_at="2025-01-01T00:00:00Z")
    assert memory.operations.status().refused_late == 2
    back = memory.record_turn(again, role="user", content="I am back", key="k")
    assert not back.duplicate
    assert memory.log(after=back.position - 1)[0].envelope.scope.user != old
    assert memory.records(again, history=True) == []
    assert [hit.text for hit in memory.recall(again, "before back")] == ["I am back"]


def test_promise_8_a_correction_is_about_whom_the_record_is_about(memory: Memory) -> None:
    """What others change in a record about a person, in a scope that is not the person's, goes with the person."""
    note = memory.remember(ACME, "Kim is allergic to nuts", subjects=["kim"])
    memory.correct(ACME, note.record_id, f"Kim is allergic to {ENGLISH}", reason=ENGLISH)
    memory.feedback(ACME, note.record_id, "down", comment=f"no: {ENGLISH}")
    turn = memory.record_turn(U2, role="user", content="about Kim", subjects=["kim"])
    memory.feedback(U2, turn.event_id, "up", comment=f"yes: {ENGLISH}")
    memory.remember(U2, f"cites Kim {ENGLISH}", evidence=[turn.event_id])
    memory.remember(U2, "unrelated")
    assert memory.erase(ACME, subject="kim").apply().complete
    assert files_with(memory.path, ENGLISH) == set()
    assert memory.records(ACME) == []
    assert contents(memory, U2) == ["unrelated"]


def test_promise_8_readers_of_what_is_gone_get_forgotten(memory: Memory) -> None:
    """Every read of an erased id answers FORGOTTEN, also when its person is gone, and counts as no refusal."""
    turn, note = leave_traces(memory)
    memory.erase(U1, record=note.record_id).apply()
    assert memory.get(U1, note.record_id) is FORGOTTEN
    assert memory.get(U1, turn.event_id) is FORGOTTEN
    assert memory.read_output(U1, turn.event_id) is FORGOTTEN
    memory.erase(ACME, subject="u-1").apply()
    for scope in (U1, ACME):
        assert memory.get(scope, turn.event_id) is FORGOTTEN
        assert memory.read_output(scope, turn.event_id) is FORGOTTEN
    assert memory.operations.status().refused_access == 0

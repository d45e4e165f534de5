"""Working state: structured, merged key by key, with the version that a writer expects."""

from __future__ import annotations

import pytest

from face_world import files_with
from mnemolog import Memory, Scope
from mnemolog._writing import About
from mnemolog.errors import InvalidInput, VersionConflict
from summaries_world import S1, S2, desk, ids_of


def test_keys_are_merged_and_none_removes(memory: Memory) -> None:
    """A change names only its own keys; each key tells who changed it, in which version."""
    work = desk(memory)
    assert work.state(S1, "export") == work.state(S1, "export") and work.state(S1, "export").version == 0
    first = work.set_state(S1, "export", {"step": 1, "files": ["a.py"], "note": "기억"}, 0, About())
    assert first.version == 1
    second = work.set_state(S1, "export", {"step": 2, "files": None}, 1, About())
    state = work.state(S1, "export")
    assert (state.version, state.values) == (2, {"note": "기억", "step": 2})
    assert state.changes["step"].event_id == second.event_id
    assert (state.changes["note"].event_id, state.changes["note"].version) == (first.event_id, 1)
    assert state.changes["step"].actor == memory.log(limit=99)[-1].envelope.actor


def test_a_writer_with_an_old_version_is_told(memory: Memory) -> None:
    """Of two agents that saw the same version one gets a conflict, and nothing of its change is kept."""
    work = desk(memory)
    work.set_state(S1, "export", {"step": 1}, 0, About())
    work.set_state(S1, "export", {"step": 2}, 1, About())
    with pytest.raises(VersionConflict) as conflict:
        work.set_state(S1, "export", {"step": 9, "mine": True}, 1, About())
    assert (conflict.value.expected, conflict.value.actual) == (1, 2)
    assert work.state(S1, "export").values == {"step": 2}
    assert work.set_state(S1, "export", {"step": 3}, None, About()).version == 3


def test_tasks_and_sessions_do_not_mix(memory: Memory) -> None:
    """Each task of each session has a state of its own; agents of a session share it; strangers see none."""
    work = desk(memory)
    work.set_state(S1, "export", {"step": 1}, 0, About())
    work.set_state(S1, "import", {"step": 2}, 0, About())
    work.set_state(S2, "export", {"step": 3}, 0, About())
    assert [(one.task, one.values) for one in work.states(S1)] == [
        ("export", {"step": 1}),
        ("import", {"step": 2}),
    ]
    other_agent = Scope("acme", user="u-1", project="heron", session="s-1", agent="second")
    assert work.state(other_agent, "export").values == {"step": 1}
    stranger = Scope("acme", user="u-2", project="heron", session="s-1")
    memory.open_session(stranger)
    assert work.state(stranger, "export").values == {} and work.states(stranger) == []
    assert work.state(Scope("nobody", session="s-1"), "export").version == 0


def test_an_erased_change_gives_way_to_what_is_left(memory: Memory) -> None:
    """Erasing a change removes its keys, or gives them back their value before; the version goes on counting."""
    work = desk(memory)
    work.set_state(S1, "export", {"step": "first", "keep": 1}, 0, About())
    second = work.set_state(S1, "export", {"step": "marker77", "secret": "marker78"}, 1, About())
    third = work.set_state(S1, "export", {"keep": None}, 2, About())
    assert memory.erase(S1, event=second.event_id).apply().complete
    state = work.state(S1, "export")
    assert (state.version, state.values) == (3, {"step": "first"})
    assert files_with(memory.path, "marker77", "marker78") == set()
    memory.erase(S1, event=third.event_id).apply()
    assert work.state(S1, "export").values == {"step": "first", "keep": 1}
    assert work.set_state(S1, "export", {"step": "next"}, 3, About()).version == 4


def test_a_task_of_which_nothing_is_left_keeps_its_version(memory: Memory) -> None:
    """The next writer expects the version that the log has, and the task is listed no more."""
    work = desk(memory)
    only = work.set_state(S1, "export", {"step": 1}, 0, About())
    memory.erase(S1, event=only.event_id).apply()
    assert (work.state(S1, "export").values, work.state(S1, "export").version) == ({}, 1)
    assert work.states(S1) == []
    assert work.set_state(S1, "export", {"step": 2}, 1, About()).version == 2


def test_working_state_goes_with_its_person(memory: Memory) -> None:
    """After a person is erased nothing of the state is readable, and a rebuild says the same."""
    work = desk(memory)
    work.set_state(S1, "export", {"phone": "marker79"}, 0, About())
    session = ids_of(memory, S1).session
    assert memory.erase(Scope("acme"), subject="u-1").apply().complete
    assert files_with(memory.path, "marker79") == set()
    live = memory.operations.dump_hash("working")
    memory.operations.rebuild("working", batch_size=1)
    assert memory.operations.dump_hash("working") == live and session is not None


def test_what_cannot_be_state_is_refused(memory: Memory) -> None:
    """A scope without a session, no keys, no JSON, too much of it: each says what to do."""
    work = desk(memory)
    with pytest.raises(InvalidInput, match="session="):
        work.set_state(Scope("acme", user="u-1"), "export", {"a": 1}, None, About())
    for values in ({}, {"": 1}, {"a": object()}, {"a": "x" * 70_000}, {"a": float("nan")}):
        with pytest.raises(InvalidInput):
            work.set_state(S1, "export", values, None, About())
    assert memory.operations.status().head == 0


def test_a_repeated_change_is_one_change(memory: Memory) -> None:
    """The same key with the same values is answered with the first receipt."""
    work = desk(memory)
    first = work.set_state(S1, "export", {"step": 1}, 0, About(key="k-1"))
    again = work.set_state(S1, "export", {"step": 1}, 0, About(key="k-1"))
    assert again.duplicate and again.event_id == first.event_id

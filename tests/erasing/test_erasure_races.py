"""Writers that race with an erasure never leave anything readable of what was erased."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

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
from mnemolog import Memory, Receipt, Scope
from mnemolog.errors import ErasedScope, MnemologError, NotFound, VersionConflict

SECRET = "zyxwombatqk"


@pytest.mark.parametrize("what", ["session", "subject"])
def test_writers_that_race_with_an_erasure_leave_nothing(tmp_path: Path, what: str) -> None:
    """Four threads write to a session while it (or its person) is erased: no text of theirs is left, in any store."""
    with open_memory(tmp_path / "data", background=True) as memory:
        memory.remember(U2, "the neighbour's fact")
        memory.record_turn(U1, role="user", content=f"{SECRET} first")
        started, stop = Event(), Event()

        def write(number: int) -> int:
            """How many writes were refused."""
            refused = 0
            for step in range(400):
                if stop.is_set() and refused:
                    break
                started.set()
                try:
                    say(memory, number, step)
                except ErasedScope:
                    refused += 1
            return refused

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, number) for number in range(4)]
            started.wait()
            target = {"session": "s-1", "subject": "u-1"}[what]
            receipt = memory.erase(ACME if what == "subject" else U1, **{what: target}).apply()
            stop.set()
            refused = [writer.result() for writer in writers]
        assert all(refused), "each writer was refused after the erasure"
        assert memory.operations.status().refused_late >= sum(refused)
        assert receipt.complete
        assert SECRET not in everything(memory, U1, SECRET)
        assert SECRET not in repr(memory.log(limit=10_000))
        assert files_with(memory.path, SECRET) == set()
        assert contents(memory, U2) == ["the neighbour's fact"]
        live = dump_hashes(memory)
        assert rebuilt_hashes(memory, 7) == live
        assert SECRET not in everything(memory, U1, SECRET)


def say(memory: Memory, number: int, step: int) -> None:
    text = f"{SECRET} {number} {step}"
    if step % 7 == 6:
        memory.record_tool_result(U1, output=f"{text} " * 8_000)
    elif number == 0:
        memory.record_turn(U1, role="user", content=text)
    elif number == 1:
        memory.remember(U1, text, slot=("race", str(step % 3)))
    elif number == 2:
        with suppress(VersionConflict):  # the others were quicker every time
            memory.record_messages(U1, [{"role": "user", "content": text}])
    else:
        (result,) = memory.record_batch([{"type": "turn", "scope": U1, "role": "user", "content": text}])
        if isinstance(result, MnemologError):
            raise result


def in_flight(memory: Memory, write: Callable[[], Receipt], meanwhile: Callable[[], Any]) -> None:
    """Let `meanwhile` happen when `write` has everything but its place in the log; it must be refused and counted."""
    log = memory._store.log
    append = log.append

    def late(drafts: Any) -> list[Receipt]:
        log.append = append  # type: ignore[method-assign]
        meanwhile()
        return append(drafts)

    before = memory.operations.status().refused_late
    log.append = late  # type: ignore[method-assign]
    with pytest.raises(ErasedScope):
        write()
    assert memory.operations.status().refused_late == before + 1


WRITES: dict[str, Callable[[Memory, str, str], Receipt]] = {
    "turn": lambda m, event, record: m.record_turn(U1, role="user", content=SECRET),
    "blob": lambda m, event, record: m.record_tool_result(U1, output=f"{SECRET} " * 9_000),
    "statement": lambda m, event, record: m.remember(U1, SECRET),
    "correction": lambda m, event, record: m.correct(U1, record, SECRET),
    "feedback": lambda m, event, record: m.feedback(U1, event, "up", comment=SECRET),
    "messages": lambda m, event, record: m.record_messages(U1, [{"role": "user", "content": SECRET}])[0],
}


@pytest.mark.parametrize("what", ["session", "subject"])
@pytest.mark.parametrize("kind", WRITES)
def test_a_write_in_flight_is_refused_and_counted(memory: Memory, what: str, kind: str) -> None:
    """A write that began before an erasure of its session or person cannot be appended after it, nor leave a blob."""
    turn = memory.record_turn(U1, role="user", content="hello")
    note = memory.remember(U1, "a fact")
    target = {"session": "s-1", "subject": "u-1"}[what]
    plan = memory.erase(ACME if what == "subject" else U1, **{what: target})
    in_flight(memory, lambda: WRITES[kind](memory, turn.event_id, note.record_id), plan.apply)
    assert files_with(memory.path, SECRET) == set()
    assert list((memory.path / "blobs").iterdir()) == []
    assert SECRET not in everything(memory, U1, SECRET)


def test_what_rests_on_an_erased_event_is_refused_in_flight(memory: Memory) -> None:
    """A statement or a judgement that began before its source was erased is refused, with the session still open."""
    for write in (
        lambda event: memory.remember(U1, f"derived {SECRET}", evidence=[event]),
        lambda event: memory.feedback(U1, event, "up", comment=SECRET),
    ):
        source = memory.record_turn(U1, role="user", content=f"source {SECRET}")
        plan = memory.erase(U1, event=source.event_id)
        in_flight(memory, lambda write=write, event=source.event_id: write(event), plan.apply)
        with pytest.raises(NotFound):
            memory.remember(U1, "too late", evidence=[source.event_id])
    memory.record_turn(U1, role="user", content="the session goes on")
    assert files_with(memory.path, SECRET) == set()


def test_a_key_of_an_erased_event_brings_nothing_back(memory: Memory) -> None:
    """Redelivery of an erased event by its key yields the first receipt and no event; by history, nothing."""
    first = memory.record_turn(U1, role="user", content=f"{SECRET} text", key="k-1")
    large = memory.record_tool_result(U1, output=f"{SECRET} " * 9_000, key="k-2", call_id="c")
    for receipt in (first, large):
        memory.erase(U1, event=receipt.event_id).apply()
    head = memory.operations.status().head
    again = memory.record_turn(U1, role="user", content=f"{SECRET} text", key="k-1")
    assert (again.event_id, again.duplicate) == (first.event_id, True)
    assert memory.record_tool_result(U1, output=f"{SECRET} " * 9_000, key="k-2", call_id="c").duplicate
    history = [
        {"role": "user", "content": f"{SECRET} text"},
        {"role": "tool", "tool_call_id": "c", "content": f"{SECRET} " * 9_000},
    ]
    assert memory.record_messages(U1, history) == []
    assert memory.operations.status().head == head
    assert files_with(memory.path, SECRET) == set()


def test_two_erasures_at_once_both_finish(tmp_path: Path) -> None:
    """Erasing two sessions and a person in parallel leaves each complete, and the neighbour as it was."""
    with open_memory(tmp_path / "data", background=True) as memory:
        scopes = [Scope("acme", user="u-1", session=f"s-{number}") for number in range(3)]
        for scope in [*scopes, U2]:
            for number in range(20):
                memory.record_turn(scope, role="user", content=f"{SECRET} {number}")
        plans = [memory.erase(scope, session=scope.session) for scope in scopes[:2]]
        plans.append(memory.erase(ACME, subject="u-1"))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda plan: plan.apply(), plans))
        assert memory.operations.status().pending_erasures == ()
        assert all(SECRET not in everything(memory, scope, SECRET) for scope in scopes)
        assert len(memory.recall(U2, SECRET, k=50)) == 20
        live = dump_hashes(memory)
        assert rebuilt_hashes(memory, 11) == live

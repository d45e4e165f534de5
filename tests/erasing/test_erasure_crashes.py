"""An erasure that is cut off anywhere is finished when the memory is opened next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
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
from mnemolog import Memory
from mnemolog.errors import ErasedScope

SECRET = "zyxwombatqk"
STEPS = ("destroying keys", "cleaning views", "removing large outputs", "purging files", "looking again")
WHAT = ("event", "record", "session", "subject")


class Crash(BaseException):
    """The process ends here."""


def every_third(whats: Sequence[str], places: Sequence[str]) -> list[Any]:
    """All pairs; two of three are left to the long run."""
    return [
        pytest.param(what, place, marks=() if (row + column) % 3 == 0 else pytest.mark.slow)
        for row, what in enumerate(whats)
        for column, place in enumerate(places)
    ]


def prepare(memory: Memory) -> dict[str, str]:
    """A secret turn, cited by a secret record, a secret blob, and a neighbour; the targets to erase."""
    memory.record_turn(U2, role="user", content="the neighbour stays")
    memory.remember(U2, "the neighbour's fact")
    large = memory.record_tool_result(U1, output=f"{SECRET} " * 20_000)
    note = memory.remember(U1, f"{SECRET} note", evidence=[large.event_id])
    memory.operations.catch_up()
    return {"event": large.event_id, "record": note.record_id, "session": "s-1", "subject": "u-1"}


def erase(memory: Memory, what: str, target: str, progress: Callable[[str], None] | None = None) -> None:
    memory.erase(ACME if what == "subject" else U1, **{what: target}, reason="asked").apply(progress)


def leave(memory: Memory) -> None:
    """As a dying process does: files are as they are, and the lock is gone."""
    memory._store.leadership.release()


def assert_finished(path: Path, what: str) -> None:
    with open_memory(path) as memory:
        assert memory.operations.status().pending_erasures == ()
        assert SECRET not in everything(memory, U1, SECRET)
        assert files_with(path, SECRET) == set()
        assert list((path / "blobs").iterdir()) == []
        assert contents(memory, U2) == ["the neighbour's fact"]
        assert len(memory.recall(U2, "neighbour")) == 2
        requested = memory.log(topics={"ErasureRequested"})
        assert len(requested) == 1
        assert (
            len({each.envelope.clear["erasure"] for each in memory.log() if "erasure" in each.envelope.clear})
            == 1
        )
        if what in ("session", "subject"):
            with pytest.raises(ErasedScope):
                memory.record_turn(U1, role="user", content="late", occurred_at="2025-01-01T00:00:00Z")
        live = dump_hashes(memory)
        assert rebuilt_hashes(memory, 2) == live
        assert memory.operations.verify_log() == memory.operations.status().head


@pytest.mark.parametrize(("what", "step"), every_third(WHAT, STEPS))
def test_a_crash_at_a_step_is_made_up_for(tmp_path: Path, what: str, step: str) -> None:
    """Cut off as a step begins, the erasure is completed at the next opening, once, and the neighbour is untouched."""
    path = tmp_path / "data"
    memory = open_memory(path)
    target = prepare(memory)[what]

    def crash(name: str) -> None:
        if name == step:
            raise Crash

    with pytest.raises(Crash):
        erase(memory, what, target, crash)
    assert len(memory.operations.status().pending_erasures) == 1
    leave(memory)
    assert_finished(path, what)


INSIDE = {
    "before the request": ("log", "append", False),
    "after the request": ("log", "append", True),
    "before the keys": ("vault", "_destroy", False),
    "after the keys": ("vault", "_destroy", True),
    "after the views": ("runner", "catch_up_all", True),
    "after the blobs": ("blobs", "delete", True),
    "after the purge": ("runner", "purge", True),
}


@pytest.mark.parametrize(("what", "place"), every_third(WHAT, tuple(INSIDE)))
def test_a_crash_between_two_writes_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, place: str
) -> None:
    """Cut off between any two of its writes, the erasure is completed at the next opening."""
    path = tmp_path / "data"
    memory = open_memory(path)
    target = prepare(memory)[what]
    part, method, after = INSIDE[place]
    if method == "_destroy":
        method = "destroy_subject" if what == "subject" else "destroy_leaves"
    owner = getattr(memory._store, part)
    real = getattr(owner, method)

    def crash(*args: Any, **options: Any) -> None:
        if after:
            real(*args, **options)
        raise Crash

    plan = memory.erase(ACME if what == "subject" else U1, **{what: target}, reason="asked")
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, crash)
        with pytest.raises(Crash):
            plan.apply()
    leave(memory)
    assert_finished(path, what)


KILLED = """
import os, signal, sys
from mnemolog import Memory, Scope
path, what, target, step = sys.argv[1:]
memory = Memory.open(path)

def die(name):
    if name == step:
        os.kill(os.getpid(), signal.SIGKILL)

scope = Scope("acme") if what == "subject" else Scope("acme", user="u-1", project="billing", session="s-1")
memory.erase(scope, **{what: target}).apply(progress=die)
"""


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("what", "step"), list(zip(WHAT, (STEPS[0], STEPS[1], STEPS[2], STEPS[3]), strict=True))
)
def test_a_killed_process_is_made_up_for(tmp_path: Path, what: str, step: str) -> None:
    """kill -9 in the middle of an erasure leaves a note, and the next opening completes it."""
    path = tmp_path / "data"
    with open_memory(path) as memory:
        target = prepare(memory)[what]
    command = [sys.executable, "-c", KILLED, str(path), what, target, step]
    done = subprocess.run(command, check=False, env={**os.environ, "MNEMOLOG_DURABILITY": "os"})
    assert done.returncode == -signal.SIGKILL
    assert_finished(path, what)


def test_a_finished_erasure_may_be_asked_for_again(memory: Memory) -> None:
    """Erasing what is erased is no error: the plan is empty, and its application is complete."""
    targets = prepare(memory)
    for what in ("event", "record", "session"):
        erase(memory, what, targets[what])
        again = memory.erase(U1, **{what: targets[what]})
        assert again.events == ()
        assert again.apply().complete


def test_a_plan_that_is_applied_late_takes_what_came_since(memory: Memory) -> None:
    """Between plan and application more may rest on the erased source, or be said in the session: it goes as well."""
    targets = prepare(memory)
    plan = memory.erase(U1, event=targets["event"])
    memory.remember(U1, f"{SECRET} again", evidence=[targets["event"]])
    assert plan.apply().events == len(plan.events) + 1
    plan = memory.erase(U1, session="s-1")
    memory.record_turn(U1, role="user", content=f"{SECRET} since the plan")
    assert plan.apply().complete
    assert SECRET not in everything(memory, U1, SECRET)
    assert files_with(memory.path, SECRET) == set()


def test_a_blob_without_its_event_is_removed_when_the_memory_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between a large output and its event leaves a file that no event names: the next opening unlinks it."""
    path = tmp_path / "data"
    memory = open_memory(path)
    kept = memory.record_tool_result(U1, output="kept " * 20_000)
    with monkeypatch.context() as patch:
        patch.setattr(memory._store.blobs, "delete", lambda event_id: False)
        patch.setattr(memory._store.log, "append", lambda drafts: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            memory.record_tool_result(U1, output=f"{SECRET} " * 20_000)
    (path / "blobs" / f"{'0' * 32}.half").write_bytes(b"MNB1")
    assert len(list((path / "blobs").iterdir())) == 3
    leave(memory)
    with open_memory(path) as again:
        assert [one.name for one in (path / "blobs").iterdir()] == [kept.event_id]
        assert again.read_output(U1, kept.event_id, 0, 4).text == "kept"

"""kill -9 at any moment: nothing is lost, nothing is there twice, and the index equals its rows."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from vector_fakes import World
from vectors_child import ERASED, TURNS, the_log

CHILD = Path(__file__).with_name("vectors_child.py")


def killed(folder: Path, what: str, after: float) -> None:
    """Run the child for `after` seconds from when it is ready, and kill it."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), what], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize(
    "what", ["embed", *(pytest.param(each, marks=pytest.mark.slow) for each in ("index", "erase"))]
)
def test_a_killed_worker_goes_on(make_world: Callable[..., World], tmp_path: Path, what: str) -> None:
    """Killed while embedding, while flushing the index or while erasing, all comes out as if it had run through."""
    for after in (0.15, 0.3, 0.25):
        killed(tmp_path, what, after)
    world = make_world(log=the_log(erased=what == "erase"))
    world.worker.catch_up()
    world.filler.catch_up()
    found = world.dump()
    erased = set(ERASED) if what == "erase" else set()
    assert len(found) == 2 * (TURNS - len(erased))
    assert world.indexed() == world.stored()
    changes = {(row.place.position, row.kind, row.part): row.change for row in all_stored(world)}
    assert world.index.points() == changes
    assert world.rows.holding(sorted(erased)) == 0
    world.close()
    straight = World(tmp_path / "straight", the_log(erased=what == "erase"), batch=8)
    straight.worker.catch_up()
    assert found == straight.dump()
    straight.close()


def all_stored(world: World) -> list[object]:
    return list(world.rows.changes(world.embedder.space, 0, 10_000).stored)

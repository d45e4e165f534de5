"""Embeds or indexes the same log in a process of its own, until it is killed. Arguments: folder, what."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "vectors")]

from vector_fakes import FakeLog, WordHashes, World  # noqa: E402

TURNS = 400
ERASED = range(100, 300, 7)


def the_log(erased: bool) -> FakeLog:
    """The same events with the same ids in every process."""
    log = FakeLog()
    for number in range(TURNS):
        log.turn(f"turn {number} about topic {number % 17}", f"u{number % 3}", session=f"s{number % 9}")
    if erased:
        log.erase_events(*(log.rows[position - 1] for position in ERASED))
    return log


def slowly(texts: Sequence[str]) -> None:
    time.sleep(0.01)


def main(folder: Path, what: str) -> None:
    world = World(folder, the_log(erased=what == "erase"), WordHashes(before=slowly), batch=8)
    print("ready", flush=True)
    while True:
        moved = world.worker.step()
        if what != "embed":
            world.filler.catch_up()
        if what == "erase":
            world.filler.purge()
        if not moved:
            print("done", flush=True)
            time.sleep(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""A look at the head serves all who waited before it began; and a few statements store many rows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

import pytest

from log_support import FakeSealer, draft
from mnemolog.domain.errors import IdempotencyConflict
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.log import SqliteEventLog
from mnemolog.infra.log.recorder import HeadReader, LogDatastore, LogRecorder

LONG = 10.0


class Slow(LogRecorder):
    """Its looks have found what there is, and are then held up; one of them fails."""

    def __init__(self, datastore: LogDatastore) -> None:
        super().__init__(datastore)
        self.begun, self.go_on, self.looks, self.failing = Event(), Event(), 0, 0

    def head(self, c: sqlite3.Cursor) -> int:
        found = super().head(c)
        self.looks += 1
        self.begun.set()
        assert self.go_on.wait(LONG)
        if self.looks == self.failing:
            raise sqlite3.OperationalError("disk I/O error")
        return found


class Counted:
    """A lock that knows how many have come for it."""

    def __init__(self) -> None:
        self._lock, self.came = Lock(), 0

    def __enter__(self) -> None:
        self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteEventLog]:
    made = SqliteEventLog(tmp_path / "log.db", FakeSealer(), SystemClock())
    yield made
    made.close()


@pytest.mark.parametrize(("failing", "seen"), [(0, [0, 1, 1, 1]), (1, [None, 1, 1, 1]), (2, [0, None, 1, 1])])
def test_who_waits_takes_a_look_that_began_later_and_no_other(
    log: SqliteEventLog, failing: int, seen: list[int | None]
) -> None:
    """What a look missed is seen by all who came since it began; one that fails is nobody else's."""
    recorder, lock = Slow(log._datastore), Counted()
    recorder.failing = failing
    head = HeadReader(log._datastore, recorder)
    head._lock = lock  # type: ignore[assignment]

    def look() -> int | None:
        try:
            return head.read()
        except sqlite3.OperationalError:
            return None

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(look)
        assert recorder.begun.wait(LONG)
        others = [pool.submit(look) for _ in range(3)]
        while lock.came < 4:
            time.sleep(0.001)
        log.append([draft("later")])
        recorder.go_on.set()
        found = [other.result(LONG) for other in others]
    assert [first.result(), *sorted(found, key=lambda one: one or 0)] == seen
    assert recorder.looks == 2 + (failing == 2)
    head.close()


def test_a_look_after_another_looks_itself(log: SqliteEventLog) -> None:
    """Nothing is kept: every look that nobody began meanwhile goes to the file."""
    assert log.head() == 0
    log.append([draft("one")])
    assert log.head() == 1


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 250])
def test_many_rows_get_positions_in_their_order(log: SqliteEventLog, count: int) -> None:
    """A statement takes a hundred rows; the positions go on from one to the next."""
    receipts = log.append([draft(f"said {at}", digest=str(at)) for at in range(count)])
    assert [receipt.position for receipt in receipts] == list(range(1, count + 1))
    stored = log.read_stream("s1")
    assert [(each.position, each.envelope.version, each.envelope.digest) for each in stored] == [
        (at + 1, at + 1, str(at)) for at in range(count)
    ]


def test_of_a_call_that_meets_a_known_key_nothing_is_stored(log: SqliteEventLog) -> None:
    """The last of many rows has a key that another process gave to other content: none of them stays."""
    log.append([draft("said before", key="k", digest="other")])
    many = [draft(f"said {at}") for at in range(150)]
    with pytest.raises(IdempotencyConflict):
        log.append([*many, draft("said anew", key="k", digest="new")])
    assert [each.position for each in log.read_stream("s1")] == [1]
    assert log.append([draft("goes on")])[0].position == 2

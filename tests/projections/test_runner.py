"""The runner: exactly once, rebuilt as live, whoever needs a view advances it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from projection_fakes import FakeLog, Notes, runner_over, texts
from sqlalchemy import Connection, text

from mnemolog.domain.errors import InvalidInput, NotFound, ProjectionStalled, StoreUnavailable
from mnemolog.domain.events import MemoryRetracted, Recorded
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections.ports import Page
from mnemolog.projections.runner import Runner, ViewCondition


class UnrulyLog(FakeLog):
    """Delivers every page shuffled, with events delivered before and events from beyond its end among them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def read(
        self, after: int, limit: int, *, topics: Collection[str] | None = None, bodies: bool = True
    ) -> Page:
        page = super().read(after, limit, topics=topics, bodies=bodies)
        ahead = super().read(page.position, 3, topics=topics, bodies=bodies)
        before = self.read_at(range(max(1, after - 4), after + 1), bodies=bodies)
        events = [*page.events, *page.events[:2], *before, *ahead.events]
        self._random.shuffle(events)
        return Page(events, page.position)


@pytest.mark.parametrize("seed", range(5))
def test_promise_2_redelivered_and_reordered_pages_change_nothing(tmp_path: Path, seed: int) -> None:
    """Every event is folded once and in order, whatever the log delivers twice, early or out of order."""
    log, notes = UnrulyLog(seed), Notes()
    for number in range(40):
        log.turn(f"turn {number}")
    runner = runner_over(log, tmp_path, notes, batch_size=7)
    assert notes.folded == list(range(1, 41))
    assert texts(runner) == [f"turn {number}" for number in range(40)]


class CrashingViews(SqliteViews):
    """Loses a transaction at its very end, as a process does that is killed before the commit."""

    crash = False

    def begin(self, file: Any, partitions: Any = None) -> Any:
        inner = super().begin(file, partitions)
        views = self

        class Doomed:
            def __enter__(self) -> Connection:
                return inner.__enter__()

            def __exit__(self, *error: Any) -> Any:
                if views.crash and error[0] is None:
                    views.crash = False
                    lost = StoreUnavailable("killed")
                    inner.__exit__(StoreUnavailable, lost, None)
                    raise lost
                return inner.__exit__(*error)

        return Doomed()


def test_promise_2_a_crash_between_fold_and_commit_changes_nothing(tmp_path: Path) -> None:
    """Rows and checkpoint are lost together, and the next attempt folds the same events again, once."""
    log, views = FakeLog(), CrashingViews(tmp_path)
    runner = Runner(log, views, [Notes()], batch_size=4)
    runner.open()
    for number in range(10):
        log.turn(f"turn {number}")
    runner.catch_up("notes", to=4)
    views.crash = True
    with pytest.raises(StoreUnavailable):
        runner.catch_up("notes")
    assert (texts(runner), runner.lag()[0].position) == ([f"turn {number}" for number in range(4)], 4)
    runner.catch_up("notes")
    assert texts(runner) == [f"turn {number}" for number in range(10)]


def test_promise_2_two_runners_over_one_view_never_fold_an_event_twice(tmp_path: Path) -> None:
    """The slower of two runners finds the checkpoint moved, rolls back and goes on from there."""
    log, first, second = FakeLog(), Notes(), Notes()
    one = runner_over(log, tmp_path, first, batch_size=3)
    two = runner_over(log, tmp_path, second, batch_size=5)
    for number in range(60):
        log.turn(f"turn {number}")
    threads = [threading.Thread(target=runner.catch_up, args=("notes",)) for runner in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts(one) == texts(two) == [f"turn {number}" for number in range(60)]
    assert one.parked("notes") == []
    log.turn("last")
    one.catch_up("notes")
    two.catch_up("notes")
    assert 61 not in second.folded
    assert texts(two)[-1] == "last"


def test_the_checkpoint_moves_over_events_of_no_interest(tmp_path: Path) -> None:
    """Lag reaches 0 although the last events are none of the projection's."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), batch_size=2)
    log.turn("one")
    for _ in range(5):
        log.add(MemoryRetracted())
    assert (runner.lag()[0].lag, runner.lag()[0].head) == (6, 6)
    assert runner.catch_up("notes") == 6
    assert runner.lag()[0].lag == 0


def test_a_reader_sees_what_was_written_before_it_asked(tmp_path: Path) -> None:
    """A read advances the view itself and waits for nobody's poll."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), poll=5.0)
    runner.background.start()
    try:
        started = time.monotonic()
        for number in range(20):
            log.turn(f"turn {number}")
            with runner.read("notes") as conn:
                assert conn.execute(text("select count(*) from notes")).scalar_one() == number + 1
        assert time.monotonic() - started < 4
    finally:
        runner.background.stop()


def test_a_position_that_is_not_written_stalls_a_read_for_a_bounded_time(tmp_path: Path) -> None:
    """Asking for the future raises a typed error; when the event comes in time the read goes on."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes())
    with pytest.raises(ProjectionStalled, match="position 0, not 1"):
        runner.catch_up("notes", to=1, timeout=0.05)
    timer = threading.Timer(0.1, log.turn, ("in time",))
    timer.start()
    assert runner.catch_up("notes", to=1, timeout=10) == 1
    timer.join()


def test_unknown_and_unopened_views_are_typed_errors(tmp_path: Path) -> None:
    """The message names what there is, and what to do."""
    runner = Runner(FakeLog(), SqliteViews(tmp_path), [Notes()])
    with pytest.raises(InvalidInput, match="there are notes"):
        runner.catch_up("nots")
    with pytest.raises(NotFound, match=r"open\(\)"):
        runner.catch_up("notes")


def until(condition: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def test_the_background_thread_follows_the_log_and_can_be_paused(tmp_path: Path) -> None:
    """Started it keeps up, paused it holds still although readers go on, stopped it ends."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), poll=0.02)
    runner.background.start()
    log.turn("one")
    until(lambda: texts(runner) == ["one"])
    runner.background.hold()
    log.turn("two")
    time.sleep(0.1)
    assert texts(runner) == ["one"]
    assert runner.lag()[0].condition is ViewCondition.PAUSED
    runner.catch_up("notes")
    assert texts(runner) == ["one", "two"]
    runner.background.resume()
    log.turn("three")
    until(lambda: texts(runner) == ["one", "two", "three"])
    runner.background.stop()
    assert not runner.health().running
    assert not [thread for thread in threading.enumerate() if thread.name == "mnemolog-runner"]


class FailingLog(FakeLog):
    """Cannot be read for a while."""

    failures = 0

    def read(self, *args: Any, **more: Any) -> Page:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("a message that is never kept")
        return super().read(*args, **more)


def test_a_crash_restarts_with_backoff_and_is_visible(tmp_path: Path) -> None:
    """The thread survives, waits longer after each crash, shows class and place, and goes back to normal."""
    log = FailingLog()
    runner = runner_over(log, tmp_path, Notes(), poll=0.01, backoff=(0.02, 0.05))
    log.failures = 4
    log.turn("one")
    runner.background.start()
    seen = set[float]()

    def recovered() -> bool:
        seen.add(runner.health().troubles["notes"].backoff)
        return texts(runner) == ["one"]

    until(recovered)
    runner.background.stop()
    trouble = runner.health().troubles["notes"]
    assert (trouble.crashes, trouble.backoff, runner.health().crashes) == (4, 0.0, 4)
    assert trouble.last_error is not None
    assert trouble.last_error.startswith("StoreUnavailable in test_runner.py:")
    assert "never kept" not in trouble.last_error
    assert {0.02, 0.04, 0.05} & seen


def test_a_trouble_is_over_when_a_reader_was_quicker(tmp_path: Path) -> None:
    """A view that somebody else has brought to the head is not called failing until the next event comes."""
    log = FailingLog()
    runner = runner_over(log, tmp_path, Notes(), poll=0.01, backoff=(60.0, 60.0))
    log.failures = 1
    log.turn("one")
    runner.background.start()
    until(lambda: runner.health().crashes == 1)
    runner.catch_up("notes")
    until(lambda: not runner.health().troubles["notes"].backoff)
    runner.background.stop()


class Full(Notes):
    """A view whose disk is full."""

    full = False

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        super().fold(conn, batch)
        if self.full:
            conn.exec_driver_sql("PRAGMA max_page_count=1")
            conn.exec_driver_sql("CREATE TABLE more (x)")
            conn.exec_driver_sql("INSERT INTO more VALUES (zeroblob(1000000))")


def test_a_full_disk_parks_nothing(tmp_path: Path) -> None:
    """An error of the store is not the event's fault: the batch is rolled back and tried again later."""
    log, notes = FakeLog(), Full()
    runner = runner_over(log, tmp_path, notes)
    notes.full = True
    log.turn("one")
    with pytest.raises(ProjectionStalled, match="cannot be written"):
        runner.catch_up("notes")
    notes.full = False
    runner = runner_over(log, tmp_path, notes)
    runner.catch_up("notes")
    assert (texts(runner), runner.parked("notes")) == (["one"], [])


def test_promise_3_a_rebuild_with_any_batch_size_equals_live(tmp_path: Path) -> None:
    """The view is folded anew beside the live one, which readers see until the switch."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes())
    for number in range(50):
        log.turn(f"turn {number}", f"u{number % 3}")
        runner.catch_up("notes")
    log.erase_events(log.rows[7])
    log.erase_subject("u2")
    runner.catch_up("notes")
    live, live_hash = runner.dump("notes"), runner.dump_hash("notes")
    assert len(live) == 33
    for batch_size in (1, 7, 1000):
        steps: list[tuple[int, int]] = []
        runner.rebuild("notes", batch_size, lambda done, total, steps=steps: steps.append((done, total)))  # type: ignore[misc]
        assert runner.dump("notes") == live
        assert runner.dump_hash("notes") == live_hash
        assert steps[-1] == (52, 52)
    assert len(list(tmp_path.glob("*.db"))) == 1


def test_a_rebuild_catches_up_with_what_is_written_meanwhile(tmp_path: Path) -> None:
    """Writers and readers go on while a view is rebuilt, and nobody sees its position go backwards."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), batch_size=10, poll=0.01)
    runner.background.start()
    for number in range(100):
        log.turn(f"turn {number}")

    def write(done: int, total: int) -> None:
        log.turn("meanwhile")
        before = runner.lag()[0].position
        assert runner.catch_up("notes") >= before

    runner.rebuild("notes", 10, write)
    assert runner.catch_up("notes") == log.head() == 110
    assert len(texts(runner)) == 110
    runner.background.stop()


def test_no_position_goes_backwards_when_a_view_is_switched(tmp_path: Path) -> None:
    """What the old view showed to readers while it was replaced, the new one shows from its first moment."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), batch_size=2)
    log.turn("one")

    def write(done: int, total: int) -> None:
        log.turn("meanwhile")
        runner.catch_up("notes")

    runner.rebuild("notes", 2, write)
    assert (runner.lag()[0].position, texts(runner)) == (2, ["one", "meanwhile"])


def test_readers_and_writers_go_on_through_many_switches(tmp_path: Path) -> None:
    """Threads that wait for a view, or read it, at the moment of a switch notice nothing."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes(), batch_size=3)
    done, errors = threading.Event(), list[Exception]()

    def work() -> None:
        while not done.is_set() and len(log.rows) < 2000:
            try:
                log.turn("more")
                with runner.read("notes") as conn:
                    assert conn.execute(text("select count(*) from notes")).scalar_one() > 0
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        runner.rebuild("notes", 200)
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    runner.catch_up("notes")
    assert len(texts(runner)) == len(log.rows)


def test_a_failed_rebuild_leaves_the_live_view(tmp_path: Path) -> None:
    """When the log cannot be read the half-built file is removed and the live one stays."""
    log = FailingLog()
    runner = runner_over(log, tmp_path, Notes(), batch_size=1)
    log.turn("one")
    runner.catch_up("notes")
    log.failures = 1
    with pytest.raises(StoreUnavailable):
        runner.rebuild("notes")
    assert texts(runner) == ["one"]
    assert len(list(tmp_path.glob("*.db"))) == 1


def test_another_version_is_built_anew_at_opening(tmp_path: Path) -> None:
    """A view of other code is not read: the log is folded again, and the old file goes."""
    log = FakeLog()
    runner = runner_over(log, tmp_path, Notes())
    log.turn("one")
    runner.catch_up("notes")
    newer = Notes()
    newer.version = "2"
    again = runner_over(log, tmp_path, newer)
    assert (texts(again), newer.folded) == (["one"], [1])
    assert [path.name for path in tmp_path.glob("*.db")] == ["notes-2-2.db"]
    same = Notes()
    same.version = "2"
    runner_over(log, tmp_path, same)
    assert same.folded == []


def test_a_lost_damaged_or_too_new_view_is_built_anew(tmp_path: Path) -> None:
    """Views are disposable: whatever happens to one, opening gives it back from the log."""
    log = FakeLog()
    log.turn("one")

    def reopened() -> list[str]:
        return texts(runner_over(log, tmp_path, Notes()))

    runner = runner_over(log, tmp_path, Notes())
    next(tmp_path.glob("*.db")).unlink()
    assert reopened() == ["one"]
    runner._views.close()
    for file in tmp_path.glob("*.db"):
        file.write_bytes(b"not a database" * 1000)
    assert reopened() == ["one"]
    (tmp_path / "live.json").write_text("{")
    assert reopened() == ["one"]
    shorter = FakeLog()
    assert texts(runner_over(shorter, tmp_path, Notes())) == []

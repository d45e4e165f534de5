"""Events that fail: set aside with a reason, replayed or dismissed, and never in anybody's way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projection_fakes import FakeLog, Notes, runner_over, texts
from sqlalchemy import Connection
from sqlalchemy.exc import StatementError

from mnemolog.domain.events import ERASURE, FORGOTTEN, Recorded, SessionOpened, TurnRecorded, Undecodable
from mnemolog.projections.catalog import Catalog, by_subject, find
from mnemolog.projections.parking import ParkedState
from mnemolog.projections.runner import Runner, ViewCondition


def poisonous(recorded: Recorded) -> bool:
    """Fails on turns that say so."""
    return isinstance(recorded.event, TurnRecorded) and recorded.event.content.startswith("poison")


def places(runner: Runner, name: str = "notes") -> list[tuple[int, str]]:
    return [(row.position, row.state.value) for row in runner.parked(name)]


def mixed_log() -> FakeLog:
    """Positions 1 to 6: u1 fails at 2, and goes on at 4 and 6; u2 at 3 and 5."""
    log = FakeLog()
    for content, user in (
        ("a", "u1"), ("poison", "u1"), ("b", "u2"), ("c", "u1"), ("d", "u2"), ("e", "u1"),
    ):  # fmt: skip
        log.turn(content, user)
    return log


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_promise_10_poison_never_blocks_and_is_never_lost(tmp_path: Path, batch_size: int) -> None:
    """The failing event is parked with its reason, its owner's later events wait, other owners go on."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes(poisonous), batch_size=batch_size)
    runner.catch_up("notes")
    assert texts(runner) == ["a", "b", "d"]
    assert places(runner) == [(2, "failed"), (4, "waiting"), (6, "waiting")]
    failed, waits, _ = runner.parked("notes")
    assert failed.reason.startswith("ValueError in projection_fakes.py:")
    assert "poison" not in failed.reason
    assert (failed.event_id, failed.owner, waits.reason) == (log.rows[1].envelope.id, "u1", "")
    lag = runner.lag()[0]
    assert (lag.lag, lag.failed, lag.waiting, lag.condition) == (0, 1, 2, ViewCondition.LIVE)
    assert (runner.parked_owner("notes", "u1"), runner.parked_owner("notes", "u2")) == (True, False)


def test_promise_10_a_replay_folds_the_event_and_what_waited_in_order(tmp_path: Path) -> None:
    """After the cause is gone, the event and its owner's later ones are folded as if nothing had happened."""
    log, notes = mixed_log(), Notes(poisonous)
    runner = runner_over(log, tmp_path, notes)
    runner.catch_up("notes")
    notes.fails = lambda _: False
    log.replay("notes", log.rows[1])
    runner.catch_up("notes")
    assert places(runner) == []
    assert notes.folded[-3:] == [2, 4, 6]
    live = runner.dump("notes")
    runner.rebuild("notes")
    assert runner.dump("notes") == live


def test_promise_10_a_replay_that_fails_again_changes_nothing(tmp_path: Path) -> None:
    """The event stays parked, and a replay meant for another projection, event or position is no replay."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes(poisonous))
    log.replay("notes", log.rows[1])
    log.replay("other", log.rows[1])
    log.replay("notes", replace(log.rows[3], position=2))
    log.replay("notes", log.rows[3])
    runner.catch_up("notes")
    assert places(runner) == [(2, "failed"), (4, "waiting"), (6, "waiting")]


def test_promise_10_a_dismissed_event_is_skipped_in_live_and_in_rebuild(tmp_path: Path) -> None:
    """What waited follows; a rebuild reads the dismissals first and parks nothing."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes(poisonous))
    runner.catch_up("notes")
    log.dismiss("notes", log.rows[1])
    log.turn("f", "u1")
    runner.catch_up("notes")
    live = runner.dump("notes")
    assert texts(runner) == ["a", "b", "c", "d", "e", "f"]
    assert places(runner) == []
    runner.rebuild("notes", batch_size=2)
    assert (runner.dump("notes"), places(runner)) == (live, [])


def test_promise_10_a_second_failure_behind_the_first_is_parked_when_its_turn_comes(tmp_path: Path) -> None:
    """Dismissing the first releases up to the next failure, which then blocks its owner."""
    log = mixed_log()
    log.turn("poison again", "u1")
    log.turn("f", "u1")
    runner = runner_over(log, tmp_path, Notes(poisonous))
    log.dismiss("notes", log.rows[1])
    runner.catch_up("notes")
    assert texts(runner) == ["a", "b", "c", "d", "e"]
    assert places(runner) == [(7, "failed"), (8, "waiting")]


def test_promise_10_a_waiting_event_can_be_dismissed(tmp_path: Path) -> None:
    """It is taken out of the line; the line goes on waiting."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes(poisonous))
    log.dismiss("notes", log.rows[3])
    runner.catch_up("notes")
    assert places(runner) == [(2, "failed"), (6, "waiting")]
    log.dismiss("notes", log.rows[1])
    runner.catch_up("notes")
    assert texts(runner) == ["a", "b", "d", "e"]


def test_promise_10_a_dismissal_of_what_was_folded_rebuilds_the_view(tmp_path: Path) -> None:
    """A dismissal decides for live and rebuild alike, also when the event had not failed here."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes())
    runner.catch_up("notes")
    log.dismiss("notes", log.rows[1])
    runner.catch_up("notes")
    assert texts(runner) == ["a", "b", "c", "d", "e"]
    assert runner.lag()[0].condition is ViewCondition.LIVE


def test_promise_10_unreadable_events_are_parked(tmp_path: Path) -> None:
    """A body that cannot be decoded blocks its owner; an envelope that cannot be read blocks nobody."""
    log = FakeLog()
    log.turn("a", "u1")
    broken = log.turn("b", "u1")
    log.rows[1] = replace(broken, event=Undecodable("JSONDecodeError"))
    log.add_unreadable()
    log.turn("c", "u1")
    log.turn("d", "u2")
    runner = runner_over(log, tmp_path, Notes())
    runner.catch_up("notes")
    assert texts(runner) == ["a", "d"]
    assert [(row.position, row.owner, row.reason, row.state.value) for row in runner.parked("notes")] == [
        (2, "u1", "JSONDecodeError", "failed"),
        (3, None, "ValueError", "failed"),
        (4, "u1", "", "waiting"),
    ]
    log.rows[1] = broken
    log.replay("notes", broken)
    runner.catch_up("notes")
    assert texts(runner) == ["a", "b", "c", "d"]
    assert places(runner) == [(3, "failed")]


def test_promise_10_an_earlier_failure_found_later_takes_the_lead(tmp_path: Path) -> None:
    """Within one batch the owner's first failing event leads and an unreadable later one waits behind it."""
    log = FakeLog()
    log.turn("poison", "u1")
    log.turn("b", "u1")
    log.rows[1] = replace(log.rows[1], event=Undecodable("JSONDecodeError"))
    runner = runner_over(log, tmp_path, Notes(poisonous))
    runner.catch_up("notes")
    assert places(runner) == [(1, "failed"), (2, "waiting")]


def test_parked_events_and_checkpoint_survive_a_restart(tmp_path: Path) -> None:
    """What is parked is known again from the file alone."""
    log = mixed_log()
    runner_over(log, tmp_path, Notes(poisonous)).catch_up("notes")
    notes = Notes()
    runner = runner_over(log, tmp_path, notes)
    log.turn("f", "u1")
    runner.catch_up("notes")
    assert notes.folded == []
    assert places(runner) == [(2, "failed"), (4, "waiting"), (6, "waiting"), (7, "waiting")]


@pytest.mark.parametrize("how", ["events", "subject"])
def test_promise_8_an_erasure_passes_a_parked_owner(tmp_path: Path, how: str) -> None:
    """It is applied at once, and what waits is later read as FORGOTTEN."""
    log, notes = mixed_log(), Notes(poisonous)
    runner = runner_over(log, tmp_path, notes)
    runner.catch_up("notes")
    if how == "events":
        log.erase_events(log.rows[0], log.rows[3])
    else:
        log.erase_subject("u1")
    runner.catch_up("notes")
    assert texts(runner) == ["b", "d"]
    log.dismiss("notes", log.rows[1])
    runner.catch_up("notes")
    assert (texts(runner), places(runner)) == (["b", "d", "e"] if how == "events" else ["b", "d"], [])
    live = runner.dump("notes")
    runner.rebuild("notes")
    assert runner.dump("notes") == live


def test_promise_8_erasing_the_failed_event_frees_its_owner(tmp_path: Path) -> None:
    """Without its content there is nothing left that could fail, in live as in a rebuild."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Notes(poisonous))
    runner.catch_up("notes")
    log.erase_events(log.rows[1])
    runner.catch_up("notes")
    assert (texts(runner), places(runner)) == (["a", "b", "c", "d", "e"], [])
    live = runner.dump("notes")
    runner.rebuild("notes")
    assert runner.dump("notes") == live


class Leaky(Notes):
    """Cannot apply erasures, as long as it is told so."""

    broken = True

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        if self.broken and any(recorded.envelope.topic in ERASURE for recorded in batch):
            raise RuntimeError
        super().fold(conn, batch)


def test_promise_8_a_view_that_cannot_erase_is_built_anew(tmp_path: Path) -> None:
    """Erased text does not stay because a handler failed: a new view never gets it."""
    log = mixed_log()
    runner = runner_over(log, tmp_path, Leaky())
    runner.catch_up("notes")
    log.erase_events(log.rows[0])
    log.turn("f", "t1")
    runner.catch_up("notes")
    assert texts(runner) == ["poison", "b", "c", "d", "e", "f"]
    assert [(row.position, row.owner, row.state) for row in runner.parked("notes")] == [
        (7, None, ParkedState.FAILED)
    ]


class Fragile(Catalog):
    """A catalog that fails where it is told to."""

    name = "catalog"
    fails: Callable[[Recorded], bool] = staticmethod(lambda _: False)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        if any(map(self.fails, batch)):
            raise ValueError
        super().fold(conn, batch)


def test_promise_8_waiting_events_without_a_body_are_erased_too(tmp_path: Path) -> None:
    """An event that has nothing sealed is still marked as erased when it is released after the erasure."""
    log, catalog = FakeLog(), Fragile()
    first = log.turn("a", "u1")
    opened = log.add(SessionOpened(), "u1", subjects=())
    other = log.add(SessionOpened(), "u2", subjects=())
    catalog.fails = lambda recorded: recorded.position == first.position and recorded.event is not FORGOTTEN
    runner = runner_over(log, tmp_path, catalog)
    runner.catch_up("catalog")
    assert places(runner, "catalog") == [(1, "failed"), (2, "waiting")]
    log.erase_subject("u1")
    runner.catch_up("catalog")
    with runner.read("catalog") as conn:
        assert [row.erased for row in by_subject(conn, "u1")] == [True, True]
        assert find(conn, opened.envelope.id) == by_subject(conn, "u1")[1]
        assert [row.erased for row in by_subject(conn, "u2")] == [False]
    assert other.position == 3
    live = runner.dump("catalog")
    runner.rebuild("catalog")
    assert runner.dump("catalog") == live


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "turn", "poison", "replay", "dismiss", "erase", "forget"]),
        st.integers(0, 2),
        st.integers(0, 30),
    ),
    max_size=25,
)


def act(log: FakeLog, kind: str, user: int, pick: int) -> None:
    turns = [row for row in log.rows if row.envelope.topic == "TurnRecorded"]
    target = turns[pick % len(turns)] if turns else None
    if kind == "turn" or target is None:
        log.turn(f"turn {len(log.rows)}", f"u{user}")
    elif kind == "poison":
        log.turn(f"poison {len(log.rows)}", f"u{user}")
    elif kind == "forget":
        log.erase_subject(f"u{user}")
    else:
        orders: dict[str, Callable[[], Any]] = {
            "replay": lambda: log.replay("notes", target),
            "dismiss": lambda: log.dismiss("notes", target),
            "erase": lambda: log.erase_events(target),
        }
        orders[kind]()


@given(ACTIONS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
def test_promises_3_and_10_live_equals_rebuild_whatever_fails(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any], batch: int, rebuilt: int, stride: int
) -> None:
    """With failures, replays, dismissals and erasures in any order, rows and parked events are the same."""
    log = FakeLog()
    runner = runner_over(log, tmp_path_factory.mktemp("views"), Notes(poisonous), batch_size=batch)
    for number, (kind, user, pick) in enumerate(actions):
        act(log, kind, user, pick)
        if number % stride == 0:
            runner.catch_up("notes")
    runner.catch_up("notes")
    live, parked = runner.dump("notes"), places(runner)
    assert all(row[3] == 0 for row in live)
    assert runner.lag()[0].lag == 0
    runner.rebuild("notes", batch_size=rebuilt)
    assert (runner.dump("notes"), places(runner)) == (live, parked)


class Starved(Notes):
    """Runs out of something while it folds, in a thread that is told to."""

    lacks: Exception | None = None

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        super().fold(conn, batch)
        if self.lacks is not None:
            raise self.lacks


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_promise_10_a_reader_without_stack_or_memory_parks_nobody(
    tmp_path: Path, error: type[Exception], wrapped: bool
) -> None:
    """It is the reader's fault: it gets the error, nothing of the batch stays, and the next reader finds all."""
    log, notes = mixed_log(), Starved()
    runner = runner_over(log, tmp_path, notes, batch_size=4, poll=0.01, backoff=(0.01, 0.02))
    runner.catch_up("notes", to=1)
    log.turn("f", "u1")
    notes.lacks = error()
    if wrapped:
        notes.lacks = StatementError("in a statement", "SELECT 1", None, notes.lacks)
        notes.lacks.__cause__ = error()
    with pytest.raises(type(notes.lacks)):
        runner.catch_up("notes")
    runner.background.start()
    while not runner.health().troubles["notes"].crashes:
        time.sleep(0.005)
    assert places(runner) == []
    notes.lacks = None
    while runner.lag()[0].lag:
        time.sleep(0.005)
    runner.background.stop()
    assert texts(runner) == ["a", "poison", "b", "c", "d", "e", "f"]


def test_promise_10_a_starved_reader_parks_nobody_beside_real_poison(tmp_path: Path) -> None:
    """While something is parked, and events are folded one by one, what runs out is still not the event's fault."""
    log, notes = mixed_log(), Starved(poisonous)
    runner = runner_over(log, tmp_path, notes)
    runner.catch_up("notes")
    before = places(runner)
    log.turn("f", "u2")
    notes.lacks = RecursionError()
    with pytest.raises(RecursionError):
        runner.catch_up("notes")
    assert places(runner) == before
    notes.lacks = None
    runner.catch_up("notes")
    assert (places(runner), texts(runner)) == (before, ["a", "b", "d", "f"])

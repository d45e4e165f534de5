"""Workers that share the partitions of a view: the same rows as one process makes, whatever is delivered and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest
from projection_fakes import Notes, runner_over, texts
from shared_views import JoinedViews, Topic, WorkedLog

from mnemolog.consumers.partitions import partition_of
from mnemolog.consumers.workers import Worker
from mnemolog.domain.events import Recorded, TurnRecorded
from mnemolog.projections.catalog import Catalog
from mnemolog.projections.ports import Projection
from mnemolog.projections.runner import Runner, SystemClock
from mnemolog.projections.versions import ViewFile

USERS = [f"u{n}" for n in range(8)]


def poisonous(recorded: Recorded) -> bool:
    """Fails on turns that say so."""
    return isinstance(recorded.event, TurnRecorded) and recorded.event.content.startswith("poison")


@pytest.fixture
def views(tmp_path: Path) -> Iterator[JoinedViews]:
    """The views that the workers of a test share."""
    made = JoinedViews(tmp_path / "shared")
    yield made
    made.close()


def projections() -> list[Projection]:
    return [Notes(poisonous), Catalog()]


def worker(views: JoinedViews, topic: Topic, *partitions: int, batch_size: int = 5) -> Worker:
    ticks = count()
    made = Worker(
        topic.log,
        views,
        projections(),
        topic,
        SystemClock(),
        batch_size=batch_size,
        monotonic=lambda: next(ticks) / 50,
    )
    made.assign(partitions)
    return made


def settle(topic: Topic, *workers: Worker) -> None:
    """Deliver everything, again and again, until nobody has anything to do."""
    topic.relay()
    for _ in range(500):
        for each in workers:
            each.deliver({one: topic.deliveries(one) for one in each.partitions})
            each.tick()
        if all(is_done(topic, each) for each in workers) and not any_stale(workers):
            return
        sleep(0.001)  # what failed is tried again after a while
    raise AssertionError([lag for each in workers for lag in each.lags()])


def is_done(topic: Topic, worker: Worker) -> bool:
    lags = list(worker.lags())
    there = all(lag.position == topic.log.head() and not lag.building for lag in lags)
    views = len({lag.projection for lag in lags}) == len(projections())
    return there and views and not any(trouble.backoff for trouble in worker.troubles().values())


def any_stale(workers: Sequence[Worker]) -> bool:
    """Whether a view has to be built anew, which a worker sees when it looks around."""
    return any(view.lane.load().stale for each in workers for view in each._views.values())


def reading(views: JoinedViews, log: WorkedLog) -> Runner:
    """A process that only reads what the workers have made."""
    runner = Runner(log, views, projections(), place=partition_of, waits=log.head)
    runner.open(build=False)
    return runner


def alone(log: WorkedLog, folder: Path) -> Runner:
    """What one process makes of the same log."""
    runner = runner_over(log, folder, *projections())
    runner.catch_up_all()
    return runner


def assert_same(views: JoinedViews, log: WorkedLog, folder: Path) -> None:
    shared, single = reading(views, log), alone(log, folder / "alone")
    for name in shared.names():
        assert shared.dump(name) == single.dump(name)
        assert [row.position for row in shared.parked(name)] == [row.position for row in single.parked(name)]
        assert [row.state for row in shared.parked(name)] == [row.state for row in single.parked(name)]


def before_the_next_write(
    views: JoinedViews, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]
) -> None:
    """Let something happen once between somebody's look at a view and the write that follows from it."""
    begin = views.begin

    def begun(*arguments: Any) -> Any:
        monkeypatch.setattr(views, "begin", begin)
        act()
        return begin(*arguments)

    monkeypatch.setattr(views, "begin", begun)


def some_events(log: WorkedLog, random: Random, many: int) -> None:
    """Turns of eight people, some of which fail; erasures, and orders about what failed, in between."""
    for n in range(many):
        what, user = random.random(), random.choice(USERS)
        turns = [recorded for recorded in log.rows if recorded.envelope.topic == "TurnRecorded"]
        if what < 0.80 or not turns:
            log.turn(f"{'poison' if random.random() < 0.08 else 'turn'} {n}", user)
        elif what < 0.87:
            log.erase_events(random.choice(turns))
        elif what < 0.90:
            log.erase_subject(user)
        elif what < 0.95:
            log.replay("notes", random.choice(turns))
        else:
            log.dismiss("notes", random.choice(turns))


def test_messages_alone_are_enough(views: JoinedViews, tmp_path: Path) -> None:
    """Where everything comes in order, nothing is read from the log, and the views are as one process makes them."""
    log = WorkedLog()
    topic = Topic(log)
    both = worker(views, topic, 0, 2), worker(views, topic, 1)
    settle(topic, *both)
    for n in range(40):
        log.turn(f"turn {n}", USERS[n % 8])
    before = log.reads
    settle(topic, *both)
    assert log.reads == before and sum(each.gaps for each in both) == 0
    assert_same(views, log, tmp_path)
    assert len(texts(reading(views, log))) == 40


def test_a_wall_is_passed_by_all_or_none(views: JoinedViews, tmp_path: Path) -> None:
    """What lies behind an erasure waits until the slowest partition has come to it; then all go on."""
    log = WorkedLog()
    topic = Topic(log)
    quick, slow = worker(views, topic, 0, 1), worker(views, topic, 2)
    settle(topic, quick, slow)
    erased, *_ = [log.turn(f"turn {n}", user) for n, user in enumerate(USERS)]
    log.erase_events(erased)
    for n, user in enumerate(USERS):
        log.turn(f"later {n}", user)
    topic.relay()
    quick.deliver({one: topic.deliveries(one) for one in (0, 1)})
    quick.tick()
    assert not any("later" in text for text in texts(reading(views, log)))
    assert {lag.position for lag in quick.lags()} == {erased.position + 7}
    settle(topic, slow, quick)
    assert_same(views, log, tmp_path)


@pytest.mark.parametrize("between", [0.0, 0.3], ids=["in turns", "at once"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_delivered_the_views_are_as_one_process_makes_them(
    views: JoinedViews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, between: float
) -> None:
    """Repeated, reordered, lost and late messages, two workers with one partition, and partitions added.

    between: how often, when a worker has looked and is about to write, another one acts or begins anew.
    """
    random, log = Random(seed), WorkedLog(2)
    topic = Topic(log)
    workers = [worker(views, topic, 0, batch_size=3), worker(views, topic, 0, 1)]
    begin, acting = views.begin, list[Worker]()

    def act(each: Worker) -> None:
        acting.append(each)
        partition = random.choice(sorted(each.partitions))
        batch = topic.deliveries(partition, random.randrange(0, 20))
        some = random.choices(batch, k=random.randrange(1, 15)) if batch else []
        each.deliver({partition: some, 1: topic.deliveries(1)[:3]})
        if random.random() < 0.3:
            each.tick()
        acting.pop()

    def begun(*arguments: Any) -> Any:
        if len(acting) == 1 and random.random() < between:
            other = workers[1 - workers.index(acting[0])]
            if random.random() < 0.5:
                other.assign(other.partitions)
            act(other)
        return begin(*arguments)

    monkeypatch.setattr(views, "begin", begun)
    for step in range(6):
        some_events(log, random, 12)
        if step == 3:
            log.divide(5)
            workers[0].assign([0, 2, 3])
            workers[1].assign([0, 1, 4])
        topic.relay()
        for _ in range(8):
            act(random.choice(workers))
    settle(topic, *workers)
    assert_same(views, log, tmp_path)


def test_a_worker_goes_on_where_the_checkpoint_is(views: JoinedViews, tmp_path: Path) -> None:
    """Whoever takes a partition over asks for the messages behind those that are in the views, whatever Kafka says."""
    log = WorkedLog()
    topic = Topic(log)
    first = worker(views, topic, 0, 1, 2)
    settle(topic, first)
    for n in range(24):
        log.turn(f"turn {n}", USERS[n % 8])
    settle(topic, first)
    second = worker(views, topic, 0, 1, 2)
    assert second.begins() == {one: len(topic.deliveries(one)) for one in range(3)}
    assert second.partitions == {0, 1, 2}


def test_a_worker_reads_no_topic_from_its_beginning_for_what_is_folded(views: JoinedViews) -> None:
    """Without a place of its own it begins at the end, where nothing is missing; else it looks from the first."""
    log = WorkedLog()
    topic = Topic(log)
    single = Runner(log, views, projections(), place=partition_of)
    single.open()
    log.turn("folded by a single process", USERS[0])
    single.catch_up_all()
    topic.relay()
    assert worker(views, topic, 0, 1, 2).begins() == dict.fromkeys(range(3))
    late = log.turn("not folded", USERS[0])
    topic.relay()
    own = partition_of(late.envelope.owner, 3)
    assert worker(views, topic, 0, 1, 2).begins() == {one: 0 if one == own else None for one in range(3)}


def test_a_view_that_is_being_built_asks_for_no_messages(views: JoinedViews) -> None:
    """It reads the log."""
    log = WorkedLog()
    topic = Topic(log)
    log.turn("one", USERS[0])
    topic.relay()
    assert worker(views, topic, 0, 1, 2).begins() == dict.fromkeys(range(3))


def test_moving_on_where_nothing_came_keeps_nobody_else_waiting(
    views: JoinedViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker takes the turn of its own partitions alone, so that another one folds meanwhile."""
    log = WorkedLog()
    topic = Topic(log)
    first = worker(views, topic, 0, 1, 2)
    settle(topic, first)
    begin, turns = views.begin, list[Any]()
    monkeypatch.setattr(views, "begin", lambda file, turn=None: (turns.append(turn), begin(file, turn))[1])
    own = partition_of(log.turn("one", USERS[0]).envelope.owner, 3)
    topic.relay()
    second = worker(views, topic, *{0, 1, 2} - {own})
    second.tick()
    assert turns == [sorted({0, 1, 2} - {own})] * len(projections())
    assert {lag.position for lag in second.lags()} == {log.head()}


def test_workers_take_over_what_one_process_made_and_give_it_back(views: JoinedViews, tmp_path: Path) -> None:
    """A view of a single process is divided where it is; a single process folds a divided one."""
    log = WorkedLog()
    topic = Topic(log)
    single = Runner(log, views, projections(), place=partition_of)
    single.open()
    some_events(log, Random(1), 20)
    single.catch_up_all()
    both = worker(views, topic, 0, 2), worker(views, topic, 1)
    settle(topic, *both)
    some_events(log, Random(2), 20)
    topic.relay()
    both[0].deliver({0: topic.deliveries(0)})
    single.catch_up_all()
    assert_same(views, log, tmp_path)
    some_events(log, Random(3), 20)
    settle(topic, *both)
    assert_same(views, log, tmp_path / "again")


def test_workers_build_a_new_version_together(views: JoinedViews, tmp_path: Path) -> None:
    """Each folds its partitions into the new view; readers see the old one until all of it is there."""
    log = WorkedLog()
    topic = Topic(log)
    some_events(log, Random(4), 40)
    settle(topic, worker(views, topic, 0, 1, 2))
    before, Catalog.version = Catalog.version, "new"
    try:
        log.turn("one more", "u1")
        topic.relay()
        first, second = worker(views, topic, 0), worker(views, topic, 1, 2)
        old = views.live("catalog")
        first.tick()
        assert views.live("catalog") == old
        settle(topic, second, first)
        assert views.live("catalog") != old
        assert_same(views, log, tmp_path)
    finally:
        Catalog.version = before


def test_partitions_are_added_once_although_another_worker_begins_at_that_moment(
    views: JoinedViews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a worker's look at the view and its crossing into the next epoch, another one opens the view."""
    log = WorkedLog(3)
    topic = Topic(log)
    first = worker(views, topic, 0, 1, 2)
    some_events(log, Random(5), 20)
    settle(topic, first)
    log.divide(5)
    topic.relay()
    second = worker(views, topic, 1, 3, 4)
    before_the_next_write(views, monkeypatch, second.begins)
    first.deliver({one: topic.deliveries(one) for one in (0, 1, 2)})
    assert list(second.lags())
    some_events(log, Random(6), 20)
    first.assign([0, 2])
    settle(topic, first, second)
    assert_same(views, log, tmp_path)


def test_a_single_process_that_knows_no_partitions_folds_nothing_of_a_divided_view(
    views: JoinedViews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers divide the view between its look and its fold: it looks again, and nobody's events are folded twice."""
    log = WorkedLog(3)
    topic = Topic(log)
    single = Runner(log, views, projections(), place=partition_of)
    single.open()
    some_events(log, Random(7), 20)
    single.catch_up_all()
    some_events(log, Random(8), 20)
    topic.relay()
    both = worker(views, topic, 0, 2), worker(views, topic, 1)
    before_the_next_write(views, monkeypatch, lambda: [each.begins() for each in both])
    single.catch_up_all()
    assert all(list(each.lags()) for each in both)
    settle(topic, *both)
    assert_same(views, log, tmp_path)


def test_a_worker_of_new_partitions_alone_begins_once_others_have_come_to_them(
    views: JoinedViews, tmp_path: Path
) -> None:
    """It is given them before the view has them."""
    log = WorkedLog(3)
    topic = Topic(log)
    first, second = worker(views, topic, 0, 1, 2), worker(views, topic, 3, 4)
    settle(topic, first)
    some_events(log, Random(9), 20)
    log.divide(5)
    topic.relay()
    second.deliver({one: topic.deliveries(one) for one in (3, 4)})
    second.tick()
    some_events(log, Random(10), 20)
    settle(topic, first, second)
    assert_same(views, log, tmp_path)


def test_a_worker_that_begins_to_build_what_has_just_gone_live_turns_to_that(
    views: JoinedViews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked before the switch and asks behind it, so that it gets a view that nobody builds with it."""
    log = WorkedLog(3)
    topic = Topic(log)
    some_events(log, Random(11), 20)
    topic.relay()
    first, second = worker(views, topic, 0), worker(views, topic, 1, 2)
    join = views.join_shadow

    def joined(name: str, version: str) -> ViewFile:
        monkeypatch.setattr(views, "join_shadow", join)
        settle(topic, worker(views, topic, 0, 1, 2))
        return join(name, version)

    monkeypatch.setattr(views, "join_shadow", joined)
    first.tick()
    assert [lag.projection for lag in first.lags() if lag.building]
    settle(topic, first, second)
    assert_same(views, log, tmp_path)
    assert not [size for size in views.files() if not size.live]

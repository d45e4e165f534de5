"""The relay against a real broker: order, the chain of positions, restarts, and a broker that goes away."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from kafka_world import Kafka, until
from log_support import FakeSealer, draft
from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.partitions import change_partitions, partition_of, read_epochs
from mnemolog.consumers.relay import Place, Relay
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.domain.events import SubjectErased
from mnemolog.infra.clock import SeededClock
from mnemolog.infra.kafka.producing import Producing, TopicPublisher
from mnemolog.infra.log.sqlite import SqliteEventLog
from mnemolog.infra.places import DatabasePlaces
from topics_support import turn_of

OWNERS = [f"user-{number}" for number in range(8)]


class World:
    """A log with two partitions recorded, and what relays from it."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.log = SqliteEventLog(folder / "log.db", FakeSealer(), SeededClock(), durability="os")
        self.places = DatabasePlaces(folder / "places.db")
        self.producing: list[Producing] = []
        change_partitions(self.log, draft, 2)
        kafka.admin().create(2, 2)

    def relay(self, **options: Any) -> Relay:
        producing = Producing(self.kafka.connection, **options.pop("producing", {}))
        self.producing.append(producing)
        publisher = TopicPublisher(producing, self.kafka.topics.events, self.kafka.admin().widen)
        return Relay(self.log, publisher, self.places, **options)

    @contextmanager
    def relaying(self, **options: Any) -> Iterator[Relay]:
        """One that runs in a thread."""
        relay, stop = self.relay(**options), Event()
        thread = Thread(target=relay.run, args=(stop,))
        thread.start()
        try:
            yield relay
        finally:
            stop.set()
            thread.join(60)
            assert not thread.is_alive()

    def say(self, times: int, first: int = 0) -> None:
        drafts = [turn_of(OWNERS[(first + number) % len(OWNERS)], number) for number in range(times)]
        self.log.append(drafts)

    def messages(self) -> dict[int, list[EventMessage]]:
        found = self.kafka.read(self.kafka.topics.events)
        return {part: [EventMessage.decode(one.value) for one in each] for part, each in found.items()}

    def check(self) -> dict[int, list[int]]:
        """What a reader with a checkpoint takes from each partition: everything of it, once, in order."""
        epochs, taken = read_epochs(self.log), dict[int, list[int]]()
        events = self.log.sealed(0, 100_000).events
        states = {recorded.position: state for recorded, state in events}
        for partition, messages in self.messages().items():
            seen = taken.setdefault(partition, [])
            for message in messages:
                checkpoint = seen[-1] if seen else 0
                if message.position > checkpoint:
                    assert message.previous <= checkpoint, "the chain has a gap"
                    assert message.state == states[message.position]
                    seen.append(message.position)
            assert seen == [
                recorded.position
                for recorded, _ in events
                if partition in epochs.partitions_of(recorded.position, recorded.envelope)
            ]
        return taken

    def close(self) -> None:
        for producing in self.producing:
            producing.close()
        self.places.close()
        self.log.close()


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, tmp_path)
    yield made
    made.close()


def test_every_event_is_in_its_partition_in_order_as_it_was_stored(world: World) -> None:
    """Each message has the sealed bytes, and the position before it in its partition; the key is the owner."""
    world.say(50)
    relay = world.relay()
    relay.load()
    while relay.step():
        pass
    assert world.check().keys() == {0, 1}
    assert relay.position == world.log.head() == 51
    owners = {
        (one.key.decode(), part)
        for part, each in world.kafka.read(world.kafka.topics.events).items()
        for one in each
        if one.key.decode() in OWNERS
    }
    assert owners == {(owner, partition_of(owner, 2)) for owner in OWNERS}


def test_what_concerns_all_owners_is_in_every_partition(world: World) -> None:
    """An erasure is at its place among the events of each partition."""
    world.say(10)
    world.log.append([draft(SubjectErased("e", "user-1"))])
    world.say(10)
    relay = world.relay()
    relay.load()
    while relay.step():
        pass
    erased = 12
    assert all(erased in positions for positions in world.check().values())


def test_a_relay_goes_on_where_the_last_one_stopped(world: World) -> None:
    """After a clean stop nothing is sent again."""
    for _ in range(3):
        with world.relaying(batch=7) as relay:
            world.say(20)
            until(lambda: relay.position == world.log.head(), "all is relayed")
    world.check()
    assert sum(map(len, world.messages().values())) == world.log.head() + 1


def test_a_relay_that_died_leaves_repeats_and_no_gap(world: World) -> None:
    """What was sent and not noted is sent once more; a reader with a checkpoint takes each once."""
    for _ in range(3):
        world.say(20)
        relay = world.relay(batch=7, save_seconds=0)
        relay.load()
        relay.step()
        relay._save_seconds = 3600  # from here on it never notes its place
        while relay.step() and relay.position < world.log.head():
            pass
    assert sum(map(len, world.messages().values())) > world.log.head() + 1
    world.check()


def test_two_relays_at_once_do_no_harm(world: World) -> None:
    """One steps back; what was sent twice is dropped by the chain, and nothing is missing."""
    with world.relaying(batch=5, save_seconds=0) as one, world.relaying(batch=5, save_seconds=0) as two:
        for round in range(10):
            world.say(20, round)
        until(lambda: max(one.position, two.position) == world.log.head(), "all is relayed")
        until(lambda: one.stands_by != two.stands_by, "one stands by")
    world.check()


def test_one_that_stood_by_takes_over(world: World) -> None:
    """When the other is gone, the place stands still behind the head, and it goes on from there."""
    with world.relaying(batch=5, save_seconds=0, standby_seconds=0.5) as one:
        with world.relaying(batch=5, save_seconds=0, standby_seconds=0.5) as two:
            world.say(50)
            until(lambda: one.stands_by != two.stands_by, "one stands by")
        world.say(50)
        until(lambda: one.position == world.log.head(), "the one that is left relays")
    world.check()


def test_one_that_stands_by_is_well_again_when_what_it_missed_is_back(world: World) -> None:
    """A database that was away for a moment is no trouble for ever."""

    class Flaky:
        def __init__(self, places: DatabasePlaces) -> None:
            self.places, self.away = places, False

        def load(self, name: str) -> bytes | None:
            if self.away:
                raise StoreUnavailable("away")
            return self.places.load(name)

        def save(self, name: str, before: bytes | None, now: bytes) -> bool:
            return self.places.save(name, before, now)

    flaky = world.places = Flaky(world.places)  # type: ignore[assignment]
    with world.relaying(save_seconds=0, standby_seconds=3600) as relay:
        until(lambda: relay.position > 0, "it has begun")
        world.places = flaky.places
        world.places.save("relay", world.places.load("relay"), Place(relay.position, {0: 1}).encode())
        world.say(5)
        until(lambda: relay.stands_by, "it stands by")
        flaky.away = True
        until(lambda: relay.supervisor.now is not None, "it notices")
        flaky.away = False
        until(lambda: relay.supervisor.now is None, "it is well")
        assert relay.stands_by


def test_partitions_are_added_while_events_flow(world: World) -> None:
    """The epoch is in every partition, old and new, and decides for all that lies behind it."""
    world.say(30)
    with world.relaying(batch=8) as relay:
        until(lambda: relay.position > 10, "it has begun")
        epoch = change_partitions(world.log, draft, 5)
        world.say(60)
        until(lambda: relay.position == world.log.head(), "all is relayed")
    taken = world.check()
    assert taken.keys() == set(range(5))
    assert all(epoch.begins in positions for positions in taken.values())
    assert all(taken[new][0] == epoch.begins for new in (2, 3, 4))
    assert len({part for part, positions in taken.items() if max(positions) > epoch.begins}) > 2


def test_an_event_that_no_message_can_hold_is_relayed_by_its_position(world: World) -> None:
    """A state above the limit is left out, and the chain goes on."""
    world.log.append([replace(turn_of("user-1", 0), event=draft("x" * 950_000).event)])
    world.say(5)
    relay = world.relay()
    relay.load()
    while relay.step():
        pass
    large = [one for each in world.messages().values() for one in each if one.position == 2]
    assert [one.state for one in large] == [None]


def test_a_producer_that_is_wedged_is_made_anew(world: World) -> None:
    """A broker that hangs past the delivery timeout leaves the client stuck for good; another one sends it all."""
    pid = world.kafka.broker.status().pid
    assert pid is not None
    with world.relaying(batch=20, producing={"delivery_seconds": 1.5}) as relay:
        world.say(100)
        until(lambda: relay.position == world.log.head(), "all is relayed")
        os.kill(pid, signal.SIGSTOP)
        try:
            world.say(100)
            until(lambda: relay._publisher.rebuilds > 0, "it is given up")
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: relay.position == world.log.head(), "all is relayed")
    world.check()


@pytest.mark.slow
def test_a_topic_that_was_deleted_shows_its_gap(world: World) -> None:
    """Made anew with fewer partitions, it is widened, and its first messages name what came before them."""
    world.say(40)
    with world.relaying(producing={"delivery_seconds": 2.0}) as relay:
        until(lambda: relay.position == world.log.head(), "all is relayed")
        change_partitions(world.log, draft, 3)
        until(lambda: relay.position == world.log.head(), "the epoch is relayed")
        before = relay.position
        world.kafka.delete(world.kafka.topics.events)
        world.kafka.admin().create(1, 1)
        world.say(40)
        until(lambda: relay.position == world.log.head(), "all is relayed")
    messages = world.messages()
    assert messages.keys() == {0, 1, 2}
    assert {one.position for each in messages.values() for one in each} == set(range(before + 1, before + 41))
    for each in filter(None, messages.values()):
        assert each[0].position > before >= each[0].previous > 0


@pytest.mark.slow
def test_a_broker_that_is_killed_costs_nothing_but_time(world: World) -> None:
    """I09: killed in the middle of a flight and started again: all is there, in order, none is missing."""
    with world.relaying(batch=20, producing={"delivery_seconds": 3.0}) as relay:
        world.say(2000)
        until(lambda: relay.position > 300, "it has begun")
        world.kafka.broker.kill()
        world.say(500)
        until(lambda: relay.supervisor.now is not None, "it notices")
        world.kafka.broker.up()
        until(lambda: relay.position == world.log.head(), "all is relayed")
        assert relay._publisher.rebuilds > 0
    world.check()

"""The chain of positions, whatever relays and the network do: seeded, with a topic in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from log_support import FakeSealer, draft
from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.partitions import change_partitions, read_epochs
from mnemolog.consumers.relay import Outgoing, Place, Relay, _Overtaken
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.domain.events import SubjectErased
from mnemolog.infra.clock import SeededClock
from mnemolog.infra.log.sqlite import SqliteEventLog
from mnemolog.infra.places import DatabasePlaces
from topics_support import turn_of

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 6)),
        st.tuples(st.just("erase"), st.just(0)),
        st.tuples(st.just("grow"), st.integers(1, 3)),
        st.tuples(st.just("step"), st.integers(0, 1)),
        st.tuples(st.just("step"), st.integers(0, 1)),
        st.tuples(st.just("save"), st.integers(0, 1)),
        st.tuples(st.just("die"), st.integers(0, 1)),
        st.tuples(st.just("lose"), st.integers(0, 4)),
    ),
    max_size=40,
)


class MemoryTopic:
    """Delivers, or delivers only the first messages and then fails, as a network does."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[EventMessage]] = {}
        self.rebuilds, self.count, self.lose_after = 0, 0, -1

    def widen(self, partitions: int) -> None:
        self.count = max(self.count, partitions)

    def publish(self, messages: Sequence[Outgoing]) -> None:
        after, self.lose_after = self.lose_after, -1
        for number, message in enumerate(messages):
            if number == after:
                raise StoreUnavailable("lost on its way")
            assert message.partition < self.count
            assert message.value is not None
            self.partitions.setdefault(message.partition, []).append(EventMessage.decode(message.value))


class World:
    def __init__(self, folder: str) -> None:
        self.log = SqliteEventLog(Path(folder) / "log.db", FakeSealer(), SeededClock(), durability="os")
        self.places = DatabasePlaces(Path(folder) / "places.db")
        self.topic, self.said = MemoryTopic(), 0
        change_partitions(self.log, draft, 2)
        self.relays = [self.relay(), self.relay()]

    def relay(self) -> Relay:
        made = Relay(self.log, self.topic, self.places, batch=4, save_seconds=3600)
        made.load()
        return made

    def do(self, what: str, number: int) -> None:
        if what == "say":
            drafts = [turn_of(f"user-{(self.said + n) % 5}", self.said + n) for n in range(number)]
            self.said += number
            self.log.append(drafts)
        elif what == "erase":
            self.log.append([draft(SubjectErased("e", "nobody"))])
        elif what == "grow":
            change_partitions(self.log, draft, read_epochs(self.log).latest.partitions + number)
        elif what == "lose":
            self.topic.lose_after = number
        elif what == "die":
            self.relays[number] = self.relay()
        else:
            self.act(what, number)

    def act(self, what: str, number: int) -> None:
        relay = self.relays[number]
        try:
            relay.step() if what == "step" else relay._save()
        except _Overtaken:
            relay.load()
        except StoreUnavailable:
            pass  # it is stepped again, or dies

    def check(self) -> None:
        """A reader that keeps a checkpoint finds no gap, and ends with every event of each partition, once."""
        epochs = read_epochs(self.log)
        events = self.log.sealed(0, 10_000).events
        for partition in range(epochs.latest.partitions):
            taken: list[int] = []
            for message in self.topic.partitions.get(partition, []):
                if message.position > (taken[-1] if taken else 0):
                    assert message.previous == (taken[-1] if taken else 0)
                    taken.append(message.position)
            assert taken == [
                recorded.position
                for recorded, _ in events
                if partition in epochs.partitions_of(recorded.position, recorded.envelope)
            ]


@given(STEPS)
def test_no_fault_makes_a_gap(steps: list[tuple[str, int]]) -> None:
    """Two relays die, overtake each other and lose messages half-way, while partitions are added."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            for what, number in steps:
                world.do(what, number)
            last = world.relay()
            world.topic.lose_after = -1
            while last.step():
                pass
            assert last.position == world.log.head()
            world.check()
        finally:
            world.places.close()
            world.log.close()


@given(st.integers(0, 2**40), st.dictionaries(st.integers(0, 9999), st.integers(1, 2**40), max_size=20))
def test_a_place_comes_back_as_it_went(position: int, last: dict[int, int]) -> None:
    """And equal places have equal bytes, by which they are compared."""
    place = Place(position, last)
    assert Place.decode(place.encode()) == place
    assert Place(position, dict(reversed(last.items()))).encode() == place.encode()

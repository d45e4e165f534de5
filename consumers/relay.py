"""The relay: from the log to the events topic, in position order, at least once.

What a message says of the one before it makes a chain in every partition, so the relay's place is more than a number:
where the log is done, and the last position in each partition. It is kept by compare-and-set. Two relays do no harm:
the messages of both are alike, and whoever finds the place moved steps back until it stands still.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final, Protocol

import orjson

from mnemolog.consumers.messages import MAX_STATE, EventMessage
from mnemolog.consumers.partitions import EpochLog, Epochs, read_epochs
from mnemolog.domain.errors import MnemologError, StoreUnavailable
from mnemolog.domain.events import Recorded
from mnemolog.projections.ports import SealedPage
from mnemolog.projections.supervision import Supervisor

BATCH: Final = 500
"""Events that are sent together."""
SAVE_SECONDS: Final = 0.5
"""How often the place is kept; a crash repeats as much."""
STANDBY_SECONDS: Final = 5.0
"""How long another relay's place may stand still behind the head before this one takes over."""
_WAIT: Final = 0.5
_GATHER: Final = 0.1
"""Seconds of rest after a batch that was not full: appends one by one are then sent together."""
_PLACE: Final = "relay"


class RelayLog(EpochLog, Protocol):
    """The log, as far as the relay reads it."""

    def sealed(self, after: int, limit: int) -> SealedPage: ...
    def head(self) -> int: ...
    def wait(self, after: int, timeout: float) -> int: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way. key: None for none; value: None is a tombstone."""

    partition: int
    key: bytes | None
    value: bytes | None


class Publisher(Protocol):
    """Where messages go: one topic."""

    @property
    def rebuilds(self) -> int:
        """How often what sends had to be made anew."""

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send all, in order within each partition; they are acknowledged when this returns.

        Raises StoreUnavailable where that is not sure: send all of them again.
        """

    def widen(self, partitions: int) -> None:
        """Let the topic have at least so many partitions; made if it is not there. Raises StoreUnavailable."""


class Places(Protocol):
    """Where a reader of the log keeps how far it is."""

    def load(self, name: str) -> bytes | None: ...

    def save(self, name: str, before: bytes | None, now: bytes) -> bool:
        """Durable when this returns. False, and nothing is changed, where it is not what it was `before`."""


@dataclass(slots=True)
class Place:
    """Everything up to `position` was sent; `last` is the last position in each partition."""

    position: int = 0
    last: dict[int, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        last = {str(partition): self.last[partition] for partition in sorted(self.last)}
        return orjson.dumps({"position": self.position, "last": last})

    @classmethod
    def decode(cls, stored: bytes | None) -> Place:
        if stored is None:
            return cls()
        raw = orjson.loads(stored)
        return cls(raw["position"], {int(partition): last for partition, last in raw["last"].items()})


class _Overtaken(Exception):
    """Another relay has moved the place."""


class Relay:
    """Sends what is new in the log until it is told to stop. One thread runs it; others may look at it.

    sent: messages; overtaken: how often another relay was met.
    """

    def __init__(
        self,
        log: RelayLog,
        publisher: Publisher,
        places: Places,
        *,
        batch: int = BATCH,
        save_seconds: float = SAVE_SECONDS,
        standby_seconds: float = STANDBY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._publisher, self._places = log, publisher, places
        self._batch, self._save_seconds, self._standby_seconds = batch, save_seconds, standby_seconds
        self._clock = clock
        self.supervisor = Supervisor(0.1, 2.0)
        self._epochs = Epochs()
        self._stored: bytes | None = None
        self._place, self._saved_at = Place(), 0.0
        self._partitions = 0
        self.sent = self.overtaken = 0
        self.stands_by = False

    @property
    def position(self) -> int:
        """Everything up to here is in the topic."""
        return self._place.position

    def run(self, stop: Event) -> None:
        """Send until `stop` is set; what was sent is then noted. Whatever fails is tried again."""
        loaded = False
        while not stop.is_set():
            try:
                if not loaded:
                    self.load()
                    loaded = True
                sent = self.sent
                self.step(_WAIT)
                self.supervisor.worked()
                if 0 < self.sent - sent < self._batch:
                    stop.wait(_GATHER)
            except _Overtaken:
                self.overtaken += 1
                loaded = False
                self._stand_by(stop)
            except MnemologError as error:
                self._partitions = 0  # the topic may have been made anew
                self.supervisor.crashed(error)
                stop.wait(self.supervisor.delay)
        if loaded:
            self._save_quietly()

    def load(self) -> None:
        """Take up the place where the last relay left it. Raises InvalidInput where no partitions are recorded."""
        self._epochs = read_epochs(self._log)
        self._stored = self._places.load(_PLACE)
        self._place, self._partitions = Place.decode(self._stored), 0
        self._saved_at = self._clock()

    def step(self, wait: float = 0.0) -> bool:
        """Send the next batch, if there is one within `wait` seconds; whether there was."""
        if self._log.wait(self._place.position, wait) <= self._place.position:
            self._save()
            return False
        page = self._log.sealed(self._place.position, self._batch)
        self._send(page)
        if self._clock() - self._saved_at >= self._save_seconds:
            self._save()
        return page.position > 0

    def _send(self, page: SealedPage) -> None:
        for recorded, _ in page.events:
            self._epochs.learn(recorded)
        last = dict(self._place.last)
        messages = [message for recorded, state in page.events for message in self._of(recorded, state, last)]
        if page.events:
            self._widen(self._epochs.at(page.position).partitions)
        if messages:
            self._publisher.publish(messages)
            self.sent += len(messages)
        self._place = Place(page.position, last)

    def _of(self, recorded: Recorded, state: bytes, last: dict[int, int]) -> Iterator[Outgoing]:
        position, envelope = recorded.position, recorded.envelope
        epoch, key = self._epochs.at(position).number, envelope.owner.encode()
        held = state if len(state) <= MAX_STATE else None
        for partition in self._epochs.partitions_of(position, envelope):
            message = EventMessage(epoch, position, last.get(partition, 0), held)
            last[partition] = position
            yield Outgoing(partition, key, message.encode())

    def _widen(self, partitions: int) -> None:
        if partitions > self._partitions:
            self._publisher.widen(partitions)
            self._partitions = partitions

    def _save(self) -> None:
        now = self._place.encode()
        if now != self._stored:
            if not self._places.save(_PLACE, self._stored, now):
                raise _Overtaken
            self._stored = now
        self._saved_at = self._clock()

    def _save_quietly(self) -> None:
        """What is not noted is sent once more by the next relay."""
        try:
            self._save()
        except (_Overtaken, StoreUnavailable):
            return

    def _stand_by(self, stop: Event) -> None:
        """Until the place has stood still for a while although there is something to send."""
        self.stands_by = True
        seen, still_since = None, self._clock()
        while not stop.wait(min(1.0, self._standby_seconds / 5)):
            try:
                stored, head = self._places.load(_PLACE), self._log.head()
            except MnemologError as error:
                self.supervisor.crashed(error)
                continue
            self.supervisor.worked()
            self._place = Place.decode(stored)
            if stored != seen or self._place.position >= head:
                seen, still_since = stored, self._clock()
            elif self._clock() - still_since >= self._standby_seconds:
                break
        self.stands_by = False

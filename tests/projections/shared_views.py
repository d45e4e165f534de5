"""What stands in for Kafka between a log in memory and workers: a topic as lists, and views that are built together."""

from __future__ import annotations

from pathlib import Path

from projection_fakes import FakeLog

from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.partitions import STREAM, Epochs
from mnemolog.consumers.relay import Place
from mnemolog.consumers.workers import Delivery
from mnemolog.domain.events import PartitionsChanged, Recorded
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections.versions import ViewFile


class WorkedLog(FakeLog):
    """A log whose events travel in partitions. Stored states are stood for by positions."""

    def __init__(self, partitions: int = 3) -> None:
        super().__init__()
        self.divide(partitions)

    def divide(self, partitions: int) -> Recorded:
        """Record the next count of partitions."""
        number = 1 + sum(recorded.envelope.topic == "PartitionsChanged" for recorded in self.rows)
        return self.add(PartitionsChanged(number, partitions), None, session=STREAM)

    def read_stream(self, stream: str, *, after_version: int = 0, bodies: bool = True) -> list[Recorded]:
        return [self._seen(recorded, bodies) for recorded in self.rows if recorded.envelope.stream == stream]

    def decode(self, position: int, state: bytes) -> Recorded:
        assert int(state) == position
        return self._seen(self.rows[position - 1], bodies=True)


class Topic:
    """The events topic, and how far the relay is."""

    def __init__(self, log: WorkedLog) -> None:
        self.log, self.messages, self.place = log, dict[int, list[EventMessage]](), Place()

    def relay(self) -> None:
        """Send what is new."""
        epochs = Epochs()
        for recorded in self.log.rows:
            epochs.learn(recorded)
        for recorded in self.log.rows[self.place.position :]:
            at = recorded.position
            for one in epochs.partitions_of(at, recorded.envelope):
                message = EventMessage(epochs.at(at).number, at, self.place.last.get(one, 0), b"%d" % at)
                self.messages.setdefault(one, []).append(message)
                self.place.last[one] = at
            self.place.position = at

    def deliveries(self, partition: int, begin: int = 0) -> list[Delivery]:
        found = self.messages.get(partition, [])
        return [Delivery(offset, message) for offset, message in enumerate(found) if offset >= begin]

    def load(self, name: str) -> bytes:
        return self.place.encode()


class JoinedViews(SqliteViews):
    """Views in files that several workers of one process build together."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.joined: dict[tuple[str, str], ViewFile] = {}

    def join_shadow(self, name: str, version: str) -> ViewFile:
        known = self.joined.get((name, version))
        if known is None or self.live(name) == known:
            known = self.joined[name, version] = self.create_shadow(name, version)
        return known

"""In which partitions of the events topic an event is, and how many there are: an epoch, recorded in the log.

The count may grow. The event that says so is in every partition, old and new; what lies behind it is placed anew.
A worker that meets it in its partition goes on only when all partitions of the epoch before have been folded up to it,
since an owner may have moved over from any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import (
    ERASURE,
    PARKING,
    Draft,
    Envelope,
    Event,
    PartitionsChanged,
    PolicyAdopted,
    Receipt,
    Recorded,
)

FOR_ALL_OWNERS: Final = ERASURE | PARKING | {PolicyAdopted.topic, PartitionsChanged.topic}
"""What every partition has a copy of, at its place in the order."""

STREAM: Final = "partitions"
"""The stream of the epochs."""

MAX_PARTITIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """How many partitions there are, from position `begins` on; the first epoch also holds for all before it."""

    number: int
    partitions: int
    begins: int


class Epochs:
    """The counts of partitions that the log has had, and with them the place of every event."""

    def __init__(self, epochs: Sequence[Epoch] = ()) -> None:
        self._epochs = list(epochs)

    def __bool__(self) -> bool:
        return bool(self._epochs)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._epochs)

    @property
    def latest(self) -> Epoch:
        """Raises InvalidInput where none was recorded yet."""
        if not self._epochs:
            raise InvalidInput("no partitions are recorded yet: run `mnemolog topics create`")
        return self._epochs[-1]

    def learn(self, recorded: Recorded) -> None:
        """Take up an epoch from its event, once. Bodies are not needed."""
        fields = recorded.envelope.clear
        if recorded.envelope.topic == PartitionsChanged.topic and (
            not self._epochs or fields["epoch"] > self._epochs[-1].number
        ):
            self._epochs.append(Epoch(fields["epoch"], fields["partitions"], recorded.position))

    def at(self, position: int) -> Epoch:
        """The epoch that decides about the event at this position. Raises InvalidInput where there is none."""
        found = self.latest
        for epoch in reversed(self._epochs):
            found = epoch
            if epoch.begins <= position:
                break
        return found

    def partitions_of(self, position: int, envelope: Envelope) -> Sequence[int]:
        """The partitions that have the event: its owner's, or all for what concerns all owners."""
        count = self.at(position).partitions
        if envelope.topic in FOR_ALL_OWNERS:
            return range(count)
        return (partition_of(envelope.owner, count),)


@lru_cache(65_536)
def partition_of(owner: str, count: int) -> int:
    """Where an owner's events are: as Kafka's own clients place a message with this key (murmur2)."""
    from kafka.partitioner.default import murmur2

    return int((murmur2(owner.encode()) & 0x7FFFFFFF) % count)


class EpochLog(Protocol):
    """The log, as far as epochs need it."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]: ...
    def read_stream(
        self, stream: str, *, after_version: int = 0, bodies: bool = True
    ) -> Sequence[Recorded]: ...


def read_epochs(log: EpochLog) -> Epochs:
    """All epochs that the log knows of, by an index."""
    epochs = Epochs()
    for recorded in log.read_stream(STREAM, bodies=False):
        epochs.learn(recorded)
    return epochs


def change_partitions(log: EpochLog, note: Callable[[Event], Draft], count: int) -> Epoch:
    """Record the number of partitions, as the first epoch or as the next; the one in force where it is the same.

    note: the draft of an event that the store itself appends. Raises InvalidInput for a number that is too large or
    smaller than it was, VersionConflict where another process records an epoch at this moment.
    """
    epochs = read_epochs(log)
    latest = epochs.latest if epochs else Epoch(0, 0, 0)
    if count == latest.partitions:
        return latest
    if not latest.partitions < count <= MAX_PARTITIONS:
        raise InvalidInput(
            f"partitions can only grow: from {latest.partitions}, up to {MAX_PARTITIONS}, not to {count}"
        )
    event = PartitionsChanged(latest.number + 1, count)
    draft = replace(note(event), stream=STREAM, expected_version=latest.number)
    return Epoch(event.epoch, count, log.append([draft])[0].position)

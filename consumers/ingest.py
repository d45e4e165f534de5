"""Ingest: what runtimes send to the ingest topic goes into the log, in batches, at least once, each message once.

A batch is appended, its bad messages become dead letters, and only then the offsets are committed. Whatever breaks in
between brings the batch again, and the idempotency keys make that add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from re import compile as pattern
from threading import Event
from typing import Final, Protocol

from mnemolog.consumers.importing import (
    ERASED,
    FATAL,
    Entry,
    Item,
    Names,
    Naming,
    Place,
    Sink,
    Skipped,
    Tally,
    code_of,
    run,
)
from mnemolog.domain.errors import InvalidInput, ProjectionStalled, StoreInUse, StoreUnavailable
from mnemolog.domain.events import MEMORY, Receipt, Recorded
from mnemolog.domain.scope import Scope
from mnemolog.projections.parking import reason_of
from mnemolog.projections.supervision import Supervisor

BATCH: Final = 500
"""Messages that are appended together; no more than a tally lists."""
_RETRIED: Final = (StoreUnavailable, StoreInUse, ProjectionStalled)
_WAIT: Final = 0.5
_ID: Final = pattern("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message as it came. at: milliseconds since 1970, as the broker has it."""

    topic: str
    partition: int
    offset: int
    at: int
    value: bytes

    @property
    def id(self) -> str:
        """Where it was: a name that no other message of the cluster has."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class Refused:
    """A message that could not be taken. code: one of `importing.CODES`; reason: may quote it."""

    message: Incoming
    code: str
    reason: str


class Source(Protocol):
    """The ingest topic, as one member of a group reads it."""

    def poll(self, wait: float, limit: int) -> Sequence[Incoming]:
        """What came within `wait` seconds. Raises StoreUnavailable."""

    def commit(self, done: Mapping[int, int]) -> None:
        """Partition → the offset that is next. Raises StoreUnavailable; the messages then come again, perhaps."""


class DeadLetters(Protocol):
    def put(self, refused: Sequence[Refused]) -> int:
        """Keep them, durable when this returns, but nothing of what was erased; how many were kept.

        Raises StoreUnavailable.
        """


class WrittenBefore(Protocol):
    def written(self, scope: Scope, key: str, /) -> Recorded | None:
        """The event of this scope and session under this key, without its body."""


class LogNames:
    """An `importing.Naming` that forgets nothing: names are keys of earlier events of the same scope, or ids.

    What it knows is in the log, under keyed hashes; so it holds after a restart, and on whatever member of the group.
    """

    def __init__(self, memory: WrittenBefore) -> None:
        self._memory = memory

    def learn(self, item: Item, receipt: Receipt) -> None: ...

    def lose(self, item: Item) -> None: ...

    def record(self, scope: Scope, label: str) -> str:
        """As the port says."""
        found = self._memory.written(scope, label)
        if found is not None and found.envelope.topic in MEMORY:
            return found.envelope.stream
        return _an_id(label, "record")

    def event(self, scope: Scope, key: str, what: str) -> str:
        """As the port says."""
        found = self._memory.written(scope, key)
        return _an_id(key, what) if found is None else found.envelope.id

    def target(self, scope: Scope, key: str) -> str:
        """As the port says."""
        found = self._memory.written(scope, key)
        if found is not None and found.envelope.topic in MEMORY:
            return found.envelope.stream
        return self.event(scope, key, "target")


def _an_id(name: str, what: str) -> str:
    if not _ID.fullmatch(name):
        raise InvalidInput(f"`{what}` is neither the key of an earlier event of this scope nor an id")
    return name


Understand = Callable[[Incoming, int], Entry]
"""What a message says, opened if it was sealed; number: its own within the batch, for the places of the entry."""


@dataclass(slots=True)
class Counters:
    """What was done since the start. redelivered: known already; retries: batches that were tried again."""

    messages: int = 0
    appended: int = 0
    redelivered: int = 0
    dead: int = 0
    erased: int = 0
    retries: int = 0


class Ingest:
    """Takes in what comes until it is told to stop. One thread runs it; others may look at it."""

    def __init__(
        self,
        source: Source,
        understand: Understand,
        sink: Sink,
        dead_letters: DeadLetters,
        *,
        names: Callable[[], Naming] = Names,
        batch: int = BATCH,
    ) -> None:
        self._source, self._understand, self._sink, self._dead = source, understand, sink, dead_letters
        self._names, self._batch = names, batch
        self.supervisor = Supervisor(0.1, 5.0)
        self.counters = Counters()

    def run(self, stop: Event) -> None:
        """Take in batch after batch. A batch that was begun when `stop` is set is finished, or left for the next."""
        while not stop.is_set():
            try:
                messages = self._source.poll(_WAIT, self._batch)
            except StoreUnavailable as error:
                self._crashed(error, stop)
                continue
            if messages:
                self._persist(messages, stop)
            else:
                self.supervisor.worked()

    def _persist(self, messages: Sequence[Incoming], stop: Event) -> None:
        """Until it is done: whatever is not the messages' fault is tried again."""
        while True:
            try:
                self.take(messages)
            except _RETRIED as error:
                self.counters.retries += 1
                self._crashed(error, stop)
                if stop.is_set():
                    return
            else:
                self.supervisor.worked()
                return

    def _crashed(self, error: Exception, stop: Event) -> None:
        self.supervisor.crashed(error)
        stop.wait(self.supervisor.delay)

    def take(self, messages: Sequence[Incoming]) -> None:
        """Append what can be, keep what cannot be as dead letters, then commit. Raises `FATAL`."""
        tally, refused = self._append(messages)
        # What was erased is dropped and counted: nothing may keep it.
        dead = [one for one in refused if one.code != ERASED]
        kept = self._dead.put(dead) if dead else 0
        self._count(messages, tally, kept, len(refused) - kept)
        self._commit(messages)

    def _commit(self, messages: Sequence[Incoming]) -> None:
        try:
            self._source.commit({message.partition: message.offset + 1 for message in messages})
        except StoreUnavailable as error:  # they come again, and add nothing
            self.supervisor.crashed(error)

    def _append(self, messages: Sequence[Incoming]) -> tuple[Tally, list[Refused]]:
        entries = [self._entry(message, number) for number, message in enumerate(messages, 1)]
        tally = Tally()
        try:
            run(entries, self._sink, batch=len(messages), names=self._names(), tally=tally)
        except FATAL:
            raise
        except Exception:
            # A message that no rule foresaw: find it, and let the others pass.
            tally = self._one_by_one(entries)
        skips = tally.skipped
        return tally, [Refused(messages[one.number - 1], code_of(one), one.reason) for one in skips]

    def _entry(self, message: Incoming, number: int) -> Entry:
        try:
            return self._understand(message, number)
        except InvalidInput as error:
            return Entry(Place(number), skipped=(Skipped(number, str(error)),))
        except Exception as error:
            return Entry(Place(number), skipped=(Skipped(number, reason_of(error)),))

    def _one_by_one(self, entries: Iterable[Entry]) -> Tally:
        tally, names = Tally(), self._names()
        for entry in entries:
            try:
                run([entry], self._sink, batch=1, names=names, tally=tally)
            except FATAL:
                raise
            except Exception as error:
                tally.skip(Skipped(entry.place.number, reason_of(error), code="failed"))
        return tally

    def _count(self, messages: Sequence[Incoming], tally: Tally, dead: int, erased: int) -> None:
        counters = self.counters
        self.counters = replace(
            counters,
            messages=counters.messages + len(messages),
            appended=counters.appended + tally.appended,
            redelivered=counters.redelivered + tally.duplicates,
            dead=counters.dead + dead,
            erased=counters.erased + erased,
        )

"""The records topic: the current record per id, for caches outside; a tombstone when there is none any more.

A record is sealed under the key of the event that says what it says, so whatever destroys that key closes the copy in
the topic, too, at once. The bytes go when the broker's cleaner runs, which it does only behind a segment that was
closed, and a segment is closed only by a further message: after each replaced value a filler is sent.

A message: "MNR1", the length of the head (4 bytes, big-endian), the head as JSON, the sealed body, which is JSON.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Final, Protocol

import orjson

from mnemolog.consumers.messages import framed, unframed
from mnemolog.consumers.partitions import partition_of
from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import CorruptStore, ErasedScope, InvalidInput, MnemologError
from mnemolog.domain.events import FORGOTTEN, Forgotten, Recorded
from mnemolog.domain.records import Record
from mnemolog.domain.scope import LEVELS, Scope, ScopeIds
from mnemolog.projections.current import ScopeRecords
from mnemolog.projections.supervision import Supervisor

FILLER: Final = b"~"
"""The key of messages that only close a segment."""
BATCH: Final = 500
_MAGIC: Final = b"MNR1"
_EVERY: Final = 0.3
"""Seconds between two looks at the view, which says nothing of itself."""
_BODY: Final = (
    "content", "kind", "entity", "attribute", "confidence", "sensitivity", "valid_from", "valid_to", "expires_at",
    "occurred_at", "consent", "from_us", "to_us", "expires_us",
)  # fmt: skip


class Seals(Protocol):
    """The keys of persons."""

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes: ...
    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None: ...
    def refresh(self) -> None:
        """Notice what other processes destroyed."""


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """One record as the topic has it. mark: changes whenever the record does; it says nothing of the content.

    subjects and leaf: whose key, and which one, opens the body.
    """

    id: str
    scope: ScopeIds
    position: int
    mark: str
    subjects: tuple[str, ...]
    leaf: int
    sealed: bytes

    @property
    def aad(self) -> bytes:
        return f"{self.id} {self.position}".encode()

    def encode(self) -> bytes:
        head = {
            "id": self.id,
            "scope": dict(self.scope.present()),
            "position": self.position,
            "mark": self.mark,
            "subjects": self.subjects,
            "leaf": self.leaf,
        }
        return framed(_MAGIC, head, self.sealed)

    @classmethod
    def decode(cls, value: bytes) -> SealedRecord:
        """Raises CorruptStore for what is no such message."""
        head, sealed = unframed(_MAGIC, value)
        try:
            scope = ScopeIds(Scope.of({level: head["scope"].get(level) for level in LEVELS}))
            subjects = tuple(head["subjects"])
            return cls(head["id"], scope, head["position"], head["mark"], subjects, head["leaf"], sealed)
        except (KeyError, TypeError, AttributeError, InvalidInput):
            raise CorruptStore("a message of the records topic lacks what it needs") from None

    def opened(self, seals: Seals) -> CachedRecord | Forgotten:
        """FORGOTTEN where its key was destroyed."""
        body = seals.open(self.subjects, self.leaf, self.sealed, self.aad)
        if body is None:
            return FORGOTTEN
        return CachedRecord(self.id, self.scope, self.position, **orjson.loads(body))


@dataclass(frozen=True, slots=True)
class CachedRecord:
    """A record as others may use it. Times are ISO 8601 with offset; `_us` are the same in microseconds, UTC.

    status, trust: when it was sent; whether it is valid or expired is judged at the reader's own now.
    """

    id: str
    scope: ScopeIds
    position: int
    content: str
    kind: str
    status: str
    trust: int
    evidence: Sequence[str] = ()
    entity: str | None = None
    attribute: str | None = None
    confidence: float = 1.0
    sensitivity: str = "normal"
    valid_from: str | None = None
    valid_to: str | None = None
    expires_at: str | None = None
    occurred_at: str = ""
    consent: str | None = None
    from_us: int | None = None
    to_us: int | None = None
    expires_us: int | None = None

    def holds(self, now_us: int) -> bool:
        """Whether it is valid and not expired at this time, in microseconds UTC."""
        begun = self.from_us is None or self.from_us <= now_us
        over = (self.to_us, self.expires_us)
        return begun and all(end is None or now_us < end for end in over)


Message = tuple[int, bytes, bytes | None]
"""Partition, key, value."""


class RecordsTopic(Protocol):
    @property
    def rebuilds(self) -> int: ...

    def stored(self) -> Iterator[Message]:
        """Partition, key and value of every message that is there. Raises StoreUnavailable."""

    def news(self) -> Iterator[Message]:
        """Those that came since `stored` or `news` was asked, as far as they are here. Raises StoreUnavailable."""

    def partitions(self) -> int:
        """Raises StoreUnavailable."""

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """As `relay.Publisher.publish`."""


class Current(Protocol):
    """The view: `projections.current.CurrentRecords`."""

    def look(self, again: Collection[ScopeIds] = ()) -> tuple[bool, Iterator[ScopeRecords]]: ...
    def noted(self) -> None: ...


class ReadsEvents(Protocol):
    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]: ...


@dataclass(frozen=True, slots=True)
class _Published:
    scope: ScopeIds
    mark: str
    partition: int


class RecordsPublisher:
    """Keeps the topic as the view is. It keeps no place of its own: what was sent is what the topic holds.

    It reads along, so that another one, which may be slower and send what is no longer so, is set right.

    sent, tombstones, fillers: messages. segment_seconds: how long the topic keeps a segment open.
    """

    def __init__(
        self,
        view: Current,
        log: ReadsEvents,
        seals: Seals,
        topic: RecordsTopic,
        *,
        segment_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view, self._log, self._seals, self._topic = view, log, seals, topic
        self._segment, self._clock = segment_seconds, clock
        self.supervisor = Supervisor(0.2, 5.0)
        self._published: dict[str, _Published] = {}
        self._of_scope: dict[ScopeIds, set[str]] = {}
        self._doubtful: set[ScopeIds] = set()
        self._due: dict[int, float] = {}
        self._partitions = 0
        self.sent = self.tombstones = self.fillers = 0

    def run(self, stop: Event) -> None:
        """Until `stop` is set. Whatever fails is tried again."""
        loaded = False
        while not stop.wait(self.supervisor.delay or _EVERY):
            try:
                if not loaded:
                    self.load()
                    loaded = True
                self.step()
                self.supervisor.worked()
            except MnemologError as error:
                self.supervisor.crashed(error)

    def load(self) -> None:
        """Take up what the topic holds, also what another one has sent."""
        self._partitions = self._topic.partitions()
        self._published, self._of_scope, self._due = {}, {}, {}
        for message in self._topic.stored():
            self._heard(*message)
        # What was replaced before may still be in an open segment.
        self._replaced(range(self._partitions))

    def step(self) -> bool:
        """Send what changed, and the fillers that are due; whether anything was sent."""
        before = self.sent + self.tombstones + self.fillers
        self._seals.refresh()
        for message in self._topic.news():
            self._heard(*message)
        again, self._doubtful = self._doubtful, set()
        everything, changed = self._view.look(again)
        seen: set[ScopeIds] = set()
        for scope in changed:
            seen.add(scope.scope)
            self._publish(scope.scope, scope.records)
        if everything:
            for gone in self._of_scope.keys() - seen:
                self._publish(gone, ())
        self._view.noted()
        self._fill()
        return self.sent + self.tombstones + self.fillers > before

    def _heard(self, partition: int, key: bytes, value: bytes | None) -> None:
        """The topic's word counts; where it is not what was sent from here, the scope is looked at again."""
        if key == FILLER:
            return
        id = key.decode(errors="replace")
        known = self._published.get(id)
        one = _decoded(value)
        if one is None:
            if known is not None and known.partition == partition:
                self._doubtful.add(known.scope)
                self._forget(id)
            return
        if known is None or known.mark != one.mark:
            self._doubtful.add(one.scope)
            self._remember(one.id, _Published(one.scope, one.mark, partition))

    def _publish(self, scope: ScopeIds, records: Sequence[Record]) -> None:
        wanted = {record.id: record for record in records if record.content is not None}
        known = self._published
        changed = [r for r in wanted.values() if r.id not in known or known[r.id].mark != _mark(r)]
        sealed = list(self._sealed(scope, changed))
        closed = {record.id for record in changed} - {one.id for one in sealed}
        gone = [id for id in self._of_scope.get(scope, set()) if id not in wanted or id in closed]
        for start in range(0, len(sealed), BATCH):
            self._send([self._value(one) for one in sealed[start : start + BATCH]])
        self._send([Outgoing(known[id].partition, id.encode(), None) for id in gone])
        self.sent += len(sealed)
        self.tombstones += len(gone)
        self._replaced(
            [known[one.id].partition for one in sealed if one.id in known]
            + [known[id].partition for id in gone]
        )
        for one in sealed:
            self._remember(one.id, _Published(scope, one.mark, self._place(one.id)))
        for id in gone:
            self._forget(id)

    def _sealed(self, scope: ScopeIds, records: Sequence[Record]) -> Iterator[SealedRecord]:
        """Those whose key is still there, under the key of the event that made them what they are."""
        events = {one.position: one for one in self._log.read_at([r.position for r in records], bodies=False)}
        for record in records:
            event = events.get(record.position)
            if event is None or not event.envelope.parts:
                continue
            part = event.envelope.parts[0]
            bare = SealedRecord(
                record.id, scope, record.position, _mark(record), part.subjects, part.leaf, b""
            )
            try:
                sealed = self._seals.seal(part.subjects, part.leaf, _body(record), bare.aad)
            except ErasedScope:
                continue
            yield replace(bare, sealed=sealed)

    def _value(self, one: SealedRecord) -> Outgoing:
        return Outgoing(self._place(one.id), one.id.encode(), one.encode())

    def _place(self, id: str) -> int:
        """Where it is, also when partitions were added since: a key has one place, or it is never cleaned."""
        known = self._published.get(id)
        return partition_of(id, self._partitions) if known is None else known.partition

    def _send(self, messages: Sequence[Outgoing]) -> None:
        if messages:
            self._topic.publish(messages)

    def _replaced(self, partitions: Iterable[int]) -> None:
        """Old bytes are in these partitions until their segment is closed."""
        due = self._clock() + self._segment
        self._due.update(dict.fromkeys(partitions, due))

    def _fill(self) -> None:
        now = self._clock()
        due = [partition for partition, at in self._due.items() if at <= now]
        self._send([Outgoing(partition, FILLER, b"-") for partition in due])
        self.fillers += len(due)
        for partition in due:
            del self._due[partition]

    def _remember(self, id: str, published: _Published) -> None:
        self._forget(id)
        self._published[id] = published
        self._of_scope.setdefault(published.scope, set()).add(id)

    def _forget(self, id: str) -> None:
        known = self._published.pop(id, None)
        if known is not None:
            self._of_scope[known.scope].discard(id)


class RecordsCache:
    """A local copy of the records topic, sealed as it came; opened through the vault at every read.

    So an erasure closes it at once, whatever the topic still holds. Not thread-safe.
    """

    def __init__(self, topic: Callable[[float], Iterable[Message]], seals: Seals) -> None:
        self._topic, self._seals = topic, seals
        self._records: dict[str, SealedRecord] = {}
        self._partition: dict[str, int] = {}

    def refresh(self, wait: float = 0.0) -> int:
        """Take in what came, waiting so many seconds for a first message; how many messages that were."""
        count = 0
        for partition, key, value in self._topic(wait):
            count += 1
            one, id = _decoded(value), key.decode(errors="replace")
            if one is not None:
                self._records[one.id], self._partition[one.id] = one, partition
            elif self._partition.get(id) == partition:
                del self._records[id], self._partition[id]
        return count

    def get(self, id: str, visible: Callable[[ScopeIds], bool]) -> CachedRecord | Forgotten | None:
        """The record; None where none is visible, FORGOTTEN where its key was destroyed."""
        found = self._records.get(id)
        if found is None or not visible(found.scope):
            return None
        self._seals.refresh()
        return found.opened(self._seals)

    def records(self, visible: Callable[[ScopeIds], bool]) -> list[CachedRecord]:
        """Those of the visible scopes, in the order of their positions."""
        self._seals.refresh()
        found = [one.opened(self._seals) for one in self._records.values() if visible(one.scope)]
        return sorted(
            (one for one in found if isinstance(one, CachedRecord)), key=lambda record: record.position
        )

    def __len__(self) -> int:
        return len(self._records)


def _decoded(value: bytes | None) -> SealedRecord | None:
    """None for a tombstone, and for what somebody else has sent: it is no record either."""
    with suppress(CorruptStore):
        return None if value is None else SealedRecord.decode(value)
    return None


def _mark(record: Record) -> str:
    parts = (
        record.position,
        record.version,
        record.status.value,
        int(record.trust),
        record.lost,
        record.sensitivity,
    )
    return "/".join(map(str, parts))


def _body(record: Record) -> bytes:
    values = {name: getattr(record, name) for name in _BODY}
    return orjson.dumps(
        {
            **values,
            "status": record.status.value,
            "trust": int(record.trust),
            "evidence": record.event_ids,
        }
    )

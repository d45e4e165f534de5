"""The tables of the curated view, and how assertions and records turn into rows and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    MetaData,
    Row,
    Table,
    select,
    tuple_,
)
from sqlalchemy.types import TypeEngine

from mnemolog.domain.envelope import Envelope
from mnemolog.domain.errors import CorruptStore, InvalidInput
from mnemolog.domain.events import (
    ConflictResolved,
    Event,
    Json,
    MemoryCorrected,
    MemoryStated,
    MergeReviewed,
    QuarantineReviewed,
    Recorded,
    Undecodable,
)
from mnemolog.domain.normalise import statement_key
from mnemolog.domain.principal import HUMAN, Tier
from mnemolog.domain.records import Act, Assertion, Evidence, Record, Status, microseconds
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String

T = TypeVar("T")
Values = dict[str, Any]

CHUNK: Final = 500
"""Values per IN list, below every database's limit."""

_ACTS: Final = {
    "MemoryStated": Act.STATED,
    "MemoryCorrected": Act.CORRECTED,
    "MemoryConfirmed": Act.CONFIRMED,
    "MemoryDisputed": Act.DISPUTED,
    "MemoryRetracted": Act.RETRACTED,
    "ConflictResolved": Act.RESOLVED,
    "CandidatesExtracted": Act.FOUND,
}
_DECISIONS: Final = {"approve": Act.APPROVED, "reject": Act.REJECTED, "edit": Act.EDITED}
_MERGES: Final = {"merge": Act.MERGED, "apart": Act.PARTED}
_USERS: Final = (Tier.USER_INFERRED, Tier.USER_STATED)
_ASSERTION: Final = tuple(f.name for f in fields(Assertion))
_JUDGED: Final = frozenset({"superseded_by", "supersedes", "rivals", "unrivalled"})
_RECORD: Final = tuple(f.name for f in fields(Record) if f.name not in _JUDGED)
_ASSERTION_VALUES: Final = attrgetter(*_ASSERTION)
_RECORD_VALUES: Final = attrgetter(*_RECORD)
_BIG: Final = (
    "position",
    "occurred_us",
    "order_us",
    "from_us",
    "to_us",
    "expires_us",
    "ruling",
    "believed_to",
    "confirmed",
)
_SMALL: Final = ("version", "scope", "tier", "trust", "authority", "lost", "up", "down")
_FLAGS: Final = ("forgotten", "human", "ruled")
_REQUIRED: Final = frozenset(
    ("event_id", "record", "act", "actor", "recorded_at", "id", "status", "position", *_SMALL, *_FLAGS)
)
_CLEARED: Final = {
    f.name: f.default for f in fields(Assertion)[[f.name for f in fields(Assertion)].index("forgotten") + 1 :]
}


class Tables:
    """Assertions, records, and the small tables that say which records an event touches."""

    def __init__(self, metadata: MetaData) -> None:
        self.assertions = Table("assertions", metadata, *_columns(_ASSERTION, key="event_id"))
        Index("assertions_record", self.assertions.c.record)
        Index("assertions_scope", self.assertions.c.scope)
        self.records = Table(
            "records",
            metadata,
            Column("number", Integer, primary_key=True),
            *_columns(_RECORD),
        )
        Index("records_id", self.records.c.id, unique=True)
        Index("records_group", self.records.c.scope, self.records.c["group"])
        merged = self.records.c.merged_into
        some = merged.is_not(None)
        Index("records_merged", merged, sqlite_where=some)
        self.citations = _links(metadata, "citations", "cited")
        self.subjects = _links(metadata, "assertion_subjects", "subject")
        self.erased = Table(
            "erased",
            metadata,
            Column("event_id", String, primary_key=True),
            Column("position", Integer, nullable=False),
            sqlite_with_rowid=False,
        )
        self.changes = Table(
            "scope_changes",
            metadata,
            Column("scope", Integer, primary_key=True),
            Column("change", Integer, nullable=False),
        )
        self.feedback = Table(
            "feedback",
            metadata,
            Column("event_id", String, primary_key=True),
            Column("position", Integer, nullable=False),
            Column("target", String, nullable=False, index=True),
            Column("rating", String, nullable=False),
            Column("scope", Integer, nullable=False, index=True),
        )


def _columns(names: Sequence[str], key: str | None = None) -> list[Column[Any]]:
    return [
        Column(name, _type(name), primary_key=name == key, nullable=name not in _REQUIRED) for name in names
    ]


def _type(name: str) -> TypeEngine[Any]:
    if name in _BIG or name in _SMALL:
        return Integer
    if name in _FLAGS:
        return Boolean()
    return Float() if name == "confidence" else String


def _links(metadata: MetaData, name: str, left: str) -> Table:
    """`left` (an event or a subject) → the memory events that name it."""
    return Table(
        name,
        metadata,
        Column(left, String, primary_key=True),
        Column("event_id", String, primary_key=True, index=True),
        sqlite_with_rowid=False,
    )


# Events to assertions -----------------------------------------------------------------------------------------------


def assertion_of(recorded: Recorded, scope: int) -> Assertion:
    """The row of a memory event. Raises CorruptStore for a body that cannot be read, InvalidInput for bad values."""
    if recorded.event is None or isinstance(recorded.event, Undecodable):
        raise CorruptStore(f"event {recorded.envelope.id} has no readable body")
    frame = _frame(recorded, scope)
    if not isinstance(recorded.event, Event):
        return Assertion(**frame, forgotten=True)
    return Assertion(**frame, **_said_by(recorded), **_said(recorded.event, recorded.envelope.sources))


def frame_of(recorded: Recorded, scope: int) -> Values:
    """What every assertion has; of a forgotten event the first part only."""
    if recorded.event is None or isinstance(recorded.event, Undecodable):
        raise CorruptStore(f"event {recorded.envelope.id} has no readable body")
    frame = _frame(recorded, scope)
    return {**frame, **_said_by(recorded)} if isinstance(recorded.event, Event) else frame


def _said_by(recorded: Recorded) -> Values:
    envelope = recorded.envelope
    return {
        "tier": envelope.origin,
        "human": envelope.role in HUMAN,
        "session": envelope.scope.session,
        "subjects": tuple(sorted(envelope.subjects)),
        "occurred_at": envelope.occurred_at,
        "occurred_us": microseconds(envelope.occurred_at),
        "voice": _voice(envelope),
    }


def _voice(envelope: Envelope) -> str:
    """Whose word it is. In a user's own scope, what is said by a user is said by that one."""
    scope = envelope.scope
    if scope.user is not None and envelope.origin in _USERS:
        return scope.user
    if scope.agent is not None and envelope.origin is Tier.AGENT:
        return scope.agent
    return envelope.clear.get("voice") or envelope.actor


def _frame(recorded: Recorded, scope: int) -> Values:
    envelope = recorded.envelope
    return {
        "position": recorded.position,
        "event_id": envelope.id,
        "record": envelope.stream,
        "version": envelope.version,
        "act": _ACTS.get(envelope.topic) or _decision(recorded),
        "scope": scope,
        "actor": envelope.actor,
        "recorded_at": envelope.recorded_at,
    }


def _decision(recorded: Recorded) -> Act:
    event = recorded.event
    known = _MERGES if recorded.envelope.topic == MergeReviewed.topic else _DECISIONS
    decides = isinstance(event, QuarantineReviewed | MergeReviewed)
    said = event.decision if decides else recorded.envelope.clear.get("decision")  # type: ignore[union-attr]
    if said not in known:
        raise InvalidInput(f"decision must be {' or '.join(known)}, not {said!r}")
    return known[said]


def _said(event: Event, sources: Sequence[str]) -> Values:
    said: Values = {"reason": getattr(event, "reason", None)}
    content = getattr(event, "content", None)
    if content is not None:
        said |= {"content": content, "form": statement_key(content)}
    if isinstance(event, QuarantineReviewed):
        said |= {"kind": event.kind, "sensitivity": event.sensitivity, "evidence": _cited(event.evidence, ())}
        if event.slot is not None:
            said["entity"], said["attribute"] = event.slot
    if isinstance(event, MemoryStated | MemoryCorrected):
        said |= {"valid_from": event.valid_from, "valid_to": event.valid_to, "expires_at": event.expires_at}
        said["evidence"] = _cited(event.evidence, sources)
        _check_times(event)
        said |= {"kind": event.kind, "sensitivity": event.sensitivity}
        if event.slot is not None:
            said["entity"], said["attribute"] = event.slot
    if isinstance(event, MemoryStated):
        said |= {"consent": event.consent, "confidence": event.confidence}
    said["rejected"] = (event.other,) if isinstance(event, MergeReviewed) else ()
    if isinstance(event, ConflictResolved):
        said["rejected"] = tuple(event.rejected)
    return said


def _check_times(event: MemoryStated | MemoryCorrected) -> None:
    """A time that cannot be read parks this event alone, and not every later one of its record."""
    for moment in (event.valid_from, event.valid_to, event.expires_at):
        if moment is not None:
            microseconds(moment)


def _cited(evidence: Sequence[Json], sources: Sequence[str]) -> tuple[Evidence, ...]:
    if not evidence and not sources:
        return ()
    cited = tuple(dict.fromkeys(map(Evidence.of, evidence)))
    named = {item.event_id for item in cited}
    return cited + tuple(Evidence(source) for source in dict.fromkeys(sources) if source not in named)


# Rows and back ------------------------------------------------------------------------------------------------------


def assertion_row(row: Assertion) -> tuple[Any, ...]:
    """The columns of `assertions`, in order."""
    values = list(_ASSERTION_VALUES(row))
    for place, packed in (
        (_ASSERTION.index("act"), row.act.value),
        (_ASSERTION.index("tier"), int(row.tier)),
        (_ASSERTION.index("subjects"), _json(row.subjects)),
        (_ASSERTION.index("evidence"), _json([_packed(e) for e in row.evidence])),
        (_ASSERTION.index("rejected"), _json(row.rejected)),
    ):
        values[place] = packed
    return tuple(values)


def tombstone_values() -> Values:
    """What an erasure writes over an assertion: the same row as an event that is read when already forgotten."""
    return {**_CLEARED, "tier": 0, "subjects": None, "evidence": None, "rejected": None, "forgotten": True}


def assertion_from(row: Row[Any]) -> Assertion:
    values = dict(row._mapping)
    values["act"], values["tier"] = Act(values["act"]), Tier(values["tier"])
    values["subjects"] = _tuple(values["subjects"])
    values["rejected"] = _tuple(values["rejected"])
    values["evidence"] = unpacked(values["evidence"])
    return Assertion(**values)


def record_row(record: Record, number: int) -> tuple[Any, ...]:
    """The columns of `records`, in order."""
    values = [number, *_RECORD_VALUES(record)]
    for place, packed in (
        (_RECORD.index("status"), record.status.value),
        (_RECORD.index("trust"), int(record.trust)),
        (_RECORD.index("authority"), int(record.authority)),
        (_RECORD.index("subjects"), _json(record.subjects)),
        (_RECORD.index("apart"), _json(record.apart)),
        (_RECORD.index("evidence"), _json([_packed(e) for e in record.evidence])),
    ):
        values[place + 1] = packed
    return tuple(values)


def record_from(row: Row[Any]) -> Record:
    values = dict(row._mapping)
    values.pop("number", None)
    values["status"] = Status(values["status"])
    values["trust"], values["authority"] = Tier(values["trust"]), Tier(values["authority"])
    values["subjects"], values["apart"] = _tuple(values["subjects"]), _tuple(values["apart"])
    values["evidence"] = unpacked(values["evidence"])
    return Record(**values)


def _packed(evidence: Evidence) -> list[Any]:
    tier = None if evidence.tier is None else int(evidence.tier)
    if evidence.start is None and evidence.end is None:
        return [evidence.event_id] if tier is None else [evidence.event_id, tier]
    return [evidence.event_id, tier, evidence.start, evidence.end]


def unpacked(stored: str | None) -> tuple[Evidence, ...]:
    """Evidence as a row holds it."""
    return tuple(_unpacked(*item) for item in orjson.loads(stored)) if stored else ()


def _unpacked(
    event_id: str, tier: int | None = None, start: int | None = None, end: int | None = None
) -> Evidence:
    return Evidence(event_id, start, end, None if tier is None else Tier(tier))


def _json(items: Sequence[Any]) -> str | None:
    return orjson.dumps(items).decode() if items else None


def _tuple(stored: str | None) -> tuple[str, ...]:
    return tuple(orjson.loads(stored)) if stored else ()


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices that fit into one IN list."""
    return (items[at : at + CHUNK] for at in range(0, len(items), CHUNK))


def insert_new(conn: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert the rows whose primary key, their first columns, is not there yet."""
    keys = tuple(table.primary_key.columns)
    for chunk in chunks(rows):
        wanted = {row[: len(keys)]: row for row in chunk}
        found = select(*keys).where(tuple_(*keys).in_(sorted(wanted)))
        present = {tuple(row) for row in conn.execute(found)}
        insert_rows(conn, table, [row for key, row in wanted.items() if key not in present])

"""Projection `catalog`: one row per event, from its envelope alone. It finds events without opening any body."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Index,
    MetaData,
    Row,
    Table,
    func,
    select,
    update,
)

from mnemolog.domain.events import ERASURE, FORGOTTEN, Recorded
from mnemolog.domain.scope import LEVELS, ScopeIds
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String
from mnemolog.projections.scope_numbers import ScopeNumbers
from mnemolog.projections.scopes import ScopeTable
from mnemolog.projections.versions import version_of

_IDS_PER_STATEMENT: Final = 500

_METADATA: Final = MetaData()
_SCOPES: Final = ScopeTable(_METADATA).table
_EVENTS: Final = Table(
    "events",
    _METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("topic", String, nullable=False),
    Column("stream", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("scope", Integer, nullable=False),
    Column("owner", String, nullable=False),
    Column("session", String),
    Column("agent", String),
    Column("blob", Integer, nullable=False),
    Column("erased", Integer, nullable=False),
)
Index("events_by_stream", _EVENTS.c.stream, _EVENTS.c.version)
Index("events_by_session", _EVENTS.c.session)
_SUBJECTS: Final = Table(
    "subjects",
    _METADATA,
    Column("subject", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)
_SOURCES: Final = Table(
    "sources",
    _METADATA,
    Column("source", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """What is known of an event without its body. scope: the number of its scope in this view.

    blob: its content is partly in the blob store; erased: its content was destroyed, only ids are left.
    """

    position: int
    event_id: str
    topic: str
    stream: str
    version: int
    scope: int
    owner: str
    session: str | None
    agent: str | None
    blob: bool
    erased: bool


class Catalog:
    """The projection. Subjects are those of the sealed parts and the user of the scope."""

    name = "catalog"
    version = version_of("1")
    topics: frozenset[str] | None = None
    bodies = False
    by_owner = True

    def __init__(self) -> None:
        self._scopes = ScopeNumbers(_sessionless)

    def forget_cache(self) -> None:
        """Scope numbers belong to one file."""
        self._scopes.forget()

    def create(self, conn: Connection) -> None:
        _METADATA.create_all(conn, checkfirst=False)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        self._insert(conn, batch)
        for recorded in batch:
            if recorded.envelope.topic in ERASURE:
                _erase(conn, recorded)

    def _insert(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        subjects: list[tuple[str, int]] = []
        sources: list[tuple[str, int]] = []
        for recorded in batch:
            position, envelope = recorded.position, recorded.envelope
            named = {subject for part in envelope.parts for subject in part.subjects}
            if envelope.scope.user is not None:
                named.add(envelope.scope.user)
            subjects += [(subject, position) for subject in named]
            if envelope.sources:
                sources += [(source, position) for source in set(envelope.sources)]
        insert_rows(conn, _EVENTS, [self._row(conn, recorded) for recorded in batch])
        insert_rows(conn, _SUBJECTS, subjects)
        insert_rows(conn, _SOURCES, sources)

    def _row(self, conn: Connection, recorded: Recorded) -> tuple[Any, ...]:
        envelope = recorded.envelope
        scope = envelope.scope
        return (
            recorded.position,
            envelope.id,
            envelope.topic,
            envelope.stream,
            envelope.version,
            self._scopes.number(conn, scope),
            envelope.owner,
            scope.session,
            scope.agent,
            int(envelope.clear.get("blob") is not None),
            int(recorded.event is FORGOTTEN),
        )

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        levels = [_SCOPES.c[level] for level in LEVELS[:-1]]
        columns = [column for column in _EVENTS.c if column.name != "scope"]
        query = select(*columns, *levels).join(_SCOPES, _SCOPES.c.number == _EVENTS.c.scope)
        for row in conn.execute(query.order_by(_EVENTS.c.position)):
            yield ("event", *row)
        for kind, table in (("subject", _SUBJECTS), ("source", _SOURCES)):
            for row in conn.execute(select(table).order_by(*table.primary_key)):
                yield (kind, *row)

    def purge(self, conn: Connection) -> None:
        """Nothing to do: there is no text here."""


def _sessionless(scope: ScopeIds) -> ScopeIds:
    return ScopeIds(scope.at(LEVELS[:-1]))


def _erase(conn: Connection, recorded: Recorded) -> None:
    clear, earlier = recorded.envelope.clear, _EVENTS.c.position < recorded.position
    if recorded.envelope.topic == "SubjectErased":
        theirs = select(_SUBJECTS.c.position).where(_SUBJECTS.c.subject == clear["subject"])
        conn.execute(update(_EVENTS).where(_EVENTS.c.position.in_(theirs), earlier).values(erased=1))
        return
    for ids in _chunks(list(clear["events"])):
        conn.execute(update(_EVENTS).where(_EVENTS.c.event_id.in_(ids), earlier).values(erased=1))


# Look-ups. Each takes a connection to the view, and returns rows in log order. ------------------------------------


def find(conn: Connection, event_id: str) -> CatalogRow | None:
    """The event with this id."""
    return next(iter(_rows(conn, _EVENTS.c.event_id == event_id)), None)


def find_all(conn: Connection, event_ids: Collection[str]) -> list[CatalogRow]:
    """The events with these ids; unknown ids are left out."""
    chunks = _chunks(sorted(set(event_ids)))
    rows = [row for ids in chunks for row in _rows(conn, _EVENTS.c.event_id.in_(ids))]
    return sorted(rows, key=lambda row: row.position)


def by_session(conn: Connection, session: str) -> list[CatalogRow]:
    """The events recorded in this session, of whatever topic."""
    return _rows(conn, _EVENTS.c.session == session)


def by_stream(conn: Connection, stream: str) -> list[CatalogRow]:
    """The events of a stream: of a session, or of a record."""
    return _rows(conn, _EVENTS.c.stream == stream)


def by_subject(conn: Connection, subject: str) -> list[CatalogRow]:
    """The events whose content is about this subject, or whose scope has it as user."""
    theirs = select(_SUBJECTS.c.position).where(_SUBJECTS.c.subject == subject)
    return _rows(conn, _EVENTS.c.position.in_(theirs))


def with_blobs(conn: Connection) -> list[CatalogRow]:
    """The events whose content is partly in the blob store, or was before it was erased."""
    return _rows(conn, _EVENTS.c.blob == 1)


def derived_from(conn: Connection, event_ids: Collection[str]) -> list[CatalogRow]:
    """Every event that has one of these among its sources, or has a source that has; without the given ones."""
    seen, found = set(event_ids), list[CatalogRow]()
    next_ids = sorted(seen)
    while next_ids:
        rows = [row for ids in _chunks(next_ids) for row in _derived(conn, ids) if row.event_id not in seen]
        fresh = {row.event_id: row for row in rows}
        found += fresh.values()
        seen |= fresh.keys()
        next_ids = sorted(fresh)
    return sorted(found, key=lambda row: row.position)


def count_by_topic(conn: Connection) -> dict[str, int]:
    """How many events there are of each topic, the erased ones too."""
    query = select(_EVENTS.c.topic, func.count()).group_by(_EVENTS.c.topic).order_by(_EVENTS.c.topic)
    return {row[0]: row[1] for row in conn.execute(query)}


def _derived(conn: Connection, sources: Sequence[str]) -> list[CatalogRow]:
    positions = select(_SOURCES.c.position).where(_SOURCES.c.source.in_(sources))
    return _rows(conn, _EVENTS.c.position.in_(positions))


def _rows(conn: Connection, condition: ColumnElement[bool]) -> list[CatalogRow]:
    query = select(_EVENTS).where(condition).order_by(_EVENTS.c.position)
    return [_row(row) for row in conn.execute(query)]


def _row(row: Row[Any]) -> CatalogRow:
    return CatalogRow(**{**row._mapping, "blob": bool(row.blob), "erased": bool(row.erased)})


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(ids), _IDS_PER_STATEMENT):
        yield ids[at : at + _IDS_PER_STATEMENT]

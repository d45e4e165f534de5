"""Projection `summaries`: what stands for the turns that left a session's window, and which turns are still in it.

The window begins behind what the session's newest whole summary covers. That is no column of its own: so the window
can move only in the commit that stores the covering summary, and opens again when that summary is erased.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Index,
    MetaData,
    Table,
    delete,
    select,
    union,
    update,
)

from mnemolog.domain.events import (
    ERASURE,
    FORGOTTEN,
    HAPPENED,
    Recorded,
    SummaryWritten,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.scope import LEVELS
from mnemolog.domain.summaries import is_blank
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String
from mnemolog.projections.scope_numbers import ScopeNumbers
from mnemolog.projections.scopes import ScopeTable, record_scope
from mnemolog.projections.versions import version_of

_CHUNK: Final = 500
_WRITTEN: Final = SummaryWritten.topic
_SESSION_EVENTS: Final = {"SessionOpened": "opened", "SessionClosed": "closed"}
_TOOLS: Final = frozenset({"ToolCalled", "ToolReturned"})

METADATA: Final = MetaData()
SCOPES: Final = ScopeTable(METADATA).table
MEMBERS: Final = Table(
    "members",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("scope", Integer, nullable=False),
    Column("session", String, nullable=False),
    Column("speaker", String, nullable=False),
)
"""speaker: user, assistant or tool, of what takes part in the window; opened or closed, of what frames it."""
Index("members_by_session", MEMBERS.c.session, MEMBERS.c.position)
Index("members_by_scope", MEMBERS.c.scope, MEMBERS.c.position)
SUMMARIES: Final = Table(
    "summaries",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("scope", Integer, nullable=False),
    Column("session", String),
    Column("kind", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    Column("maker", String, nullable=False),
    Column("maker_version", String, nullable=False),
    Column("input_hash", String, nullable=False),
    Column("origin", Integer, nullable=False),
    Column("recorded_at", String, nullable=False),
    Column("text", String),
    Column("landmarks", String),
    Column("open_items", String),
    Column("refused", Integer, nullable=False),
    Column("erased_at", Integer, index=True),
)
"""text is None where it was erased; refused: it was blank, and never counted."""
Index("summaries_by_session", SUMMARIES.c.session, SUMMARIES.c.position)
Index("summaries_by_scope", SUMMARIES.c.scope, SUMMARIES.c.position)
SOURCES: Final = Table(
    "summary_sources",
    METADATA,
    Column("source", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)
SUBJECTS: Final = Table(
    "subjects",
    METADATA,
    Column("subject", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)
_GONE: Final = {"text": None, "landmarks": None, "open_items": None}
_Rows = dict[Table, list[tuple[Any, ...]]]


class Summaries:
    """The projection. What was erased leaves no member, and of a summary no word."""

    name = "summaries"
    by_owner = True
    version = version_of("2")
    topics: frozenset[str] | None = HAPPENED | ERASURE | {_WRITTEN}
    bodies = True

    def __init__(self) -> None:
        self._scopes = ScopeNumbers(record_scope)

    def forget_cache(self) -> None:
        """Scope numbers belong to one file."""
        self._scopes.forget()

    def create(self, conn: Connection) -> None:
        METADATA.create_all(conn, checkfirst=False)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        start = 0
        for end, recorded in enumerate(batch):
            if recorded.envelope.topic in ERASURE:
                self._insert(conn, batch[start:end])
                _erase(conn, recorded)
                start = end + 1
        self._insert(conn, batch[start:])

    def _insert(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        rows: _Rows = {MEMBERS: [], SUMMARIES: [], SOURCES: [], SUBJECTS: []}
        for recorded in batch:
            if recorded.envelope.topic == _WRITTEN:
                rows[SUMMARIES].append(self._summary(conn, recorded))
                rows[SOURCES] += [(one, recorded.position) for one in set(recorded.envelope.sources)]
            elif (member := self._member(conn, recorded)) is not None:
                rows[MEMBERS].append(member)
            else:
                continue
            rows[SUBJECTS] += _other_subjects(recorded)
        for table, values in rows.items():
            insert_rows(conn, table, values)

    def _member(self, conn: Connection, recorded: Recorded) -> tuple[Any, ...] | None:
        envelope, speaker = recorded.envelope, _speaker(recorded)
        if envelope.scope.session is None or speaker is None:
            return None
        number = self._scopes.number(conn, envelope.scope)
        return recorded.position, envelope.id, number, envelope.scope.session, speaker

    def _summary(self, conn: Connection, recorded: Recorded) -> tuple[Any, ...]:
        envelope, event = recorded.envelope, recorded.event
        clear, texts, refused = envelope.clear, dict[str, str | None](_GONE), False
        if isinstance(event, SummaryWritten):
            refused = is_blank(event.text)
            if not refused:
                texts = {
                    "text": event.text,
                    "landmarks": _as_json(event.landmarks),
                    "open_items": _as_json(event.open_items),
                }
        return (
            recorded.position,
            envelope.id,
            self._scopes.number(conn, envelope.scope),
            envelope.scope.session,
            clear["kind"],
            envelope.version,
            clear["first"],
            clear["last"],
            clear["maker"],
            clear["maker_version"],
            clear["input_hash"],
            int(envelope.origin),
            envelope.recorded_at,
            texts["text"],
            texts["landmarks"],
            texts["open_items"],
            int(refused),
            None,
        )

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        levels = [SCOPES.c[level] for level in LEVELS[:-1]]
        for table in (MEMBERS, SUMMARIES):
            columns = [column for column in table.c if column.name != "scope"]
            query = select(*columns, *levels).join(SCOPES, SCOPES.c.number == table.c.scope)
            for row in conn.execute(query.order_by(table.c.position)):
                yield (table.name, *row)
        for table in (SOURCES, SUBJECTS):
            for row in conn.execute(select(table).order_by(*table.primary_key)):
                yield (table.name, *row)

    def purge(self, conn: Connection) -> None:
        """Nothing to do: deleted text leaves the file when it is rewritten."""


def held(conn: Connection, event_ids: Sequence[str]) -> int:
    """How many of these events the view still holds something of: their words, or words made of theirs."""
    found: set[int] = set()
    for ids in _chunks(event_ids):
        of_sources = select(SOURCES.c.position).where(SOURCES.c.source.in_(ids))
        made = SUMMARIES.c.event_id.in_(ids) | SUMMARIES.c.position.in_(of_sources)
        found |= set(conn.execute(select(MEMBERS.c.position).where(MEMBERS.c.event_id.in_(ids))).scalars())
        readable = select(SUMMARIES.c.position).where(made, SUMMARIES.c.text.is_not(None))
        found |= set(conn.execute(readable).scalars())
    return len(found)


def _speaker(recorded: Recorded) -> str | None:
    """None for what takes no part: system prompts, erased events."""
    topic, event = recorded.envelope.topic, recorded.event
    if event is FORGOTTEN:
        return None
    if isinstance(event, TurnRecorded | UtteranceChunkRecorded):
        return event.role if event.role in ("user", "assistant") else None
    return "tool" if topic in _TOOLS else _SESSION_EVENTS.get(topic)


def _erase(conn: Connection, recorded: Recorded) -> None:
    clear = recorded.envelope.clear
    if recorded.envelope.topic == "SubjectErased":
        theirs = _of_subject(conn, clear["subject"])
        _forget(conn, recorded.position, theirs)
        return
    for ids in _chunks(clear["events"]):
        own = [select(table.c.position).where(table.c.event_id.in_(ids)) for table in (MEMBERS, SUMMARIES)]
        made = select(SOURCES.c.position).where(SOURCES.c.source.in_(ids))
        _forget(conn, recorded.position, list(conn.execute(union(*own, made)).scalars()))


def _of_subject(conn: Connection, subject: str) -> list[int]:
    """Positions of what is in the person's own scopes, or names the person."""
    own = select(SCOPES.c.number).where(SCOPES.c.user == subject)
    parts = [select(table.c.position).where(table.c.scope.in_(own)) for table in (MEMBERS, SUMMARIES)]
    named = select(SUBJECTS.c.position).where(SUBJECTS.c.subject == subject)
    return list(conn.execute(union(*parts, named)).scalars())


def _forget(conn: Connection, erasure: int, positions: Iterable[int]) -> None:
    """Members go; a summary stays as its shell, whatever a rebuild could still read of it."""
    for some in _chunks(positions):
        members = select(MEMBERS.c.position).where(MEMBERS.c.position.in_(some))
        gone = list(conn.execute(members).scalars())
        conn.execute(delete(SUBJECTS).where(SUBJECTS.c.position.in_(gone)))
        conn.execute(delete(MEMBERS).where(MEMBERS.c.position.in_(gone)))
        shells = SUMMARIES.c.position.in_(some)
        conn.execute(update(SUMMARIES).where(shells).values(**_GONE, refused=0))
        first = SUMMARIES.c.erased_at.is_(None)
        conn.execute(update(SUMMARIES).where(shells, first).values(erased_at=erasure))


def _other_subjects(recorded: Recorded) -> list[tuple[str, int]]:
    user = recorded.envelope.scope.user
    named = {subject for part in recorded.envelope.parts for subject in part.subjects if subject != user}
    return [(subject, recorded.position) for subject in named]


def _as_json(items: Sequence[Any]) -> str:
    return json.dumps(list(items), ensure_ascii=False, sort_keys=True)


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = list(values)
    for at in range(0, len(rest), _CHUNK):
        yield rest[at : at + _CHUNK]

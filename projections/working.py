"""Projection `working`: the state of each task in its session, merged key by key, and who changed which key when.

The changes are kept, so that what an erased change had set falls back to what is left. A task's version is that of
its stream, erased changes included: a writer's expectation is checked by the log against the same number.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Column, Connection, MetaData, Row, Table, bindparam, delete, func, select, union

from mnemolog.domain.events import ERASURE, Recorded, WorkingStateChanged
from mnemolog.domain.scope import LEVELS
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String, insert
from mnemolog.projections.scope_numbers import ScopeNumbers
from mnemolog.projections.scopes import ScopeTable, record_scope
from mnemolog.projections.versions import version_of

_CHUNK: Final = 500
_CHANGED: Final = WorkingStateChanged.topic

METADATA: Final = MetaData()
SCOPES: Final = ScopeTable(METADATA).table
CHANGES: Final = Table(
    "changes",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("scope", Integer, nullable=False),
    Column("session", String, nullable=False, index=True),
    Column("stream", String, nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("actor", String, nullable=False),
    Column("agent", String),
    Column("origin", Integer, nullable=False),
    Column("occurred_at", String, nullable=False),
    Column("task", String),
    Column("changed", String),
)
"""task and changed are None where they were erased."""
KEYS: Final = Table(
    "keys",
    METADATA,
    Column("stream", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("value", String),
    sqlite_with_rowid=False,
)
"""The change that each key owes its value to; value is None where that change removed the key."""
SUBJECTS: Final = Table(
    "subjects",
    METADATA,
    Column("subject", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Who gave a key its present value, when. actor, agent: ids of the directory; version: of the task."""

    event_id: str
    version: int
    actor: str
    agent: str | None
    origin: int
    occurred_at: str


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task. version: what the next writer expects; 0 for a task that nobody has touched."""

    task: str
    version: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, KeyChange] = field(default_factory=dict)


class Working:
    """The projection."""

    name = "working"
    by_owner = True
    version = version_of("1")
    topics: frozenset[str] | None = ERASURE | {_CHANGED}
    bodies = True

    def __init__(self) -> None:
        self._scopes = ScopeNumbers(record_scope)

    def forget_cache(self) -> None:
        """Scope numbers belong to one file."""
        self._scopes.forget()

    def create(self, conn: Connection) -> None:
        METADATA.create_all(conn, checkfirst=False)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        for recorded in batch:
            if recorded.envelope.topic in ERASURE:
                _erase(conn, recorded)
            elif recorded.envelope.scope.session is not None:
                self._insert(conn, recorded)

    def _insert(self, conn: Connection, recorded: Recorded) -> None:
        envelope, event = recorded.envelope, recorded.event
        task, changed = None, None
        if isinstance(event, WorkingStateChanged):
            task, changed = event.task, json.dumps(event.values, ensure_ascii=False, sort_keys=True)
            _merge(conn, envelope.stream, [(recorded.position, event.values)])
        row = (
            recorded.position,
            envelope.id,
            self._scopes.number(conn, envelope.scope),
            envelope.scope.session,
            envelope.stream,
            envelope.version,
            envelope.actor,
            envelope.scope.agent,
            int(envelope.origin),
            envelope.occurred_at,
            task,
            changed,
        )
        insert_rows(conn, CHANGES, [row])
        insert_rows(conn, SUBJECTS, _other_subjects(recorded))

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        levels = [SCOPES.c[level] for level in LEVELS[:-1]]
        columns = [column for column in CHANGES.c if column.name != "scope"]
        query = select(*columns, *levels).join(SCOPES, SCOPES.c.number == CHANGES.c.scope)
        for row in conn.execute(query.order_by(CHANGES.c.position)):
            yield (CHANGES.name, *row)
        for table in (KEYS, SUBJECTS):
            for row in conn.execute(select(table).order_by(*table.primary_key)):
                yield (table.name, *row)

    def purge(self, conn: Connection) -> None:
        """Nothing to do: deleted text leaves the file when it is rewritten."""


# Reads. Each takes the scopes that the caller may see. ------------------------------------------------------------

_TASKS: Final = (
    select(CHANGES.c.stream, func.max(CHANGES.c.task))
    .where(
        CHANGES.c.session == bindparam("session"),
        CHANGES.c.scope.in_(bindparam("scopes", expanding=True)),
        CHANGES.c.task.is_not(None),
    )
    .group_by(CHANGES.c.stream)
    .order_by(func.max(CHANGES.c.position))
)
_STANDING: Final = (
    select(KEYS.c.name, KEYS.c.value, *CHANGES.c)
    .join(CHANGES, CHANGES.c.position == KEYS.c.position)
    .where(KEYS.c.stream == bindparam("stream"), KEYS.c.value.is_not(None))
    .order_by(KEYS.c.name)
)
_VERSION: Final = select(func.max(CHANGES.c.version)).where(CHANGES.c.stream == bindparam("stream"))


def state(conn: Connection, scopes: Collection[int], stream: str, task: str) -> TaskState:
    """The state of the task with this stream; an empty one where there is nothing (any more)."""
    seen = select(func.count()).where(CHANGES.c.stream == stream, CHANGES.c.scope.in_(scopes))
    return _state(conn, stream, task) if conn.execute(seen).scalar() else TaskState(task)


def states(conn: Connection, scopes: Collection[int], session: str) -> list[TaskState]:
    """The states of all tasks of a session that have any key, the one that changed last at the end."""
    rows = conn.execute(_TASKS, {"session": session, "scopes": list(scopes)}).all()
    found = [_state(conn, stream, task) for stream, task in rows]
    return [each for each in found if each.values]


def version(conn: Connection, stream: str) -> int:
    """The version of a task's stream, erased changes included; 0 for one that is not there."""
    return conn.execute(_VERSION, {"stream": stream}).scalar() or 0


def held(conn: Connection, event_ids: Sequence[str]) -> int:
    """How many of these events the view still holds content of."""
    return sum(
        conn.execute(
            select(func.count()).where(CHANGES.c.event_id.in_(ids), CHANGES.c.changed.is_not(None))
        ).scalar_one()
        for ids in _chunks(event_ids)
    )


def _state(conn: Connection, stream: str, task: str) -> TaskState:
    rows = conn.execute(_STANDING, {"stream": stream}).all()
    values = {row.name: json.loads(row.value) for row in rows}
    return TaskState(task, version(conn, stream), values, {row.name: _change(row) for row in rows})


def _change(row: Row[Any]) -> KeyChange:
    return KeyChange(row.event_id, row.version, row.actor, row.agent, row.origin, row.occurred_at)


def _merge(conn: Connection, stream: str, changes: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Take in changes; of two that set a key the later one counts, in whatever order they come."""
    put = insert(conn, KEYS)
    later = put.excluded.position > KEYS.c.position
    put = put.on_conflict_do_update(
        index_elements=[KEYS.c.stream, KEYS.c.name],
        set_={"position": put.excluded.position, "value": put.excluded.value},
        where=later,
    )
    rows = [
        {"stream": stream, "name": name, "position": position, "value": _as_json(value)}
        for position, values in changes
        for name, value in values.items()
    ]
    if rows:
        conn.execute(put, rows)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _erase(conn: Connection, recorded: Recorded) -> None:
    clear = recorded.envelope.clear
    if recorded.envelope.topic == "SubjectErased":
        _forget(conn, _of_subject(conn, clear["subject"]))
        return
    for ids in _chunks(clear["events"]):
        query = select(CHANGES.c.position).where(CHANGES.c.event_id.in_(ids))
        _forget(conn, conn.execute(query).scalars().all())


def _of_subject(conn: Connection, subject: str) -> Sequence[int]:
    own = select(SCOPES.c.number).where(SCOPES.c.user == subject)
    named = select(SUBJECTS.c.position).where(SUBJECTS.c.subject == subject)
    theirs = select(CHANGES.c.position).where(CHANGES.c.scope.in_(own))
    return conn.execute(union(theirs, named)).scalars().all()


def _forget(conn: Connection, positions: Sequence[int]) -> None:
    """The changes keep their place and lose their content; their tasks are merged anew from the others."""
    streams: set[str] = set()
    for some in _chunks(positions):
        mine = CHANGES.c.position.in_(some)
        streams |= set(conn.execute(select(CHANGES.c.stream).where(mine)).scalars())
        conn.execute(CHANGES.update().where(mine).values(task=None, changed=None))
    for stream in sorted(streams):
        conn.execute(delete(KEYS).where(KEYS.c.stream == stream))
        left = select(CHANGES.c.position, CHANGES.c.changed).where(
            CHANGES.c.stream == stream, CHANGES.c.changed.is_not(None)
        )
        _merge(conn, stream, [(row.position, json.loads(row.changed)) for row in conn.execute(left).all()])


def _other_subjects(recorded: Recorded) -> list[tuple[str, int]]:
    user = recorded.envelope.scope.user
    named = {subject for part in recorded.envelope.parts for subject in part.subjects if subject != user}
    return [(subject, recorded.position) for subject in named]


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = list(values)
    for at in range(0, len(rest), _CHUNK):
        yield rest[at : at + _CHUNK]

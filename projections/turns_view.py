"""Reads of the `turns` view. Every one that returns content takes the scopes that the caller may see."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Row, bindparam, func, or_, select

from mnemolog.domain.events import Json
from mnemolog.projections.dialects import JsonSql, json_sql
from mnemolog.projections.turns import FEEDBACK, SESSION_EVENTS, TURNS

_PER_STATEMENT: Final = 500
_AT: Final = select(TURNS).where(
    TURNS.c.position.in_(bindparam("positions", expanding=True)),
    TURNS.c.scope.in_(bindparam("scopes", expanding=True)),
)
_SPOKEN: Final = or_(TURNS.c.role.is_(None), TURNS.c.role != "system")
_OF_WINDOW: Final = (
    (TURNS.c.session == bindparam("session"))
    & TURNS.c.scope.in_(bindparam("scopes", expanding=True))
    & _SPOKEN
)
_KEPT: Final = (
    select(TURNS.c.position)
    .where(_OF_WINDOW)
    .order_by(TURNS.c.position.desc())
    .limit(1)
    .offset(bindparam("before_last"))
    .scalar_subquery()
    .correlate(None)
)
_WINDOW: Final = (
    select(TURNS)
    .where(
        _OF_WINDOW, or_(TURNS.c.position > bindparam("covered"), TURNS.c.position >= func.coalesce(_KEPT, 0))
    )
    .order_by(TURNS.c.position.desc())
    .limit(bindparam("limit"))
)
_SKETCH: Final = (
    select(TURNS.c.position, TURNS.c.occurred_us, TURNS.c.session, TURNS.c.author, TURNS.c.tool, TURNS.c.kind)
    .where(TURNS.c.scope.in_(bindparam("scopes", expanding=True)), _SPOKEN)
    .order_by(TURNS.c.position)
)
_SKETCHED: Final = _SKETCH.where(TURNS.c.position.in_(bindparam("positions", expanding=True)))
_SKETCH_BEHIND: Final = _SKETCH.where(TURNS.c.position > bindparam("after"))
_NEAR: Final = (
    "(SELECT {group} FROM (SELECT n.position FROM turns n WHERE n.session = t.session"
    " AND n.position {sign} t.position AND (n.role IS NULL OR n.role <> 'system')"
    " ORDER BY n.position {order} LIMIT 2) near)"
)
_BESIDE: Final = (
    "SELECT t.position, {before}, {behind} FROM {each} k CROSS JOIN turns t"
    " WHERE t.position = k.value AND t.session IS NOT NULL AND t.scope IN (SELECT s.value FROM {each} s)"
)
_ERROR, _BLOB = (list(TURNS.c.keys()).index(name) for name in ("error", "blob"))


class TurnRow(NamedTuple):
    """Something said, asked of a tool, or returned. kind: turn, chunk, tool_call or tool_result.

    scope: its number in this view; occurred_at: ISO 8601 with the writer's offset; occurred_us: the same in UTC
    microseconds; blob: where the rest of a long text is, None where `text` is all.
    """

    position: int
    event_id: str
    kind: str
    scope: int
    session: str | None
    agent: str | None
    role: str | None
    author: str | None
    tool: str | None
    call_id: str | None
    error: bool
    occurred_at: str
    occurred_us: int
    origin: int
    text: str
    blob: Json | None


class Sketch(NamedTuple):
    """A turn without its text."""

    position: int
    occurred_us: int
    session: str | None
    author: str | None
    tool: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as its events left it. opened_at and closed_at are log positions; None: not (yet) said."""

    session: str
    scope: int
    opened_at: int | None
    closed_at: int | None
    timezone: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class FeedbackRow:
    """Somebody's judgement of the event or record `target`."""

    position: int
    event_id: str
    target: str
    scope: int
    rating: str
    comment: str | None


def at(conn: Connection, positions: Sequence[int], scopes: Collection[int]) -> dict[int, TurnRow]:
    """The turns at these positions that belong to these scopes."""
    found = {}
    for some in _chunks(positions):
        for row in conn.execute(_AT, {"positions": some, "scopes": list(scopes)}):
            found[row[0]] = _turn(row)
    return found


def sketches(
    conn: Connection, scopes: Collection[int], positions: Sequence[int] | None = None, *, after: int = 0
) -> list[Sketch]:
    """The turns of these scopes, in log order: behind a position, or at some. What the system said is left out."""
    inside = {"scopes": list(scopes)}
    if positions is None:
        return [Sketch(*row) for row in conn.execute(_SKETCH_BEHIND, {**inside, "after": after})]
    parts = (conn.execute(_SKETCHED, {**inside, "positions": some}) for some in _chunks(positions))
    return [Sketch(*row) for rows in parts for row in rows]


def beside(conn: Connection, scopes: Collection[int], positions: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of turns that follow each other in a session, up to two turns before and behind each position."""
    rows = conn.exec_driver_sql(
        _beside(json_sql(conn)), (json.dumps(list(positions)), json.dumps(list(scopes)))
    )
    pairs: set[tuple[int, int]] = set()
    for position, before, behind in rows:
        run = sorted([position, *json.loads(before), *json.loads(behind)])
        pairs |= set(pairwise(run))
    return pairs


@lru_cache
def _beside(sql: JsonSql) -> str:
    before = _NEAR.format(group=sql.group, sign="<", order="DESC")
    behind = _NEAR.format(group=sql.group, sign=">", order="ASC")
    return _BESIDE.format(each=sql.each, before=before, behind=behind)


def get(conn: Connection, event_id: str, scopes: Collection[int]) -> TurnRow | None:
    """The turn with this event id, if it belongs to these scopes."""
    return next(iter(_turns(conn, scopes, TURNS.c.event_id == event_id)), None)


def by_ids(conn: Connection, event_ids: Sequence[str], scopes: Collection[int]) -> dict[str, TurnRow]:
    """The turns with these event ids that belong to these scopes."""
    found = [row for some in _chunks(event_ids) for row in _turns(conn, scopes, TURNS.c.event_id.in_(some))]
    return {row.event_id: row for row in found}


def recent(
    conn: Connection,
    scopes: Collection[int],
    *,
    session: str | None = None,
    limit: int = 50,
    before: int | None = None,
) -> list[TurnRow]:
    """The last turns of these scopes (and of this session only), before a position; in log order."""
    condition = TURNS.c.position > 0 if before is None else TURNS.c.position < before
    if session is not None:
        condition &= TURNS.c.session == session
    return _turns(conn, scopes, condition, newest=limit)


def window(
    conn: Connection, scopes: Collection[int], session: str, keep: int, covered: int, limit: int
) -> list[TurnRow]:
    """What of a session is shown raw, newest first: the last `keep` turns, and all behind position `covered`."""
    asked = {"session": session, "scopes": list(scopes), "covered": covered, "limit": limit}
    found = conn.execute(_WINDOW, {**asked, "before_last": max(0, keep - 1)}).fetchall()
    return [_turn(row) for row in found if keep or row.position > covered]


def behind(
    conn: Connection, scopes: Collection[int], sessions: Collection[str], after: int, limit: int
) -> list[TurnRow]:
    """The first turns of these sessions behind a position, in log order."""
    condition = TURNS.c.session.in_(sessions) & (TURNS.c.position > after)
    inside = select(TURNS).where(condition, TURNS.c.scope.in_(scopes), _SPOKEN)
    return [_turn(row) for row in conn.execute(inside.order_by(TURNS.c.position).limit(limit))]


def last_said(conn: Connection, scopes: Collection[int], session: str, role: str, until: int) -> int:
    """The position of the last turn of this role up to a position, 0 for none."""
    query = (
        select(TURNS.c.position)
        .where(TURNS.c.session == session, TURNS.c.position <= until)
        .where(TURNS.c.scope.in_(scopes), TURNS.c.role == role)
        .order_by(TURNS.c.position.desc())
        .limit(1)
    )
    return conn.execute(query).scalar() or 0


def between(conn: Connection, scopes: Collection[int], session: str, first: int, last: int) -> list[TurnRow]:
    """The turns of a session from position `first` to `last`, both included."""
    inside = TURNS.c.position.between(first, last)
    return _turns(conn, scopes, (TURNS.c.session == session) & inside)


def sessions(conn: Connection, scopes: Collection[int]) -> list[SessionRow]:
    """The sessions of these scopes that were opened or closed, oldest first."""
    return _sessions(conn, SESSION_EVENTS.c.scope.in_(scopes))


def session(conn: Connection, rid: str) -> SessionRow | None:
    """What is known of this session, in whatever scope."""
    return next(iter(_sessions(conn, SESSION_EVENTS.c.session == rid)), None)


def feedback(conn: Connection, target: str, scopes: Collection[int]) -> list[FeedbackRow]:
    """What was said of an event or a record, oldest first."""
    about = (FEEDBACK.c.target == target) & FEEDBACK.c.scope.in_(scopes)
    query = select(FEEDBACK).where(about).order_by(FEEDBACK.c.position)
    return [FeedbackRow(**row) for row in conn.execute(query).mappings()]


def _turns(
    conn: Connection, scopes: Collection[int], condition: ColumnElement[bool], newest: int | None = None
) -> list[TurnRow]:
    inside = select(TURNS).where(condition, TURNS.c.scope.in_(scopes))
    if newest is None:
        return [_turn(row) for row in conn.execute(inside.order_by(TURNS.c.position))]
    query = inside.order_by(TURNS.c.position.desc()).limit(newest)
    return [_turn(row) for row in conn.execute(query)][::-1]


def _turn(row: Row[Any]) -> TurnRow:
    """The columns are the fields, in their order."""
    values = list(row)
    values[_ERROR] = bool(values[_ERROR])
    values[_BLOB] = None if values[_BLOB] is None else json.loads(values[_BLOB])
    return TurnRow._make(values)


def _sessions(conn: Connection, condition: ColumnElement[bool]) -> list[SessionRow]:
    query = select(SESSION_EVENTS).where(condition).order_by(SESSION_EVENTS.c.position)
    events: dict[tuple[str, int], list[Any]] = {}
    for row in conn.execute(query):
        events.setdefault((row.session, row.scope), []).append(row)
    return [_folded(rows) for rows in events.values()]


def _folded(rows: Sequence[Any]) -> SessionRow:
    """The first opening counts as the opening, the last words as the state: a session may be opened again."""
    opened = [row for row in rows if row.kind == "opened"]
    last = rows[-1]
    return SessionRow(
        session=last.session,
        scope=last.scope,
        opened_at=opened[0].position if opened else None,
        closed_at=last.position if last.kind == "closed" else None,
        timezone=_last(opened, SESSION_EVENTS.c.timezone),
        title=_last(opened, SESSION_EVENTS.c.title),
    )


def _last(rows: Sequence[Any], column: Column[Any]) -> str | None:
    return next((value for row in reversed(rows) if (value := getattr(row, column.name)) is not None), None)


def _chunks(values: Sequence[Any], size: int = _PER_STATEMENT) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]

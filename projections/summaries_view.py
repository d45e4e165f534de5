"""Reads of the `summaries` view. Every one that returns content takes the scopes that the caller may see."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, select, union

from mnemolog.domain.open_items import OpenItem
from mnemolog.domain.principal import Tier
from mnemolog.domain.scope import LEVELS, Scope, ScopeIds
from mnemolog.domain.summaries import ROLLING, Landmark, Member, Standing, WindowRule, rendered
from mnemolog.projections.summaries import MEMBERS, SCOPES, SUMMARIES

_FRAME = ("opened", "closed")
_LATELY = 100
"""So many turns back a session is looked for that ends when another one begins."""
_NEWEST = (
    select(SUMMARIES)
    .where(SUMMARIES.c.scope.in_(bindparam("scopes", expanding=True)), SUMMARIES.c.text.is_not(None))
    .order_by(SUMMARIES.c.position.desc())
    .limit(1)
)
_OF_SESSION = _NEWEST.where(SUMMARIES.c.session == bindparam("session"), SUMMARIES.c.kind == ROLLING)
_LAST = (
    select(SUMMARIES.c.session)
    .where(
        SUMMARIES.c.scope.in_(bindparam("scopes", expanding=True)),
        SUMMARIES.c.kind == ROLLING,
        SUMMARIES.c.text.is_not(None),
        SUMMARIES.c.session != bindparam("but"),
    )
    .order_by(SUMMARIES.c.last.desc(), SUMMARIES.c.position.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A whole summary. first and last: positions of the first and the last raw event that it covers."""

    event_id: str
    position: int
    version: int
    session: str | None
    scope: int
    kind: str
    first: int
    last: int
    maker: str
    maker_version: str
    origin: Tier
    recorded_at: str
    text: str
    landmarks: tuple[Landmark, ...]
    open_items: tuple[OpenItem, ...]

    @property
    def rendered(self) -> str:
        """Text, landmarks and open items for a reader."""
        return rendered(self.text, self.landmarks, self.open_items)


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session for whoever summarises it. version: of its last summary, erased ones included."""

    scope: ScopeIds
    standing: Standing
    version: int


def of_session(conn: Connection, scopes: Collection[int], session: str) -> SummaryRow | None:
    """The session's current summary: the newest that is whole."""
    found = conn.execute(_OF_SESSION, {"scopes": list(scopes), "session": session}).first()
    return None if found is None else _row(found)


def versions(conn: Connection, scopes: Collection[int], session: str) -> list[SummaryRow]:
    """The session's whole summaries, oldest first."""
    condition = _rolling(session) & SUMMARIES.c.scope.in_(scopes) & _WHOLE
    query = select(SUMMARIES).where(condition).order_by(SUMMARIES.c.position)
    return [_row(row) for row in conn.execute(query)]


def last_of_project(
    conn: Connection, scopes: Collection[int], *, but: str | None = None
) -> SummaryRow | None:
    """What a new session begins with: the summary of the session (other than `but`) that went on last.

    scopes: exactly those of the project, as far as the caller sees them.
    """
    session = conn.execute(_LAST, {"scopes": list(scopes), "but": but or ""}).scalar()
    return None if session is None else of_session(conn, scopes, session)


def landmarks(conn: Connection, scopes: Collection[int], session: str) -> tuple[Landmark, ...]:
    """What must not get lost of the turns that left the window."""
    found = of_session(conn, scopes, session)
    return () if found is None else found.landmarks


def open_items(conn: Connection, scopes: Collection[int], session: str) -> tuple[OpenItem, ...]:
    """What was open at the end of the turns that left the window."""
    found = of_session(conn, scopes, session)
    return () if found is None else found.open_items


def window(
    conn: Connection, scopes: Collection[int], session: str, *, keep: int = WindowRule().keep
) -> list[Member]:
    """The raw turns that stand for themselves: those that no whole summary covers, and the last `keep` in any case."""
    inside = _turns(session) & MEMBERS.c.scope.in_(scopes)
    current = of_session(conn, scopes, session)
    begin = 0 if current is None else current.last + 1
    newest = select(MEMBERS.c.position).where(inside).order_by(MEMBERS.c.position.desc())
    kept = conn.execute(newest.offset(max(0, keep - 1)).limit(1)).scalar()
    first = begin if keep == 0 else min(begin, kept or 0)
    return _members(conn, inside & (MEMBERS.c.position >= first))


# For the worker ---------------------------------------------------------------------------------------------------


def touched(conn: Connection, after: int) -> list[str]:
    """Sessions in which something happened, or lost a summary to an erasure, behind this position."""
    happened = select(MEMBERS.c.session).where(MEMBERS.c.position > after)
    lost = select(SUMMARIES.c.session).where(SUMMARIES.c.erased_at > after, SUMMARIES.c.session.is_not(None))
    return sorted(conn.execute(union(happened, lost)).scalars())


def left_behind(conn: Connection, sessions: Iterable[str], after: int) -> set[str]:
    """The last sessions before each of these that began behind this position, in the same scope; none behind 0."""
    found = set[str]()
    for session in sessions if after else ():  # else all are looked at
        place = select(MEMBERS.c.scope, MEMBERS.c.position).where(MEMBERS.c.session == session)
        first = conn.execute(place.order_by(MEMBERS.c.position).limit(1)).first()
        if first is not None and first.position > after:
            earlier = (MEMBERS.c.scope == first.scope) & (MEMBERS.c.position < first.position)
            query = (
                select(MEMBERS.c.session).where(earlier).order_by(MEMBERS.c.position.desc()).limit(_LATELY)
            )
            found.update(conn.execute(query).scalars())
    return found


def may_be_due(conn: Connection, session: str, rule: WindowRule) -> bool:
    """Whether it is worth to look at the whole session: `domain.summaries.leaving` then decides."""
    current = _newest(conn, _rolling(session))
    covered_to = 0 if current is None else current.last
    fresh = _count(conn, _turns(session) & (MEMBERS.c.position > covered_to))
    if not fresh:
        return False
    covered = _count(conn, _turns(session) & (MEMBERS.c.position <= covered_to))
    if fresh >= rule.keep + max(rule.step, covered // rule.growth):
        return True
    return _is_closed(conn, session) or _lost(conn, session, current) > 0


def state(conn: Connection, session: str) -> SessionState | None:
    """All that decides whether a session is due for a summary; None for one that has no turns (any more)."""
    members = _members(conn, _turns(session))
    if not members:
        return None
    current = _newest(conn, _rolling(session))
    covered_to = 0 if current is None else current.last
    version = conn.execute(select(func.max(SUMMARIES.c.version)).where(_rolling(session))).scalar()
    standing = Standing(members, covered_to, _lost(conn, session, current), _is_closed(conn, session))
    return SessionState(_scope_of(conn, session), standing, version or 0)


def _lost(conn: Connection, session: str, current: SummaryRow | None) -> int:
    """Up to where an erased summary reached that was newer than the current one; 0 for none."""
    position = 0 if current is None else current.position
    behind = _rolling(session) & (SUMMARIES.c.position > position) & (SUMMARIES.c.refused == 0)
    query = select(func.max(SUMMARIES.c.last)).where(behind, SUMMARIES.c.text.is_(None))
    return conn.execute(query).scalar() or 0


def _is_closed(conn: Connection, session: str) -> bool:
    """By its last words, not by what is said behind them: late turns do not open a session again.

    One that nobody closed has ended where another of its scope has begun since.
    """
    frames = (MEMBERS.c.session == session) & MEMBERS.c.speaker.in_(_FRAME)
    query = select(MEMBERS.c.speaker).where(frames).order_by(MEMBERS.c.position.desc()).limit(1)
    return conn.execute(query).scalar() == "closed" or _is_left(conn, session)


def _is_left(conn: Connection, session: str) -> bool:
    mine = select(MEMBERS.c.scope, MEMBERS.c.position).where(MEMBERS.c.session == session)
    scope, last = conn.execute(mine.order_by(MEMBERS.c.position.desc()).limit(1)).one()
    behind = (MEMBERS.c.scope == scope) & (MEMBERS.c.position > last)
    before = MEMBERS.alias()
    known = select(before.c.session).where(before.c.session == MEMBERS.c.session, before.c.position < last)
    query = select(MEMBERS.c.session).where(behind, ~known.exists()).limit(1)
    return conn.execute(query).first() is not None


def _scope_of(conn: Connection, session: str) -> ScopeIds:
    levels = [SCOPES.c[level] for level in LEVELS[:-1]]
    query = select(*levels).join(MEMBERS, MEMBERS.c.scope == SCOPES.c.number)
    row = conn.execute(query.where(MEMBERS.c.session == session).limit(1)).mappings().one()
    return ScopeIds(Scope.of({**row, "session": session}))


_WHOLE = SUMMARIES.c.text.is_not(None)


def _rolling(session: str) -> ColumnElement[bool]:
    return (SUMMARIES.c.session == session) & (SUMMARIES.c.kind == ROLLING)


def _turns(session: str) -> ColumnElement[bool]:
    return (MEMBERS.c.session == session) & MEMBERS.c.speaker.not_in(_FRAME)


def _count(conn: Connection, condition: ColumnElement[bool]) -> int:
    return conn.execute(select(func.count()).select_from(MEMBERS).where(condition)).scalar_one()


def _members(conn: Connection, condition: ColumnElement[bool]) -> list[Member]:
    columns = MEMBERS.c.position, MEMBERS.c.event_id, MEMBERS.c.speaker
    query = select(*columns).where(condition).order_by(MEMBERS.c.position)
    return [Member(*row) for row in conn.execute(query)]


def _newest(conn: Connection, condition: ColumnElement[bool]) -> SummaryRow | None:
    query = select(SUMMARIES).where(condition, _WHOLE).order_by(SUMMARIES.c.position.desc()).limit(1)
    found = conn.execute(query).first()
    return None if found is None else _row(found)


def _row(row: Row[Any]) -> SummaryRow:
    values = row._mapping
    plain = {name: values[name] for name in SummaryRow.__slots__ if name not in _PARSED}
    return SummaryRow(
        **plain,
        origin=Tier(row.origin),
        landmarks=tuple(Landmark.of(each) for each in _list(row.landmarks)),
        open_items=tuple(OpenItem.of(each) for each in _list(row.open_items)),
    )


_PARSED = frozenset({"origin", "landmarks", "open_items"})


def _list(text: str | None) -> Sequence[Any]:
    found: list[Any] = json.loads(text) if text else []
    return found

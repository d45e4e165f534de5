"""Reading what the gate decided: of a record, of an event, of a scope; inside the scopes that the caller sees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, func, select

from mnemolog.domain.gate.admission import Decision
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import GATED, Act
from mnemolog.projections.curated import Curated
from mnemolog.projections.curated_rows import unpacked

_ALL: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """What became of one candidate or statement. event_id: of what found or stated it; source: where it was found.

    content: as it may be kept; None where it is not kept. why: the reasons, in their words. voices: how many different
    ones said it so far. asked: somebody asked to remember it.
    """

    event_id: str
    position: int
    record: str
    scope: int
    source: str
    decision: Decision
    why: tuple[str, ...]
    voices: int
    trust: Tier
    topic: str | None
    extractor: str | None
    rule: str | None
    asked: bool
    content: str | None
    start: int | None
    end: int | None
    kind: str | None
    confidence: float | None
    slot: tuple[str, str] | None
    sensitivity: str | None
    occurred_at: str
    recorded_at: str
    session: str | None


def of_record(conn: Connection, curated: Curated, record: str, scopes: Collection[int]) -> list[OutcomeRow]:
    """Everything that was found for one record, oldest first."""
    return _rows(conn, curated, curated.gatekeeper.tables.outcomes.c.record == record, scopes)


def of_event(conn: Connection, curated: Curated, event: str, scopes: Collection[int]) -> list[OutcomeRow]:
    """Everything that was found in one event, or that it stated."""
    c = curated.gatekeeper.tables.outcomes.c
    return _rows(conn, curated, (c.source == event) | (c.event_id == event), scopes)


def in_scopes(
    conn: Connection,
    curated: Curated,
    scopes: Collection[int],
    decisions: Sequence[Decision],
    limit: int = _ALL,
    *,
    newest: bool = False,
) -> list[OutcomeRow]:
    """What came to one of these decisions, oldest first, or newest."""
    query = _waiting(curated.gatekeeper.tables.outcomes, curated.tables.assertions, newest)
    asked = {"verdicts": [int(one) for one in decisions], "scopes": list(scopes), "limit": limit}
    return [_outcome(row) for row in conn.execute(query, asked)]


def counts(conn: Connection, curated: Curated) -> list[tuple[Decision, tuple[str, ...], int]]:
    """How many of the whole store came to each decision for the same reasons."""
    c = curated.gatekeeper.tables.outcomes.c
    query = select(c.verdict, c.why, func.count()).group_by(c.verdict, c.why).order_by(c.verdict, c.why)
    return [
        (Decision(verdict), tuple(orjson.loads(why)), count) for verdict, why, count in conn.execute(query)
    ]


def oldest_waiting(conn: Connection, curated: Curated) -> str | None:
    """When the first of those that wait for a person was recorded."""
    o, a = curated.gatekeeper.tables.outcomes.c, curated.tables.assertions.c
    waits = o.verdict.in_([int(Decision.CONFIRM), int(Decision.QUARANTINE)])
    query = select(func.min(a.recorded_at)).where(a.event_id == o.event_id, waits)
    found: str | None = conn.execute(query).scalar_one()
    return found


def acts_of_people(conn: Connection, curated: Curated) -> dict[str, int]:
    """How often people corrected, approved, rejected, edited, ... what is remembered, by act."""
    a = curated.tables.assertions.c
    decided = a.act.not_in([Act.STATED, *GATED])
    query = select(a.act, func.count().label("times")).where(a.human, decided).group_by(a.act)
    return {row.act: row.times for row in conn.execute(query)}


def of_topic(
    conn: Connection, curated: Curated, scopes: Collection[int], topic: str | None, before: int
) -> list[tuple[str, int]]:
    """The records of these scopes of which something was said before a position, with their scopes.

    topic: only what was found to be about it.
    """
    o, a = curated.gatekeeper.tables.outcomes.c, curated.tables.assertions.c
    query = select(a.record, a.scope).where(a.scope.in_(scopes), a.position < before, a.forgotten.is_(False))
    if topic is not None:
        query = select(o.record, o.scope).where(o.scope.in_(scopes), o.position < before, o.topic == topic)
    return sorted((record, scope) for record, scope in conn.execute(query.distinct()))


class Withdrawal(NamedTuple):
    """What a person took back, and where in the log. topic: None for that memory is kept about them at all."""

    tenant: str
    person: str
    topic: str | None
    position: int


def withdrawals(conn: Connection, curated: Curated, after: int) -> list[Withdrawal]:
    """What persons took back behind a position, and did not give again."""
    c, s = curated.gatekeeper.tables.consents.c, curated.scopes.table.c
    query = select(c.person, c.topic, c.granted, c.position).where(c.position > after).order_by(c.position)
    last = {(row.person, row.topic): row for row in conn.execute(query)}
    theirs = select(s.user, s.tenant).where(s.user.in_({person for person, _ in last}))
    tenants = {row.user: row.tenant for row in conn.execute(theirs)}
    return [
        Withdrawal(tenants[row.person], row.person, row.topic or None, row.position)
        for row in last.values()
        if not row.granted and row.person in tenants
    ]


def _rows(
    conn: Connection, curated: Curated, condition: ColumnElement[bool], scopes: Collection[int]
) -> list[OutcomeRow]:
    outcomes = curated.gatekeeper.tables.outcomes
    query = _outcomes(outcomes, curated.tables.assertions).where(condition).order_by(outcomes.c.position)
    return [_outcome(row) for row in conn.execute(query, {"scopes": list(scopes)})]


@lru_cache
def _waiting(outcomes: Table, assertions: Table, newest: bool) -> Select[Any]:
    """Made once: every context asks it."""
    place = outcomes.c.position.desc() if newest else outcomes.c.position
    wanted = outcomes.c.verdict.in_(bindparam("verdicts", expanding=True))
    return _outcomes(outcomes, assertions).where(wanted).order_by(place).limit(bindparam("limit"))


def _outcomes(outcomes: Table, assertions: Table) -> Select[Any]:
    o, a = outcomes.c, assertions.c
    said = (
        a.evidence,
        a.content,
        a.kind,
        a.confidence,
        a.entity,
        a.attribute,
        a.sensitivity,
        a.occurred_at,
        a.recorded_at,
        a.session,
    )
    return select(
        o.event_id, o.position, o.record, o.scope, o.source, o.verdict, o.why, o.voices, o.trust, o.topic,
        o.extractor, o.rule, o.asked, *said,
    ).where(a.event_id == o.event_id, o.scope.in_(bindparam("scopes", expanding=True)))  # fmt: skip


def _outcome(row: Any) -> OutcomeRow:
    slot = None if row.entity is None or row.attribute is None else (row.entity, row.attribute)
    spans = [one for one in unpacked(row.evidence) if one.event_id == row.source]
    return OutcomeRow(
        event_id=row.event_id,
        position=row.position,
        record=row.record,
        scope=row.scope,
        source=row.source,
        decision=Decision(row.verdict),
        why=tuple(orjson.loads(row.why)),
        voices=row.voices,
        trust=Tier(row.trust),
        topic=row.topic,
        extractor=row.extractor,
        rule=row.rule,
        asked=row.asked,
        content=row.content,
        start=spans[0].start if spans else None,
        end=spans[0].end if spans else None,
        kind=row.kind,
        confidence=row.confidence,
        slot=slot,
        sensitivity=row.sensitivity,
        occurred_at=row.occurred_at,
        recorded_at=row.recorded_at,
        session=row.session,
    )

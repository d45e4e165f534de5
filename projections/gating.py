"""The gate inside the `curated` view: what was found, what became of it, and what people agree to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    MetaData,
    Row,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)

from mnemolog.domain.events import (
    CandidatesExtracted,
    ConsentGranted,
    ConsentWithdrawn,
    Event,
    MemoryCorrected,
    MemoryStated,
    QuarantineReviewed,
    Recorded,
)
from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.gate.judging import Gate, Outcomes, Rate, judge_candidates, judge_stated
from mnemolog.domain.gate.weighing import Consents, Judged, Verdict, weigh
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import GATED, Act, Assertion, microseconds
from mnemolog.projections.curated_rows import chunks, insert_new
from mnemolog.projections.dialects import Integer, String, insert

_HOUR: Final = 3_600_000_000
"""Microseconds."""
_ANYTHING: Final = ""
"""In the place of a topic: that memory is kept about a person at all."""
_NOBODY: Final = Consents()


class GateTables:
    """outcomes: one row per candidate, and per statement that the gate had something to say of; by its event.

    decision and reasons are what it came to on its own, verdict and why what it came to among the others of its record.
    """

    def __init__(self, metadata: MetaData) -> None:
        self.outcomes = Table(
            "outcomes",
            metadata,
            Column("event_id", String, primary_key=True),
            Column("position", Integer, nullable=False),
            Column("record", String, nullable=False, index=True),
            Column("scope", Integer, nullable=False, index=True),
            Column("source", String, nullable=False, index=True),
            Column("decision", Integer, nullable=False),
            Column("reasons", String, nullable=False),
            Column("verdict", Integer, nullable=False, index=True),
            Column("why", String, nullable=False),
            Column("voices", Integer, nullable=False),
            Column("trust", Integer, nullable=False),
            Column("voice", String, nullable=False),
            Column("consent", String),
            Column("topic", String),
            Column("found", Boolean(), nullable=False),
            Column("stated", String, nullable=False),
            Column("extractor", String),
            Column("rule", String),
            Column("asked", Boolean(), nullable=False),
        )
        self.consents = _consents(metadata)
        self.rates = _rates(metadata)


def _consents(metadata: MetaData) -> Table:
    return Table(
        "consents",
        metadata,
        Column("event_id", String, primary_key=True),
        Column("position", Integer, nullable=False),
        Column("person", String, nullable=False, index=True),
        Column("topic", String, nullable=False),
        Column("granted", Boolean(), nullable=False),
    )


def _rates(metadata: MetaData) -> Table:
    return Table(
        "voices",
        metadata,
        Column("voice", String, primary_key=True),
        Column("hour", Integer, primary_key=True),
        Column("found", Integer, nullable=False),
        sqlite_with_rowid=False,
    )


class Gatekeeper:
    """Judges what the fold brings, and weighs a record's candidates whenever one of them is touched."""

    def __init__(self, metadata: MetaData, gate: Gate, scopes: Table, assertions: Table) -> None:
        self.tables, self.gate, self._scopes = GateTables(metadata), gate, scopes
        self._assertions = assertions
        outcomes = self.tables.outcomes
        self._settled = (
            update(outcomes)
            .where(outcomes.c.event_id == bindparam("of"))
            .values(verdict=bindparam("now"), why=bindparam("because"), voices=bindparam("by"))
        )

    # What comes in ------------------------------------------------------------------------------------------------

    def judge(self, conn: Connection, recorded: Recorded, assertion: Assertion) -> Assertion:
        """The assertion as it may be kept. Outcomes are written at once: an event that is folded twice counts once."""
        event = recorded.event
        if isinstance(event, MemoryStated | MemoryCorrected | QuarantineReviewed):
            if self.gate.plain and not event.findings and not getattr(event, "signs", ()):
                return assertion
            assertion, outcome = judge_stated(assertion, event, self.gate)
            if outcome is not None:
                insert_new(conn, self.tables.outcomes, [_row(assertion, outcome)])
        return assertion

    def judge_found(self, conn: Connection, recorded: Recorded, frame: Mapping[str, Any]) -> Assertion:
        """The assertion of a candidate. frame: what every assertion has."""
        rate = self._rate(conn, recorded, again=self._is_known(conn, recorded.envelope.id))
        if not isinstance(recorded.event, Event):
            return Assertion(**{**frame, "act": Act.FOUND}, forgotten=True)
        assert isinstance(recorded.event, CandidatesExtracted)
        assertion, outcome = judge_candidates(frame, recorded, recorded.event, self.gate, rate)
        insert_new(conn, self.tables.outcomes, [_row(assertion, outcome)])
        return assertion

    def _is_known(self, conn: Connection, event_id: str) -> bool:
        """Whether the event was folded before."""
        query = select(self._assertions.c.position).where(self._assertions.c.event_id == event_id)
        return conn.execute(query).first() is not None

    def _rate(self, conn: Connection, recorded: Recorded, *, again: bool) -> Rate:
        """Counted from the readable side of events, which an erasure leaves as it is."""
        voice = str(recorded.envelope.clear.get("voice", ""))
        hour = microseconds(recorded.envelope.occurred_at) // _HOUR
        table = self.tables.rates
        own = table.c.voice == voice
        here = select(table.c.found).where(own, table.c.hour == hour)
        now = 1 + (conn.execute(here).scalar_one_or_none() or 0)
        before = select(func.count(), func.coalesce(func.sum(table.c.found), 0)).where(
            own, table.c.hour < hour
        )
        hours, found = conn.execute(before).one()
        rate = Rate(now, int(found) / hours if hours else 0.0)
        if again:
            return rate
        counted = insert(conn, table).values(voice=voice, hour=hour, found=now)
        conn.execute(
            counted.on_conflict_do_update(
                index_elements=[table.c.voice, table.c.hour], set_={"found": table.c.found + 1}
            )
        )
        return rate

    def consent(self, conn: Connection, recorded: Recorded) -> None:
        """Keep what a person agreed to, or took back."""
        event, person = recorded.event, recorded.envelope.scope.user
        if isinstance(event, ConsentGranted | ConsentWithdrawn) and person is not None:
            topic = event.about if isinstance(event.about, str) else _ANYTHING
            granted = isinstance(event, ConsentGranted)
            row = (recorded.envelope.id, recorded.position, person, topic, granted)
            insert_new(conn, self.tables.consents, [row])

    # What it comes to -----------------------------------------------------------------------------------------------

    def weighed(
        self, conn: Connection, rows: Mapping[str, Sequence[Assertion]]
    ) -> dict[str, list[Assertion]]:
        """The assertions with the acts that they come to, by record."""
        return {record: each for record, (each, _) in self._weighed(conn, rows).items()}

    def settle(self, conn: Connection, rows: Mapping[str, Sequence[Assertion]]) -> dict[str, list[Assertion]]:
        """As `weighed`; the verdicts are kept."""
        found = self._weighed(conn, rows)
        changes = [
            {"of": event, "now": int(one.decision), "because": _json(one.reasons), "by": one.voices}
            for _, verdicts in found.values()
            for event, one in verdicts.items()
        ]
        if changes:
            conn.execute(self._settled, changes)
        return {record: each for record, (each, _) in found.items()}

    def _weighed(
        self, conn: Connection, rows: Mapping[str, Sequence[Assertion]]
    ) -> dict[str, tuple[list[Assertion], dict[str, Verdict]]]:
        found = {record: (list(each), dict[str, Verdict]()) for record, each in rows.items()}
        every = bool(self.gate.consents)  # what is about one of them falls with it, however it was said
        gated = [record for record, each in rows.items() if every or any(row.act in GATED for row in each)]
        if gated:
            judged = self._judged(conn, gated)
            scopes = {rows[record][0].scope for record in gated}
            consents = {scope: self.consents(conn, scope) for scope in scopes}
            for record in gated:
                found[record] = weigh(rows[record], judged, consents[rows[record][0].scope])
        return found

    def _judged(self, conn: Connection, records: Sequence[str]) -> dict[str, Judged]:
        table = self.tables.outcomes
        return {
            row.event_id: _judged(row)
            for chunk in chunks(records)
            for row in conn.execute(select(table).where(table.c.record.in_(chunk)))
        }

    def consents(self, conn: Connection, scope: int) -> Consents:
        """What the person of a scope agrees to now."""
        c = self.tables.consents.c
        of_scope = select(self._scopes.c.user).where(self._scopes.c.number == scope).scalar_subquery()
        query = select(c.topic, c.granted).where(c.person == of_scope).order_by(c.position)
        last = {row.topic: row.granted for row in conn.execute(query)}
        if not last:
            return _NOBODY
        granted = frozenset(topic for topic, yes in last.items() if yes and topic)
        back = frozenset(topic for topic, yes in last.items() if not yes and topic)
        return Consents(granted, back, withdrawn=last.get(_ANYTHING) is False)

    def withdrawn(self, conn: Connection, scopes: Collection[int]) -> frozenset[int]:
        """Those of these scopes whose person has taken back that anything is kept of them."""
        c, s = self.tables.consents.c, self._scopes.c
        asked = select(c.person).where(c.granted.is_(False), c.topic == _ANYTHING)
        found = [
            scope
            for some in chunks(list(scopes))
            for scope in conn.execute(select(s.number).where(s.number.in_(some), s.user.in_(asked))).scalars()
        ]
        return frozenset(scope for scope in found if self.consents(conn, scope).withdrawn)

    # Erasure --------------------------------------------------------------------------------------------------------

    def forget(self, conn: Connection, events: Collection[str]) -> set[str]:
        """Drop what became of these events; their assertions are again what they would be had nobody looked.

        Returns the records that lose a consent.
        """
        table, assertions, chunk = self.tables.outcomes, self._assertions, list(events)
        rows = conn.execute(select(table.c.event_id, table.c.stated).where(table.c.event_id.in_(chunk)))
        for event_id, stated in rows.fetchall():
            conn.execute(update(assertions).where(assertions.c.event_id == event_id).values(act=stated))
        conn.execute(delete(table).where(table.c.event_id.in_(chunk)))
        c, scopes = self.tables.consents.c, self._scopes.c
        gone = c.event_id.in_(chunk)
        persons = set(conn.execute(select(c.person).where(gone)).scalars())
        if not persons:
            return set()
        conn.execute(delete(self.tables.consents).where(gone))
        theirs = select(scopes.number).where(scopes.user.in_(persons))
        return set(conn.execute(select(assertions.c.record).where(assertions.c.scope.in_(theirs))).scalars())

    def of_person(self, conn: Connection, person: str, before: int) -> set[str]:
        """The events by which a person agreed to something, or took it back."""
        c = self.tables.consents.c
        return set(conn.execute(select(c.event_id).where(c.person == person, c.position < before)).scalars())

    def dump(self) -> Iterator[tuple[Table, Column[Any]]]:
        """The tables, and what orders them."""
        t = self.tables
        yield t.outcomes, t.outcomes.c.position
        yield t.consents, t.consents.c.position


def _row(assertion: Assertion, outcome: Outcomes) -> tuple[Any, ...]:
    """The columns of `outcomes`, in order."""
    one = outcome.judged
    reasons = _json(one.reasons)
    return (
        assertion.event_id,
        assertion.position,
        assertion.record,
        assertion.scope,
        outcome.source,
        int(one.decision),
        reasons,
        int(one.decision),
        reasons,
        1,
        int(one.trust),
        one.voice,
        one.consent,
        outcome.topic,
        one.found,
        outcome.stated.value,
        outcome.extractor,
        outcome.rule,
        outcome.asked,
    )


def _judged(row: Row[Any]) -> Judged:
    reasons = tuple(Reason(reason) for reason in orjson.loads(row.reasons))
    return Judged(Decision(row.decision), reasons, Tier(row.trust), row.voice, row.consent, row.found)


def _json(reasons: Sequence[Reason]) -> str:
    return orjson.dumps([reason.value for reason in reasons]).decode()

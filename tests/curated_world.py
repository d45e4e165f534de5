"""A small world for tests of curated memory: writes events as a log would hold them, and folds them into views."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from mnemolog.domain.events import (
    CLEAR_FIELDS,
    FORGOTTEN,
    MEMORY,
    CandidatesExtracted,
    ContentErased,
    Envelope,
    Event,
    FeedbackGiven,
    MemoryConfirmed,
    MemoryCorrected,
    MemoryDisputed,
    MemoryRetracted,
    MemoryStated,
    Part,
    QuarantineReviewed,
    Recorded,
    SubjectErased,
    TurnRecorded,
)
from mnemolog.domain.gate.candidates import Candidate, stored
from mnemolog.domain.normalise import slot_key, statement_key
from mnemolog.domain.policy import DEFAULT, GatePolicy
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.records import READABLE, Status
from mnemolog.domain.scope import ANY, Scope, ScopeIds
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.projections.curated import Curated
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.record_tables import RecordTables

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
LATER = datetime(2026, 12, 1, tzinfo=UTC)
MIN = ScopeIds(Scope(tenant="acme", user="min", session="s-1"))
EVERYONE = ScopeIds(Scope(tenant="acme", user=ANY, project=ANY, organization=ANY))
TIERS = {Role.USER: Tier.USER_STATED, Role.AGENT: Tier.AGENT, Role.OPERATOR: Tier.OPERATOR}
TIERS |= {Role.SERVICE: Tier.SYSTEM_OF_RECORD}


@dataclass
class Log:
    """Events in order, with what the face above the log decides: positions, versions, record ids."""

    events: list[Recorded] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)

    def append(
        self,
        event: Event,
        stream: str,
        scope: ScopeIds = MIN,
        role: Role = Role.USER,
        *,
        tier: Tier | None = None,
        at: datetime | None = None,
        subjects: Sequence[str] | None = None,
        sources: Sequence[str] = (),
    ) -> Recorded:
        position = len(self.events) + 1
        version = 1 + sum(e.envelope.stream == stream for e in self.events)
        when = (at or START + timedelta(minutes=position)).isoformat()
        about = tuple(subjects) if subjects is not None else (scope.user or scope.tenant,)
        clear = {name: getattr(event, name) for name in CLEAR_FIELDS[event.topic]}
        envelope = Envelope(
            id=f"{position:032x}",
            topic=event.topic,
            schema=event.schema,
            stream=stream,
            version=version,
            occurred_at=when,
            recorded_at=(START + timedelta(minutes=position)).isoformat(),
            scope=scope,
            actor=f"a-{role.value}",
            role=role,
            origin=TIERS[role] if tier is None else tier,
            digest="",
            key=None,
            sources=tuple(sources),
            parts=(Part(position, about),),
            clear=clear,
        )
        self.events.append(Recorded(position, envelope, event))
        return self.events[-1]

    def state(self, content: str, scope: ScopeIds = MIN, role: Role = Role.USER, **rest: object) -> Recorded:
        said = {k: rest.pop(k) for k in tuple(rest) if k not in ("tier", "at", "subjects", "sources")}
        event = MemoryStated(content=content, **said)  # type: ignore[arg-type]
        slot = "" if event.slot is None else slot_key(*event.slot)
        owner = scope.at(("organization", "user", "project")).encode().hex()
        stream = f"r-{statement_key(owner + slot)[:8]}-{statement_key(content)[:16]}"
        return self.append(event, stream, scope, role, **rest)  # type: ignore[arg-type]

    def correct(
        self, target: Recorded, content: str, role: Role = Role.USER, reason: str = "wrong", **rest: object
    ) -> Recorded:
        envelope = target.envelope
        event = MemoryCorrected(content=content, reason=reason, **rest)  # type: ignore[arg-type]
        return self.append(event, envelope.stream, envelope.scope, role)

    def retract(self, target: Recorded, role: Role = Role.USER) -> Recorded:
        return self.append(MemoryRetracted("not so"), target.envelope.stream, target.envelope.scope, role)

    def dispute(self, target: Recorded, role: Role = Role.AGENT) -> Recorded:
        return self.append(MemoryDisputed("doubtful"), target.envelope.stream, target.envelope.scope, role)

    def confirm(self, target: Recorded, role: Role = Role.USER) -> Recorded:
        return self.append(MemoryConfirmed(), target.envelope.stream, target.envelope.scope, role)

    def say(self, content: str, scope: ScopeIds = MIN, **rest: object) -> Recorded:
        """A turn, or with a tier of its own something that was returned."""
        return self.append(TurnRecorded("user", content), "session", scope, **rest)  # type: ignore[arg-type]

    def find(self, source: Recorded, value: str, slot: tuple[str, str] | None, voice: str = "v") -> Recorded:
        """What a worker finds in a source whose text is all statement."""
        content = source.event.content  # type: ignore[union-attr]
        entity, attribute = slot or ("user", None)
        at = content.index(value)
        candidate = Candidate(
            kind="fact", content=content, span=(0, len(content)), value=value, value_span=(at, at + len(value)),
            entity=entity, attribute=attribute, negated=False, confidence=0.9, rule="test",
        )  # fmt: skip
        event = CandidatesExtracted(
            (stored(candidate),), {"role": "user", "who": None, "length": len(content)}, "rules-1", voice, "h"
        )
        stream = f"f-{statement_key(str(slot) + candidate.statement)[:16]}-{source.envelope.scope.user}"
        envelope = source.envelope
        when = datetime.fromisoformat(envelope.occurred_at)
        return self.append(
            event, stream, envelope.scope, Role.SERVICE, tier=envelope.origin, at=when, sources=(envelope.id,)
        )

    def review(self, target: Recorded, decision: str, content: str | None = None) -> Recorded:
        event = QuarantineReviewed(decision, content)
        return self.append(event, target.envelope.stream, target.envelope.scope, Role.USER)

    def rate(
        self, target: Recorded, rating: str, scope: ScopeIds = MIN, subjects: Sequence[str] | None = None
    ) -> Recorded:
        return self.append(FeedbackGiven(target.envelope.stream, rating), "s-1", scope, subjects=subjects)

    def erase(self, *targets: Recorded | str) -> Recorded:
        ids = tuple(t if isinstance(t, str) else t.envelope.id for t in targets)
        self.dead.update(ids)
        return self.append(ContentErased("x", ids), "erasures", ScopeIds(Scope(tenant="acme")))

    def erase_subject(self, subject: str) -> Recorded:
        self.dead.update(
            e.envelope.id
            for e in self.events
            if subject in e.envelope.subjects and e.envelope.topic in MEMORY | {FeedbackGiven.topic}
        )
        return self.append(
            SubjectErased("x", subject), "erasures", ScopeIds(Scope(tenant="acme")), subjects=()
        )

    def as_read_now(self) -> list[Recorded]:
        """What a rebuild reads: the bodies of what was erased are gone."""
        return [replace(e, event=FORGOTTEN) if e.envelope.id in self.dead else e for e in self.events]


@contextmanager
def view(policy: GatePolicy = DEFAULT.gate) -> Iterator[tuple[Connection, Curated]]:
    """An empty curated view in memory, inside a transaction."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    curated = Curated(SqliteLexicalIndex("words"), default_analyzer(), policy)
    try:
        with engine.begin() as conn:
            curated.create(conn)
            yield conn, curated
    finally:
        engine.dispose()


def fold(
    conn: Connection, curated: Curated, events: Sequence[Recorded], sizes: Sequence[int] = (500,)
) -> None:
    """Fold in batches of the given sizes, over and over; only what the projection cares for, as the runner does."""
    at = turn = 0
    while at < len(events):
        size = sizes[turn % len(sizes)]
        curated.fold(conn, [e for e in events[at : at + size] if e.envelope.topic in curated.topics])
        at, turn = at + size, turn + 1


def dumped(
    events: Sequence[Recorded], sizes: Sequence[int] = (500,), policy: GatePolicy = DEFAULT.gate
) -> list[tuple[object, ...]]:
    with view(policy) as (conn, curated):
        fold(conn, curated, events, sizes)
        return list(curated.dump(conn))


@dataclass
class Reader:
    """Short ways to ask a view."""

    conn: Connection
    curated: Curated
    scope: ScopeIds = EVERYONE
    now: datetime = LATER

    @property
    def scopes(self) -> list[int]:
        return list(self.curated.scopes.visible(self.conn, self.scope))

    @property
    def view(self) -> CuratedView:
        return CuratedView(self.curated)

    def texts(self, **options: object) -> list[str | None]:
        records = self.view.records(self.conn, self.scopes, self.now, **options)  # type: ignore[arg-type]
        return [record.content for record in records]

    def found(self, query: str, statuses: Collection[Status] = READABLE) -> list[str | None]:
        """What the records with a word of the query say, best first."""
        hits = self.view.lexical.search(self.conn, sorted(self.scopes), self.curated.analyzer.query(query))
        judged = RecordTables(self.curated).of(
            self.conn, self.curated.scopes.visible(self.conn, self.scope), self.now, 0
        )
        numbers = [number for number, _ in hits if number in judged.records]
        records = self.view.whole(self.conn, numbers, self.scopes, judged)
        return [records[n].content for n in numbers if records[n].status in statuses]


@contextmanager
def reading(log: Log, scope: ScopeIds = EVERYONE, now: datetime = LATER) -> Iterator[Reader]:
    with view() as (conn, curated):
        fold(conn, curated, log.events)
        yield Reader(conn, curated, scope, now)

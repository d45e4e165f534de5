"""Reads: the scope is fixed first, then views are searched inside it, then the budget is spent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final, Unpack

from sqlalchemy import MetaData

from mnemolog._guard import Guard
from mnemolog._recalling import Asked, Asking, Found, Recaller
from mnemolog._shown import status_named, text_of, turn_hit, without_words
from mnemolog._views import View, Views
from mnemolog.domain import ingress
from mnemolog.domain.errors import Erased, InvalidInput, NotFound, ProjectionParked
from mnemolog.domain.events import FORGOTTEN, GOVERNANCE, MEMORY, REGISTRY, Forgotten, Recorded
from mnemolog.domain.gate.findings import OVERLAP
from mnemolog.domain.gate.wording import which
from mnemolog.domain.principal import Action, levels_asked
from mnemolog.domain.records import UNREADABLE, Act, Record, Status, Step
from mnemolog.domain.scope import ANY, Scope, ScopeIds, a_scope, owner, sees
from mnemolog.projections import catalog, gate_reads, turns_view
from mnemolog.projections.catalog import CatalogRow
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.scopes import ScopeTable, record_scope
from mnemolog.results import Hit, MemoryRecord, OutputRange

_READ: Final = ("turns", "curated")
"""What a read needs complete when it asks for a position."""
_UNTOLD: Final = frozenset({"held", "not kept"})
"""Effects of steps whose words only those who review may read."""
SOMEBODY: Final = "somebody elsewhere"
"""Stands for who may not be named."""
_ABSENT: Final = "no event or record {} in this scope"
_MARGIN: Final = OVERLAP
"""Characters beside a range that are looked at, so that nothing shows where a range cuts what is hidden."""
Moment = datetime | str | None
Stated = tuple[Record, str]
"""A record without its content, and its content."""


class Reader:
    """Answers one principal's reads."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._store = guard.store
        self._curated = CuratedView(self._store.curated, lambda: self._store.policy.gate)
        self._recaller = Recaller(self._store, self, self._curated)
        self._scopes = ScopeTable(MetaData())

    # Recall ----------------------------------------------------------------------------------------------------

    def recall(self, scope: Scope, query: str, k: int, **options: Unpack[Asking]) -> list[Hit]:
        """The best `k`, best first."""
        asked = Asked(**options)
        self.demand(scope, asked.at_least)
        return self._named(self._recaller.recall(scope, query, k, asked))

    def _named(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their sessions' names for their ids."""
        name = self._store.vault.name
        names = {rid: name(rid) for rid in {hit.session for hit in hits} if rid is not None}
        return [hit if hit.session is None else replace(hit, session=names[hit.session]) for hit in hits]

    # For contexts ----------------------------------------------------------------------------------------------

    def views(self, at_least: int | None) -> Views:
        """The views of one call."""
        return Views(self._guard, self._scopes, at_least)

    def found(self, views: Views, scope: Scope, query: str, k: int, now: datetime) -> list[Found]:
        """As `recall`, over everything that may enter a context, with the rows themselves."""
        return self._recaller.found(views, scope, query, k, Asked(now=now))

    def current(self, views: Views, scope: Scope, now: datetime) -> list[Stated]:
        """The readable records and what they say, by kind, then authority, then the newest first."""
        view, tables = views.of("curated", scope), self._store.records
        texts = tables.texts(view.conn, view.scopes)
        current = tables.of(view.conn, view.scopes, now, views.record_epoch).current()
        return [(record, texts.get(number, "")) for number, record in current if self.may_read(record)]

    def records_now(self, scope: Scope, record_ids: Sequence[str], now: datetime) -> dict[str, Record]:
        """The records, by id, as they are at the head of the log: those that the scope sees."""
        with self._view("curated", scope, None, frozenset()) as view:
            return self._curated.by_ids(view.conn, record_ids, view.scopes, now)

    def moment(self, scope: Scope, now: Moment) -> datetime:
        """The moment at which validity is judged."""
        return self._now(scope, now)

    def demand(self, scope: Scope, at_least: int | None, views: Sequence[str] = _READ) -> None:
        """A read that asks for a position gets all up to it, or an error that says why not."""
        if at_least is None:
            return
        if ingress.whole(at_least, "at_least") > self._store.log.head():
            raise InvalidInput(f"at_least={at_least} lies behind the head of the log")
        ids = self._guard.reading_ids(scope)
        self._store.runner.catch_up_all(at_least)
        for view in views:
            if ids is not None and self.is_parked(view, ids):
                raise ProjectionParked(f"events of this scope are parked in {view}: see `projections parked`")

    def is_parked(self, view: str, ids: ScopeIds) -> bool:
        """Whether events of the scope's owner are set aside, so that the view lacks them."""
        return self._store.runner.parked_owner(view, owner(ids))

    # Records and events ----------------------------------------------------------------------------------------

    def records(
        self,
        scope: Scope,
        *,
        kinds: Collection[str] | None,
        status: Collection[str] | None,
        now: Moment,
        believed_at: int | None,
        at_least: int | None,
        exact: bool | Collection[str],
        history: bool,
    ) -> list[MemoryRecord]:
        self.demand(scope, at_least)
        if believed_at is not None:
            ingress.whole(believed_at, "believed_at")
        with self._view("curated", scope, at_least, levels_asked(scope, exact)) as view:
            found = self._curated.records(
                view.conn,
                view.scopes,
                self._now(scope, now),
                kinds=None if kinds is None else ingress.names(kinds, "kinds"),
                statuses=None
                if status is None
                else [status_named(one) for one in ingress.texts(status, "status")],
                include_history=history,
                believed_at=believed_at,
            )
            return [self.handed(record, view) for record in found if self.is_told(record)]

    def record(self, scope: Scope, record_id: str) -> Record:
        """The record as it stands now. Raises NotFound, also for what the caller's role may not read."""
        self.scope_of_record(scope, record_id)
        found = self.records_now(scope, [record_id], self._store.clock.now()).get(record_id)
        if found is None:
            raise Erased(f"record {record_id} was erased: remember it anew")
        if not self.may_read(found):
            raise self.closed(scope, record_id)
        return found

    def demand_open(self, scope: Scope, record_id: str, named: str | None = None) -> None:
        """Raise NotFound, as of what is not there, unless the policy lets the caller's role read the record.

        named: what the caller named, where that is an event of the record.
        """
        if not self.reads_all:
            found = self.records_now(scope, [record_id], self._store.clock.now()).get(record_id)
            if found is None or not self.may_read(found):
                raise self.closed(scope, named or record_id)

    def closed(self, scope: Scope, id: str) -> NotFound:
        """What is told of a record that is not for the caller's role; it is recorded as a refusal."""
        self._guard.refuse(Action.READ, "this is not for the principal's role", scope)
        return NotFound(_ABSENT.format(id))

    def view(self, scope: Scope) -> AbstractContextManager[View]:
        """The curated view at the head of the log, as the caller sees it."""
        return self._view("curated", scope, None, frozenset())

    def shown(self, view: View, record_id: str) -> MemoryRecord | None:
        """The record as it stands; None where nothing of it may be read."""
        found = self._curated.get(view.conn, record_id, view.scopes, self._store.clock.now())
        if found is None or found.status in UNREADABLE or not self.may_read(found):
            return None
        return self.handed(found, view)

    def judged(self, view: View, record_id: str) -> tuple[Record | None, list[Step]]:
        """The record as it stands, readable or not, and what happened to it."""
        found = self._curated.get(view.conn, record_id, view.scopes, self._store.clock.now())
        return found, self._curated.history(view.conn, record_id, view.scopes)

    def peers(self, view: View, record_id: str) -> tuple[list[Record], list[Record]]:
        """All records of its slot, what stands first, itself included; and those of the others that may be told."""
        found = self._curated.peers(view.conn, record_id, view.scopes, self._store.clock.now())
        others = [one for one in found if one.id != record_id and one.status not in UNREADABLE]
        return found, list(filter(self.may_read, others))

    def withdrawn_records(self, person: Scope, topic: str | None, before: int) -> list[tuple[Scope, str]]:
        """What a person had in memory before a position, or what of it is about a topic, each with its scope."""
        asked = replace(person, organization=ANY, project=ANY)
        with self._view("curated", asked, None, frozenset()) as view:
            theirs = [number for number, ids in view.scopes.items() if ids.user is not None]
            found = gate_reads.of_topic(view.conn, self._store.curated, theirs, topic, before)
            return [(self._store.vault.names(view.scopes[scope]), record) for record, scope in found]

    def whole(self, view: View, record_ids: Collection[str], now: datetime) -> list[Record]:
        """Those of these records that the caller may read, with what they say, by position."""
        found = self._curated.by_ids(view.conn, list(record_ids), view.scopes, now).values()
        return sorted(filter(self.may_read, found), key=lambda record: record.position)

    def standing(self, view: View, scope: Scope) -> list[Record]:
        """All readable records of the view that the caller may read, by position."""
        found = self._curated.records(view.conn, view.scopes, self._now(scope, None))
        return list(filter(self.may_read, found))

    def may_read(self, record: Record) -> bool:
        """Whether the policy lets the principal's role read it."""
        return self.may_read_sort(record.kind, record.sensitivity)

    def may_read_sort(self, kind: str, sensitivity: str) -> bool:
        """Whether the policy lets the principal's role read records of a kind and sensitivity."""
        role = self._guard.principal.role.value
        return self.reads_all or self._store.policy.reading.may_read(role, kind, sensitivity)

    @property
    def reads_all(self) -> bool:
        """Whether the policy keeps nothing from the principal's role."""
        return self._store.policy.reading.is_open_to(self._guard.principal.role.value)

    def is_told(self, record: Record) -> bool:
        """Whether the caller may be told what happened to it."""
        held = record.status is Status.HELD and not self._guard.reviews
        return self.may_read(record) and not held

    def steps(self, view: View, record: Record) -> list[Step]:
        """What happened to a record that is told, oldest first, without the words that the caller may not read.

        Those of what waits, was not let in, or was let in with other words, are for who reviews; words that it had
        before it was made less sensitive stay as sensitive as they were.
        """
        steps = self._curated.history(view.conn, record.id, view.scopes)
        edited = max((step.position for step in steps if step.act is Act.EDITED), default=0)
        told = (
            step if self._is_open(step, record, edited) else without_words(step)
            for step in sorted(steps, key=lambda step: step.position)
        )
        return [self._signed(step, view, view.scopes[record.scope]) for step in told]

    def _is_open(self, step: Step, record: Record, edited: int) -> bool:
        untold = step.effect in _UNTOLD or step.position < edited
        return self.may_read_sort(record.kind, step.sensitivity) and (not untold or self._guard.reviews)

    def readable(self, view: View, record_ids: Collection[str]) -> dict[str, str | None]:
        """Those of the records of which the principal may read something, each with what it says."""
        found = self._curated.by_ids(view.conn, list(record_ids), view.scopes, self._store.clock.now())
        return {
            id: record.content
            for id, record in found.items()
            if record.status not in UNREADABLE and self.may_read(record)
        }

    def kinds_read(self) -> frozenset[str] | None:
        """The kinds of records that the principal's role reads; None for all."""
        policy, role = self._store.policy.reading, self._guard.principal.role.value
        return None if policy.is_open_to(role) else policy.kinds.get(role, frozenset())

    def get(self, scope: Scope, id: str, now: Moment) -> MemoryRecord | Hit | Forgotten:
        id = ingress.known_id(id)
        with self._view("curated", scope, None, frozenset()) as view:
            record = self._curated.get(view.conn, id, view.scopes, self._now(scope, now))
            if record is not None and not self.may_read(record):
                raise self.closed(scope, id)
            if record is not None and record.status is Status.HELD:
                raise NotFound(
                    f"record {id} is not readable (yet): `why` and `review show` say what it waits for, or who decided"
                )
            if record is not None:
                return FORGOTTEN if record.status is Status.FORGOTTEN else self.handed(record, view)
        row = self.require(scope, id)
        with self.views(None) as views:
            view = views.of("turns", scope)
            turn = turns_view.get(view.conn, id, view.scopes)
        if turn is not None:
            return self._named([turn_hit(self._store.gate.masking.row(turn, views.hidden))])[0]
        if row.erased:
            return FORGOTTEN
        raise NotFound(f"event {id} is a {row.topic}: `log` shows it")

    def read_output(
        self, scope: Scope, event_id: str, start: int, end: int | None
    ) -> OutputRange | Forgotten:
        ingress.whole(start, "start")
        ingress.whole(start if end is None else end, "end", start)
        row = self.require(scope, event_id)
        recorded = self._store.log.read_at([row.position])[0]
        if recorded.event is FORGOTTEN:
            return FORGOTTEN
        if row.topic in MEMORY and not self._is_quotable(scope, row):
            raise self.closed(scope, event_id)
        text = text_of(recorded)
        blob = recorded.envelope.clear.get("blob")
        total = len(text) if blob is None else blob["chars"]
        start, end = min(start, total), total if end is None else min(end, total)
        low, high = max(0, start - _MARGIN), min(total, end + _MARGIN)
        part = text[low:high] if blob is None else self._store.blobs.read(event_id, blob, low, high)
        if part is None:
            return FORGOTTEN
        return OutputRange(self._store.gate.masking.range(part, start - low, end - low), start, end, total)

    def _is_quotable(self, scope: Scope, row: CatalogRow) -> bool:
        """Whether the caller may read the words of a memory event."""
        with self.view(scope) as view:
            record = self._curated.get(view.conn, row.stream, view.scopes, self._store.clock.now())
            steps = [] if record is None or not self.is_told(record) else self.steps(view, record)
        return any(step.event_id == row.event_id and step.content is not None for step in steps)

    def log(
        self, after: int, limit: int, topics: Collection[str] | None, scope: Scope | None
    ) -> list[Recorded]:
        topics = None if topics is None else ingress.names(topics, "topics")
        if unknown := (topics or frozenset[str]()) - REGISTRY.keys():
            raise InvalidInput(f"no event type {', '.join(sorted(unknown))}: use {', '.join(REGISTRY)}")
        ingress.whole(after, "after")
        ingress.whole(limit, "limit")
        if scope is not None:
            a_scope(scope)
        found: list[Recorded] = []
        while len(found) < limit:
            page = self._store.log.read(after, limit, topics=topics)
            found += [each for each in page.events if self._is_shown(each, scope)]
            if page.position <= after or len(page.events) < limit:
                break
            after = page.position
        return found[:limit]

    def _is_shown(self, recorded: Recorded, scope: Scope | None) -> bool:
        governs = recorded.envelope.topic in GOVERNANCE
        if governs and not self._guard.sees_tenants:
            return False
        return self._guard.sees(recorded.envelope.scope, scope)

    # For writers and erasers -----------------------------------------------------------------------------------

    def require(self, scope: Scope, id: str) -> CatalogRow:
        """The event (or the last event of the record) with this id, if the caller's scope sees it.

        Raises NotFound else; that it exists where the principal may not look is recorded as a refusal, and not told.
        """
        id = ingress.known_id(id)
        with self._store.runner.read("catalog") as conn:
            row = catalog.find(conn, id) or next(reversed(catalog.by_stream(conn, id)), None)
        if row is not None:
            envelope = self._store.log.read_at([row.position], bodies=False)[0].envelope
            if self._is_seen(scope, envelope.scope, row.erased):
                return row
            self._guard.missed(Action.READ, envelope.scope, scope)
        raise NotFound(_ABSENT.format(id))

    def _is_seen(self, scope: Scope, stored: ScopeIds, erased: bool) -> bool:
        """Whether the caller's scope sees something recorded in `stored`, or did before its person was erased."""
        ids, allowed = self._guard.reading_ids(scope), self._guard.allowed(scope)
        if ids is None:
            return False
        if sees(ids, record_scope(stored)):
            return allowed is None or allowed(stored)
        if not erased or stored.user is None or self._store.vault.name(stored.user) is not None:
            return False
        person = scope.user is not None and self._store.vault.is_fenced(scope.at(("user",)), 0)
        return (person or self._guard.sees_all) and stored.tenant == ids.tenant

    def scope_of_record(self, scope: Scope, record_id: str) -> ScopeIds:
        """Where a record belongs. Raises NotFound when the caller's scope does not see it."""
        row = self.require(scope, record_id)
        envelope = self._store.log.read_at([row.position], bodies=False)[0].envelope
        if row.stream != record_id:
            raise NotFound(f"{record_id} is an event, not a record: use its record_id")
        return record_scope(envelope.scope)

    def twins(self, scope: Scope, record_id: str, action: Action) -> list[str]:
        """The record and those that say the same in any scope that the caller sees and may do `action` in.

        So that forgetting one does not leave its text in another.
        """
        self.scope_of_record(scope, record_id)
        with self._view("curated", scope, None, frozenset()) as view:
            permitted = {number for number, ids in view.scopes.items() if self._guard.may(action, ids)}
            return [record_id, *self._curated.same_said(view.conn, record_id, permitted)]

    # -----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _view(self, name: str, scope: Scope, at_least: int | None, exact: frozenset[str]) -> Iterator[View]:
        """A read transaction that is caught up, with the numbers of the scopes that the caller sees in it."""
        with self.views(at_least) as views:
            yield views.of(name, scope, exact)

    def _session(self, scope: Scope) -> str | None:
        ids = self._guard.reading_ids(scope)
        return None if ids is None else ids.session

    def _now(self, scope: Scope, now: Moment) -> datetime:
        return ingress.moment(
            now, "now", zone=lambda: self._store.zone_of(scope), now=self._store.clock.now()
        )

    def bound(self, scope: Scope, value: Moment, what: str) -> int | None:
        """Microseconds of a bound in time; a time without zone is of the session's."""
        if value is None:
            return None
        zone = lambda: self._store.zone_of(scope)  # noqa: E731
        return ingress.microseconds(ingress.moment(value, what, zone=zone, now=self._store.clock.now()))

    # Where things come from ------------------------------------------------------------------------------------

    def is_near(self, view: View, belongs: ScopeIds, session: str | None) -> bool:
        """Whether the caller may be told in which session something was said, and by whom.

        Where that session is another person's, or lies where the principal may not look, what it brought is read and
        its origin is not named. belongs: the scope of the record, which stands for a session where there was none.
        """
        if self._guard.sees_all:
            return True
        known = view.near.get((belongs, session))
        if known is None:
            known = view.near[belongs, session] = self._looks_into(view.caller, belongs, session)
        return known

    def _looks_into(self, caller: ScopeIds | None, belongs: ScopeIds, session: str | None) -> bool:
        place = belongs if session is None else self._store.vault.place(session)
        if caller is None or place is None or caller.user not in (ANY, place.user):
            return False
        return self._guard.may(Action.READ, place) if session is None else self._guard.sees(place)

    def session_of(self, view: View, belongs: ScopeIds, session: str | None) -> str | None:
        """The name of a session, where the caller may be told it."""
        if session is None or not self.is_near(view, belongs, session):
            return None
        return self._store.vault.name(session)

    def _signed(self, step: Step, view: View, belongs: ScopeIds) -> Step:
        """With names for ids, where they may be told. The caller, and the user whose scope this is, are known."""
        known = step.actor in (belongs.user, self._guard.actor(belongs.tenant))
        if known or self.is_near(view, belongs, step.session):
            actor = (self._store.vault.name(step.actor) or step.actor).removeprefix("@")
        else:
            actor = SOMEBODY
        return replace(step, actor=actor, session=self.session_of(view, belongs, step.session))

    def handed(self, record: Record, view: View) -> MemoryRecord:
        """A record as it is handed over."""
        belongs = view.scopes[record.scope]
        names, name = self._store.vault.names(belongs), self._store.vault.name
        shared = belongs.user is None and not self._guard.sees_all
        people = [] if shared else [one for one in record.subjects if one != belongs.tenant]
        rivals, question = self._contested(record, view)
        return MemoryRecord(
            record_id=record.id,
            scope=names,
            content=_content(record),
            kind=record.kind,
            slot=self._store.gate.masking.slot(record.slot),
            status=str(record.status),
            version=record.version,
            trust=record.trust,
            confidence=record.confidence,
            sensitivity=record.sensitivity,
            consent=record.consent,
            evidence=record.evidence,
            subjects=tuple(name(person) or person for person in people),
            valid_from=record.valid_from,
            valid_to=record.valid_to,
            expires_at=record.expires_at,
            last_verified=record.last_verified,
            believed_from=record.believed_from,
            believed_to=record.believed_to,
            supersedes=record.supersedes,
            superseded_by=record.superseded_by,
            reason=None if record.reason is None else self._store.gate.masking.text(record.reason),
            weakened=record.weakened,
            occurred_at=record.occurred_at,
            session=self.session_of(view, belongs, record.session),
            feedback=(record.up, record.down),
            rivals=rivals,
            question=question,
        )

    def _contested(self, record: Record, view: View) -> tuple[tuple[str, ...], str | None]:
        """The rivals that the caller may read, by position, and what to ask about them."""
        if not record.rivals:
            return (), None
        every = self.whole(view, (record.id, *record.rivals), self._store.clock.now())
        rivals = tuple(one.id for one in every if one.id != record.id)
        slot = self._store.gate.masking.slot(record.slot)
        return rivals, which([one.content or "" for one in every], slot) if rivals else None


def _content(record: Record) -> str | Forgotten:
    """What is held shows nothing outside of the review."""
    if record.status is Status.HELD:
        return ""
    return FORGOTTEN if record.content is None else record.content

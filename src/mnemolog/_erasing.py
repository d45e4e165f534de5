"""Erasure: plan what it reaches, destroy the keys, tell the log, clean every store, and look again.

A note beside the log holds the ids of an erasure while it runs, so that one that a crash interrupted is finished when
the memory is opened next, on whatever machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection

from mnemolog._guard import Guard
from mnemolog._notes import WAIT_SECONDS, Notes, Work, erasing
from mnemolog._reading import Reader
from mnemolog._writing import Writer
from mnemolog.domain.erasure import CHUNK, ErasureReceipt, Reach, StoreResult, What
from mnemolog.domain.errors import InvalidInput, NotFound, StoreInUse
from mnemolog.domain.events import (
    FORGOTTEN,
    MEMORY,
    STATEMENTS,
    ContentErased,
    ErasureRequested,
    Event,
    Recorded,
    SubjectErased,
)
from mnemolog.domain.ingress import microseconds, short, statement
from mnemolog.domain.principal import Action
from mnemolog.domain.scope import ANY, SESSION_LEVELS, Scope, ScopeIds
from mnemolog.projections import catalog
from mnemolog.projections.catalog import CatalogRow
from mnemolog.projections.residue import HOLDING

_PAGE: Final = 500
_REQUESTS: Final = frozenset({ErasureRequested.topic})
Progress = Callable[[str], None]


class ErasurePlan:
    """What an erasure would reach. Nothing has happened yet; `apply` does it."""

    def __init__(
        self, eraser: Eraser, reach: Reach, place: ScopeIds, reason: str | None, keep_evidence: bool
    ):
        self._eraser, self.reach, self._place = eraser, reach, place
        self._reason, self._keep_evidence = reason, keep_evidence

    @property
    def what(self) -> What:
        return self.reach.what

    @property
    def target(self) -> str:
        return self.reach.target

    @property
    def events(self) -> tuple[str, ...]:
        """Ids of the events whose content would be destroyed."""
        return self.reach.events

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of the records that lose some or all of what they rest on."""
        return self.reach.records

    @property
    def counts(self) -> Mapping[str, int]:
        """Events by type."""
        return self.reach.counts

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names of the sessions that would be closed."""
        return self._eraser.names_of(self.reach.sessions)

    @property
    def evidence_left(self) -> tuple[str, ...]:
        """Events that a record cites and that would stay."""
        return self.reach.evidence_left

    def __repr__(self) -> str:
        return f"<ErasurePlan {self.what} {self.target}: {len(self.events)} events {dict(self.counts)}>"

    def apply(self, progress: Progress | None = None) -> ErasureReceipt:
        """Erase. Returns what was destroyed and removed, where, and whether a second look found anything left.

        progress: called with the name of each step as it begins.
        """
        work = self._eraser.work(self.reach, self._place, self._keep_evidence)
        return self._eraser.apply(work, self._reason, progress)


@dataclass(frozen=True, slots=True)
class _Closed:
    """An erasure whose keys are gone. readable, held: what the log and each store had of it; removed: large outputs."""

    work: Work
    rows: list[CatalogRow]
    readable: int
    held: Mapping[str, int]
    removed: int


class Eraser:
    """Plans and runs erasures for one principal."""

    def __init__(self, guard: Guard, writer: Writer, reader: Reader) -> None:
        self._guard, self._writer, self._reader = guard, writer, reader
        self._store = guard.store
        self._notes = Notes(guard.store.path, guard.store.settings)

    # Planning --------------------------------------------------------------------------------------------------

    def asked(
        self, scope: Scope, targets: Mapping[str, str | None], *, reason: str | None, keep_evidence: bool
    ) -> ErasurePlan:
        """The plan for the one target that is named. Raises InvalidInput for none, and for more than one."""
        chosen = [(what, target) for what, target in targets.items() if target is not None]
        if len(chosen) != 1:
            raise InvalidInput("name exactly one of event=, record=, session= or subject=")
        what, target = chosen[0]
        self._guard.enter(Action.ERASE, _erased_scope(scope, what, target))
        return self.plan(scope, what, target, reason=reason, keep_evidence=keep_evidence)

    def plan(
        self, scope: Scope, what: str, target: str, *, reason: str | None, keep_evidence: bool
    ) -> ErasurePlan:
        ids = self._guard.reading_ids(scope)
        if ids is None:
            raise NotFound(f"nothing is known of tenant {scope.tenant!r}")
        reason = None if reason is None else statement(reason, "reason")
        reach, place = self._reach(What(what), scope, ids, target, keep_evidence)
        return ErasurePlan(self, reach, place, reason, keep_evidence)

    def _reach(
        self, what: What, scope: Scope, ids: ScopeIds, target: str, keep_evidence: bool
    ) -> tuple[Reach, ScopeIds]:
        """What the erasure reaches, and the ids of the place that the target is in."""
        if what is What.SUBJECT:
            return self._of_subject(ids, target), ScopeIds(ids.at(()))
        if what is What.SESSION:
            place = self._place_of_session(scope, target)
            assert place.session is not None
            return self.reach_of_session(place.session), place
        if what is What.RECORD:
            return self._of_record(scope, target, keep_evidence), ScopeIds(ids.at(()))
        row = self._reader.require(scope, target)
        if row.event_id != target:
            raise NotFound(f"{target} is a record, not an event: pass it as record=")
        self._may_erase([row])
        with self._store.runner.read("catalog") as conn:
            reach = self._reach_of(what, target, _closure(conn, [row]))
        return reach, ScopeIds(ids.at(()))

    def _of_subject(self, ids: ScopeIds, name: str) -> Reach:
        subject = self._store.vault.subject_id(ids.tenant, name, create=False)
        if subject is None:
            raise NotFound(f"nobody is known as {name!r} in this tenant")
        return self.reach_of_subject(subject)

    def reach_of_subject(self, subject: str) -> Reach:
        with self._store.runner.read("catalog") as conn:
            rows = catalog.by_subject(conn, subject)
        own = tuple(sorted(self._store.vault.sessions(subject)))
        return self._reach_of(What.SUBJECT, subject, rows, sessions=own)

    def _place_of_session(self, scope: Scope, name: str) -> ScopeIds:
        if scope.session not in (None, name):
            raise InvalidInput("session= names another session than the scope")
        ids = self._store.vault.resolve(_in_session(scope, name).at(SESSION_LEVELS), create=False)
        if ids is None:
            raise NotFound(f"no session {name!r} in this scope: give the scope that it was recorded in")
        return ids

    def reach_of_session(self, session: str) -> Reach:
        with self._store.runner.read("catalog") as conn:
            rows = _closure(conn, catalog.by_session(conn, session))
        return self._reach_of(What.SESSION, session, rows, sessions=(session,))

    def _of_record(self, scope: Scope, record_id: str, keep_evidence: bool) -> Reach:
        streams = self._reader.twins(scope, record_id, Action.ERASE)
        with self._store.runner.read("catalog") as conn:
            own = [row for stream in streams for row in catalog.by_stream(conn, stream)]
            recorded = self._store.log.read_at([row.position for row in own], bodies=False)
            cited = {source for each in recorded for source in each.envelope.sources}
            evidence = catalog.find_all(conn, cited)
            rows = own if keep_evidence else [*own, *evidence]
            self._may_erase(rows)
            rows = _closure(conn, rows)
        left = tuple(row.event_id for row in evidence if not row.erased) if keep_evidence else ()
        return self._reach_of(What.RECORD, record_id, rows, evidence_left=left, twins=tuple(streams))

    def names_of(self, ids: Iterable[str]) -> tuple[str, ...]:
        """External names; an id whose name is gone stands for itself."""
        return tuple(self._store.vault.name(one) or one for one in ids)

    def _reach_of(
        self,
        what: What,
        target: str,
        rows: Iterable[CatalogRow],
        twins: tuple[str, ...] = (),
        **more: Any,
    ) -> Reach:
        """The reach of rows that still hold content, each once, in log order."""
        unique = {row.position: row for row in rows if not row.erased}
        rows = [unique[position] for position in sorted(unique)]
        sealed = {each.position for each in self._recorded(rows, bodies=False) if any(_sealed_under(each))}
        held = [row for row in rows if row.position in sealed]
        return Reach(
            what,
            target,
            tuple(row.event_id for row in held),
            tuple(dict.fromkeys((*twins, *(row.stream for row in held if row.topic in MEMORY)))),
            counts=dict(Counter(row.topic for row in held)),
            twins=twins,
            **more,
        )

    def _may_erase(self, rows: Iterable[CatalogRow]) -> None:
        """What was said elsewhere and is only cited needs its own permission; what is derived goes with its source."""
        scopes = {recorded.envelope.scope for recorded in self._recorded(rows, bodies=False)}
        for scope in scopes:
            self._guard.enter(Action.ERASE, self._store.vault.names(scope))

    # Running ---------------------------------------------------------------------------------------------------

    def work(self, reach: Reach, place: ScopeIds, keep_evidence: bool) -> Work:
        return Work(
            self._store.ids.event_id(),
            reach.what.value,
            reach.target,
            dict(place.present()),
            reach.events,
            reach.sessions,
            reach.evidence_left,
            keep_evidence,
            reach.twins,
        )

    def apply(self, work: Work, reason: str | None, progress: Progress | None) -> ErasureReceipt:
        self._store.check_open()
        with erasing(self._store.path, self._store.settings):
            self._notes.write(work)
            self._request(work, reason)
            return self.run([work], progress)[0]

    def go_on(self) -> None:
        """Go on with what was cut off, unless another process is at it."""
        with suppress(StoreInUse):
            if any(map(self._goes_on, self._notes.pending())):
                self.finish(wait=0)

    def finish(self, wait: float = WAIT_SECONDS) -> list[ErasureReceipt]:
        """Go on with every erasure that is not finished. Raises StoreInUse while another process is erasing."""
        if not self._notes.pending():
            return []
        with erasing(self._store.path, self._store.settings, wait):
            begun = self._notes.pending()
            for work in begun:
                if not self._is_requested(work):
                    self._request(work, None)
            return self.run(begun)

    def _goes_on(self, work: Work) -> bool:
        """Whether something can be done now; not so where all waits for another root key."""
        return not (work.waiting and work.root == self._store.vault.root_fingerprint())

    def run(self, begun: Sequence[Work], progress: Progress | None = None) -> list[ErasureReceipt]:
        """Do erasures from their notes on, and rewrite the files once for all. Every step may be repeated."""
        tell = progress or (lambda step: None)
        closed = [self._close(work, tell) for work in begun]
        tell("purging files")
        purged = {f"view {name}": self._store.runner.purge(name) for name in self._store.runner.names()}
        purged |= self._store.vectors.purge()
        truncated = self._store.log.checkpoint()
        tell("looking again")
        return [self._looked_at(one, purged, truncated) for one in closed]

    def _close(self, work: Work, tell: Progress) -> _Closed:
        """Destroy the keys, and take it out of every store."""
        if work.what == What.SESSION:
            self._store.vault.fence_session(self._store.vault.names(work.scope))
        tell("destroying keys")
        rows = self._rows(work)
        readable, held = self._readable(rows), self._held(rows)
        if not work.position:
            vault = self._store.vault
            root = vault.root_fingerprint() if vault.copies else ""
            work = replace(work, position=self._destroy(work, rows), root=root)
            self._notes.write(work)
        tell("cleaning views")
        self._store.runner.catch_up_all(work.position)
        rows = self._stragglers(work, rows)
        self._store.runner.catch_up_all()
        tell("cleaning vectors")
        self._store.vectors.erase()
        self._store.forget()
        tell("removing large outputs")
        removed = sum(self._store.blobs.delete(row.event_id) for row in rows if row.blob)
        return _Closed(work, rows, readable, held, removed)

    def _looked_at(self, one: _Closed, purged: Mapping[str, bool], truncated: bool) -> ErasureReceipt:
        """A second look at all stores."""
        work, rows = one.work, one.rows
        blobs = [row.event_id for row in rows if row.blob]
        stores = [
            self._log_result(rows, one.readable, truncated),
            StoreResult("blobs", len(blobs), one.removed, sum(map(self._store.blobs.exists, blobs))),
            *self._view_results(rows, one.held, purged),
            *self._key_results(work, rows),
        ]
        what, count = What(work.what), self._sealed(rows)
        receipt = ErasureReceipt(
            work.erasure, what, work.target, work.position, count, tuple(stores), work.evidence_left
        )
        self._put_away(work, receipt)
        return receipt

    def _put_away(self, work: Work, receipt: ErasureReceipt) -> None:
        """The note goes with the last thing that was left to do."""
        if not receipt.pending:
            self._notes.remove(work)
        elif work.root:
            left = [store for store in receipt.stores if store.readable or store.due]
            self._notes.write(replace(work, waiting=left == list(receipt.stores[-1:])))

    def _request(self, work: Work, reason: str | None) -> None:
        about = work.erasure, work.what, work.target, len(work.events), work.keep_evidence, reason
        self._append(work.tenant, ErasureRequested(*about))

    def _is_requested(self, work: Work) -> bool:
        after = -1
        while True:
            page = self._store.log.read(max(after, 0), _PAGE, topics=_REQUESTS, bodies=False)
            if any(each.envelope.clear["erasure"] == work.erasure for each in page.events):
                return True
            if page.position <= after:
                return False
            after = page.position

    def _rows(self, work: Work) -> list[CatalogRow]:
        """The events to close: those of the plan, and all that came since and rests on them or belongs there."""
        events = set(work.events)
        if work.what == What.SUBJECT:
            events |= set(self.reach_of_subject(work.target).events)
        elif work.what == What.SESSION:
            events |= set(self.reach_of_session(work.target).events)
        with self._store.runner.read("catalog") as conn:
            rows = catalog.find_all(conn, events)
            if work.what == What.RECORD:
                rows += [row for stream in work.twins for row in catalog.by_stream(conn, stream)]
            found = {row.position: row for row in _closure(conn, rows) if _is_due(row, work, events)}
        return [found[position] for position in sorted(found)]

    def _destroy(self, work: Work, rows: list[CatalogRow]) -> int:
        """Keys first, then the events that tell every view; returns the position of the last one."""
        if work.what == What.SUBJECT:
            before = microseconds(self._store.clock.now())
            self._store.vault.destroy_subject(work.target, before_us=before)
            return self._append(work.tenant, SubjectErased(work.erasure, work.target, work.sessions))
        self._store.vault.destroy_leaves(self._leaves(rows))
        return self._announce(work, [row.event_id for row in rows])

    def _announce(self, work: Work, events: list[str]) -> int:
        session = work.target if work.what == What.SESSION else None
        chunks = [tuple(events[at : at + CHUNK]) for at in range(0, len(events), CHUNK)] or [()]
        position = 0
        for number, chunk in enumerate(chunks, 1):
            last = number == len(chunks)
            position = self._append(work.tenant, ContentErased(work.erasure, chunk, session, last))
        return position

    def _stragglers(self, work: Work, rows: list[CatalogRow]) -> list[CatalogRow]:
        """Close what was appended between the look and the erasure event; what comes behind that is refused."""
        known = {row.event_id for row in rows}
        late = [row for row in self._rows(work) if row.event_id not in known]
        if late and work.what != What.SUBJECT:
            self._store.vault.destroy_leaves(self._leaves(late))
            self._announce(work, [row.event_id for row in late])
        return rows + late

    def _leaves(self, rows: Iterable[CatalogRow]) -> dict[str, list[int]]:
        leaves: dict[str, list[int]] = {}
        for recorded in self._recorded(rows, bodies=False):
            for leaf, subjects in _sealed_under(recorded):
                for subject in subjects:
                    leaves.setdefault(subject, []).append(leaf)
        return leaves

    def _recorded(self, rows: Iterable[CatalogRow], *, bodies: bool) -> Iterator[Recorded]:
        positions = [row.position for row in rows]
        for at in range(0, len(positions), _PAGE):
            yield from self._store.log.read_at(positions[at : at + _PAGE], bodies=bodies)

    def _append(self, tenant: ScopeIds, event: Event) -> int:
        draft = self._guard.note(event, tenant)
        return self._store.log.append([draft])[0].position

    def _sealed(self, rows: Iterable[CatalogRow]) -> int:
        """How many of them have content: what is clear only, as that a session was closed, is nothing to erase."""
        return sum(any(_sealed_under(each)) for each in self._recorded(rows, bodies=False))

    # The second look -------------------------------------------------------------------------------------------

    def _readable(self, rows: list[CatalogRow]) -> int:
        """How many of the events the log still opens."""
        opened = self._recorded(rows, bodies=True)
        return sum(bool(each.envelope.parts) and each.event is not FORGOTTEN for each in opened)

    def _log_result(self, rows: list[CatalogRow], before: int, truncated: bool) -> StoreResult:
        still = self._readable(rows)
        remark = "" if truncated else "write-ahead log still in use"
        return StoreResult("log", before, before - still, still, remark)

    def _key_results(self, work: Work, rows: list[CatalogRow]) -> Iterator[StoreResult]:
        """What the key store's server keeps of destroyed keys: sealed, and due as long as their root key is in use."""
        if not work.root:
            return
        count = sum(len(list(_sealed_under(each))) for each in self._recorded(rows, bodies=False))
        due = work.root == self._store.vault.root_fingerprint()
        remark = f"wrapped copies are in {self._store.vault.copies} until the root key changes: `mnemolog keys rotate`"
        yield StoreResult("keys", count, count, 0, remark if due else "", due)

    def _view_results(
        self, rows: list[CatalogRow], before: Mapping[str, int], purged: Mapping[str, bool]
    ) -> Iterator[StoreResult]:
        for name, still in self._held(rows).items():
            due = not purged.get(name, True)
            remark = "physical purge is due: a reader was in the way" if due else ""
            found = max(before.get(name, 0), still)
            yield StoreResult(name, found, found - still, still, remark, due)

    def _held(self, rows: list[CatalogRow]) -> dict[str, int]:
        """Store → how many of the events it holds something of; of vectors, how many."""
        ids = [row.event_id for row in rows]
        found = {}
        for name in self._store.runner.names():
            with self._store.runner.read(name) as conn:
                found[f"view {name}"] = HOLDING[name](conn, ids)
        return found | self._store.vectors.holding([row.position for row in rows])


def _closure(conn: Connection, rows: Iterable[CatalogRow]) -> list[CatalogRow]:
    """The rows, all that derives from them, and the rest of every record that is left without a statement."""
    found = {row.position: row for row in rows}
    while True:
        size = len(found)
        ids = [row.event_id for row in found.values()]
        found |= {row.position: row for row in catalog.derived_from(conn, ids)}
        for stream in {row.stream for row in found.values() if row.topic in MEMORY}:
            own = catalog.by_stream(conn, stream)
            stated = [row for row in own if row.topic in STATEMENTS and not row.erased]
            if all(row.position in found for row in stated):
                found |= {row.position: row for row in own}
        if len(found) == size:
            return [found[position] for position in sorted(found)]


def _is_due(row: CatalogRow, work: Work, planned: set[str]) -> bool:
    """Whether an erasure closes this event: it was planned, or is still open and came before its end."""
    if row.event_id in planned:
        return True
    return not row.erased and (not work.position or row.position < work.position)


def _erased_scope(scope: Scope, what: str, target: object) -> Scope:
    """Where the principal must be allowed to erase: for a person, everything of that person in the tenant."""
    if not isinstance(scope, Scope):
        raise InvalidInput(f"scope must be a mnemolog.Scope, not {type(scope).__name__}")
    name = short(target, what)
    if name == ANY:
        raise InvalidInput("an erasure needs one target: ANY is for reads")
    return Scope(scope.tenant, user=name) if what == What.SUBJECT else scope


def _sealed_under(recorded: Recorded) -> Iterator[tuple[int, Iterable[str]]]:
    """Leaf and subjects of each sealed part of an event, its blob included."""
    for part in recorded.envelope.parts:
        yield part.leaf, part.subjects
    blob = recorded.envelope.clear.get("blob")
    if blob is not None:
        yield blob["leaf"], blob["subjects"]


def _in_session(scope: Scope, name: str) -> Scope:
    return Scope.of({**dict(scope.present()), "session": name})

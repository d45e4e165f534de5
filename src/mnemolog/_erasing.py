"""Erasure: plan what it reaches, destroy the keys, tell the log, clean every store, and look again.

A note in the data directory holds the ids of an erasure while it runs, so that one that a crash interrupted is
finished when the memory is opened next.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._writing import Writer
from mnemolog.domain.erasure import CHUNK, ErasureReceipt, Reach, StoreResult, What
from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.domain.events import (
    FORGOTTEN,
    MEMORY,
    SEALED_FIELDS,
    ContentErased,
    ErasureRequested,
    Event,
    Recorded,
    SubjectErased,
)
from mnemolog.domain.ingress import microseconds, statement
from mnemolog.domain.principal import Action
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.projections import catalog
from mnemolog.projections.catalog import CatalogRow
from mnemolog.projections.residue import HOLDING

NOTES_FOLDER: Final = "erasures"
_PAGE: Final = 500
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Work:
    """One erasure as its note keeps it: ids only. scope: ids that the erasure events belong to."""

    erasure: str
    what: str
    target: str
    tenant: str
    events: tuple[str, ...]
    sessions: tuple[str, ...] = ()
    evidence_left: tuple[str, ...] = ()


class ErasurePlan:
    """What an erasure would reach. Nothing has happened yet; `apply` does it."""

    def __init__(self, eraser: Eraser, reach: Reach, scope: Scope, tenant: ScopeIds, about: dict[str, Any]):
        self._eraser, self.reach, self._scope, self._tenant, self._about = (
            eraser,
            reach,
            scope,
            tenant,
            about,
        )

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
    def evidence_left(self) -> tuple[str, ...]:
        """Events that a record cites and that would stay."""
        return self.reach.evidence_left

    def apply(self, progress: Progress | None = None) -> ErasureReceipt:
        """Erase. Returns what was destroyed and removed, where, and whether a second look found anything left.

        progress: called with the name of each step as it begins.
        """
        return self._eraser.apply(self.reach, self._scope, self._tenant, self._about, progress)


class Eraser:
    """Plans and runs erasures for one principal."""

    def __init__(self, guard: Guard, writer: Writer, reader: Reader) -> None:
        self._guard, self._writer, self._reader = guard, writer, reader
        self._store = guard.store

    # Planning --------------------------------------------------------------------------------------------------

    def plan(
        self, scope: Scope, what: str, target: str, *, reason: str | None, keep_evidence: bool
    ) -> ErasurePlan:
        ids = self._guard.reading_ids(scope)
        if ids is None:
            raise NotFound(f"nothing is known of tenant {scope.tenant!r}")
        reach = self._reach(What(what), scope, ids, target, keep_evidence)
        about = {
            "reason": None if reason is None else statement(reason, "reason"),
            "keep_evidence": keep_evidence,
        }
        return ErasurePlan(self, reach, scope, ScopeIds(ids.at(())), about)

    def _reach(self, what: What, scope: Scope, ids: ScopeIds, target: str, keep_evidence: bool) -> Reach:
        if what is What.SUBJECT:
            return self._of_subject(scope, ids, target)
        if what is What.SESSION:
            return self._of_session(scope, target)
        if what is What.RECORD:
            return self._of_record(scope, target, keep_evidence)
        row = self._reader.require(scope, target)
        self._may_erase(row)
        with self._store.runner.read("catalog") as conn:
            return _reach_of(what, target, [row, *catalog.derived_from(conn, [target])])

    def _of_subject(self, scope: Scope, ids: ScopeIds, name: str) -> Reach:
        subject = self._store.vault.subject_id(ids.tenant, name, create=False)
        if subject is None:
            raise NotFound(f"nobody is known as {name!r} in this tenant")
        return self.reach_of_subject(subject)

    def reach_of_subject(self, subject: str) -> Reach:
        with self._store.runner.read("catalog") as conn:
            rows = catalog.by_subject(conn, subject)
        sessions = {row.session for row in rows if row.session} | set(self._store.vault.sessions(subject))
        own = set(self._store.vault.sessions(subject))
        return _reach_of(What.SUBJECT, subject, rows, sessions=tuple(sorted(own or sessions)))

    def _of_session(self, scope: Scope, name: str) -> Reach:
        if scope.session not in (None, name):
            raise InvalidInput("session= names another session than the scope")
        ids = self._store.vault.resolve(_in_session(scope, name), create=False)
        if ids is None or ids.session is None:
            raise NotFound(f"no session {name!r} in this scope: give the scope that it was recorded in")
        return self.reach_of_session(ids.session)

    def reach_of_session(self, session: str) -> Reach:
        with self._store.runner.read("catalog") as conn:
            rows = catalog.by_session(conn, session)
            derived = catalog.derived_from(conn, [row.event_id for row in rows])
        return _reach_of(What.SESSION, session, [*rows, *derived], sessions=(session,))

    def _of_record(self, scope: Scope, record_id: str, keep_evidence: bool) -> Reach:
        streams = self._reader.twins(scope, record_id)
        with self._store.runner.read("catalog") as conn:
            own = [row for stream in streams for row in catalog.by_stream(conn, stream)]
            for row in own:
                self._may_erase(row)
            recorded = self._store.log.read_at([row.position for row in own], bodies=False)
            cited = {source for each in recorded for source in each.envelope.sources}
            evidence = catalog.find_all(conn, cited)
            rows = own if keep_evidence else [*own, *evidence]
            derived = catalog.derived_from(conn, [row.event_id for row in rows])
        left = tuple(row.event_id for row in evidence if not row.erased) if keep_evidence else ()
        return _reach_of(What.RECORD, record_id, [*rows, *derived], evidence_left=left)

    def _may_erase(self, row: CatalogRow) -> None:
        envelope = self._store.log.read_at([row.position], bodies=False)[0].envelope
        self._guard.enter(Action.ERASE, self._store.vault.names(ScopeIds(envelope.scope)))

    # Running ---------------------------------------------------------------------------------------------------

    def apply(
        self,
        reach: Reach,
        scope: Scope,
        tenant: ScopeIds,
        about: dict[str, Any],
        progress: Progress | None,
    ) -> ErasureReceipt:
        self._store.check_open()
        work = Work(
            self._store.ids.event_id(),
            reach.what.value,
            reach.target,
            tenant.tenant,
            reach.events,
            reach.sessions,
            reach.evidence_left,
        )
        note = _write_note(self._store.path, work)
        self._append(
            tenant,
            ErasureRequested(
                work.erasure,
                work.what,
                work.target,
                len(work.events),
                about["keep_evidence"],
                about["reason"],
            ),
        )
        if reach.what is What.SESSION:
            self._store.vault.fence_session(_in_session(scope, self._session_name(scope, reach.target)))
        return self.run(work, note, progress)

    def run(self, work: Work, note: Path, progress: Progress | None = None) -> ErasureReceipt:
        """Do an erasure from its note on. Every step may be repeated."""
        tell = progress or (lambda step: None)
        tenant = ScopeIds(Scope(work.tenant))
        tell("destroying keys")
        rows = self._rows(work)
        held = self._held(rows)
        position = self._destroy(work, rows, tenant)
        tell("cleaning views")
        self._store.runner.catch_up_all(position)
        rows = self._stragglers(work, rows, tenant)
        self._store.runner.catch_up_all()
        tell("removing large outputs")
        blobs = [row.event_id for row in rows if row.blob]
        removed = sum(self._store.blobs.delete(event_id) for event_id in blobs)
        tell("purging files")
        purged = {name: self._store.runner.purge(name) for name in self._store.runner.names()}
        truncated = self._store.log.checkpoint()
        tell("looking again")
        stores = self._verify(rows, blobs, removed, held, purged, truncated)
        receipt = ErasureReceipt(
            work.erasure, What(work.what), work.target, position, len(rows), stores, work.evidence_left
        )
        note.unlink(missing_ok=True)
        return receipt

    def _rows(self, work: Work) -> list[CatalogRow]:
        """The events to close: those of the plan, and for a person or a session all that came since."""
        if work.what == What.SUBJECT:
            events = set(self.reach_of_subject(work.target).events) | set(work.events)
        elif work.what == What.SESSION:
            events = set(self.reach_of_session(work.target).events) | set(work.events)
        else:
            events = set(work.events)
        with self._store.runner.read("catalog") as conn:
            return catalog.find_all(conn, events)

    def _destroy(self, work: Work, rows: list[CatalogRow], tenant: ScopeIds) -> int:
        """Keys first, then the events that tell every view; returns the position of the last one."""
        if work.what == What.SUBJECT:
            before = microseconds(self._store.clock.now())
            self._store.vault.destroy_subject(work.target, before_us=before)
            return self._append(tenant, SubjectErased(work.erasure, work.target, work.sessions))
        self._store.vault.destroy_leaves(self._leaves(rows))
        session = work.target if work.what == What.SESSION else None
        return self._announce(work, [row.event_id for row in rows], tenant, session)

    def _announce(self, work: Work, events: list[str], tenant: ScopeIds, session: str | None) -> int:
        chunks = [tuple(events[at : at + CHUNK]) for at in range(0, len(events), CHUNK)] or [()]
        position = 0
        for number, chunk in enumerate(chunks, 1):
            last = number == len(chunks)
            position = self._append(tenant, ContentErased(work.erasure, chunk, session, last))
        return position

    def _stragglers(self, work: Work, rows: list[CatalogRow], tenant: ScopeIds) -> list[CatalogRow]:
        """Close what was appended to a session between the look and the fence; nothing can follow now."""
        if work.what != What.SESSION:
            return rows
        known = {row.event_id for row in rows}
        late = [row for row in self._rows(work) if row.event_id not in known]
        if late:
            self._store.vault.destroy_leaves(self._leaves(late))
            self._announce(work, [row.event_id for row in late], tenant, work.target)
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

    def _session_name(self, scope: Scope, session: str) -> str:
        return scope.session or self._store.vault.name(session) or session

    # The second look -------------------------------------------------------------------------------------------

    def _verify(
        self,
        rows: list[CatalogRow],
        blobs: list[str],
        removed: int,
        held: Mapping[str, int],
        purged: Mapping[str, bool],
        truncated: bool,
    ) -> tuple[StoreResult, ...]:
        sealed = [each for each in self._recorded(rows, bodies=True) if each.envelope.parts]
        readable = sum(each.event is not FORGOTTEN for each in sealed)
        log = StoreResult(
            "log",
            len(sealed),
            len(sealed) - readable,
            readable,
            "" if truncated else "write-ahead log still in use",
        )
        left = sum(self._store.blobs.exists(event_id) for event_id in blobs)
        stores = [log, StoreResult("blobs", len(blobs), removed, left)]
        for name, still in self._held(rows).items():
            remark = "" if purged[name] else "physical purge is due: a reader was in the way"
            stores.append(StoreResult(f"view {name}", held[name], held[name] - still, still, remark))
        return tuple(stores)

    def _held(self, rows: list[CatalogRow]) -> dict[str, int]:
        """How many of the events each view holds content of."""
        ids = [row.event_id for row in rows]
        found = {}
        for name in self._store.runner.names():
            with self._store.runner.read(name) as conn:
                found[name] = HOLDING[name](conn, ids)
        return found


def resume_unfinished(eraser: Eraser) -> list[ErasureReceipt]:
    """Finish the erasures that a crash interrupted."""
    folder = eraser._store.path / NOTES_FOLDER
    notes = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return [eraser.run(_read_note(note), note) for note in notes]


def _reach_of(
    what: What,
    target: str,
    rows: Iterable[CatalogRow],
    *,
    sessions: tuple[str, ...] = (),
    evidence_left: tuple[str, ...] = (),
) -> Reach:
    """The reach of rows that still hold content, each once, in log order."""
    unique = {row.position: row for row in rows if not row.erased and SEALED_FIELDS.get(row.topic, True)}
    ordered = [unique[position] for position in sorted(unique)]
    return Reach(
        what,
        target,
        tuple(row.event_id for row in ordered),
        tuple(dict.fromkeys(row.stream for row in ordered if row.topic in MEMORY)),
        sessions,
        dict(Counter(row.topic for row in ordered)),
        evidence_left,
    )


def _sealed_under(recorded: Recorded) -> Iterator[tuple[int, Iterable[str]]]:
    """Leaf and subjects of each sealed part of an event, its blob included."""
    for part in recorded.envelope.parts:
        yield part.leaf, part.subjects
    blob = recorded.envelope.clear.get("blob")
    if blob is not None:
        yield blob["leaf"], blob["subjects"]


def _in_session(scope: Scope, name: str) -> Scope:
    return Scope.of({**dict(scope.present()), "session": name})


def _write_note(path: Path, work: Work) -> Path:
    folder = path / NOTES_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    note = folder / f"{work.erasure}.json"
    half = note.with_suffix(".half")
    with half.open("wb") as file:
        file.write(orjson.dumps(asdict(work)))
        file.flush()
        os.fsync(file.fileno())
    half.rename(note)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return note


def _read_note(note: Path) -> Work:
    values: dict[str, Any] = orjson.loads(note.read_bytes())
    return Work(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )

"""`Memory.operations`: what operators see and do with a whole store."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from mnemolog._auditing import Auditor, ContextAudit, Exposure
from mnemolog._erasing import Eraser
from mnemolog._guard import Guard
from mnemolog._notes import Notes, Work, what_next
from mnemolog._orphans import remove_orphans
from mnemolog._stating import said
from mnemolog.consumers.hearing import SPOKEN
from mnemolog.domain import ingress
from mnemolog.domain.erasure import ErasureReceipt
from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.domain.events import (
    STATEMENTS,
    Draft,
    Event,
    ParkedEventDismissed,
    ParkedEventReplayed,
    PolicyAdopted,
    Receipt,
)
from mnemolog.domain.gate.admission import Reason
from mnemolog.domain.gate.wording import STANDINGS
from mnemolog.domain.policy import Policy
from mnemolog.domain.principal import Action
from mnemolog.domain.scope import Scope
from mnemolog.infra.adopted import adopted
from mnemolog.infra.compose import BLOBS_FOLDER, KEYS_FILE, WORKER
from mnemolog.infra.vector_folder import LOG_FILE, VECTORS_FILE
from mnemolog.projections import access, catalog, gate_reads
from mnemolog.projections.supervision import Trouble
from mnemolog.results import GateStatus, Health, Parked, ProjectionStatus, Status

Progress = Callable[[int, int], None]
Stages = Callable[[str, int, int], None]
_LONG = 3600.0
"""Seconds that a view may take to be folded to the head of the log."""
_WORTH_A_PROCESS = 5_000
"""Events from which a rebuild gains more than another process costs to start,"""
_WORTH_ALL = 100_000
"""and from which this process leaves all of it to others, so that its readers need not wait."""
_MOST = 1_000_000
"""Events of a batch, or processes, that can be asked for."""
_LOCAL_BLOBS = (
    "large outputs are in this directory alone: set MNEMOLOG_BLOBS_URL before another machine opens this log"
)


class Operations:
    """The operator's face; it takes a principal that may inspect, or operate, the whole store."""

    def __init__(self, guard: Guard, eraser: Eraser) -> None:
        self._guard, self._store, self._eraser = guard, guard.store, eraser
        self._auditor = Auditor(guard)

    def partitions(self) -> dict[str, dict[int, int]]:
        """View → how far each partition is; of those that workers share."""
        self._guard.enter_store(Action.INSPECT)
        lags = self._store.runner.lag()
        return {lag.projection: dict(lag.positions) for lag in lags if len(lag.positions) > 1}

    def projections(self) -> list[ProjectionStatus]:
        """How far every view is behind the log."""
        self._guard.enter_store(Action.INSPECT)
        return [
            ProjectionStatus(
                lag.projection,
                lag.version,
                lag.position,
                lag.head,
                lag.lag,
                lag.failed,
                lag.waiting,
                str(lag.condition),
            )
            for lag in self._store.runner.lag()
        ]

    def vectors(self) -> list[ProjectionStatus]:
        """How far the vectors are behind the log, and the index, counted in changes, behind the vectors.

        Empty where there are none (yet): recall then goes by words alone.
        """
        self._guard.enter_store(Action.INSPECT)
        return [
            ProjectionStatus(
                lag.name, lag.version, lag.position, lag.head, lag.head - lag.position, 0, 0, lag.condition
            )
            for lag in self._store.vectors.lags()
        ]

    def workers(self) -> list[ProjectionStatus]:
        """How far the workers of the gate are: the search for what must be hidden, and each extractor."""
        self._guard.enter_store(Action.INSPECT)
        head = self._store.log.head()
        return [
            ProjectionStatus(
                name,
                version,
                position,
                head,
                head - position,
                0,
                0,
                "running" if position >= head else "behind",
            )
            for name, version, position in self._store.gate.lags()
        ]

    def catch_up(self, timeout: float = 60.0) -> int:
        """Advance every view to the head of the log; returns that position. Vectors are `embed`'s business."""
        self._guard.enter_store(Action.OPERATE)
        return self._store.runner.catch_up_all(timeout=ingress.seconds(timeout, "timeout"))

    def run_workers(self, progress: Stages = lambda stage, at, of: None) -> int:
        """Do, in this thread and to the end, all that threads in the background do; returns the head of the log then.

        That is: views, the search for what must be hidden and for statements, vectors, summaries. For programs that
        are too short for threads, as the command line. progress: called with (stage, done, in all) now and then.
        """
        self._guard.enter_store(Action.OPERATE)
        store, names = self._store, self._store.runner.names()
        for done, name in enumerate(names, 1):
            store.runner.catch_up(name, timeout=_LONG)
            progress("views", done, len(names))
        store.gate.catch_up(partial(progress, "statements"))
        store.vectors.catch_up(progress=partial(progress, "vectors"))
        written = 0
        while new := store.summarising.run_once():
            written += new
            progress("summaries", written, written)
        store.gate.catch_up()
        store.runner.catch_up_all(timeout=_LONG)
        for name in names:
            store.runner.push(name)
        return store.vectors.catch_up()

    def behind(self) -> tuple[str, ...]:
        """What threads in the background have not done yet: statements, vectors; `run_workers` does it."""
        self._guard.enter_store(Action.INSPECT)
        store = self._store
        if not store.log.head():
            return ()
        reached = {"statements": min(at for *_, at in store.gate.lags()), "vectors": store.vectors.position()}
        due = {"statements": SPOKEN, "vectors": SPOKEN | STATEMENTS}
        read = partial(store.log.read, limit=1, bodies=False)
        return tuple(name for name, at in reached.items() if read(at, topics=due[name]).events)

    def embed(self, timeout: float | None = None, *, progress: Progress = lambda at, of: None) -> int:
        """Embed, in this thread, what has no vectors yet, and index them; how far the log is embedded then.

        Some hundred texts a second. Needed where nothing runs in the background. timeout: seconds after which no
        further batch is begun.
        """
        self._guard.enter_store(Action.OPERATE)
        return self._store.vectors.catch_up(
            None if timeout is None else ingress.seconds(timeout, "timeout"), progress
        )

    def extract(self, *, progress: Progress = lambda at, of: None) -> int:
        """Look, in this thread, at what was said since the last look: for statements, and for what must be hidden.

        Needed where nothing runs in the background. Returns how far everything was looked at. Raises StoreUnavailable
        where an extractor cannot tell just now.
        """
        self._guard.enter_store(Action.OPERATE)
        return self._store.gate.catch_up(progress)

    def rebuild(
        self,
        name: str,
        *,
        batch_size: int | None = None,
        progress: Progress | None = None,
        force: bool = False,
    ) -> None:
        """Fold a view anew from position 0 beside the live one, then switch readers to it.

        Raises RebuildRefused, and leaves the live view, where the new one lacks more events; force: not so.
        "index" is filled anew from the stored vectors; nothing is embedded again.
        progress: called with (events done, events in all) now and then.
        """
        self._guard.enter_store(Action.OPERATE)
        if ingress.short(name, "name") == "index":
            self._store.vectors.rebuild_index()
            return
        self._store.runner.rebuild(name, _a_count(batch_size, "batch_size"), progress, force=force)

    def rebuild_all(
        self,
        names: Sequence[str] | None = None,
        *,
        processes: int | None = None,
        batch_size: int | None = None,
        progress: Progress | None = None,
        force: bool = False,
    ) -> None:
        """Rebuild several views (default: all) at once, in processes of their own.

        processes: default one per core for a long log, and none for a short one, which this process rebuilds itself;
        between the two, this process is one of them.
        progress: called with (events folded, events to fold in all views) now and then. force: as of `rebuild`.
        """
        self._guard.enter_store(Action.OPERATE)
        store = self._store
        processes, batch_size = _a_count(processes, "processes", 0), _a_count(batch_size, "batch_size")
        wanted = list(dict.fromkeys(ingress.texts(names or store.runner.names(), "names")))
        if unknown := set(wanted) - set(store.runner.names()):
            raise InvalidInput(f"no projection {', '.join(sorted(unknown))}: see `projections()`")
        head = store.log.head()
        shares = processes is None and head < _WORTH_ALL
        processes = _processes_for(head, shares) if processes is None else processes
        folded = dict.fromkeys(wanted, 0)

        def tell(name: str, done: int, of: int) -> None:
            folded[name] = done
            if progress is not None:
                progress(min(sum(folded.values()), head * len(wanted)), head * len(wanted))

        def here(name: str) -> None:
            store.runner.rebuild(name, batch_size, partial(tell, name), force=force)

        if processes:
            from mnemolog.infra.rebuilding import rebuild_in_processes

            sizes = {view.file.name: view.bytes for view in store.views.files() if view.live}
            wanted.sort(key=lambda name: -sizes.get(name, 0))
            count, own = min(processes, len(wanted)), here if shares else None
            place = store.path, store.settings
            rebuild_in_processes(*place, wanted, count, batch_size, tell, own, force=force)
        else:
            for name in wanted:
                here(name)

    def dump_hash(self, name: str) -> str:
        """A hash of a view's ordered logical content, for comparing two builds."""
        self._guard.enter_store(Action.OPERATE)
        return self._store.runner.dump_hash(ingress.short(name, "name"))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold all work in the background; reads still advance the views that they need."""
        self._guard.enter_store(Action.OPERATE)
        try:
            for one in self._store.backgrounds():
                one.hold()
            yield
        finally:
            for one in self._store.backgrounds():
                one.resume()

    def parked(self, name: str | None = None) -> list[Parked]:
        """Events that a projection could not fold, and those that wait behind them."""
        self._guard.enter_store(Action.INSPECT)
        names = self._store.runner.names() if name is None else [ingress.short(name, "name")]
        return [
            Parked(each, row.position, row.event_id, row.owner, row.reason, str(row.state), row.at)
            for each in names
            for row in self._store.runner.parked(each)
        ]

    def replay_parked(self, name: str, position: int) -> Receipt:
        """Try a parked event again; the request is an event."""
        self._guard.enter_store(Action.OPERATE)
        row = self._parked_at(name, position)
        return self._decide(position, ParkedEventReplayed(name, row.event_id, position))

    def dismiss_parked(self, name: str, position: int, *, reason: str | None = None) -> Receipt:
        """Leave a parked event out of a view for good; the decision is an event that rebuilds honour."""
        self._guard.enter_store(Action.OPERATE)
        row = self._parked_at(name, position)
        return self._decide(position, ParkedEventDismissed(name, row.event_id, position, said(reason)))

    def policy(self) -> Policy:
        """What decides about contexts and summaries now."""
        self._guard.enter_store(Action.INSPECT)
        return self._store.policy

    def policy_document(self) -> str | None:
        """The document that was adopted last, as it was given; None while the default decides."""
        self._guard.enter_store(Action.INSPECT)
        found = adopted(self._store.log)
        return None if found is None else found.event.document

    def adopt_policy(self, document: str | Path, *, progress: Progress | None = None) -> Receipt:
        """Decide by this document (YAML text, or the path of a file) from here on. Raises InvalidInput with lines.

        The document is an event of the store's own; the one that decides already adds none, and its receipt is a
        duplicate's. Views that it decides about are folded anew from position 0 beside the live ones, and readers are
        switched when it returns.
        """
        self._guard.enter_store(Action.OPERATE)
        from mnemolog.infra.policies import parse_policy, read_policy

        text = read_policy(document) if isinstance(document, Path) else ingress.carried(document, "document")
        policy = parse_policy(text)
        receipt = self._adopted_before(text, policy) or self._adopt(text, policy)
        self._store.refold(progress)  # also what an adoption that was cut off has left
        return receipt

    def _adopted_before(self, text: str, policy: Policy) -> Receipt | None:
        """The receipt of the adoption that decides now, if it was of this document."""
        found = adopted(self._store.log)
        if found is None or found.event.document != text or policy.hash != self._store.policy.hash:
            return None
        envelope = self._store.log.read_at([found.position], bodies=False)[0].envelope
        return Receipt(envelope.id, found.position, envelope.stream, envelope.version, duplicate=True)

    def _adopt(self, text: str, policy: Policy) -> Receipt:
        home = self._store.vault.resolve(Scope(WORKER), create=True)
        assert home is not None
        event = PolicyAdopted(text, policy.hash, self._store.policy.hash)
        receipt = self._store.log.append([self._guard.note(event, home)])[0]
        self._store.adopt(policy)
        return receipt

    def audit_record(self, id: str) -> list[Exposure]:
        """Every context and read that a record or an event was part of, oldest first; for who may inspect.

        Only scopes that the principal may see are told of. Raises NotFound.
        """
        return self._auditor.record(id)

    def audit_context(self, event_id: str) -> ContextAudit:
        """What a context held and left out, by the id of its receipt. Raises NotFound."""
        return self._auditor.context(event_id)

    def finish_erasures(self) -> list[ErasureReceipt]:
        """Go on with the erasures that are not finished, as when a reader kept a file from being purged.

        Where several machines share the blobs, those are removed, too, that a crash left without their event a day ago.
        """
        self._guard.enter_store(Action.OPERATE)
        finished = self._eraser.finish()
        if self._store.blobs.shared:
            remove_orphans(self._store)
        return finished

    def rotate_root_key(self, new: bytes | None = None) -> None:
        """Put every key under a new root key (32 bytes; made when not given) and forget the old one.

        That closes the copies of keys that an erasure could not reach, so the erasures that waited for it are finished.
        """
        self._guard.enter_store(Action.OPERATE)
        self._store.vault.rotate_root(new)
        self._eraser.finish()

    def verify_log(self, progress: Progress | None = None) -> int:
        """Recompute every leaf hash; returns how many events were checked. Raises CorruptStore."""
        self._guard.enter_store(Action.INSPECT)
        return self._store.log.verify(progress)

    def status(self) -> Status:
        """The data directory at a glance."""
        self._guard.enter_store(Action.INSPECT)
        store = self._store
        keys, log = store.vault.status(), store.log.stats()
        with store.runner.read("catalog") as conn:
            counts = catalog.count_by_topic(conn)
        with store.runner.read("access") as conn:
            reads = access.count_by_action(conn)
        projections, gate = self.projections(), self._gate()
        pending = Notes(store.path, store.settings).pending()
        return Status(
            path=str(store.path),
            head=store.log.head(),
            projections=tuple(projections),
            vectors=tuple(self.vectors()),
            counts=counts,
            keys={name: value for name, value in asdict(keys).items() if name != "warnings"},
            warnings=(*keys.warnings, *self._warnings(projections, pending), *_of_the_gate(gate)),
            pending_erasures=tuple(work.erasure for work in pending),
            refused_late=keys.refusals + log["refused_late"] + log["refused_erased"],
            refused_access=counts.get("AccessRefused", 0),
            sizes=self._sizes(),
            workers=tuple(self.workers()),
            gate=gate,
            reads=reads,
            crashes={name: trouble.crashes for name, trouble in self._workers()},
            leads=store.leadership.leads,
            leader=store.leadership.leader(),
        )

    def _warnings(self, projections: Sequence[ProjectionStatus], pending: Sequence[Work]) -> Iterator[str]:
        """What an operator should see to, besides the keys."""
        settings = self._store.settings
        for one in projections:
            if one.parked:
                yield f"{one.name} has parked events: see `projections parked`"
        yield from (_trouble(name, each) for name, each in self._workers() if each.crashes)
        if settings.database_url is not None and settings.blobs_url is None:
            yield _LOCAL_BLOBS
        yield from (f"erasure {work.erasure} is not finished: {what_next(work)}" for work in pending)

    def health(self) -> Health:
        """Whether the work in the background goes on; cheap enough to be asked every second."""
        self._guard.enter_store(Action.INSPECT)
        store = self._store
        running = all(one.running for one in store.backgrounds())
        return Health(store.log.head(), store.leadership.leads, running, dict(self._workers()))

    def _sizes(self) -> dict[str, int]:
        store, files = self._store, {"log": LOG_FILE, "keys": KEYS_FILE, "vectors": VECTORS_FILE}
        paths = {name: store.path / file for name, file in files.items()}
        sizes = {name: path.stat().st_size for name, path in paths.items() if path.exists()}
        sizes |= {f"view {view.file.name}": view.bytes for view in store.views.files() if view.live}
        if not store.blobs.shared:
            sizes[BLOBS_FOLDER] = store.blobs.size()
        return sizes

    def _gate(self) -> GateStatus:
        """What the gate decided, and what it did not get to decide on."""
        store = self._store
        with store.runner.read("curated") as conn:
            counts = gate_reads.counts(conn, store.curated)
            people = gate_reads.acts_of_people(conn, store.curated)
            since = gate_reads.oldest_waiting(conn, store.curated)
        candidates, reasons = Counter[str](), dict[str, Counter[str]]()
        for decision, why, count in counts:
            status = STANDINGS[decision]
            candidates[status] += count
            for reason in why:
                reasons.setdefault(status, Counter())[reason] += count
        passed = store.clock.now() - datetime.fromisoformat(since) if since else timedelta()
        return GateStatus(
            candidates, reasons, people, since, passed.total_seconds(), dict(store.gate.refused())
        )

    def _workers(self) -> Iterator[tuple[str, Trouble]]:
        """The background work of this process, and what went wrong in it."""
        yield from self._store.runner.health().troubles.items()
        yield from self._store.vectors.troubles().items()
        yield "summaries' worker", self._store.summarising.background.trouble
        yield from self._store.gate.troubles()
        yield "the reranker", self._store.reranking.trouble
        yield "the look at other processes", self._store.leadership.trouble

    def _parked_at(self, name: str, position: int) -> Parked:
        if name not in self._store.runner.names():
            raise InvalidInput(f"no projection {name!r}: use one of {', '.join(self._store.runner.names())}")
        for row in self.parked(name):
            if row.position == position:
                return row
        raise NotFound(
            f"nothing is parked at position {position} of {name}: `projections parked` lists what is"
        )

    def _decide(self, position: int, event: Event) -> Receipt:
        """Append a decision in the tenant of the event that it is about."""
        envelope = self._store.log.read_at([position], bodies=False)[0].envelope
        draft: Draft = self._guard.note(event, envelope.scope)
        return self._store.log.append([draft])[0]


def _trouble(name: str, trouble: Trouble) -> str:
    """Where background work crashed since it was started, and whether it goes on."""
    now = f"trying again in {trouble.backoff:.1f} s" if trouble.backoff else "working again"
    return f"{name}: {trouble.crashes} crashes, the last {trouble.last_error}; {now}"


def _of_the_gate(gate: GateStatus) -> Iterator[str]:
    """What waits for a person, and what came far beyond the usual rate."""
    bursts = sum(reasons.get(Reason.BURST.value, 0) for reasons in gate.reasons.values())
    if gate.waiting:
        yield f"{gate.waiting} candidates wait for a person: see `review list`"
    if bursts:
        yield f"{bursts} candidates came in bursts of one origin and are held: see `review list`"


def _a_count(value: int | None, what: str, least: int = 1) -> int | None:
    return None if value is None else ingress.whole(value, what, least, _MOST)


def _processes_for(events: int, shares: bool) -> int:
    """How many rebuild views besides this one, which may be one of them."""
    return 0 if events < _WORTH_A_PROCESS else max(1, (os.cpu_count() or 1) - shares)

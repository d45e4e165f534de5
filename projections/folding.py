"""One projection folding into one view file: batches, the checkpoint, and events that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import Final

from sqlalchemy import Connection

from mnemolog.domain.events import ERASURE, FORGOTTEN, PARKING, Recorded, Undecodable
from mnemolog.projections.parking import ParkedEvent, ParkedState, Parking, ViewState, reason_of
from mnemolog.projections.ports import Clock, EventLog, Forgetful, Page, Projection, ViewStore
from mnemolog.projections.versions import ViewFile

UNREADABLE_TENANT: Final = "?"
"""The tenant of the envelope that stands for one that could not be read."""


class SharedProjection:
    """A projection instance that folds into one file at a time; what it keeps in memory belongs to that file."""

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self._lock = RLock()
        self._file: ViewFile | None = None

    @contextmanager
    def folding(self, file: ViewFile) -> Iterator[None]:
        with self._lock:
            if self._file != file:
                self.forget()
                self._file = file
            try:
                yield
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        if isinstance(self.projection, Forgetful):
            self.projection.forget_cache()


class _Poison(Exception):
    """The fold refused its events; the cause is the error."""


class _Overtaken(Exception):
    """Another runner moved the checkpoint first."""


class Lane:
    """Moves one view file along the log. `position`, `stored` and `stale` may be read by any thread.

    position: up to where the view has everything; stored: its checkpoint, which may stay behind while nothing that
    comes is for this view: a read then need not write.

    built_from: the head when this view began to be built; everything erased up to there was never readable here.
    """

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        shared: SharedProjection,
        file: ViewFile,
        clock: Clock,
        batch_size: int,
        built_from: int = 0,
    ) -> None:
        self.file, self.lock = file, RLock()
        self.position, self.stored, self.stale, self.closed = 0, 0, False, False
        self.parking = Parking(file.name)
        self._log, self._views, self.shared, self._clock = log, views, shared, clock
        self.batch_size, self._built_from = batch_size, built_from
        self._projection = shared.projection
        topics = self._projection.topics
        self._topics = None if topics is None else topics | ERASURE | PARKING
        self._state: ViewState | None = None

    def prepare(self) -> None:
        """Make the tables of an empty view file, with the dismissals of the whole log."""
        dismissed = list(self._dismissals())
        with self.shared.folding(self.file), self._views.begin(self.file) as conn:
            self.parking.create(conn, dismissed)
            self._projection.create(conn)

    def load(self) -> ViewState:
        """Read the state from the file."""
        with self._views.connect_to(self.file) as conn:
            self._know(self.parking.load(conn))
        assert self._state is not None
        return self._state

    def advance(self, wait: float = -1, *, store: bool = True) -> bool:
        """Fold the next batch. False where nothing was left, or the lane stayed busy for `wait` seconds.

        store: whether the checkpoint is to follow where nothing is to be folded.
        """
        if not self.lock.acquire(timeout=wait):
            return False
        try:
            return self.closed or self._advance(store)
        except _Overtaken:
            self.load()
            return True
        finally:
            self.lock.release()

    def _advance(self, store: bool) -> bool:
        state = self._state or self.load()
        after = state.position if store else max(state.position, self.position)
        page = self._log.read(after, self.batch_size, topics=self._topics, bodies=self._projection.bodies)
        if page.position <= after:
            return False
        events = _fresh(page, after)
        if not events and not store and page.position - state.position < self.batch_size:
            self.position = page.position
            return True
        if self._is_plain(state, events):
            try:
                self._transact(state, page.position, lambda conn: self._fold(conn, events))
                return True
            except _Poison:
                state = self.load()
        self._transact(state, page.position, lambda conn: self._fold_carefully(conn, state, events))
        return True

    def _transact(self, state: ViewState, to: int, work: Callable[[Connection], None]) -> None:
        """Rows, parked rows and checkpoint in one transaction, or none of them."""
        self._state = None
        with self.shared.folding(self.file), self._views.begin(self.file) as conn:
            if not self.parking.advance(conn, state.position, to):
                raise _Overtaken
            work(conn)
        state.position = to
        self._know(state)

    def _know(self, state: ViewState) -> None:
        self._state, self.stored, self.stale = state, state.position, state.stale
        self.position = max(self.position, state.position)

    def _is_plain(self, state: ViewState, events: Sequence[Recorded]) -> bool:
        if state.parked or any(recorded.position in state.dismissed for recorded in events):
            return False
        return not any(recorded.envelope.topic in PARKING or _unreadable(recorded) for recorded in events)

    def _fold(self, conn: Connection, events: Sequence[Recorded]) -> None:
        topics = self._projection.topics
        wanted = events if topics is None else [e for e in events if e.envelope.topic in topics]
        if not wanted:
            return
        try:
            self._projection.fold(conn, wanted)
        except Exception as error:
            if self._views.is_unavailable(error) or _is_exhausted(error):
                raise
            raise _Poison from error

    # What follows runs only while something is parked, or is about to be.

    def _fold_carefully(self, conn: Connection, state: ViewState, events: Sequence[Recorded]) -> None:
        for run in _runs(events):
            self._fold_run(conn, state, run)
            if run[-1].envelope.topic in ERASURE:
                self._cover(conn, state, run[-1])
            elif run[-1].envelope.topic in PARKING:
                self._obey(conn, state, run[-1])
        state.parked = bool(self.parking.counts(conn))

    def _fold_run(self, conn: Connection, state: ViewState, events: Sequence[Recorded]) -> None:
        """Fold in order, halving what fails until the failing event is found and parked."""
        pending = [list(events)]
        while pending:
            run = self._admit(conn, state, pending.pop())
            if not run:
                continue
            error = self._attempt(conn, run)
            if error is None:
                continue
            if len(run) == 1:
                self._park(conn, state, run[0], reason_of(error))
            else:
                half = len(run) // 2
                pending += [run[half:], run[:half]]

    def _attempt(self, conn: Connection, run: Sequence[Recorded]) -> BaseException | None:
        try:
            with conn.begin_nested():
                self._fold(conn, run)
        except _Poison as poison:
            self.shared.forget()
            return poison.__cause__
        return None

    def _admit(self, conn: Connection, state: ViewState, run: Sequence[Recorded]) -> list[Recorded]:
        """Those of `run` that can be folded now; the others are skipped, parked or held."""
        admitted = []
        for recorded in run:
            envelope = recorded.envelope
            erases = envelope.topic in ERASURE
            if not self._cares(recorded):
                continue
            if not erases and state.dismissed.get(recorded.position) == envelope.id:
                continue
            if not erases and not _is_placeholder(recorded) and envelope.owner in state.blocked:
                self.parking.hold(conn, self._row(recorded, envelope.owner, "", ParkedState.WAITING))
            elif _unreadable(recorded):
                self._park(conn, state, recorded, _unreadable_reason(recorded))
            else:
                admitted.append(recorded)
        return admitted

    def _cares(self, recorded: Recorded) -> bool:
        topics = self._projection.topics
        return topics is None or recorded.envelope.topic in topics or _is_placeholder(recorded)

    def _park(self, conn: Connection, state: ViewState, recorded: Recorded, reason: str) -> None:
        erases = recorded.envelope.topic in ERASURE
        owner = None if erases or _is_placeholder(recorded) else recorded.envelope.owner
        self.parking.park(conn, self._row(recorded, owner, reason, ParkedState.FAILED))
        if owner is not None:
            state.blocked.add(owner)
        # An erasure that cannot be applied leaves erased text in this file; a new one never gets it.
        if erases and recorded.position > self._built_from:
            self._make_stale(conn, state)

    def _row(self, recorded: Recorded, owner: str | None, reason: str, kind: ParkedState) -> ParkedEvent:
        at = self._clock.now().isoformat()
        erased = recorded.event is FORGOTTEN
        return ParkedEvent(recorded.position, recorded.envelope.id, owner, reason, kind, erased, at)

    def _make_stale(self, conn: Connection, state: ViewState) -> None:
        self.parking.mark_stale(conn)
        state.stale = True

    def _obey(self, conn: Connection, state: ViewState, order: Recorded) -> None:
        """Replay or dismiss, if the order is for this projection."""
        clear = order.envelope.clear
        if clear.get("projection") != self.file.name:
            return
        position, target = int(clear["position"]), str(clear["target"])
        parked = self.parking.find(conn, position)
        if parked is not None and parked.event_id != target:
            return
        if order.envelope.topic == "ParkedEventDismissed":
            self._dismiss(conn, state, position, target, parked)
        elif parked is not None and parked.state is ParkedState.FAILED:
            self._replay(conn, state, parked)

    def _dismiss(
        self, conn: Connection, state: ViewState, position: int, target: str, parked: ParkedEvent | None
    ) -> None:
        if parked is None and position not in state.dismissed and self._was_folded(position, target):
            # A rebuild will skip it, so this view, which has it, no longer follows from the log.
            self._make_stale(conn, state)
        self.parking.dismiss(conn, position, target)
        state.dismissed[position] = target
        if parked is not None:
            self.parking.unpark(conn, [position])
            if parked.state is ParkedState.FAILED and parked.owner is not None:
                self._release(conn, state, parked.owner)

    def _was_folded(self, position: int, target: str) -> bool:
        return any(
            recorded.envelope.id == target
            and self._cares(recorded)
            and recorded.envelope.topic not in ERASURE
            for recorded in self._log.read_at([position], bodies=False)
        )

    def _replay(self, conn: Connection, state: ViewState, parked: ParkedEvent) -> None:
        """Fold a failed event again; if it works, what waited behind it follows in order."""
        state.blocked.discard(parked.owner or "")
        self._fold_run(conn, state, self._take(conn, [parked]))
        if parked.owner is not None and parked.owner not in state.blocked:
            self._release(conn, state, parked.owner)

    def _release(self, conn: Connection, state: ViewState, owner: str) -> None:
        """Fold what waits for this owner, in order, until one fails again."""
        state.blocked.discard(owner)
        while owner not in state.blocked:
            waiting = self.parking.waiting(conn, owner, self.batch_size)
            if not waiting:
                return
            self._fold_run(conn, state, self._take(conn, waiting))

    def _take(self, conn: Connection, rows: Sequence[ParkedEvent]) -> list[Recorded]:
        """The events of parked rows, which are parked no more."""
        self.parking.unpark(conn, [row.position for row in rows])
        erased = {row.position for row in rows if row.erased}
        events = self._log.read_at([row.position for row in rows], bodies=self._projection.bodies)
        return [replace(e, event=FORGOTTEN) if e.position in erased else e for e in events]

    def _cover(self, conn: Connection, state: ViewState, erasure: Recorded) -> None:
        """An erasure reaches parked events too. One that failed now folds as in a rebuild: as FORGOTTEN."""
        rows = {row.position: row for row in self.parking.rows(conn) if row.position < erasure.position}
        covered = self._covered(erasure, list(rows.values()))
        self.parking.mark_erased(conn, covered)
        for position in covered:
            row = rows[position]
            if row.state is ParkedState.FAILED and self.parking.find(conn, position):
                self._replay(conn, state, replace(row, erased=True))

    def _covered(self, erasure: Recorded, rows: Sequence[ParkedEvent]) -> list[int]:
        clear = erasure.envelope.clear
        if erasure.envelope.topic == "ContentErased":
            events = frozenset(clear["events"])
            return [row.position for row in rows if row.event_id in events]
        parked = self._log.read_at([row.position for row in rows], bodies=False) if rows else []
        subject = clear["subject"]
        return [
            e.position for e in parked if subject in e.envelope.subjects or subject == e.envelope.scope.user
        ]

    def _dismissals(self) -> Iterator[tuple[int, str]]:
        position = 0
        while True:
            page = self._log.read(position, self.batch_size, topics=PARKING, bodies=False)
            for recorded in page.events:
                clear = recorded.envelope.clear
                if (
                    recorded.envelope.topic == "ParkedEventDismissed"
                    and clear["projection"] == self.file.name
                ):
                    yield int(clear["position"]), str(clear["target"])
            if page.position <= position:
                return
            position = page.position


def _is_exhausted(error: BaseException | None) -> bool:
    """Whether whoever folds ran out of stack or memory, which is no fault of the event. SQLAlchemy may wrap it."""
    while error is not None:
        if isinstance(error, RecursionError | MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _fresh(page: Page, after: int) -> list[Recorded]:
    """The events of a page that are due: each once, in order, whatever was delivered twice or out of order."""
    events = page.events
    positions = [recorded.position for recorded in events]
    if all(a < b for a, b in zip([after, *positions], [*positions, page.position + 1], strict=True)):
        return list(events)
    due = {recorded.position: recorded for recorded in events if after < recorded.position <= page.position}
    return [due[position] for position in sorted(due)]


def _runs(events: Sequence[Recorded]) -> Iterator[Sequence[Recorded]]:
    """Cut behind every event to which the runner itself reacts."""
    start = 0
    for end, recorded in enumerate(events, 1):
        if recorded.envelope.topic in ERASURE or recorded.envelope.topic in PARKING:
            yield events[start:end]
            start = end
    if start < len(events):
        yield events[start:]


def _is_placeholder(recorded: Recorded) -> bool:
    return recorded.envelope.scope.tenant == UNREADABLE_TENANT


def _unreadable(recorded: Recorded) -> bool:
    return isinstance(recorded.event, Undecodable) or _is_placeholder(recorded)


def _unreadable_reason(recorded: Recorded) -> str:
    return recorded.event.reason if isinstance(recorded.event, Undecodable) else "unreadable envelope"

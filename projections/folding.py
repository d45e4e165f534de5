"""One projection folding into one view file: batches, the checkpoint, and events that fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock

from sqlalchemy import Connection

from mnemolog.domain.events import ERASURE, FORGOTTEN, PARKING, Recorded
from mnemolog.projections.batches import (
    fresh,
    is_exhausted,
    is_placeholder,
    runs,
    unreadable,
    unreadable_reason,
)
from mnemolog.projections.parking import ParkedEvent, ParkedState, Parking, ViewState, reason_of
from mnemolog.projections.partitions import (
    DIVISION,
    FOR_ALL,
    Delivered,
    Placing,
    Step,
    level_step,
    single,
)
from mnemolog.projections.ports import ByOwner, Clock, EventLog, Forgetful, Projection, ViewStore
from mnemolog.projections.versions import ViewFile


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
    """Moves one view file, or partitions of it, along the log. Any thread may read `position`, `stored` and `stale`.

    position: up to where the view has everything; stored: its checkpoint, which may stay behind while nothing that
    comes is for this view: a read then need not write.

    The partitions of a view go at their own pace, but not past an event that concerns all owners: it is folded once,
    when all have come to it, so that the order is the same as if one process had folded everything.

    partitions: those of this lane; None for all of the view.
    place: owner and number of partitions → the owner's partition.
    """

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        shared: SharedProjection,
        file: ViewFile,
        clock: Clock,
        batch_size: int,
        *,
        partitions: Collection[int] | None = None,
        place: Placing = single,
    ) -> None:
        self.file, self.lock = file, RLock()
        self.position, self.stored, self.stale, self.closed = 0, 0, False, False
        self.parking = Parking(file.name)
        self._log, self._views, self.shared, self._clock = log, views, shared, clock
        self.batch_size = batch_size
        self._projection = shared.projection
        topics = self._projection.topics
        self._topics = None if topics is None else topics | FOR_ALL
        self._partitions, self._place = partitions, place
        self._state: ViewState | None = None

    @property
    def has_parked(self) -> bool:
        """Whether events were set aside, or may have been: while a batch is under way, nobody knows."""
        state = self._state
        return state is None or state.parked or bool(state.dismissed)

    def prepare(self) -> None:
        """Make the tables of an empty view file, with the dismissals of the whole log; nothing where they are made."""
        dismissed, head = list(self._dismissals()), self._log.head()
        with self.shared.folding(self.file), self._views.begin(self.file) as conn:
            if not self.parking.is_made(conn):
                self.parking.create(conn, dismissed, head)
                self._projection.create(conn)

    def load(self) -> ViewState:
        """Read the state from the file."""
        with self._views.connect_to(self.file) as conn:
            self._know(self.parking.load(conn))
        assert self._state is not None
        return self._state

    def advance(self, wait: float = -1, *, store: bool = True, only: Collection[int] | None = None) -> bool:
        """Fold the next batch. False where nothing was left, or the lane stayed busy for `wait` seconds.

        store: whether the checkpoint is to follow where nothing is to be folded.
        only: those partitions that are to be advanced.
        """
        if not self.lock.acquire(timeout=wait):
            return False
        try:
            return self.closed or self._advance(store, only)
        except _Overtaken:
            self.load()
            return True
        finally:
            self.lock.release()

    def at(self, partition: int) -> int:
        """How far a partition of this lane is, as far as is known here; -1 where the view has it not."""
        state = self._state or self.load()
        return state.positions.get(partition, -1)

    def take(self, batch: Mapping[int, Delivered]) -> list[int]:
        """Fold what was delivered of some partitions, in one transaction where nothing concerns all owners.

        Returns those that are not done, since their events do not follow from where they are, or since others have
        to come first: then `advance` reads the log as far as it can.
        """
        with self.lock:
            left = dict(batch)
            try:
                while not self.closed:
                    left = {one: came for one, came in left.items() if self.at(one) < came.to}
                    if not left or not self._take_some(left):
                        break
            except _Overtaken:
                self.load()
            return [one for one, came in batch.items() if self.at(one) < came.to]

    def _take_some(self, batch: Mapping[int, Delivered]) -> bool:
        """Each partition up to the first event that concerns all; then the first of those."""
        state = self._state or self.load()
        step, due, walls = Step({}), list[Recorded](), list[Recorded]()
        for one, came in batch.items():
            at = state.positions.get(one, -1)
            if at < 0 or came.previous > at:
                continue
            events = [recorded for recorded in came.events if recorded.position > at]
            wall = next((recorded for recorded in events if recorded.envelope.topic in FOR_ALL), None)
            if wall is None:
                step.moves[one], step.delivered[one] = (at, came.to), came.next
            elif wall.position - 1 > at:
                step.moves[one] = (at, wall.position - 1)
                events = [recorded for recorded in events if recorded.position < wall.position]
            else:
                walls.append(wall)
                continue
            due += self._ours(state, [one], events)
        if step.moves:
            return self._move(state, step, sorted(due, key=lambda recorded: recorded.position))
        return bool(walls) and self._cross(min(walls, key=lambda recorded: recorded.position))

    def skip(self, partitions: Collection[int], to: int) -> None:
        """Move on over positions at which these partitions are known to have no events."""
        with self.lock:
            known = (self._state or self.load()).positions
            behind = {one: at for one in partitions if 0 <= (at := known.get(one, -1)) < to}
            if behind:
                with self._views.begin(self.file, list(behind)) as conn:
                    self.parking.skip(conn, behind, to, of=len(known))
                self.load()

    def divide(self, wanted: Callable[[int], int]) -> None:
        """Bring all partitions to one position, and let the view have as many as are wanted there."""
        while True:
            with self.lock, self.shared.folding(self.file), self._views.begin(self.file) as conn:
                positions = self.parking.load(conn).positions
                level = len(set(positions.values())) == 1
                if level and len(positions) != wanted(positions[0]):
                    self.parking.divide(conn, wanted(positions[0]))
            self.load()
            if level:
                return
            self.advance()

    @property
    def bodies(self) -> bool:
        """Whether the projection needs sealed bodies opened."""
        return self._projection.bodies

    def _advance(self, store: bool, only: Collection[int] | None) -> bool:
        state = self._state or self.load()
        group, bound = self._due(state, only)
        if not group:
            return False
        at, whole = state.positions[group[0]], len(group) == len(state.positions)
        after = at if store or not whole else max(at, self.position)
        # No further than to where others are: what lies there is not to be read twice.
        limit = self.batch_size if bound is None else min(self.batch_size, bound - at)
        page = self._log.read(after, limit, topics=self._topics, bodies=self._projection.bodies)
        to = page.position if bound is None else min(page.position, bound)
        if to <= after:
            return False
        events = [each for each in fresh(page, after) if each.position <= to]
        if not whole:
            return self._fold_due(state, group, at, to, events)
        if not events and not store and to - at < self.batch_size:
            self.position = to
            return True
        return self._move(state, level_step(group, at, to), events)

    def _due(self, state: ViewState, only: Collection[int] | None) -> tuple[list[int], int | None]:
        """The partitions that come next, all at one position, and where others of this lane already are."""
        mine = state.positions if self._partitions is None else self._partitions
        due = [one for one in (mine if only is None else only) if one in state.positions]
        if not due:
            return [], None
        lowest = min(state.positions[one] for one in due)
        group = [one for one in due if state.positions[one] == lowest]
        return group, min((at for one in due if (at := state.positions[one]) > lowest), default=None)

    def _fold_due(
        self, state: ViewState, group: Sequence[int], at: int, to: int, events: Sequence[Recorded]
    ) -> bool:
        """Fold the events of some partitions, up to the first that concerns all; that one when all are there."""
        wall = next((recorded for recorded in events if recorded.envelope.topic in FOR_ALL), None)
        if wall is None:
            return self._move(state, level_step(group, at, to), self._ours(state, group, events))
        if wall.position - 1 > at:
            before = [recorded for recorded in events if recorded.position < wall.position]
            upto = level_step(group, at, wall.position - 1)
            return self._move(state, upto, self._ours(state, group, before))
        return self._cross(wall)

    def _ours(self, state: ViewState, group: Sequence[int], events: Sequence[Recorded]) -> Sequence[Recorded]:
        count, place = len(state.positions), self._place
        return [recorded for recorded in events if place(recorded.envelope.owner, count) in group]

    def _cross(self, wall: Recorded) -> bool:
        """Fold an event that concerns all owners, once every partition has come to it."""
        state, before = self.load(), wall.position - 1
        if any(position > before for position in state.positions.values()):
            return True  # somebody else has folded it
        if any(position < before for position in state.positions.values()):
            return False
        return self._move(state, level_step(state.positions, before, wall.position), [wall])

    def _move(self, state: ViewState, step: Step, events: Sequence[Recorded]) -> bool:
        """Fold these events and move these partitions."""
        if self._is_plain(state, events):
            try:
                self._transact(state, step, lambda conn: self._fold(conn, events))
                return True
            except _Poison:
                state = self.load()
        self._transact(state, step, lambda conn: self._fold_carefully(conn, state, events))
        return True

    def _transact(self, state: ViewState, step: Step, work: Callable[[Connection], None]) -> None:
        """Rows, parked rows and checkpoint in one transaction, or none of them."""
        self._state = None
        # Where an event may change what belongs to another owner, partitions take turns.
        by_owner = isinstance(self._projection, ByOwner) and self._projection.by_owner
        turn = list(step.moves) if by_owner and len(step.moves) < len(state.positions) else None
        state.positions.update({one: to for one, (_, to) in step.moves.items()})
        with self.shared.folding(self.file), self._views.begin(self.file, turn) as conn:
            if not self.parking.advance(conn, step.moves, step.delivered, of=len(state.positions)):
                raise _Overtaken
            work(conn)
        self._know(state)

    def _divides(self, state: ViewState, recorded: Recorded) -> bool:
        """Whether the event changes in how many partitions this view is; one that nobody shares stays whole."""
        shared = self._partitions is not None or len(state.positions) > 1
        return shared and recorded.envelope.topic == DIVISION

    def _divide(self, conn: Connection, state: ViewState, partitions: int) -> None:
        self.parking.divide(conn, partitions)
        state.positions = dict.fromkeys(range(partitions), max(state.positions.values()))

    def _know(self, state: ViewState) -> None:
        mine = state.positions if self._partitions is None else self._partitions
        self._state, self.stale = state, state.stale
        self.stored = min((at for one in mine if (at := state.positions.get(one)) is not None), default=0)
        self.position = max(self.position, self.stored)

    def _is_plain(self, state: ViewState, events: Sequence[Recorded]) -> bool:
        if state.parked or any(recorded.position in state.dismissed for recorded in events):
            return False
        if any(self._divides(state, recorded) for recorded in events):
            return False
        return not any(recorded.envelope.topic in PARKING or unreadable(recorded) for recorded in events)

    def _fold(self, conn: Connection, events: Sequence[Recorded]) -> None:
        topics = self._projection.topics
        wanted = events if topics is None else [e for e in events if e.envelope.topic in topics]
        if not wanted:
            return
        try:
            self._projection.fold(conn, wanted)
        except Exception as error:
            if self._views.is_unavailable(error) or is_exhausted(error):
                raise
            raise _Poison from error

    # What follows runs only while something is parked, or is about to be.

    def _fold_carefully(self, conn: Connection, state: ViewState, events: Sequence[Recorded]) -> None:
        for run in runs(events):
            self._fold_run(conn, state, run)
            if run[-1].envelope.topic in ERASURE:
                self._cover(conn, state, run[-1])
            elif run[-1].envelope.topic in PARKING:
                self._obey(conn, state, run[-1])
        for recorded in events:
            if self._divides(state, recorded):
                self._divide(conn, state, int(recorded.envelope.clear["partitions"]))
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
            if not erases and not is_placeholder(recorded) and envelope.owner in state.blocked:
                self.parking.hold(conn, self._row(recorded, envelope.owner, "", ParkedState.WAITING))
            elif unreadable(recorded):
                self._park(conn, state, recorded, unreadable_reason(recorded))
            else:
                admitted.append(recorded)
        return admitted

    def _cares(self, recorded: Recorded) -> bool:
        topics = self._projection.topics
        return topics is None or recorded.envelope.topic in topics or is_placeholder(recorded)

    def _park(self, conn: Connection, state: ViewState, recorded: Recorded, reason: str) -> None:
        erases = recorded.envelope.topic in ERASURE
        owner = None if erases or is_placeholder(recorded) else recorded.envelope.owner
        self.parking.park(conn, self._row(recorded, owner, reason, ParkedState.FAILED))
        if owner is not None:
            state.blocked.add(owner)
        # An erasure that cannot be applied leaves erased text in this file; a new one never gets it.
        if erases and recorded.position > state.begun:
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
                topic, clear = recorded.envelope.topic, recorded.envelope.clear
                if topic == "ParkedEventDismissed" and clear["projection"] == self.file.name:
                    yield int(clear["position"]), str(clear["target"])
            if page.position <= position:
                return
            position = page.position

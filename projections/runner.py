"""`Runner`: keeps the views at the head of the log, whoever asks first; rebuilds, compares and purges them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock, RLock
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from mnemolog.domain.errors import (
    InvalidInput,
    NotFound,
    ProjectionStalled,
    StoreClosed,
    StoreUnavailable,
)
from mnemolog.projections.conditions import Health, Lag, ViewCondition, led_otherwise, refuse_worse, stalled
from mnemolog.projections.folding import Lane, SharedProjection
from mnemolog.projections.parking import ParkedEvent, ParkedState
from mnemolog.projections.partitions import Placing, single
from mnemolog.projections.ports import Clock, EventLog, Projection, RemembersWords, ViewStore
from mnemolog.projections.supervision import Background, Supervisor

Progress = Callable[[int, int], None]
"""Called with (positions done, positions in all)."""

BATCH: Final = 1000
_LOOK: Final = 0.02
"""Seconds between looks at a view that workers advance."""
_GATHERING: Final = 0.02
"""Seconds that the background thread lets events gather once it is at the head: readers do not wait for it."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Runner:
    """Runs projections over one log. Any thread may call it.

    A view is advanced by whoever needs it: a reader in `catch_up`, or the background thread after `start`;
    both go through one lock per view and one compare-and-set per batch.

    place: owner and number of partitions → the owner's partition, where workers share the views.
    waits: workers advance the views, and this runner only reads them; up to where, if it is not told.
    poll: seconds between looks at the log when no doorbell rings.
    backoff: seconds before the first retry after a crash, and the most that doubling may reach.
    """

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        projections: Sequence[Projection],
        *,
        batch_size: int = BATCH,
        poll: float = 0.1,
        backoff: tuple[float, float] = (0.1, 30.0),
        clock: Clock | None = None,
        place: Placing = single,
        waits: Callable[[], int] | None = None,
    ) -> None:
        self._log, self._views = log, views
        self._place, self._waits = place, waits
        self._clock = clock or SystemClock()
        self._batch_size, self._poll = batch_size, poll
        self._shared = {projection.name: SharedProjection(projection) for projection in projections}
        self._others: dict[tuple[str, str], SharedProjection] = {}
        self._lanes: dict[str, Lane] = {}
        self._shadows: dict[str, Lane] = {}
        self._rebuilds = {name: Lock() for name in self._shared}
        self._supervisors = {name: Supervisor(*backoff) for name in self._shared}
        self.background = Background("runner", self._go_round, log.wake, backoff)
        """Keeps all views caught up. While it is held, readers still advance the views that they need."""
        self._switching = RLock()

    # Opening and building ---------------------------------------------------------------------------------------

    def open(self, progress: Progress | None = None, *, build: bool = True) -> None:
        """Take up the live views; build those that are absent, damaged, ahead of the log or of another version.

        build=False: raise StoreInUse instead, for it is another process that leads.
        """
        for name, shared in self._shared.items():
            lane = self._existing(name, shared)
            if lane is not None:
                self._lanes[name] = lane
            elif self._waits is not None:
                continue  # the workers have not made it yet
            elif build:
                self.rebuild(name, progress=progress)
            else:
                raise led_otherwise(name)

    def change(self, projections: Sequence[Projection], progress: Progress | None = None) -> None:
        """Fold these anew beside the live views, then each in place of the one of its name. Of equal versions none.

        Call `know` in every process before: what is live in another version than it knows, it cannot read.
        """
        for projection in projections:
            name = projection.name
            with self._rebuilds[name]:
                if self._lane(name).file.version != projection.version:
                    shared = self._known(name, projection.version) or SharedProjection(projection)
                    self._build(name, shared, self._batch_size, progress)

    def await_versions(self, projections: Sequence[Projection], timeout: float) -> None:
        """Until workers have built these and made them live. Raises ProjectionStalled."""
        deadline = time.monotonic() + timeout
        for projection in projections:
            while self._lane(projection.name).file.version != projection.version:
                if time.monotonic() >= deadline:
                    raise ProjectionStalled(
                        f"no worker has built {projection.name!r} anew: are they running?"
                    )
                time.sleep(_LOOK)
                self._views.refresh()

    def know(self, projections: Sequence[Projection]) -> None:
        """These may come to be live, as another process adopts a policy."""
        for projection in projections:
            if self._known(projection.name, projection.version) is None:
                self._others[projection.name, projection.version] = SharedProjection(projection)

    def _known(self, name: str, version: str) -> SharedProjection | None:
        shared = self._shared[name]
        return shared if shared.projection.version == version else self._others.get((name, version))

    def _existing(self, name: str, shared: SharedProjection) -> Lane | None:
        """The live view; None where there is none that can be used."""
        while True:
            file = self._views.live(name)
            if file is None or file.version != shared.projection.version:
                return None
            lane = Lane(
                self._log, self._views, shared, file, self._clock, self._batch_size, place=self._place
            )
            try:
                position = lane.load().position
            except (SQLAlchemyError, NotFound):
                self._views.refresh()
                if self._views.live(name) == file:
                    return None
            else:
                # The head afterwards: other processes append, and advance the view, meanwhile.
                return lane if position <= self._log.head() else None

    def rebuild(
        self,
        name: str,
        batch_size: int | None = None,
        progress: Progress | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Fold the whole log into a new file beside the live one, then switch all readers to it at once.

        Raises RebuildRefused where it lacks more events than the live one; not with `force`.
        """
        shared = self._projection(name)
        with self._rebuilds[name]:
            self._build(name, shared, batch_size or self._batch_size, progress, worse=force)

    def _renew(self, name: str) -> None:
        """Rebuild a stale view, once, however many threads find it stale."""
        with self._rebuilds[name]:
            if self._lane(name).stale:
                self._build(name, self._projection(name), self._batch_size, None)

    def _build(
        self,
        name: str,
        shared: SharedProjection,
        batch_size: int,
        progress: Progress | None,
        *,
        worse: bool = True,
    ) -> None:
        """worse: also switch to a view that lacks more events than the live one, which cannot stay."""
        head = self._log.head()
        file = self._views.create_shadow(name, shared.projection.version)
        lane = Lane(self._log, self._views, shared, file, self._clock, batch_size, place=self._place)
        try:
            lane.prepare()
            self._shadows[name] = lane
            while lane.position < head and lane.advance():
                if progress is not None:
                    progress(min(lane.position, head), head)
            self._switch(name, lane, worse=worse)
        except BaseException:
            self._abandon(lane)
            raise
        finally:
            self._shadows.pop(name, None)
        lane.batch_size = self._batch_size

    def _abandon(self, lane: Lane) -> None:
        with lane.lock:
            lane.closed = True
            self._views.drop(lane.file)

    def _switch(self, name: str, new: Lane, *, worse: bool) -> None:
        """Nobody sees a position go backwards: the new view first reaches what the old one showed."""
        old = self._lanes.get(name)
        if old is None:
            self._activate(new)
            return
        with old.lock:
            target = max(old.position, self._log.head())
            while new.position < target and new.advance():
                pass
            self._views.refresh()  # another process may have switched meanwhile
            if (live := self._views.live(name)) is not None and not (worse or old.stale):
                refuse_worse(self._views, new.parking, new.file, live)
            self._activate(new)
            old.closed = True

    def _activate(self, lane: Lane) -> None:
        with lane.lock, self._switching:
            self._views.activate(lane.file)
            self._take(lane)

    def _take(self, lane: Lane) -> None:
        """This lane is the live one, and its projection the one of its name."""
        name, shared = lane.file.name, lane.shared
        before = self._shared[name]
        if before is not shared:
            self._others[name, before.projection.version] = before
        self._lanes[name], self._shared[name] = lane, shared

    # Advancing ---------------------------------------------------------------------------------------------------

    def catch_up(self, name: str, to: int | None = None, timeout: float = 30.0) -> int:
        """Advance the view, in this thread, to position `to` (default: the head of the log); its position then.

        Raises ProjectionStalled where it is not there after `timeout` seconds, as when `to` is not written yet.
        """
        return self._caught_up(name, to, timeout).position

    def _caught_up(self, name: str, to: int | None, timeout: float) -> Lane:
        target = self.newest() if to is None else to
        deadline = time.monotonic() + timeout
        while True:
            lane = self._lane(name)
            if lane.position >= target and (not lane.stale or self._waits is not None):
                return lane
            left = deadline - time.monotonic()
            if left <= 0:
                raise ProjectionStalled(stalled(lane.file.name, lane.position, target))
            if self._waits is not None:
                self._await_workers(lane, left)
            elif lane.stale:
                self._renew(name)
            else:
                self._step(lane, target, left)

    def newest(self) -> int:
        """What readers see who name no position: all that is in the log, or where workers fold, what was said here."""
        return self._log.head() if self._waits is None else self._waits()

    def _await_workers(self, lane: Lane, left: float) -> None:
        time.sleep(min(_LOOK, left))
        try:
            lane.load()
        except (NotFound, SQLAlchemyError):
            self._views.refresh()

    def catch_up_all(self, to: int | None = None, timeout: float = 30.0) -> int:
        """Advance every view; the lowest position of all."""
        target = self.newest() if to is None else to
        return min((self.catch_up(name, target, timeout) for name in self._shared), default=target)

    def _step(self, lane: Lane, target: int, left: float) -> None:
        try:
            moved = self._advance(lane, left, store=False)
        except Exception as error:
            if isinstance(error, StoreUnavailable) or not self._views.is_unavailable(error):
                raise
            raise ProjectionStalled(
                f"view {lane.file.name!r} cannot be written: check its disk, or its database"
            ) from error
        if not moved and lane.position < target:
            self._log.wait(lane.position, min(self._poll, left))

    def _advance(self, lane: Lane, wait: float, *, store: bool = True) -> bool:
        try:
            return lane.advance(wait, store=store)
        except NotFound:
            self._views.refresh()
            if self._views.live(lane.file.name) == lane.file:
                raise
            return True  # another process has put a new view in its place, which is next

    @contextmanager
    def read(self, name: str, at_least: int | None = None, timeout: float = 30.0) -> Iterator[Connection]:
        """A read transaction on the live view, first caught up to `at_least` (default: the head of the log)."""
        target = self.newest() if at_least is None else at_least
        while True:
            lane = self._caught_up(name, target, timeout)
            with self._views.connect(name) as conn:
                if self._lane(name) is lane:  # else another process switched views in between
                    yield conn
                    return

    # In the background -------------------------------------------------------------------------------------------

    def _go_round(self) -> None:
        seen = self._log.head()
        behind = self._behind(seen)
        moved = [self.push(name) for name in behind]
        if any(moved):
            if not any(self._is_behind(name, seen) for name in behind):
                self.background.rest(_GATHERING)
        elif behind:
            self.background.rest(self._poll)
        else:
            self._log.wait(seen, self._poll)

    def _behind(self, head: int) -> list[str]:
        """Which views are to be advanced. A trouble of another one is over: a reader has advanced it meanwhile."""
        behind = [name for name in self._shared if self._is_behind(name, head)]
        for name in self._shared.keys() - behind:
            self._supervisors[name].worked()
        return behind

    def _is_behind(self, name: str, head: int) -> bool:
        return (lane := self._lane(name)).stale or lane.stored < head

    def push(self, name: str) -> bool:
        """One batch, as the background does it; or the checkpoint, where nothing is to be folded."""
        supervisor = self._supervisors[name]
        if not supervisor.is_due():
            return False
        try:
            lane = self._lane(name)
            if lane.stale:
                self._renew(name)
            moved = self._advance(lane, 0)
        except StoreClosed:
            return False
        except Exception as error:
            supervisor.crashed(error)
            return False
        supervisor.worked()
        return moved

    # Looking -----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return list(self._shared)

    @property
    def projections(self) -> list[Projection]:
        """All that it runs."""
        return [shared.projection for shared in self._shared.values()]

    def forget_words(self) -> None:
        """Drop what projections remember of texts and names, as after an erasure."""
        for shared in (*self._shared.values(), *self._others.values()):
            if isinstance(shared.projection, RemembersWords):
                shared.projection.forget_words()

    def health(self) -> Health:
        troubles = {name: supervisor.trouble for name, supervisor in self._supervisors.items()}
        troubles["runner"] = self.background.trouble
        return Health(self.background.running, self.background.held, troubles)

    def lag(self) -> list[Lag]:
        """Every projection's place against the real head of the log, without advancing it."""
        head = self._log.head()
        return [self._lag(name, head) for name in self._shared]

    def _lag(self, name: str, head: int) -> Lag:
        lane = self._lane(name)
        with self._views.connect(name) as conn:
            state, counts = lane.parking.load(conn), lane.parking.counts(conn)
        failed, waiting = (counts.get(kind, 0) for kind in (ParkedState.FAILED, ParkedState.WAITING))
        condition = self._condition(name, state.stale)
        at = max(state.position, lane.position)
        return Lag(name, lane.file.version, at, head, failed, waiting, condition, state.positions)

    def _condition(self, name: str, stale: bool) -> ViewCondition:
        if self._rebuilds[name].locked():
            return ViewCondition.REBUILDING
        if stale:
            return ViewCondition.STALE
        if self._supervisors[name].trouble.backoff:
            return ViewCondition.FAILING
        return ViewCondition.PAUSED if self.background.held else ViewCondition.LIVE

    def parked(self, name: str) -> list[ParkedEvent]:
        """The events that are not in the view because they failed, or wait behind one that failed."""
        lane = self._lane(name)
        with self._views.connect(name) as conn:
            return lane.parking.rows(conn)

    def has_parked(self, name: str) -> bool:
        """Whether the view, as this process knows it, may lack an event that was parked or dismissed."""
        return self._lane(name).has_parked

    def parked_owner(self, name: str, owner: str) -> bool:
        """Whether events of this owner are parked, so that a read of the view is not complete for it."""
        lane = self._lane(name)
        with self._views.connect(name) as conn:
            return lane.parking.is_parked(conn, owner)

    def dump(self, name: str) -> list[tuple[object, ...]]:
        """The ordered logical content of the live view, as far as it is."""
        projection = self._projection(name).projection
        with self._views.connect(name) as conn:
            return list(projection.dump(conn))

    def dump_hash(self, name: str) -> str:
        """SHA-256 of the dump, as hex: equal for two views with equal content."""
        digest, projection = hashlib.sha256(), self._projection(name).projection
        with self._views.connect(name) as conn:
            for row in projection.dump(conn):
                digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace") + b"\n")
        return digest.hexdigest()

    def purge(self, name: str) -> bool:
        """Make deleted text leave the bytes of the view, and of one that is being built in its place.

        False: a reader was in the way, so purge again later.
        """
        head = self._log.head()
        # The shadow first, so that a switch hides neither; one that begins after this reads nothing that is erased.
        lanes = [lane for lane in (self._shadows.get(name), self._lane(name)) if lane is not None]
        clean = [self._purge(name, lane, head) for lane in dict.fromkeys(lanes)]
        return all(clean) and not self._lingers(name)

    def _purge(self, name: str, lane: Lane, head: int) -> bool:
        """Purge one file, behind the last erasure. One that is closed is on its way out: see `_lingers`."""
        with lane.lock:
            while lane.position < head and not lane.closed and lane.advance():
                pass
            if lane.closed:
                return True
            return self._views.purge(lane.file, self._projection(name).projection.purge) and not lane.stale

    def _lingers(self, name: str) -> bool:
        """Whether a replaced file is still there because somebody reads it."""
        files = [size.file for size in self._views.files() if size.file.name == name]
        return any(file.generation < self._lane(name).file.generation for file in files)

    def _projection(self, name: str) -> SharedProjection:
        if name not in self._shared:
            raise InvalidInput(f"no projection {name!r}: there are {', '.join(self._shared)}")
        return self._shared[name]

    def _lane(self, name: str) -> Lane:
        self._projection(name)
        if name not in self._lanes:
            self._wait_for_workers(name)
        lane = self._lanes[name]
        return lane if self._views.live(name) == lane.file else self._follow(name)

    def _wait_for_workers(self, name: str) -> None:
        """Take up a view that workers have made since."""
        if self._waits is None:
            raise NotFound(f"view {name!r} is not open: call open() first")
        self._views.refresh()
        lane = self._existing(name, self._shared[name])
        if lane is None:
            raise StoreUnavailable(
                f"no worker has built the view {name!r} yet: start `mnemolog serve worker`"
            )
        self._lanes[name] = lane

    def _follow(self, name: str) -> Lane:
        """Another process has built the view anew: go on with its file."""
        with self._switching:
            lane, file = self._lanes[name], self._views.live(name)
            if file is None:
                lane.stale = (
                    True  # it was lost, as a file that was removed or a view in a server that crashed
                )
            if file is None or file == lane.file:
                return lane
            shared = self._known(name, file.version)
            new = None if shared is None else self._existing(name, shared)
            if new is None:
                raise led_otherwise(name)
            lane.closed = True
            self._take(new)
            return new


__all__ = ["BATCH", "Health", "Lag", "Progress", "Runner", "SystemClock", "ViewCondition"]

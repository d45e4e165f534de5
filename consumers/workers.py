"""A worker: folds some partitions of the events topic into the views, beside other workers.

Messages say what is new, and bring it; the log is the truth. What does not follow from where a partition is (a gap, a
repetition, an earlier place) is left alone and read from the log instead, so no order of delivery can do harm. Each
batch and its checkpoint are one transaction, by compare-and-set: of two workers that hold the same partition, as one
that was frozen and woke up, the slower one has done nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Protocol

from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.partitions import partition_of, read_epochs
from mnemolog.consumers.relay import Place
from mnemolog.domain.events import Recorded, Undecodable
from mnemolog.projections.folding import Lane, SharedProjection
from mnemolog.projections.partitions import Delivered
from mnemolog.projections.ports import Clock, EventLog, Projection, ViewStore
from mnemolog.projections.supervision import Supervisor, Trouble
from mnemolog.projections.versions import ViewFile

BATCH: Final = 1000
_LOOK_SECONDS: Final = 1.0
"""How often a worker looks whether other views are live now."""
_PATIENCE: Final = 2.0
"""Seconds after which a message that the relay has sent, and that has not come, is read from the log."""
_TICK: Final = 0.3
"""Seconds of reading the log before messages have their turn again."""


class WorkerLog(EventLog, Protocol):
    """The log, as far as workers read it."""

    def decode(self, position: int, state: bytes) -> Recorded:
        """An event from what is stored of it, opened."""


class SharedViews(ViewStore, Protocol):
    """Views that several workers build together."""

    def join_shadow(self, name: str, version: str) -> ViewFile:
        """The view of this version that workers are building, or a new one. It stays as long as one of them lives."""


class RelayPlace(Protocol):
    """How far the relay is."""

    def load(self, name: str) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message of a partition, and where in the topic it is."""

    offset: int
    message: EventMessage


@dataclass(slots=True)
class _View:
    """A view that this worker folds. goal: how far it has to be to go live; None where it is.

    before: the view that was live when it was opened.
    wanted: partition → how far it is known to have events that no message brings.
    """

    lane: Lane
    goal: int | None
    before: ViewFile | None
    wanted: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of one view. sent: how far the relay knows events of it to be, or to be none."""

    projection: str
    partition: int
    position: int
    sent: int
    building: bool


class Worker:
    """Folds the partitions that it is given. One thread at a time may call it.

    refresh: called now and then, to learn which keys other processes have destroyed; the projections under the policy
        that decides now, which are then built beside the live ones.
    gaps: how often messages did not follow; folded: events that messages brought.
    """

    def __init__(
        self,
        log: WorkerLog,
        views: SharedViews,
        projections: Sequence[Projection],
        relay: RelayPlace,
        clock: Clock,
        *,
        batch_size: int = BATCH,
        monotonic: Callable[[], float] = time.monotonic,
        refresh: Callable[[], Sequence[Projection]] = lambda: (),
    ) -> None:
        self._log, self._stores, self._relay, self._clock = log, views, relay, clock
        self._shared = {projection.name: SharedProjection(projection) for projection in projections}
        self._batch_size, self._now, self._refresh = batch_size, monotonic, refresh
        self._mine: frozenset[int] = frozenset()
        self._views: dict[str, _View] = {}
        self._place, self._looked, self._heard = Place(), float("-inf"), dict[int, float]()
        self._supervisors = {name: Supervisor(0.1, 5.0) for name in [*self._shared, "relay"]}
        self.gaps = self.folded = 0

    # What is mine ------------------------------------------------------------------------------------------------

    @property
    def partitions(self) -> frozenset[int]:
        return self._mine

    def assign(self, partitions: Collection[int]) -> None:
        """These partitions are this worker's now, and no others."""
        self._mine = frozenset(partitions)
        self._views.clear()
        self._heard = dict.fromkeys(self._mine, self._now())

    def begins(self) -> dict[int, int | None]:
        """Where in the topic each partition goes on, by its own checkpoints; None for its end, as nothing is missing.

        A view that is being built reads the log, and asks for nothing. Raises StoreUnavailable, and whatever keeps
        views from being opened.
        """
        self._place = Place.decode(self._relay.load("relay"))
        opened = [self._open(name) for name in self._shared]
        lanes = [view.lane for view in opened if view is not None and view.goal is None]
        asked: dict[int, list[int]] = {one: [] for one in self._mine}
        for one, state in product(self._mine, [lane.load() for lane in lanes]):
            at = state.delivered.get(one, 0)
            if at or state.positions.get(one, 0) < self._place.last.get(one, 0):
                asked[one].append(at)
        return {one: min(places, default=None) for one, places in asked.items()}

    # Messages ----------------------------------------------------------------------------------------------------

    def deliver(self, batches: Mapping[int, Sequence[Delivery]]) -> None:
        """Fold what follows; what does not is noted, and read from the log by `tick`. Raises nothing."""
        chains = {
            partition: _chain(deliveries)
            for partition, deliveries in batches.items()
            if partition in self._mine and deliveries
        }
        self._heard.update(dict.fromkeys(chains, self._now()))
        opened = _Opened(self._log)
        for name in self._shared if chains else ():
            with self._trying(name):
                view = self._open(name)
                if view is not None:
                    self._take(view, chains, opened)

    def _take(self, view: _View, chains: Mapping[int, Sequence[Delivery]], opened: _Opened) -> None:
        """Fold each chain as far as it follows; most often that is all of all of them, in one transaction."""
        lane = view.lane
        for one, chain in chains.items():
            view.wanted[one] = max(view.wanted.get(one, 0), chain[-1].message.position)
        batch: dict[int, Delivered] = {}
        for one, chain in chains.items():
            run = _run(chain, lane.at(one))
            if run:
                messages = [each.message for each in run]
                events = opened.events(messages, lane.bodies)
                ends = messages[-1].position, run[-1].offset + 1
                batch[one] = Delivered(events, messages[0].previous, *ends)
        left = lane.take(batch) if batch else []
        self.gaps += len(left)
        self.folded += sum(len(came.events) for one, came in batch.items() if one not in left)
        for one in chains:
            if lane.at(one) >= view.wanted[one]:
                del view.wanted[one]

    # The log -----------------------------------------------------------------------------------------------------

    def tick(self) -> bool:
        """Read from the log what messages did not bring, and look around; whether there is more to do at once."""
        if not self._mine:
            return False
        if self._now() - self._looked >= _LOOK_SECONDS:
            self._look_around()
        with self._trying("relay"):
            self._place = Place.decode(self._relay.load("relay"))
        more = False
        for name in self._shared:
            with self._trying(name):
                view = self._open(name)
                if view is not None:
                    more |= self._catch_up(view)
                    self._go_live(view)
        return more

    def _catch_up(self, view: _View) -> bool:
        """Follow the relay where a partition has nothing new, and the log where it has."""
        lane, place, deadline = view.lane, self._place, self._now() + _TICK
        done = [one for one in self._mine if lane.at(one) >= place.last.get(one, 0)]
        lane.skip(done, place.position)
        while behind := self._behind(view):
            if not lane.advance(only=behind):
                return False
            if self._now() >= deadline:
                return True
        return False

    def _behind(self, view: _View) -> list[int]:
        """The partitions of which events are known that did not come, or did not follow."""
        lane, place = view.lane, self._place
        for one in self._mine:
            late = self._now() - self._heard.get(one, 0.0) > _PATIENCE or view.goal is not None
            if late and 0 <= lane.at(one) < (last := place.last.get(one, 0)):
                view.wanted[one] = max(view.wanted.get(one, 0), last)
        view.wanted = {one: to for one, to in view.wanted.items() if lane.at(one) < to}
        return [one for one in view.wanted if lane.at(one) >= 0]

    # Views -------------------------------------------------------------------------------------------------------

    def _open(self, name: str) -> _View | None:
        """The live view, or the one that is being built in its place; None where it is to be tried again later."""
        if name not in self._views:
            if not self._supervisors[name].is_due():
                return None
            self._views[name] = self._opened(name)
        return self._views[name]

    def _opened(self, name: str) -> _View:
        shared, live = self._shared[name], self._stores.live(name)
        version = shared.projection.version
        lane = None if live is None or live.version != version else self._lane(shared, live)
        if lane is not None and not lane.load().stale:
            self._divide(lane)
            return _View(lane, None, live)
        lane = self._lane(shared, self._stores.join_shadow(name, version))
        lane.prepare()
        self._divide(lane)
        return _View(lane, self._log.head(), live)

    def _lane(self, shared: SharedProjection, file: ViewFile, whole: bool = False) -> Lane:
        parts = self._log, self._stores, shared, file, self._clock, self._batch_size
        return Lane(*parts, partitions=None if whole else self._mine, place=partition_of)

    def _divide(self, lane: Lane) -> None:
        """See that the view has the partitions that the log says; a single process leaves it in one."""
        epochs = read_epochs(self._log)
        state = lane.load()
        if len(state.positions) != epochs.at(state.position + 1).partitions:
            whole = self._lane(self._shared[lane.file.name], lane.file, whole=True)
            whole.divide(lambda position: epochs.at(position + 1).partitions)
            lane.load()

    def _go_live(self, view: _View) -> None:
        """Switch to a view that was built, once it has reached what the log was then and what the old one shows."""
        if view.goal is None:
            return
        file, live = view.lane.file, self._stores.live(view.lane.file.name)
        if live != file:
            shown = (
                0 if live is None else self._lane(self._shared[file.name], live, whole=True).load().position
            )
            if view.lane.load().position < max(view.goal, shown):
                return
            self._stores.activate(file)
        view.goal = None

    def _look_around(self) -> None:
        """Others may have switched or divided views, or a crash of the server may have emptied them."""
        self._looked = self._now()
        with self._trying("relay"):
            for projection in self._refresh():
                if projection.version != self._shared[projection.name].projection.version:
                    self._shared[projection.name] = SharedProjection(projection)
                    self._views.pop(projection.name, None)
            self._stores.refresh()
            for name, view in list(self._views.items()):
                replaced = self._is_replaced(name, view)
                if replaced and view.goal is not None:
                    self._stores.drop(view.lane.file)  # it was being built for nothing
                if replaced or view.lane.stale:
                    del self._views[name]
                elif any(view.lane.at(one) < 0 for one in self._mine):
                    view.lane.load()

    def _is_replaced(self, name: str, view: _View) -> bool:
        """Whether others have made another view live, in place of this one or of what this one is to be."""
        live, file = self._stores.live(name), view.lane.file
        if view.goal is None:
            return live != file
        return live is not None and live.version == file.version and live not in (file, view.before)

    @contextmanager
    def _trying(self, name: str) -> Iterator[None]:
        """What fails inside is tried again after a while, with a view that is opened anew; the log has everything."""
        try:
            yield
        except Exception as error:
            self._supervisors[name].crashed(error)
            self._views.pop(name, None)
            self._looked = float("-inf")
        else:
            self._supervisors[name].worked()

    # Looking -----------------------------------------------------------------------------------------------------

    def troubles(self) -> Mapping[str, Trouble]:
        return {name: supervisor.trouble for name, supervisor in self._supervisors.items()}

    def lags(self) -> Iterator[PartitionLag]:
        """Every partition of this worker in every view, as far as is known here."""
        for name, view in list(self._views.items()):
            for one in sorted(self._mine):
                sent = max(self._place.position, view.wanted.get(one, 0))
                yield PartitionLag(name, one, max(0, view.lane.at(one)), sent, view.goal is not None)


class _Opened:
    """The events of some messages, each opened once however many views want it."""

    def __init__(self, log: WorkerLog) -> None:
        self._log, self._known = log, dict[int, Recorded]()

    def events(self, messages: Sequence[EventMessage], bodies: bool) -> list[Recorded]:
        large = [m.position for m in messages if m.state is None and m.position not in self._known]
        if large:
            self._known |= {one.position: one for one in self._log.read_at(large)}
        for each in messages:
            if each.position not in self._known and each.state is not None:
                self._known[each.position] = self._log.decode(each.position, each.state)
        found = [self._known[each.position] for each in messages]
        return found if bodies else [_closed(recorded) for recorded in found]


def _closed(recorded: Recorded) -> Recorded:
    """As the log gives it to who wants no bodies."""
    if isinstance(recorded.event, Undecodable):
        return recorded
    return Recorded(recorded.position, recorded.envelope, None)


def _chain(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Each message once, in order."""
    ordered = {each.message.position: each for each in deliveries}
    return [ordered[position] for position in sorted(ordered)]


def _run(chain: Sequence[Delivery], at: int) -> Sequence[Delivery]:
    """What lies behind a position, up to the first message that does not follow from the one before it."""
    due = [each for each in chain if each.message.position > at]
    for end in range(1, len(due)):
        if due[end].message.previous > due[end - 1].message.position:
            return due[:end]
    return due


__all__ = ["Delivery", "PartitionLag", "RelayPlace", "SharedViews", "Worker", "WorkerLog"]

"""Cosines inside a scope, by an exact scan of its vectors, which are kept in memory while they are in use.

Each row is multiplied by itself (`vecdot`): so the digits of a score do not depend on which rows stand around it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.passages import EMBEDDED, PARTS
from mnemolog.domain.retrieval import Moments
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.embedding import Floats, QueryVector
from mnemolog.projections.vectors import Kind, Positions, Scores, Slice, Stamp, VectorIndex, VectorRows

CACHE_BYTES: Final = 512 << 20
SAMPLED: Final = 2_000
"""Vectors of a scope that stand for all of them where only the nearest are looked up."""
SAMPLES: Final = 8
"""Such samples are kept in memory, 4 KB for each vector of 1,024 dimensions."""


class DenseScan:
    """Scores one space. Any thread, and any process that can read the rows, may use it.

    cache_bytes: memory for the vectors of the scopes that were asked for last.
    """

    def __init__(self, rows: VectorRows, space: str, cache_bytes: int = CACHE_BYTES) -> None:
        self.space = space
        self._rows, self._limit = rows, cache_bytes
        self._held: OrderedDict[tuple[ScopeIds, Kind], _Matrix] = OrderedDict()
        self._samples: OrderedDict[tuple[ScopeIds, Kind], _Sample] = OrderedDict()
        self._epoch, self._lock = 0, Lock()

    def scores(
        self, query: QueryVector, scopes: Collection[ScopeIds], kind: Kind, change: int | None = None
    ) -> Scores:
        """The cosine of every vector of this kind in these scopes. Raises SpaceMismatch.

        change: the number of the last write, where it was just looked at.
        """
        query.require(self.space)
        change = self._rows.change() if change is None else change
        matrices = [self._matrix(scope, kind) for scope in scopes]
        before = sum(matrix.bytes for matrix in matrices)
        parts = [matrix.scores(query.values, change) for matrix in matrices]
        if sum(matrix.bytes for matrix in matrices) > before:
            self._evict()
        if len(parts) == 1:
            return parts[0]
        nothing = Scores(np.empty(0, np.int64), np.empty(0, np.float32))
        return Scores(
            np.concatenate([part.positions for part in parts or [nothing]]),
            np.concatenate([part.cosines for part in parts or [nothing]]),
        )

    def search(
        self, query: QueryVector, scopes: Collection[ScopeIds], k: int, kind: Kind
    ) -> list[tuple[int, float]]:
        """(log position, cosine) of the k nearest, best first; of equals the newer first."""
        found = self.scores(query, scopes, kind)
        order = best(found.positions, found.cosines, k)
        return list(zip(found.positions[order].tolist(), found.cosines[order].tolist(), strict=True))

    def holds(self, scopes: Collection[ScopeIds], change: int) -> bool:
        """Whether there is any vector in these scopes. change: as of `scores`."""
        matrices = [self._matrix(scope, kind) for scope in scopes for kind in Kind]
        before = sum(matrix.bytes for matrix in matrices)
        found = [matrix.refresh(change) for matrix in matrices]
        if sum(matrix.bytes for matrix in matrices) > before:
            self._evict()
        return any(found)

    def change(self) -> int:
        """The number of the last write or removal."""
        return self._rows.change()

    def forget(self) -> None:
        """Drop what is kept in memory, as after an erasure."""
        with self._lock:
            self._epoch += 1
            self._held.clear()
            self._samples.clear()

    def spread(
        self, query: QueryVector, scopes: Collection[ScopeIds], kind: Kind, change: int | None = None
    ) -> Moments:
        """Mean and deviation of the cosines of these scopes, by the first vectors of each. change: as of `scores`."""
        query.require(self.space)
        change = self._rows.change() if change is None else change
        parts = [self._sample(scope, kind, change) for scope in scopes]
        return moments(np.concatenate([np.vecdot(part, query.values) for part in parts]))

    def _sample(self, scope: ScopeIds, kind: Kind, change: int) -> Floats:
        """As it stands now: what is kept is checked where anything was written."""
        with self._lock:
            known, epoch = self._samples.get((scope, kind)), self._epoch
        if known is not None and known.change == change:
            return known.vectors
        what = self.space, scope, kind, SAMPLED
        mark = self._rows.sample_mark(*what)
        vectors = known.vectors if known is not None and known.mark == mark else self._rows.sample(*what)
        with self._lock:
            if epoch == self._epoch:
                self._samples[scope, kind] = _Sample(change, mark, vectors)
                self._samples.move_to_end((scope, kind))
                if len(self._samples) > SAMPLES:
                    self._samples.popitem(last=False)
        return vectors

    def _matrix(self, scope: ScopeIds, kind: Kind) -> _Matrix:
        with self._lock:
            matrix = self._held.get((scope, kind))
            if matrix is None:
                matrix = self._held[scope, kind] = _Matrix(self._rows, self.space, scope, kind)
            self._held.move_to_end((scope, kind))
            return matrix

    def _evict(self) -> None:
        with self._lock:
            total = sum(matrix.bytes for matrix in self._held.values())
            while total > self._limit and self._held:
                total -= self._held.popitem(last=False)[1].bytes


@dataclass(frozen=True, slots=True, eq=False)
class Cosines:
    """How near turns alone, turns among their neighbours, records, and passages by their numbers are to a question.

    moments: of all there are, where only the nearest are given; None where everything is.
    """

    turns: Scores
    windows: Scores
    records: Scores
    passages: Scores
    moments: tuple[Moments, Moments, Moments] | None = None

    def spreads(self) -> tuple[Moments, Moments, Moments]:
        """Mean and deviation over everything, in the same order."""
        return self.moments or (
            moments(self.turns.cosines),
            moments(self.windows.cosines),
            moments(self.records.cosines),
        )

    def nearest_passages(self) -> Scores:
        """For each large turn the cosine of its nearest passage, less what the best of so many has by chance.

        Else a long text would be near to everything: the greatest of n numbers lies about sqrt(2 ln n) deviations
        above their mean.
        """
        if not len(self.passages.positions):
            return self.passages
        turns, at = np.unique(self.passages.positions // PARTS, return_inverse=True)
        nearest, parts = np.full(len(turns), -np.inf, np.float32), np.zeros(len(turns), np.int64)
        np.maximum.at(nearest, at, self.passages.cosines)
        np.maximum.at(parts, at, self.passages.positions % PARTS)
        chance = self.spreads()[0].deviation * np.sqrt(2 * np.log(np.minimum(parts + 1, EMBEDDED)))
        return Scores(turns, (nearest - chance).astype(np.float32))


def by_scan(scan: DenseScan, query: QueryVector, scopes: Collection[ScopeIds], change: int) -> Cosines:
    """Every cosine in these scopes, exactly."""
    turns, windows, records, passages = (scan.scores(query, scopes, kind, change) for kind in Kind)
    return Cosines(turns, windows, records, passages)


def by_index(
    rows: VectorRows,
    scan: DenseScan,
    index: VectorIndex,
    query: QueryVector,
    scopes: Collection[ScopeIds],
    limit: int,
) -> Cosines:
    """The `limit` nearest turns, windows and passages as the index knows them, and every record exactly."""
    query.require(scan.space)
    held = [scope for scope in scopes if rows.sample_mark(query.space, scope, Kind.PASSAGE, 1)[0]]
    turns, windows, passages = (
        nearest(rows, index, query, some, limit, kind)
        for kind, some in ((Kind.TURN, scopes), (Kind.WINDOW, scopes), (Kind.PASSAGE, held))
    )
    change = scan.change()
    records = scan.scores(query, scopes, Kind.RECORD, change)
    spread = tuple(scan.spread(query, scopes, kind, change) for kind in (Kind.TURN, Kind.WINDOW))
    return Cosines(turns, windows, records, passages, (spread[0], spread[1], moments(records.cosines)))


def nearest(
    rows: VectorRows,
    index: VectorIndex,
    query: QueryVector,
    scopes: Collection[ScopeIds],
    limit: int,
    kind: Kind,
) -> Scores:
    """What the index finds, without what the rows do not have (any more): it may lag behind them."""
    hits = dict(index.search(query, scopes, limit, kind))
    standing = sorted(rows.standing(query.space, scopes, kind, list(hits)))
    cosines = [hits[position] for position in standing]
    return Scores(np.array(standing, np.int64), np.array(cosines, np.float32))


def of_events(passages: Scores, positions: Collection[int]) -> Scores:
    """The passages of some events."""
    wanted = np.isin(passages.positions // PARTS, np.fromiter(positions, np.int64, len(positions)))
    return Scores(passages.positions[wanted], passages.cosines[wanted])


def moments(cosines: Floats) -> Moments:
    """The same to the last digit in whatever order they come."""
    values = np.sort(cosines).astype(np.float64)
    if not len(values):
        return Moments(0, 0.0, 0.0)
    return Moments(len(values), float(values.mean()), float(values.std()))


def best(positions: Positions, scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Where the k greatest stand, best first; of equals the newer first."""
    kept = np.arange(len(scores))
    if k < len(scores):
        kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return kept[np.lexsort((-positions[kept], -scores[kept]))[:k]]


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """change: the last write that it was checked against; mark: what it is known by."""

    change: int
    mark: tuple[int, int]
    vectors: Floats


class _Matrix:
    """The vectors of one scope and kind. New rows are added to it; a removal makes it load anew."""

    def __init__(self, rows: VectorRows, space: str, scope: ScopeIds, kind: Kind) -> None:
        self._load, self._what = rows.slice, (space, scope, kind)
        self._lock = RLock()
        self._change, self._stamp, self._count = -1, Stamp(), 0
        self._positions: Positions = np.empty(0, np.int64)
        self._vectors: Floats = np.empty((0, 0), np.float32)
        self._places: dict[int, int] | None = None

    @property
    def bytes(self) -> int:
        return self._vectors.nbytes + self._positions.nbytes

    def refresh(self, change: int) -> int:
        """Take in what is new up to a change; how many vectors there are."""
        with self._lock:
            if self._change < change:
                self._take(self._load(*self._what, self._stamp))
                self._change = change
            return self._count

    def scores(self, query: Floats, change: int) -> Scores:
        with self._lock:
            if not self.refresh(change):
                return Scores(np.empty(0, np.int64), np.empty(0, np.float32))
            vectors = self._vectors[: self._count]
            return Scores(self._positions[: self._count].copy(), np.vecdot(vectors, query))

    def _take(self, found: Slice) -> None:
        if found.whole:
            self._positions, self._vectors, self._places = found.positions, found.vectors, None
            self._count = len(found.positions)
        elif len(found.positions):
            self._merge(found)
        self._stamp = found.stamp

    def _merge(self, found: Slice) -> None:
        """A window that was made anew takes the place of the old one; the rest goes to the end."""
        places = self._places
        if places is None:
            places = {p: at for at, p in enumerate(self._positions[: self._count].tolist())}
            self._places = places
        self._reserve(self._count + len(found.positions))
        for position, vector in zip(found.positions.tolist(), found.vectors, strict=True):
            at = places.setdefault(position, self._count)
            self._positions[at], self._vectors[at] = position, vector
            self._count = max(self._count, at + 1)

    def _reserve(self, size: int) -> None:
        if size <= len(self._positions) and self._vectors.flags.writeable:
            return
        room = max(size, int(self._count * 1.25) + 64)
        positions, vectors = np.empty(room, np.int64), np.empty((room, self._width), np.float32)
        positions[: self._count] = self._positions[: self._count]
        vectors[: self._count] = self._vectors[: self._count]
        self._positions, self._vectors = positions, vectors

    @property
    def _width(self) -> int:
        return int(self._vectors.shape[1])

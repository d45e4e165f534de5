"""`rank`: what `domain.retrieval.retrieve` says, to the last digit, of many candidates at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mnemolog.domain.records import READABLE, Record, microseconds
from mnemolog.domain.retrieval import (
    AUTHOR,
    DEFAULTS,
    DENSE,
    LEXICAL,
    NEIGHBOURS,
    RECENCY,
    RECORD,
    SESSION_BEST,
    SESSION_LEXICAL,
    TIME,
    WINDOW,
    Candidate,
    Facts,
    Moments,
    Ranked,
    Weights,
    spread_of,
)
from mnemolog.projections.postings import Doubles, Ints, distinct
from mnemolog.projections.turn_arrays import Mask, TurnTable

_BEST: Final = 3
_SLACK: Final = 1e-13
"""Of the greatest sum: more than adding a dozen numbers in any order can be off by."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """Judged records as arrays, in the order of their numbers. events: the position of what gave each its content."""

    numbers: Ints
    events: Ints
    occurred: Ints
    lengths: Ints
    readable: Mask
    records: Sequence[Record]

    @staticmethod
    def of(records: Mapping[int, Record], lengths: Mapping[int, int]) -> RecordTable:
        """lengths: how many tokens each has in its index."""
        ordered = sorted(records.items())
        return RecordTable(
            np.array([number for number, _ in ordered], np.int64),
            np.array([record.position for _, record in ordered], np.int64),
            np.array([microseconds(record.occurred_at) for _, record in ordered], np.int64),
            np.array([lengths.get(number, 0) for number, _ in ordered], np.int64),
            np.array([record.status in READABLE for _, record in ordered], np.bool_),
            [record for _, record in ordered],
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def some(self, wanted: Mask) -> RecordTable:
        if wanted.all():
            return self
        return RecordTable(
            self.numbers[wanted],
            self.events[wanted],
            self.occurred[wanted],
            self.lengths[wanted],
            self.readable[wanted],
            [self.records[at] for at in np.flatnonzero(wanted).tolist()],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Candidates: turns, and behind them records. Keys: of a turn its position, of a record minus its number."""

    turns: TurnTable
    records: RecordTable
    keys: Ints
    occurred: Ints
    session: Ints
    before: Ints

    @staticmethod
    def of(turns: TurnTable, records: RecordTable) -> Pool:
        nothing = np.full(len(records), -1)
        return Pool(
            turns,
            records,
            np.concatenate([turns.positions, -records.numbers]),
            np.concatenate([turns.occurred, records.occurred]),
            np.concatenate([turns.session, nothing]),
            np.concatenate([turns.before, nothing]),
        )

    def candidate(self, at: int, authors: Sequence[str], kinds: Sequence[str]) -> Candidate:
        key, occurred = int(self.keys[at]), int(self.occurred[at])
        if at >= len(self.turns):
            record = self.records.records[at - len(self.turns)]
            return Candidate(key, occurred, kind=record.kind, status=record.status)
        author, length = int(self.turns.author[at]), int(self.turns.lengths[at])
        session, kind = int(self.session[at]), kinds[int(self.turns.kind[at])]
        named = None if author < 0 else authors[author]
        return Candidate(key, occurred, None if session < 0 else session, 0, named, length, kind)


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """What the indexes say of each candidate, as `domain.retrieval.Scores`.

    lexical: 0 for no word of the question; dense, window: NaN for no vector; sessions: of each session by its
    number, None where nothing is known.
    """

    lexical: Doubles
    dense: Doubles
    window: Doubles
    sessions: Doubles | None = None
    moments: Mapping[str, Moments] = field(default_factory=dict)


def rank(
    pool: Pool,
    spoken: Spoken,
    facts: Facts,
    *,
    k: int,
    weights: Weights = DEFAULTS,
    only: Mask | None = None,
) -> list[Ranked]:
    """The best `k`, best first; of equals the newer. only: which may be answers."""
    wanted = _wanted(pool, spoken, facts, only)
    if not len(wanted):
        return []
    size = len(pool.keys)
    age = np.empty(size, np.int64)
    age[np.lexsort((pool.keys, pool.occurred))[::-1]] = np.arange(size)
    signals = _signals(pool, spoken, facts, weights, age)
    columns = [values for values in signals.values() if values is not None]
    promising = _promising(np.array([values[wanted] for values in columns]), k)
    chosen = wanted[promising]
    totals = [math.fsum(row) for row in zip(*(values[chosen].tolist() for values in columns), strict=True)]
    order = sorted(zip(totals, (-age[chosen]).tolist(), chosen.tolist(), strict=True), reverse=True)[:k]
    return _told(pool, signals, [at for _, _, at in order], [total for total, _, _ in order])


def _told(
    pool: Pool, signals: Mapping[str, Doubles | None], order: Sequence[int], totals: Sequence[float]
) -> list[Ranked]:
    authors, kinds = list(pool.turns.authors), list(pool.turns.kinds)
    columns = {
        name: [0.0] * len(order) if values is None else values[order].tolist()
        for name, values in signals.items()
    }
    return [
        Ranked(
            pool.candidate(at, authors, kinds),
            total,
            {name: column[place] for name, column in columns.items()},
        )
        for place, (at, total) in enumerate(zip(order, totals, strict=True))
    ]


def _promising(columns: Doubles, k: int) -> Ints:
    """Those that may be among the best k, whatever the order in which their signals are added."""
    count = columns.shape[1]
    if count <= k:
        return np.arange(count)
    about = columns.sum(axis=0)
    slack = _SLACK * float(np.abs(columns).sum(axis=0).max())
    return np.flatnonzero(about >= np.partition(about, count - k)[count - k] - slack)


def _wanted(pool: Pool, spoken: Spoken, facts: Facts, only: Mask | None) -> Ints:
    """Which of the pool may be answers: those that anything speaks for, inside the filters."""
    said = (spoken.lexical > 0.0) | ~np.isnan(spoken.dense) | ~np.isnan(spoken.window)
    allowed = np.ones(len(pool.keys), np.bool_) if only is None else only
    if facts.strict:
        allowed = allowed & admitted(pool.keys, pool.occurred, facts)
    found = np.flatnonzero(said & allowed)
    if len(found) or not facts.bounded:
        return found
    return np.flatnonzero(allowed & covered(pool.occurred, facts))


def covered(occurred: Ints, facts: Facts) -> Mask:
    """Which times lie inside the bounds of the question."""
    inside = np.ones(len(occurred), np.bool_)
    if facts.since_us is not None:
        inside &= occurred >= facts.since_us
    if facts.until_us is not None:
        inside &= occurred < facts.until_us
    return inside


def admitted(keys: Ints, occurred: Ints, facts: Facts) -> Mask:
    """Which strict bounds let through."""
    inside = covered(occurred, facts)
    return inside | np.isin(keys, list(facts.naming)) if facts.naming else inside


def _signals(
    pool: Pool, spoken: Spoken, facts: Facts, weights: Weights, age: Ints
) -> dict[str, Doubles | None]:
    """Signal → what it adds to each candidate; None where it has nothing to say."""
    turns, size = len(pool.turns), len(pool.keys)
    leaning = np.ones(size)
    long = pool.turns.lengths > weights.short
    leaning[:turns][long] = weights.short / pool.turns.lengths[long]
    own = _own(spoken, leaning, weights)
    base = own[LEXICAL] + own[DENSE] + own[WINDOW]
    last = max(size - 1, 1)
    said, record = np.zeros(size), np.zeros(size)
    said[:turns] = pool.turns.said_by(facts.authors) if facts.authors else 0.0
    record[turns:] = weights.record
    return {
        **own,
        NEIGHBOURS: leaning * _around(pool.before, base, weights),
        SESSION_BEST: leaning
        * _of_session(pool.session, weights.session_best, lambda: _session_best(pool, base)),
        SESSION_LEXICAL: None
        if spoken.sessions is None
        else leaning
        * _of_session(pool.session, weights.session_lexical, lambda: _session_lexical(pool, spoken)),
        AUTHOR: weights.author * said if facts.authors else None,
        TIME: weights.time * covered(pool.occurred, facts).astype(np.float64) if facts.bounded else None,
        RECORD: record,
        RECENCY: weights.recency * (last - age).astype(np.float64) / last,
    }


def _own(spoken: Spoken, leaning: Doubles, weights: Weights) -> dict[str, Doubles]:
    """What the text itself says; where one of the two vectors is missing, the other stands for it."""
    lexical = _z(spoken.lexical, LEXICAL, spoken.moments)
    dense, window = _z(spoken.dense, DENSE, spoken.moments), _z(spoken.window, WINDOW, spoken.moments)
    shares = weights.window * leaning
    return {
        LEXICAL: weights.lexical * lexical,
        DENSE: (weights.dense + weights.window - shares) * _filled(dense, window),
        WINDOW: shares * _filled(window, dense),
    }


def _filled(values: Doubles, others: Doubles) -> Doubles:
    missing = np.isnan(values)
    if not missing.any():
        return values
    return np.where(missing, np.where(np.isnan(others), 0.0, others), values)


def _z(values: Doubles, name: str, given: Mapping[str, Moments]) -> Doubles:
    moments = given.get(name) or _moments(values[~np.isnan(values)])
    return (values - moments.mean) / spread_of(name, moments)


def _moments(values: Doubles) -> Moments:
    """As `domain.retrieval.moments_of`."""
    count = len(values)
    if not count:
        return Moments(0, 0.0, 0.0)
    mean = math.fsum(values.tolist()) / count
    far = values - mean
    return Moments(count, mean, math.sqrt(math.fsum((far * far).tolist()) / count))


def _around(before: Ints, base: Doubles, weights: Weights) -> Doubles:
    """What the turns beside it, and two away, pass on."""
    size = len(before)
    linked = np.flatnonzero(before >= 0)
    back, ahead = np.full(size + 1, size), np.full(size + 1, size)
    back[linked], ahead[before[linked]] = before[linked], linked
    score = np.append(base, 0.0)
    one = score[back] + score[ahead]
    two = score[back[back]] + score[ahead[ahead]]
    passed: Doubles = weights.beside * one + weights.two_away * two
    return passed[:size]


def _of_session(session: Ints, weight: float, values: Callable[[], Doubles]) -> Doubles:
    """The value of each one's session, 0 for those that have none."""
    found = np.zeros(len(session))
    inside = session >= 0
    if inside.any():
        found[inside] = weight * values()[session[inside]]
    return found


def _session_best(pool: Pool, base: Doubles) -> Doubles:
    """By session the mean of its three best turns; what a short one lacks counts as average (0)."""
    count = len(pool.turns)
    order = np.lexsort((-base[:count], pool.session[:count]))
    order = order[np.searchsorted(pool.session[order], 0) :]
    session, score = pool.session[order], base[order]
    start = np.flatnonzero(np.append(True, session[1:] != session[:-1]))
    end, total = np.append(start[1:], len(order)), score[start]
    for away in range(1, _BEST):
        there = np.flatnonzero(start + away < end)
        total[there] += score[start[there] + away]
    means = np.zeros(int(session[-1]) + 1)
    means[session[start]] = total / _BEST
    return means


def _session_lexical(pool: Pool, spoken: Spoken) -> Doubles:
    assert spoken.sessions is not None
    known = distinct(pool.session[pool.session >= 0])
    z = np.zeros(len(spoken.sessions))
    z[known] = _z(spoken.sessions[known], SESSION_LEXICAL, spoken.moments)
    return z


__all__ = ["Pool", "RecordTable", "Spoken", "admitted", "covered", "rank"]

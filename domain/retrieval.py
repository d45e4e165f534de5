"""The control point *retrieve*: which records and turns of a scope are eligible, and which fit a question best.

Why so many signals: words alone miss paraphrases, vectors alone miss names and numbers, and both judge a turn
without what was said around it. Each signal is made comparable (z-scores over the scope's own candidates) and
the weighted signals are added. Nothing here knows what lies outside the given candidates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from heapq import nlargest
from operator import add, attrgetter, mul
from typing import Final, cast

from mnemolog.domain.lexical import Matches
from mnemolog.domain.records import READABLE, Status

LEXICAL: Final = "lexical"
DENSE: Final = "dense"
WINDOW: Final = "window"
NEIGHBOURS: Final = "neighbours"
SESSION_BEST: Final = "session_best"
SESSION_LEXICAL: Final = "session_lexical"
AUTHOR: Final = "author"
TIME: Final = "time"
RECORD: Final = "record"
RECENCY: Final = "recency"
RERANK: Final = "rerank"
RERANK_WEIGHT: Final = 1.5
"""How much z(what a reranker says of the first hits) counts, beside the signals of `Weights`."""

_CURRENT: Final = Status.CURRENT
_BEST: Final = 3
_PROMISING: Final = 50
_ROOM: Final = 1 << 32
_PRIOR_CANDIDATES: Final = 5
_PRIOR_DEVIATION: Final = {LEXICAL: 1.0, DENSE: 0.1, WINDOW: 0.1, SESSION_LEXICAL: 1.0}
_WORD: Final = re.compile(r"[^\W_]+")
_HANGUL_AFTER_NAME: Final = re.compile(
    r"(?:이|씨|님|선생님|팀장님)?(?:은|는|이|가|을|를|의|와|과|랑|이랑|하고|도|만|께|께서|에게|에게서|한테|한테서|보다|처럼)?는?\Z"
)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts. A z-score is mostly between -1 and 5.

    Chosen on LoCoMo's conversations (turn to question), then held against BEAM and KorQuAD, where none of the
    session signals may lose what a single turn answers. `bench/retrieval.py` prints what each one adds.
    """

    lexical: float = 1.0
    """z(BM25 of the text with its speaker and date)."""
    dense: float = 0.5
    """z(cosine of the turn alone). With `window` it makes up the weight of one lexical signal."""
    window: float = 0.5
    """z(cosine of the turn with the turns beside it)."""
    beside: float = 0.3
    """Share of the score of each turn right beside it, same session only."""
    two_away: float = 0.1
    """Share of the score of each turn two away, same session only."""
    session_best: float = 0.4
    """The mean of the best three turns of its session."""
    session_lexical: float = 0.4
    """z(BM25 of its session as one text)."""
    author: float = 1.0
    """Added where the question names who said it."""
    time: float = 1.0
    """Added where it was said in the time that the question speaks of."""
    record: float = 1.0
    """Added to curated records: somebody decided to keep them, and their old values do not come back."""
    short: float = 40.0
    """Up to this many search terms a turn leans on what surrounds it in full; a text of n times as many, 1/n."""
    recency: float = 0.05
    """From 0 for the oldest to this for the newest candidate: it decides between equals only."""


DEFAULTS: Final = Weights()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn or a record of the caller's scope, already seen as permitted (scope, kind, sensitivity).

    key: what scores are given under, unique among the candidates; session: its session's number or None;
    place: 0, 1, 2, … among the turns of its session, None for a record; author: a name, never a mere role;
    status: as judged at the reader's now, CURRENT for turns.
    """

    key: int
    occurred_us: int
    session: int | None = None
    place: int | None = None
    author: str | None = None
    length: int = 0
    kind: str = "turn"
    status: Status = Status.CURRENT


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and standard deviation of a signal over all `count` members of a scope."""

    count: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Scores:
    """What the indexes say: key → score (session → score for `session_lexical`).

    A key that `lexical` or `session_lexical` lacks has no word of the question (0); one that `dense` or `window`
    lacks has no vector, and is neither lifted nor lowered. `moments` names signals whose spread was measured over
    a whole scope of which only the promising part is given as candidates; the others are measured here.
    """

    lexical: Mapping[int, float] = field(default_factory=dict)
    dense: Mapping[int, float] = field(default_factory=dict)
    window: Mapping[int, float] = field(default_factory=dict)
    session_lexical: Mapping[int, float] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the question itself says. authors: those it names; the bounds: microseconds UTC, `until_us` excluded.

    With `strict` what lies outside the bounds is left out, unless it is among `naming`, the keys of what names that
    time itself; else what lies inside is lifted.
    """

    authors: frozenset[str] = frozenset()
    since_us: int | None = None
    until_us: int | None = None
    strict: bool = False
    naming: frozenset[int] = frozenset()

    @property
    def bounded(self) -> bool:
        return self.since_us is not None or self.until_us is not None

    def covers(self, occurred_us: int) -> bool:
        """Whether a time lies inside the bounds."""
        return (self.since_us is None or occurred_us >= self.since_us) and (
            self.until_us is None or occurred_us < self.until_us
        )

    def admits(self, key: int, occurred_us: int) -> bool:
        """Whether strict bounds let a candidate through."""
        return key in self.naming or self.covers(occurred_us)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, and what each signal added to it: the signals sum to the score."""

    candidate: Candidate
    score: float
    signals: Mapping[str, float]


def retrieve(
    candidates: Iterable[Candidate],
    scores: Scores,
    facts: Facts = Facts(),  # frozen
    *,
    k: int | None = None,
    weights: Weights = DEFAULTS,
    history: bool = False,
    only: Collection[int] | None = None,
) -> list[Ranked]:
    """The best `k` candidates (None: all that anything speaks for), best first; of equals the newer.

    What is superseded, retracted, expired or not yet valid never enters, not even a mean, unless `history`.
    `only` (keys) and strict bounds choose among the ranked and change no score.
    """
    pool = [one for one in candidates if history or one.status is _CURRENT or one.status in READABLE]
    pool.sort(key=attrgetter("occurred_us", "key"), reverse=True)
    none: Sequence[float] = [0.0] * len(pool)
    signals = _signals(pool, scores, facts, weights, none)
    told = [values for values in signals.values() if values is not none]
    totals = list(map(math.fsum, zip(*told, strict=True)))
    wanted = _wanted(pool, scores, facts, only)
    best = sorted(wanted, key=totals.__getitem__, reverse=True)[:k]  # stable: equals stay newest first
    return [
        Ranked(pool[at], totals[at], {name: values[at] for name, values in signals.items()}) for at in best
    ]


def _signals(
    pool: Sequence[Candidate], scores: Scores, facts: Facts, weights: Weights, none: Sequence[float]
) -> dict[str, Sequence[float]]:
    """Signal → what it adds to each candidate, in the order of the pool; `none` where it has nothing to say."""
    leaning = [min(1.0, weights.short / one.length) if one.length else 1.0 for one in pool]
    signals = _own(pool, scores, leaning, weights)
    base = [a + b + c for a, b, c in zip(*signals.values(), strict=True)]
    last = max(len(pool) - 1, 1)
    around = {
        NEIGHBOURS: _around(pool, base, weights),
        SESSION_BEST: _session_best(pool, base, weights.session_best),
        SESSION_LEXICAL: _session_lexical(pool, scores, weights.session_lexical, none),
    }
    return {
        **signals,
        **{
            name: none if values is none else list(map(mul, leaning, values))
            for name, values in around.items()
        },
        AUTHOR: [weights.author * (one.author in facts.authors) for one in pool] if facts.authors else none,
        TIME: [weights.time * facts.covers(one.occurred_us) for one in pool] if facts.bounded else none,
        RECORD: [weights.record if one.place is None else 0.0 for one in pool],
        RECENCY: [weights.recency * (last - at) / last for at in range(len(pool))],
    }


def _own(
    pool: Sequence[Candidate], scores: Scores, leaning: Sequence[float], weights: Weights
) -> dict[str, Sequence[float]]:
    """What the text itself says; where one of the two vectors is missing, the other stands for it.

    What a long text does not lean on its window for, its own vector gets.
    """
    keys, given = [one.key for one in pool], scores.moments
    lexical = _z([scores.lexical.get(key, 0.0) for key in keys], LEXICAL, given)
    dense = _z(list(map(scores.dense.get, keys)), DENSE, given)
    window = _z(list(map(scores.window.get, keys)), WINDOW, given)
    shares = [weights.window * lean for lean in leaning]
    both = weights.dense + weights.window
    return {
        LEXICAL: [weights.lexical * z for z in cast(Sequence[float], lexical)],
        DENSE: [(both - w) * z for z, w in zip(_filled(dense, window), shares, strict=True)],
        WINDOW: list(map(mul, shares, _filled(window, dense))),
    }


def _filled(values: Sequence[float | None], others: Sequence[float | None]) -> Sequence[float]:
    """Each value, else what stands for it, else 0, which is average."""
    if None not in values:
        return cast(Sequence[float], values)
    return [
        value if value is not None else other if other is not None else 0.0
        for value, other in zip(values, others, strict=True)
    ]


def _z(values: Sequence[float | None], name: str, given: Mapping[str, Moments]) -> list[float | None]:
    """z-scores."""
    known = [value for value in values if value is not None]
    moments = given.get(name) or moments_of(known)
    spread, mean = spread_of(name, moments), moments.mean
    if len(known) == len(values):
        return [(value - mean) / spread for value in known]
    return [None if value is None else (value - mean) / spread for value in values]


def spread_of(name: str, moments: Moments) -> float:
    """What a signal's z-scores are divided by.

    A tiny scope has hardly a spread of its own: five made-up members with a usual one are counted in, so that a
    meaningless difference between two candidates does not weigh as much as a word that only one has.
    """
    prior = _PRIOR_CANDIDATES * _PRIOR_DEVIATION[name] ** 2
    return math.sqrt((moments.count * moments.deviation**2 + prior) / (moments.count + _PRIOR_CANDIDATES))


def moments_of(values: Collection[float], zeros: int = 0) -> Moments:
    """Mean and deviation, to the same digit in whatever order the values come. zeros: how many 0.0 more there are."""
    count = len(values) + zeros
    if not count:
        return Moments(0, 0.0, 0.0)
    mean = math.fsum(values) / count
    # A square times a power of two is exact, so the zeros need one term for each bit of their number.
    far = [mean * mean * 2.0**bit for bit in range(zeros.bit_length()) if zeros >> bit & 1]
    away = [value - mean for value in values]
    variance = math.fsum([*map(mul, away, away), *far]) / count
    return Moments(count, mean, math.sqrt(variance))


def _around(pool: Sequence[Candidate], base: Sequence[float], weights: Weights) -> list[float]:
    """What the turns beside it, and two away, pass on. Records have no neighbours and are none."""
    # A session's places as one run of whole numbers, with room between sessions: a tuple for each would cost more.
    names = [
        None if one.session is None or one.place is None else one.session * _ROOM + one.place for one in pool
    ]
    get = {name: score for name, score in zip(names, base, strict=True) if name is not None}.get
    near, far = weights.beside, weights.two_away
    return [
        0.0
        if name is None
        else near * (get(name - 1, 0.0) + get(name + 1, 0.0))
        + far * (get(name - 2, 0.0) + get(name + 2, 0.0))
        for name in names
    ]


def _session_best(pool: Sequence[Candidate], base: Sequence[float], weight: float) -> list[float]:
    """The mean of the three best turns of its session; what a short session lacks counts as average (0)."""
    of: dict[int, list[float]] = {}
    for one, score in zip(pool, base, strict=True):
        if one.session is not None and one.place is not None:
            of.setdefault(one.session, []).append(score)
    mean = {session: reduce(add, nlargest(_BEST, some)) / _BEST for session, some in of.items()}
    return [0.0 if one.session is None else weight * mean.get(one.session, 0.0) for one in pool]


def _session_lexical(
    pool: Sequence[Candidate], scores: Scores, weight: float, none: Sequence[float]
) -> Sequence[float]:
    if not scores.session_lexical and SESSION_LEXICAL not in scores.moments:
        return none
    sessions = [one.session for one in pool]
    known = list(dict.fromkeys(session for session in sessions if session is not None))
    values = _z([scores.session_lexical.get(one, 0.0) for one in known], SESSION_LEXICAL, scores.moments)
    z_of = {session: z or 0.0 for session, z in zip(known, values, strict=True)}
    return [0.0 if session is None else weight * z_of[session] for session in sessions]


def _wanted(
    pool: Sequence[Candidate], scores: Scores, facts: Facts, only: Collection[int] | None
) -> list[int]:
    """Which of the pool may be answers: those that anything speaks for, inside the filters."""
    allowed = [
        at
        for at, one in enumerate(pool)
        if (only is None or one.key in only) and (not facts.strict or facts.admits(one.key, one.occurred_us))
    ]
    lexical, dense, window = scores.lexical, scores.dense, scores.window
    spoken = [
        at
        for at, key in ((at, pool[at].key) for at in allowed)
        if key in dense or key in window or lexical.get(key, 0.0) > 0.0
    ]
    if spoken or not facts.bounded:
        return spoken
    return [at for at in allowed if facts.covers(pool[at].occurred_us)]


def joined(turns: Matches, records: Matches) -> Matches:
    """Two indexes of one scope taken as one, so that a word is as rare in both; record `n` becomes document `-n`.

    Without it the same word would weigh little among three records and much among a thousand turns.
    """
    postings = {term: dict(times) for term, times in turns.postings.items()}
    for term, times in records.postings.items():
        postings.setdefault(term, {}).update({-doc: count for doc, count in times.items()})
    lengths = {**turns.lengths, **{-doc: length for doc, length in records.lengths.items()}}
    return Matches(turns.docs + records.docs, turns.tokens + records.tokens, postings, lengths)


def reranked(scores: Sequence[float], count: int) -> list[float]:
    """What a reranker's scores of the first hits add to each of `count` hits, in their order.

    Those that it did not look at get as little as the last of them, so that none of them gets ahead.
    """
    moments = moments_of(scores)
    spread = moments.deviation or 1.0
    lifts = [RERANK_WEIGHT * (score - moments.mean) / spread for score in scores]
    return lifts + [min(lifts)] * (count - len(lifts))


def best_passage(lexical: Mapping[int, float], dense: Mapping[int, float]) -> int:
    """The passage of one text that answers best, found as the best turn of a scope is; of equals the first."""
    promising = {
        number
        for scores in (lexical, dense)
        for _, number in nlargest(_PROMISING, [(score, -number) for number, score in scores.items()])
    }
    pool = [Candidate(-number, number) for number in promising]
    return retrieve(pool, Scores(lexical, dense), k=1)[0].candidate.key


def named_authors(question: str, authors: Iterable[str]) -> frozenset[str]:
    """Those of the authors whose name stands in the question: in full, or by a part that only one of them has."""
    words = [word.casefold() for word in _WORD.findall(question)]
    parts = {author: [part.casefold() for part in _WORD.findall(author)] for author in set(authors)}
    holders: dict[str, int] = {}
    for own in parts.values():
        for part in set(own):
            holders[part] = holders.get(part, 0) + 1
    return frozenset(author for author, own in parts.items() if _is_named(own, words, holders))


def _is_named(own: Sequence[str], words: Sequence[str], holders: Mapping[str, int]) -> bool:
    found = [part for part in own if len(part) > 1 and any(_names(word, part) for word in words)]
    return bool(found) and (len(found) == len(own) or any(holders[part] == 1 for part in found))


def _names(word: str, name: str) -> bool:
    """Whether a word is a name, with a particle or an address behind it where it is Korean: 민수 in 민수가."""
    if word == name:
        return True
    hangul = "가" <= name[-1] <= "힣"
    return hangul and word.startswith(name) and bool(_HANGUL_AFTER_NAME.match(word[len(name) :]))

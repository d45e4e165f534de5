"""BM25 on arrays: what `domain.lexical.bm25` says, to the last digit, of many documents at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.lexical import K1, B, Term
from mnemolog.domain.passages import PARTS

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Posting = tuple[Ints, Ints]
"""The documents that have a term, in order, and how often each has it."""

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """What an index knows about some terms inside some scopes. docs and tokens count everything in those scopes."""

    docs: int = 0
    tokens: int = 0
    terms: Mapping[str, Posting] = field(default_factory=dict)

    def of(self, term: str) -> Posting:
        return self.terms.get(term, (_NONE, _NONE))

    def documents(self) -> Ints:
        """Those that have any of the terms, each once, in order."""
        return merged([docs for docs, _ in self.terms.values()])


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Documents in order, each once, and their scores."""

    docs: Ints = field(default_factory=lambda: _NONE)
    scores: Doubles = field(default_factory=lambda: np.empty(0, np.float64))

    def spread_over(self, keys: Ints) -> Doubles:
        """The score of each key, 0 where it has none. keys: in order."""
        values = np.zeros(len(keys))
        at, inside = places(keys, self.docs)
        values[at] = self.scores[inside]
        return values


def counted(documents: Sequence[int]) -> Posting:
    """Of documents that are named as often as they have a term."""
    docs, times = np.unique(np.array(documents, np.int64), return_counts=True)
    return docs, times


def posting(docs: Sequence[int], times: Sequence[int]) -> Posting:
    """Of documents in order."""
    return np.array(docs, np.int64), np.array(times, np.int64)


def merged(parts: Sequence[Ints]) -> Ints:
    """Every number of the parts once, in order."""
    return np.unique(np.concatenate(parts)) if parts else _NONE


def places(keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where those of the wanted that are among the keys stand there; and which of the wanted they are.

    keys: in order, each once.
    """
    if not len(keys):
        return _NONE, np.zeros(len(wanted), np.bool_)
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    inside = keys[at] == wanted
    return at[inside], inside


@dataclass(frozen=True, slots=True)
class Rarity:
    """How much each term of a question weighs: by how many documents there are, and how many have it."""

    docs: int
    tokens: int
    query: Sequence[Term]
    spread: Mapping[str, int]

    def scores(self, postings: Postings, docs: Ints, lengths: Ints) -> Doubles:
        """BM25 of these documents. lengths: how many tokens each has."""
        scores = np.zeros(len(docs))
        average = self.tokens / self.docs if self.docs else 0.0
        flat, slope = K1 * (1 - B), K1 * B / average if average else 0.0
        for term, weight in sorted(self.query):
            found, times = postings.of(term)
            if not len(found):
                continue
            spread = self.spread[term]
            gain = weight * (K1 + 1) * math.log(1 + (self.docs - spread + 0.5) / (spread + 0.5))
            at, inside = places(docs, found)
            count = times[inside]
            scores[at] += gain * count / (count + flat + slope * lengths[at])
        return scores


def rarity(parts: Sequence[Postings], query: Sequence[Term], pieces: Postings | None = None) -> Rarity:
    """Of some indexes taken as one. pieces: passages, of which a large text has any number and is one document."""
    docs, tokens = sum(part.docs for part in parts), sum(part.tokens for part in parts)
    spread = {term: sum(len(part.of(term)[0]) for part in parts) for term, _ in query}
    if pieces is not None and pieces.terms:
        for term in spread:
            holders = [parts[0].of(term)[0], pieces.of(term)[0] // PARTS]
            spread[term] += len(merged(holders)) - len(holders[0])
    return Rarity(docs, tokens, query, spread)


def sessions_of(postings: Postings, query: Sequence[Term], at: Mapping[str, Ints], totals: Ints) -> Doubles:
    """BM25 of each session as one document. at: term → the session of each of its documents, -1 for none.

    totals: the tokens of each session.
    """
    found: dict[str, Posting] = {}
    for term, (_, times) in postings.terms.items():
        inside = at[term] >= 0
        counts = np.bincount(at[term][inside], times[inside], len(totals)).astype(np.int64)
        having = np.flatnonzero(counts)
        found[term] = having, counts[having]
    grouped = Postings(len(totals), int(totals.sum()), found)
    return rarity([grouped], query).scores(grouped, np.arange(len(totals)), totals)


__all__ = [
    "Doubles",
    "Ints",
    "Posting",
    "Postings",
    "Rarity",
    "Words",
    "counted",
    "merged",
    "places",
    "posting",
    "rarity",
    "sessions_of",
]

"""BM25 on arrays: what `domain.lexical.bm25` says, to the last digit, of many documents at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.lexical import K1, B, Term
from mnemolog.domain.passages import PARTS

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Which documents of some scopes have which terms, how often; ordered by term and document.

    docs and tokens count everything in those scopes; term: which of the terms that were asked for.
    """

    docs: int = 0
    tokens: int = 0
    term: Ints = field(default_factory=lambda: _NONE)
    doc: Ints = field(default_factory=lambda: _NONE)
    times: Ints = field(default_factory=lambda: _NONE)

    def documents(self) -> Ints:
        """Those that have any of the terms, each once, in order."""
        return distinct(self.doc)

    def having(self, terms: Sequence[int]) -> Ints:
        """Those that have all of these terms, in order; none where no term is given."""
        docs, times = np.unique(self.doc[np.isin(self.term, terms)], return_counts=True)
        having: Ints = docs[times == len(terms)]
        return having


def counted(docs: int, tokens: int, term: Sequence[int], doc: Sequence[int]) -> Postings:
    """Of documents that are named as often as they have a term, term by term."""
    terms, documents = np.array(term, np.int64), np.array(doc, np.int64)
    if not len(documents):
        return Postings(docs, tokens)
    if not _is_ordered(terms, documents):
        order = np.lexsort((documents, terms))
        terms, documents = terms[order], documents[order]
    start = np.flatnonzero(np.append(True, (terms[1:] != terms[:-1]) | (documents[1:] != documents[:-1])))
    times = np.diff(np.append(start, len(documents)))
    return Postings(docs, tokens, terms[start], documents[start], times)


def posted(docs: int, tokens: int, *columns: Sequence[int]) -> Postings:
    """Of terms, documents and how often, in order."""
    return Postings(docs, tokens, *(np.array(column, np.int64) for column in columns))


def _is_ordered(terms: Ints, documents: Ints) -> bool:
    ahead = terms[1:] - terms[:-1]
    return bool(((ahead > 0) | ((ahead == 0) & (documents[1:] >= documents[:-1]))).all())


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


def distinct(numbers: Ints) -> Ints:
    """Each once, in order."""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


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


@dataclass(frozen=True, slots=True, eq=False)
class Rarity:
    """How much each term weighs: by how many documents there are, and how many have it. query: ordered by term."""

    docs: int
    tokens: int
    query: Sequence[Term]
    spread: Ints

    def scores(self, postings: Postings, docs: Ints, lengths: Ints) -> Doubles:
        """BM25 of these documents. docs: in order, all that have a term; lengths: how many tokens each has."""
        average = self.tokens / self.docs if self.docs else 0.0
        flat, slope = K1 * (1 - B), K1 * B / average if average else 0.0
        gains = np.array(
            [self._gain(weight, n) for (_, weight), n in zip(self.query, self.spread.tolist(), strict=True)]
        )
        at = np.searchsorted(docs, postings.doc)
        parts = gains[postings.term] * postings.times / (postings.times + flat + slope * lengths[at])
        scores: Doubles = np.bincount(at, parts, len(docs)).astype(
            np.float64
        )  # adds term by term, as they come
        return scores

    def _gain(self, weight: float, spread: int) -> float:
        return weight * (K1 + 1) * math.log(1 + (self.docs - spread + 0.5) / (spread + 0.5))


def rarity(query: Sequence[Term], parts: Sequence[Postings], pieces: Postings | None = None) -> Rarity:
    """Of some indexes taken as one, whose terms are numbered as the query's.

    pieces: passages, of which a large text has any number and is one document of the first.
    """
    docs, tokens = sum(part.docs for part in parts), sum(part.tokens for part in parts)
    held = [part.term for part in parts]
    if pieces is not None and len(pieces.doc):
        first = parts[0]
        pairs = np.concatenate([_paired(first.term, first.doc), _paired(pieces.term, pieces.doc // PARTS)])
        held[0] = distinct(pairs) >> _ROOM
    spread = np.bincount(np.concatenate(held), minlength=len(query)) if held else _NONE
    return Rarity(docs, tokens, query, spread)


_ROOM: Final = 42
"""Bits of a position."""


def _paired(term: Ints, doc: Ints) -> Ints:
    return (term << _ROOM) | doc


def by_session(postings: Postings, query: Sequence[Term], session: Ints, totals: Ints) -> Doubles:
    """BM25 of each session as one document. session: of each posting, -1 for none; totals: the tokens of each."""
    inside = session >= 0
    size = len(totals)
    cells = postings.term[inside] * size + session[inside]
    times = np.bincount(cells, postings.times[inside], len(query) * size).astype(np.int64)
    having = np.flatnonzero(times)
    term, doc = (having // size, having % size) if size else (having, having)
    grouped = Postings(size, int(totals.sum()), term, doc, times[having])
    return rarity(query, [grouped]).scores(grouped, np.arange(size), totals)


__all__ = [
    "Doubles",
    "Ints",
    "Postings",
    "Rarity",
    "Words",
    "by_session",
    "counted",
    "distinct",
    "places",
    "posted",
    "rarity",
]

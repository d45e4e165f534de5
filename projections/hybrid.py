"""Hybrid search: what words and vectors say of the turns and records of some scopes, ranked by `projections.ranking`.

In a scope of ordinary size everything is a candidate, so that means and deviations are exact. In a large one the
best of each signal are, with the turns beside them; what the signals look like over the whole scope is measured apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.lexical import Term
from mnemolog.domain.passages import PARTS, place_of
from mnemolog.domain.retrieval import (
    DENSE,
    LEXICAL,
    WINDOW,
    Moments,
    Ranked,
    best_passage,
    moments_of,
    named_authors,
)
from mnemolog.projections import turns_view
from mnemolog.projections.dense import best, of_events
from mnemolog.projections.postings import Doubles, Ints, Postings, Words, by_session, distinct, places, rarity
from mnemolog.projections.questions import NO_FILTERS, Filters, Places, Question, Ranking
from mnemolog.projections.ranking import Pool, RecordTable, Spoken, admitted, covered, rank
from mnemolog.projections.turn_arrays import Mask, TurnTable

if TYPE_CHECKING:
    from mnemolog.projections.curated_reads import CuratedView
    from mnemolog.projections.dense import Cosines
    from mnemolog.projections.lexical import LexicalIndex
    from mnemolog.projections.questions import Nearness
    from mnemolog.projections.record_tables import Judged, RecordTables
    from mnemolog.projections.turn_tables import TurnTables
    from mnemolog.projections.turns import Turns

WHOLE: Final = 4_000
"""Turns of a scope up to which all of them are candidates."""
BEST: Final = 150
"""How many each signal proposes in a larger one, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class _Wording:
    """What the words of the question say. both, passages: how many turns and records, and passages, there are."""

    terms: Sequence[Term]
    found: Postings
    """Of the turns."""
    turns: Words
    records: Words
    """Judged over turns and records together."""
    pieces: Words
    """The same of the passages of large turns, by their numbers."""
    both: int
    passages: int

    def moments(self) -> Moments:
        scores = [*self.turns.scores.tolist(), *self.records.scores.tolist()]
        return moments_of(scores, self.both - len(scores))


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One question in its scopes, with what was read of them. table: all turns, where they are at hand."""

    question: Question
    at: Places
    words: _Wording
    table: TurnTable | None
    judged: Judged
    cosines: Cosines | None


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """The turns that are candidates, and what is known beside the scores of each."""

    turns: TurnTable
    sessions: Doubles | None = None
    moments: dict[str, Moments] = field(default_factory=dict)


class HybridSearch:
    """Searches both views."""

    def __init__(
        self, turns: Turns, tables: TurnTables, curated: CuratedView, records: RecordTables, near: Nearness
    ) -> None:
        self._index, self._analyzer, self._tables = turns.index, turns.analyzer, tables
        self._passages = turns.passages.index
        self._curated, self._records, self._near = curated, records, near

    def search(self, question: Question, at: Places) -> Ranking:
        """A time in the question holds strictly, unless nothing was said in it."""
        asked = self._asked(question, at)
        found = self._ranked(asked)
        facts = asked.question.facts
        if facts.strict and not any(facts.covers(one.candidate.occurred_us) for one in found):
            found = self._ranked(
                replace(asked, question=replace(question, facts=replace(facts, strict=False)))
            )
        if not asked.words.passages:
            return Ranking(found, None, asked.judged)
        best = _best_passages(asked, {one.candidate.key for one in found})
        return Ranking(found, best, asked.judged)

    def _asked(self, question: Question, at: Places) -> _Asked:
        terms = self._analyzer.query(question.text)
        named = [term for term, _ in terms]
        turns, pieces = self._index.both(self._passages, at.turns, list(at.turn_scopes), named)
        records = self._curated.lexical.postings(at.records, list(at.record_scopes), named)
        judged = self._records.of(at.records, at.record_scopes, question.now, at.record_epoch)
        keep = self._tables.of if turns.docs <= WHOLE else self._tables.of_large
        table = keep(at.turns, at.turn_scopes, turns, at.turn_epoch)
        words = self._worded(terms, at, table, judged.table, (turns, records, pieces))
        if question.times:
            naming = self._naming(question.times, named, (turns, records, pieces))
            question = replace(question, facts=replace(question.facts, naming=naming))
        scopes = list(dict.fromkeys([*at.turn_scopes.values(), *at.record_scopes.values()]))
        limit, size = max(BEST, question.k), turns.docs + pieces.docs
        cosines = self._near.cosines(question.text, scopes, size, limit) if scopes else None
        return _Asked(question, at, words, table, judged, cosines)

    def _naming(
        self, times: str, named: Sequence[str], found: tuple[Postings, Postings, Postings]
    ) -> frozenset[int]:
        """The keys of turns and records that have every word of a time; a half of one does not count."""
        words = {term for term, weight in self._analyzer.query(times) if weight == 1}
        wanted = [number for number, term in enumerate(named) if term in words]
        turns, records, pieces = (each.having(wanted).tolist() for each in found)
        return frozenset([*turns, *(-number for number in records), *(piece // PARTS for piece in pieces)])

    def _worded(
        self,
        terms: Sequence[Term],
        at: Places,
        table: TurnTable | None,
        judged: RecordTable,
        found: tuple[Postings, Postings, Postings],
    ) -> _Wording:
        """BM25 of turns, records and passages: a large turn is as good as its best passage.

        A large text is one document however many passages it has: a word is as rare as the documents that have it
        are few, and the average length is that of whole documents. So a long log does not make its words common; nor
        is a passage lifted for being short, as it only was cut.
        """
        turns, records, pieces = found
        rare = rarity(terms, [turns, records], pieces)
        docs, numbers, parts = (each.documents() for each in found)
        kept = None if table is None else (table.positions, table.lengths)
        scores = rare.scores(turns, docs, _lengths(self._index, at, docs, kept))
        lengths = _lengths(self._curated.lexical, at, numbers, (judged.numbers, judged.lengths), records=True)
        of_records = Words(numbers, rare.scores(records, numbers, lengths))
        if not len(parts):
            return _Wording(terms, turns, Words(docs, scores), of_records, Words(), rare.docs, pieces.docs)
        average = -(-rare.tokens // max(rare.docs, 1))
        lengths = np.maximum(_lengths(self._passages, at, parts, None), average)
        of_pieces = Words(parts, rare.scores(pieces, parts, lengths))
        of_turns = _with_best(Words(docs, scores), of_pieces)
        return _Wording(terms, turns, of_turns, of_records, of_pieces, rare.docs, pieces.docs)

    def _ranked(self, asked: _Asked) -> list[Ranked]:
        question, filters = asked.question, asked.question.filters
        pool = self._whole(asked) if asked.words.found.docs <= WHOLE else self._best(asked)
        table = asked.judged.table
        records = table if filters.sees_history else table.some(table.readable)
        both = Pool.of(pool.turns, records)
        lexical = [
            asked.words.turns.spread_over(pool.turns.positions),
            asked.words.records.spread_over(records.numbers),
        ]
        dense, window = _dense(asked.cosines, pool.turns, records)
        named = named_authors(question.text, pool.turns.named())
        return rank(
            both,
            Spoken(np.concatenate(lexical), dense, window, pool.sessions, pool.moments),
            replace(question.facts, authors=named),
            k=question.k,
            only=_only(filters, pool.turns, records),
        )

    def _whole(self, asked: _Asked) -> _Pool:
        """A scope of ordinary size."""
        table, words = asked.table, asked.words
        assert table is not None
        sessions = table.sessions_at(words.found.doc)
        return _Pool(table, by_session(words.found, words.terms, sessions, table.totals))

    # A large one -------------------------------------------------------------------------------------------------

    def _best(self, asked: _Asked) -> _Pool:
        seeds = self._seeds(asked)
        turns = self._around(asked.at, seeds) if asked.table is None else asked.table.around(seeds)
        moments = {LEXICAL: asked.words.moments()}
        if asked.cosines is not None:
            moments[DENSE], moments[WINDOW] = asked.cosines.spreads()[:2]
        return _Pool(turns, None, moments)

    def _around(self, at: Places, seeds: Ints) -> TurnTable:
        """As `TurnTable.around`, read from the view."""
        pairs = turns_view.beside(at.turns, at.turn_scopes, seeds.tolist())
        wanted = sorted({*seeds.tolist(), *(position for pair in pairs for position in pair)})
        rows = turns_view.sketches(at.turns, at.turn_scopes, wanted)
        lengths = self._index.lengths(at.turns, [row.position for row in rows])
        return TurnTable().with_more(rows, lengths).linked_by(pairs)

    def _seeds(self, asked: _Asked) -> Ints:
        """The best of each signal among the turns that may be answers."""
        size, allowed = max(BEST, asked.question.k), self._allowed(asked)
        signals: list[tuple[Ints, NDArray[np.floating[Any]]]] = [
            (asked.words.turns.docs, asked.words.turns.scores)
        ]
        if asked.cosines is not None:
            near = (asked.cosines.turns, asked.cosines.windows, asked.cosines.nearest_passages())
            signals += [(scores.positions, scores.cosines) for scores in near]
        seeds = []
        for keys, values in signals:
            kept = slice(None) if allowed is None else places(allowed, keys)[1]
            seeds.append(keys[kept][best(keys[kept], values[kept], size)])
        if allowed is not None and asked.question.facts.bounded:
            seeds.append(allowed[-size:])
        return distinct(np.concatenate(seeds))

    def _allowed(self, asked: _Asked) -> Ints | None:
        """Positions of the turns that may be answers, in order; None where nothing was asked of them."""
        filters, facts = asked.question.filters, asked.question.facts
        if not filters.turns():
            return np.empty(0, np.int64)
        if not filters.chooses_turns and not facts.bounded:
            return None
        table = asked.table
        if table is None:
            rows = turns_view.sketches(asked.at.turns, asked.at.turn_scopes)
            table = TurnTable().with_more(rows, {})
        allowed = _allows(filters, table)
        return table.positions[
            allowed & admitted(table.positions, table.occurred, facts) if facts.strict else allowed
        ]


def _lengths(
    index: LexicalIndex, at: Places, docs: Ints, kept: tuple[Ints, Ints] | None, records: bool = False
) -> Ints:
    """How many tokens each document has: as it is kept, else as the index says."""
    if kept is not None:
        place, inside = places(kept[0], docs)
        if inside.all():
            return kept[1][place]
    found = index.lengths(at.records if records else at.turns, docs.tolist())
    return np.array([found[doc] for doc in docs.tolist()], np.int64)


def _with_best(turns: Words, pieces: Words) -> Words:
    """The turns, those that are large with the score of their best passage where that is better."""
    positions = pieces.docs // PARTS
    docs = distinct(np.concatenate([turns.docs, positions]))
    scores = turns.spread_over(docs)
    np.maximum.at(scores, np.searchsorted(docs, positions), pieces.scores)
    return Words(docs, scores)


def _allows(filters: Filters, turns: TurnTable) -> Mask:
    """Which turns may be answers."""
    allowed = covered(turns.occurred, filters.bounds) & filters.turns()
    for wanted, codes, column in (
        (filters.author, turns.authors, turns.author),
        (filters.tool, turns.tools, turns.tool),
    ):
        if wanted is not None:
            same = [code for name, code in codes.items() if name.casefold() == wanted.casefold()]
            allowed &= np.isin(column, same)
    if filters.kinds is not None:
        allowed &= np.isin(turns.kind, [code for name, code in turns.kinds.items() if name in filters.kinds])
    return allowed


def _only(filters: Filters, turns: TurnTable, records: RecordTable) -> Mask | None:
    """Which may be answers; None where all may."""
    if filters == NO_FILTERS:
        return None
    allowed = np.array([filters.allows_record(record) for record in records.records], np.bool_)
    return np.concatenate([_allows(filters, turns), allowed])


def _dense(cosines: Cosines | None, turns: TurnTable, records: RecordTable) -> tuple[Doubles, Doubles]:
    """Cosines of turns and records alone, and of windows; NaN for none.

    A large turn is as near as its nearest passage.
    """
    nothing = np.full(len(records), np.nan)
    if cosines is None:
        none = np.full(len(turns) + len(records), np.nan)
        return none, none
    alone = cosines.turns.over(turns.positions)
    alone = np.fmax(alone, cosines.nearest_passages().over(turns.positions))
    stated, windows = cosines.records.over(records.events), cosines.windows.over(turns.positions)
    return np.concatenate([alone, stated]), np.concatenate([windows, nothing])


def _best_passages(asked: _Asked, keys: Collection[int]) -> dict[int, int]:
    """Position → number of the passage that answers best, of those of these turns that have one that says anything."""
    lexical: dict[int, dict[int, float]] = {}
    pieces = asked.words.pieces
    of_these = np.isin(pieces.docs // PARTS, np.fromiter(keys, np.int64, len(keys)))
    for number, score in zip(pieces.docs[of_these].tolist(), pieces.scores[of_these].tolist(), strict=True):
        lexical.setdefault(place_of(number)[0], {})[number] = score
    dense: dict[int, dict[int, float]] = {}
    if asked.cosines is not None and len(asked.cosines.passages.positions):
        for number, cosine in of_events(asked.cosines.passages, keys).mapping().items():
            dense.setdefault(place_of(number)[0], {})[number] = cosine
    return {at: best_passage(lexical.get(at, {}), dense.get(at, {})) for at in {*lexical, *dense}}


__all__ = ["HybridSearch"]

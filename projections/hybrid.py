"""Hybrid search: what words and vectors say of the turns and records of some scopes, ranked by `domain.retrieval`.

In a scope of ordinary size everything is a candidate, so that means and deviations are exact. In a large one the
best of each signal are, with the turns beside them; what the signals look like over the whole scope is measured apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Final, Protocol

from sqlalchemy import Connection

from mnemolog.domain.lexical import Matches, Term, bm25
from mnemolog.domain.normalise import slot_key
from mnemolog.domain.passages import place_of
from mnemolog.domain.records import READABLE, Record, Status, microseconds
from mnemolog.domain.retrieval import (
    DENSE,
    LEXICAL,
    WINDOW,
    Candidate,
    Facts,
    Moments,
    Ranked,
    Scores,
    best_passage,
    joined,
    moments_of,
    named_authors,
    retrieve,
    with_passages,
)
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections import turns_view
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.record_tables import Judged, RecordTables
from mnemolog.projections.turn_tables import TurnTables, turn_candidate
from mnemolog.projections.turns import Turns
from mnemolog.projections.turns_view import Sketch

if TYPE_CHECKING:
    from mnemolog.projections.dense import Cosines

WHOLE: Final = 4_000
"""Turns of a scope up to which all of them are candidates."""
BEST: Final = 150
"""How many each signal proposes in a larger one, at least."""


class Nearness(Protocol):
    def cosines(self, question: str, scopes: Collection[ScopeIds], turns: int, limit: int) -> Cosines | None:
        """How near everything in these scopes is to the question; None where that cannot be said."""


@dataclass(frozen=True, slots=True)
class Places:
    """Read transactions on both views, and the scopes that the caller sees in each by their numbers there."""

    turns: Connection
    turn_scopes: Mapping[int, ScopeIds]
    records: Connection
    record_scopes: Mapping[int, ScopeIds]


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be an answer. since_us is included, until_us is not; author, tool, slot and kinds must be equal."""

    kinds: frozenset[str] | None = None
    author: str | None = None
    tool: str | None = None
    slot: tuple[str, str] | None = None
    status: frozenset[Status] | None = None
    since_us: int | None = None
    until_us: int | None = None
    history: bool = False

    @property
    def sees_history(self) -> bool:
        return self.history or (self.status is not None and not self.status <= READABLE)

    def turns(self) -> bool:
        """Whether a turn can be an answer at all."""
        return self.slot is None and self.status is None

    def records(self) -> bool:
        return self.author is None and self.tool is None

    @property
    def chooses_turns(self) -> bool:
        asked = (self.kinds, self.author, self.tool, self.since_us, self.until_us)
        return any(one is not None for one in asked)

    def allows_turn(self, row: Sketch) -> bool:
        return (
            self.turns()
            and (self.kinds is None or row.kind in self.kinds)
            and (self.author is None or _same(row.author, self.author))
            and (self.tool is None or _same(row.tool, self.tool))
            and self._within(row.occurred_us)
        )

    def allows_record(self, record: Record) -> bool:
        return (
            self.records()
            and (self.kinds is None or record.kind in self.kinds)
            and (self.status is None or record.status in self.status)
            and (self.slot is None or record.group == f"s{slot_key(*self.slot)}")
            and self._within(microseconds(record.occurred_at))
        )

    def _within(self, at: int) -> bool:
        return Facts(since_us=self.since_us, until_us=self.until_us).covers(at)


NO_FILTERS: Final = Filters()


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for. text: without its relative time words; facts: the time that it speaks of."""

    text: str
    now: datetime
    k: int
    facts: Facts
    filters: Filters


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question in its scopes, with what was read of them."""

    question: Question
    at: Places
    terms: Sequence[Term]
    found: Matches
    """Of the turns."""
    lexical: Mapping[int, float]
    """Of turns by position, of records by minus their number; judged over both together."""
    pieces: Mapping[int, float]
    """The same of the passages of large turns, by their numbers."""
    both: int
    """How many turns and records there are."""
    cosines: Cosines | None
    judged: Judged
    """The records."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best, best first. The key of a turn is its position, that of a record minus its number.

    passages: position → number of the passage that answers best, of turns that are large.
    """

    ranked: Sequence[Ranked]
    passages: Mapping[int, int]


_Pool = tuple[Sequence[Sketch], Sequence[Candidate], Collection[str], Scores]
"""Turns, the same as candidates, the names of their authors, and what the indexes say."""


class HybridSearch:
    """Searches both views."""

    def __init__(
        self, turns: Turns, tables: TurnTables, curated: CuratedView, records: RecordTables, near: Nearness
    ) -> None:
        self._index, self._analyzer, self._tables = turns.index, turns.analyzer, tables
        self._passages = turns.passages.index
        self._curated, self._records, self._near = curated, records, near

    def search(self, question: Question, at: Places) -> Ranking:
        """A time that the question counts from now holds strictly, unless nothing was said in it."""
        asked = self._asked(question, at)
        found = self._ranked(asked)
        if not found and question.facts.strict:
            found = self._ranked(replace(asked, question=replace(question, facts=_loose(question.facts))))
        return Ranking(found, _best_passages(asked, {one.candidate.key for one in found}))

    def _asked(self, question: Question, at: Places) -> _Asked:
        terms = self._analyzer.query(question.text)
        words = [term for term, _ in terms]
        turns = self._index.matches(at.turns, list(at.turn_scopes), words)
        records = self._curated.matches(at.records, at.record_scopes, words)
        pieces = self._passages.matches(at.turns, list(at.turn_scopes), words)
        both = joined(turns, records)
        lexical, by_piece = with_passages(both, pieces, terms)
        limit = max(BEST, question.k)
        scopes = list(dict.fromkeys([*at.turn_scopes.values(), *at.record_scopes.values()]))
        size = turns.docs + pieces.docs
        cosines = self._near.cosines(question.text, scopes, size, limit) if scopes else None
        judged = self._records.of(at.records, at.record_scopes, question.now)
        return _Asked(question, at, terms, turns, lexical, by_piece, both.docs, cosines, judged)

    def _ranked(self, asked: _Asked) -> list[Ranked]:
        filters = asked.question.filters
        whole = asked.found.docs <= WHOLE
        rows, turns, authors, scores = self._whole(asked) if whole else self._best(asked)
        return retrieve(
            [*turns, *asked.judged.candidates],
            scores,
            replace(asked.question.facts, authors=named_authors(asked.question.text, authors)),
            k=asked.question.k,
            history=filters.sees_history,
            only=_only(filters, rows, asked.judged.records),
        )

    def _whole(self, asked: _Asked) -> _Pool:
        """A scope of ordinary size."""
        table = self._tables.of(asked.at.turns, asked.at.turn_scopes, asked.found.docs)
        dense, window = _dense(asked, None)
        sessions = asked.found.grouped(table.sessions_of(asked.found.lengths), table.totals)
        scores = Scores(asked.lexical, dense, window, bm25(sessions, asked.terms))
        return table.rows, table.candidates, table.authors, scores

    # A large one -------------------------------------------------------------------------------------------------

    def _best(self, asked: _Asked) -> _Pool:
        at = asked.at
        table = self._tables.of_large(at.turns, at.turn_scopes, asked.found.docs)
        seeds = self._seeds(asked, None if table is None else table.rows)
        rows, turns = self._around(at, seeds) if table is None else table.around(seeds)
        dense, window = _dense(asked, [row.position for row in rows])
        moments = {
            LEXICAL: moments_of(asked.lexical.values(), asked.both - len(asked.lexical)),
            **_spreads(asked),
        }
        authors = {one.author for one in turns if one.author}
        return rows, turns, authors, Scores(asked.lexical, dense, window, moments=moments)

    def _around(self, at: Places, seeds: Collection[int]) -> tuple[Sequence[Sketch], Sequence[Candidate]]:
        """As `TurnTable.around`, read from the view."""
        conn, scopes = at.turns, at.turn_scopes
        pairs = turns_view.beside(conn, scopes, sorted(seeds))
        wanted = {*seeds, *(position for pair in pairs for position in pair)}
        rows = turns_view.sketches(conn, scopes, sorted(wanted))
        return rows, _placed(rows, pairs, self._index.lengths(conn, [row.position for row in rows]))

    def _seeds(self, asked: _Asked, rows: Sequence[Sketch] | None) -> set[int]:
        """The best of each signal among the turns that may be answers. rows: all turns, if they are at hand."""
        size, allowed = max(BEST, asked.question.k), self._allowed(asked, rows)
        words = [(s, at) for at, s in asked.lexical.items() if at > 0 and (allowed is None or at in allowed)]
        seeds = {position for _, position in nlargest(size, words)}
        if asked.cosines is not None:
            from mnemolog.projections.dense import best

            passages = asked.cosines.nearest_passages()
            for scores in (asked.cosines.turns, asked.cosines.windows, passages):
                kept = scores if allowed is None else scores.among(allowed)
                seeds |= {position for position, _ in best(kept, size)}
        if allowed is not None and asked.question.facts.bounded:
            seeds |= set(sorted(allowed)[-size:])
        return seeds

    def _allowed(self, asked: _Asked, rows: Sequence[Sketch] | None) -> set[int] | None:
        """Positions of the turns that may be answers; None where nothing was asked of them."""
        filters, facts = asked.question.filters, asked.question.facts
        if not filters.turns():
            return set()
        if not filters.chooses_turns and not facts.bounded:
            return None
        if rows is None:
            rows = turns_view.sketches(asked.at.turns, asked.at.turn_scopes)
        allowed = [row for row in rows if filters.allows_turn(row)]
        inside = {row.position for row in allowed if facts.covers(row.occurred_us)}
        return inside if facts.strict else {row.position for row in allowed}


def _loose(facts: Facts) -> Facts:
    return replace(facts, strict=False)


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.casefold() == other.casefold()


def _placed(
    rows: Sequence[Sketch], pairs: Collection[tuple[int, int]], lengths: Mapping[int, int]
) -> list[Candidate]:
    """As candidates; only what really lies side by side in its session has places side by side."""
    side_by_side, turns = set(pairs), []
    last: dict[str, tuple[int, int, int]] = {}
    for row in rows:
        number, place = None, 0
        if row.session is not None:
            number, before, place = last.get(row.session, (len(last), 0, 0))
            place += 1 if (before, row.position) in side_by_side else 3
            last[row.session] = number, row.position, place
        turns.append(turn_candidate(row, number, place, lengths.get(row.position, 0)))
    return turns


def _only(filters: Filters, rows: Sequence[Sketch], records: Mapping[int, Record]) -> Collection[int] | None:
    """Keys of what may be an answer; None where everything may."""
    if filters == NO_FILTERS:
        return None
    only = {row.position for row in rows if filters.allows_turn(row)}
    return only | {-number for number, record in records.items() if filters.allows_record(record)}


def _dense(asked: _Asked, wanted: Collection[int] | None) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Cosines of turns alone (all, or some) by position and of records by minus their number; and of windows.

    A large turn is as near as its nearest passage.
    """
    cosines = asked.cosines
    if cosines is None:
        return {}, {}
    turns, windows, nearest = (
        scores.mapping() if wanted is None else scores.at(wanted)
        for scores in (cosines.turns, cosines.windows, cosines.nearest_passages())
    )
    turns |= {at: max(cosine, turns.get(at, cosine)) for at, cosine in nearest.items()}
    stated = cosines.records.mapping()
    records = {
        -number: stated[record.position]
        for number, record in asked.judged.records.items()
        if record.position in stated
    }
    return {**turns, **records}, windows


def _best_passages(asked: _Asked, keys: Collection[int]) -> dict[int, int]:
    """Position → number of the passage that answers best, of those of these turns that have one that says anything."""
    lexical: dict[int, dict[int, float]] = {}
    for number, score in asked.pieces.items():
        position = place_of(number)[0]
        if position in keys:
            lexical.setdefault(position, {})[number] = score
    dense: dict[int, dict[int, float]] = {}
    if asked.cosines is not None and len(asked.cosines.passages.positions):
        from mnemolog.projections.dense import of_events

        for number, cosine in of_events(asked.cosines.passages, keys).mapping().items():
            dense.setdefault(place_of(number)[0], {})[number] = cosine
    return {at: best_passage(lexical.get(at, {}), dense.get(at, {})) for at in {*lexical, *dense}}


def _spreads(asked: _Asked) -> dict[str, Moments]:
    if asked.cosines is None:
        return {}
    turn, window, _ = asked.cosines.spreads()
    return {DENSE: turn, WINDOW: window}


__all__ = ["Filters", "HybridSearch", "Nearness", "Places", "Question", "Ranking"]

"""The hybrid search in plain Python, candidate by candidate, as `projections.hybrid` has to answer on arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import pairwise
from operator import neg
from typing import Any

from mnemolog import Memory
from mnemolog.domain.lexical import Matches, Term, bm25
from mnemolog.domain.passages import place_of
from mnemolog.domain.records import microseconds
from mnemolog.domain.retrieval import (
    DENSE,
    LEXICAL,
    WINDOW,
    Candidate,
    Ranked,
    Scores,
    joined,
    moments_of,
    named_authors,
    retrieve,
)
from mnemolog.domain.standing import standing
from mnemolog.projections import hybrid, turns_view
from mnemolog.projections.curated_rows import record_from
from mnemolog.projections.questions import NO_FILTERS, Filters, Places, Question
from mnemolog.projections.turns_view import Sketch

ROLES = {"user", "assistant", "system", "tool"}


def plain_search(memory: Memory, question: Question, at: Places) -> list[Ranked]:
    """As `HybridSearch.search`, without the passages."""
    question = replace(question, facts=replace(question.facts, naming=_naming(memory, question, at)))
    found, facts = _search(memory, question, at), question.facts
    if facts.strict and not any(facts.covers(one.candidate.occurred_us) for one in found):
        found = _search(memory, replace(question, facts=replace(facts, strict=False)), at)
    return found


def _naming(memory: Memory, question: Question, at: Places) -> frozenset[int]:
    """Turns by their positions and records by their numbers, negative, that have every word of the time."""
    store = memory._store
    words = [term for term, weight in store.turns.analyzer.query(question.times) if weight == 1]
    turns, pieces = (
        index.matches(at.turns, list(at.turn_scopes), words).postings
        for index in (store.turns.index, store.turns.passages.index)
    )
    records = store.curated.lexical.matches(at.records, list(at.record_scopes), words).postings
    every = (
        {key(doc) for doc in set.intersection(*(set(postings.get(word, ())) for word in words))}
        for postings, key in ((turns, int), (records, neg), (pieces, lambda piece: place_of(piece)[0]))
        if words
    )
    return frozenset().union(*every)


def _search(memory: Memory, question: Question, at: Places) -> list[Ranked]:
    store, facts, filters = memory._store, question.facts, question.filters
    terms = store.turns.analyzer.query(question.text)
    words = [term for term, _ in terms]
    turns, pieces = (
        index.matches(at.turns, list(at.turn_scopes), words)
        for index in (store.turns.index, store.turns.passages.index)
    )
    records = store.curated.lexical.matches(at.records, list(at.record_scopes), words)
    both = joined(turns, records)
    lexical, _ = with_passages(both, pieces, terms)
    limit, scopes = max(hybrid.BEST, question.k), list({*at.turn_scopes.values(), *at.record_scopes.values()})
    cosines = (
        store.vectors.cosines(question.text, scopes, turns.docs + pieces.docs, limit) if scopes else None
    )
    rows = turns_view.sketches(at.turns, at.turn_scopes)
    lengths = store.turns.index.lengths(at.turns, [row.position for row in rows])
    judged = _judged(store, at, question)
    dense, window = _cosines(cosines, judged)
    scores, whole = Scores(lexical, dense, window), turns.docs <= hybrid.WHOLE
    pool = _placed(rows, lengths)
    if whole:
        session = {one.key: one.session for one in pool if one.session is not None}
        totals: dict[int, int] = {}
        for one in pool:
            if one.session is not None:
                totals[one.session] = totals.get(one.session, 0) + one.length
        scores = replace(scores, session_lexical=bm25(turns.grouped(session, totals), terms))
    else:
        moments = {LEXICAL: moments_of(lexical.values(), both.docs - len(lexical))}
        if cosines is not None:
            moments |= dict(zip((DENSE, WINDOW), cosines.spreads(), strict=False))
        seeds = _seeds(question, rows, lexical, cosines, limit)
        pool, scores = _around(rows, lengths, seeds), replace(scores, moments=moments)
        rows = [row for row in rows if row.position in {one.key for one in pool}]
    named = named_authors(question.text, {one.author for one in pool if one.author})
    only = None
    if filters != NO_FILTERS:
        only = {row.position for row in rows if _allows(filters, row)}
        only |= {-number for number, record in judged.items() if filters.allows_record(record)}
    stated = [
        Candidate(-number, microseconds(one.occurred_at), kind=one.kind, status=one.status)
        for number, one in judged.items()
    ]
    return retrieve(
        [*pool, *stated],
        scores,
        replace(facts, authors=named),
        k=question.k,
        history=filters.sees_history,
        only=only,
    )


def _judged(store: Any, at: Places, question: Question) -> dict[int, Any]:
    table = store.curated.tables.records
    rows = [row for row in at.records.execute(table.select()) if row.scope in at.record_scopes]
    groups: dict[Any, list[Any]] = {}
    numbers = {row.id: row.number for row in rows if row.status != "forgotten"}
    for record in (record_from(row) for row in rows if row.status != "forgotten"):
        groups.setdefault((record.scope, record.group or record.id), []).append(record)
    judged = [one for peers in groups.values() for one in standing(peers, microseconds(question.now))]
    return {numbers[one.id]: one for one in judged}


def _cosines(cosines: Any, judged: Mapping[int, Any]) -> tuple[dict[int, float], dict[int, float]]:
    if cosines is None:
        return {}, {}
    turns, nearest = cosines.turns.mapping(), cosines.nearest_passages().mapping()
    turns |= {at: max(cosine, turns.get(at, cosine)) for at, cosine in nearest.items()}
    stated = cosines.records.mapping()
    records = {-n: stated[one.position] for n, one in judged.items() if one.position in stated}
    return {**turns, **records}, cosines.windows.mapping()


def _placed(rows: Sequence[Sketch], lengths: Mapping[int, int]) -> list[Candidate]:
    sessions: dict[str, tuple[int, int]] = {}
    pool = []
    for row in rows:
        number, place = None, 0
        if row.session is not None:
            number, before = sessions.get(row.session, (len(sessions), -1))
            place = before + 1
            sessions[row.session] = number, place
        author = None if row.author in ROLES else row.author
        length = lengths.get(row.position, 0)
        pool.append(Candidate(row.position, row.occurred_us, number, place, author, length, row.kind))
    return pool


def _around(rows: Sequence[Sketch], lengths: Mapping[int, int], seeds: Collection[int]) -> list[Candidate]:
    """Only what lies side by side around a seed has places side by side."""
    of: dict[str, list[int]] = {}
    for row in rows:
        if row.session is not None:
            of.setdefault(row.session, []).append(row.position)
    wanted, pairs = set(seeds), set[tuple[int, int]]()
    for positions in of.values():
        for at, position in enumerate(positions):
            if position in seeds:
                run = positions[max(0, at - 2) : at + 3]
                wanted |= set(run)
                pairs |= set(pairwise(run))
    last: dict[int, Candidate] = {}
    pool = []
    for one in (one for one in _placed(rows, lengths) if one.key in wanted):
        if one.session is not None:
            before = last.get(one.session, Candidate(0, 0, place=-3))
            assert before.place is not None
            one = replace(one, place=before.place + (1 if (before.key, one.key) in pairs else 3))
            last[one.session] = one  # type: ignore[index]
        pool.append(one)
    return pool


def _seeds(
    question: Question, rows: Sequence[Sketch], lexical: Mapping[int, float], cosines: Any, size: int
) -> set[int]:
    filters, facts = question.filters, question.facts
    allowed = {row.position for row in rows if _allows(filters, row)}
    if facts.strict:
        allowed &= {row.position for row in rows if facts.admits(row.position, row.occurred_us)}
    every = filters.turns() and not filters.chooses_turns and not facts.bounded
    signals = [{at: score for at, score in lexical.items() if at > 0}]
    if cosines is not None:
        signals += [s.mapping() for s in (cosines.turns, cosines.windows, cosines.nearest_passages())]
    seeds: set[int] = set()
    for signal in signals:
        inside = [(score, at) for at, score in signal.items() if every or at in allowed]
        seeds |= {at for _, at in nlargest(size, inside)}
    return seeds if every or not facts.bounded else seeds | set(sorted(allowed)[-size:])


def _allows(filters: Filters, row: Sketch) -> bool:
    return (
        filters.turns()
        and (filters.kinds is None or row.kind in filters.kinds)
        and (filters.author is None or (row.author or "").casefold() == filters.author.casefold())
        and (filters.tool is None or (row.tool or "").casefold() == filters.tool.casefold())
        and filters.bounds.covers(row.occurred_us)
    )


def with_passages(
    whole: Matches, pieces: Matches, query: Sequence[Term]
) -> tuple[dict[int, float], dict[int, float]]:
    """BM25 of documents and of the passages of the large ones; a document is as good as its best passage.

    A large text is one document however many passages it has: a word is as rare as the documents that have it are
    few, and the average length is that of whole documents. So a long log does not make its words common; nor is a
    passage lifted for being short, as it only was cut.
    """
    if not pieces.lengths:
        return bm25(whole, query), {}
    spread = {
        term: len({*times, *(place_of(piece)[0] for piece in pieces.postings.get(term, ()))})
        for term, times in whole.postings.items()
    }
    documents = bm25(replace(whole, spread=spread), query)
    average = -(-whole.tokens // max(whole.docs, 1))
    lengths = {piece: max(length, average) for piece, length in pieces.lengths.items()}
    found = bm25(Matches(whole.docs, whole.tokens, pieces.postings, lengths, spread), query)
    for piece, score in found.items():
        position = place_of(piece)[0]
        documents[position] = max(score, documents.get(position, 0.0))
    return documents, found

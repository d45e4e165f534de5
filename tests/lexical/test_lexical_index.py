"""The scope-first index: its scores come from the asked scopes alone, and removal leaves nothing behind."""

from __future__ import annotations

import math
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from mnemolog.domain.errors import CorruptStore, InvalidInput
from mnemolog.domain.lexical import K1, B, Matches, Term, bm25, ranked
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex

index = SqliteLexicalIndex("turns_lex")
port: LexicalIndex = index
WORDS = ["dog", "배포", "집", "k7741", "lake", "금요", "5월", "猫"]
Documents = list[LexicalDocument]
bodies = st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from(WORDS), max_size=8)), max_size=12)
queries = st.lists(st.sampled_from(WORDS), min_size=1, unique=True).map(
    lambda terms: [(t, 0.5 + len(t) / 16) for t in terms]
)


def fresh() -> Connection:
    conn = create_engine("sqlite://").connect()
    index.create(conn)
    return conn


@pytest.fixture
def conn() -> Iterator[Connection]:
    with fresh() as connection:
        yield connection


def numbered(drawn: Sequence[tuple[int, list[str]]]) -> Documents:
    return [LexicalDocument(doc, scope, tokens) for doc, (scope, tokens) in enumerate(drawn, 1)]


def dump(conn: Connection) -> list[list[tuple[object, ...]]]:
    tables = ("turns_lex_docs", "turns_lex_scopes", "turns_lex_vocab")
    return [sorted(tuple(row) for row in conn.exec_driver_sql(f"SELECT * FROM {table}")) for table in tables]


def naive(docs: Documents, scopes: Sequence[int], query: Sequence[Term]) -> dict[int, float]:
    """BM25 from the definition, document by document."""
    own = [doc for doc in docs if doc.scope in scopes]
    average = sum(len(doc.tokens) for doc in own) / len(own) if own else 1.0
    frequency = {term: sum(term in doc.tokens for doc in own) for term, _ in query}
    scores: dict[int, float] = {}
    for doc in own:
        counts = Counter(doc.tokens)
        for term, weight in query:
            if counts[term]:
                idf = math.log(1 + (len(own) - frequency[term] + 0.5) / (frequency[term] + 0.5))
                norm = counts[term] + K1 * (1 - B + B * len(doc.tokens) / average)
                gain = weight * idf * counts[term] * (K1 + 1) / norm
                scores[doc.doc] = scores.get(doc.doc, 0.0) + gain
    return scores


@given(bodies, queries, st.sets(st.integers(0, 3), min_size=1))
def test_search_equals_bm25_by_definition(
    drawn: list[tuple[int, list[str]]], query: list[Term], scopes: set[int]
) -> None:
    """The index returns every matching document of the scopes with the score that the formula gives."""
    docs = numbered(drawn)
    with fresh() as conn:
        index.add(conn, docs)
        found = dict(index.search(conn, sorted(scopes), query))
    assert found == pytest.approx(naive(docs, sorted(scopes), query), rel=1e-12)


@given(bodies, queries, st.randoms(use_true_random=False))
def test_any_order_of_adding_and_removing_equals_a_fresh_index(
    drawn: list[tuple[int, list[str]]], query: list[Term], chance: random.Random
) -> None:
    """What was removed left no digit: tables, vocabulary and scores equal those of an index that never had it."""
    docs = numbered(drawn)
    kept = [doc for doc in docs if chance.random() < 0.5]
    shuffled, gone = chance.sample(docs, len(docs)), [doc for doc in docs if doc not in kept]
    with fresh() as mixed, fresh() as clean:
        while shuffled:
            size = chance.randint(1, 4)
            index.add(mixed, shuffled[:size])
            shuffled = shuffled[size:]
        assert index.remove(mixed, gone) == len(gone)
        if gone:
            index.add(mixed, gone[:1])
            index.remove(mixed, gone[:1])
        index.add(clean, kept)
        assert dump(mixed) == dump(clean)
        assert index.search(mixed, [0, 1, 2], query) == index.search(clean, [0, 1, 2], query)


@given(queries)
def test_a_neighbour_changes_no_digit(query: list[Term]) -> None:
    """Promise 4: scores and order are bit-identical with and without 1,500 documents of another scope."""
    chance = random.Random(5)
    own = numbered([(7, chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(40)])
    with fresh() as conn:
        index.add(conn, own)
        before = index.search(conn, [7], query)
        crowd = [LexicalDocument(doc, 0x7E, chance.choices(WORDS, k=6)) for doc in range(1000, 2500)]
        index.add(conn, crowd)
        assert index.search(conn, [7], query) == before
        assert {doc for doc, _ in index.search(conn, [7, 0x7E], query)} > {doc for doc, _ in before}


@given(bodies, queries, st.sets(st.integers(0, 3)))
def test_postings_are_the_matches_as_arrays(
    drawn: list[tuple[int, list[str]]], query: list[Term], scopes: set[int]
) -> None:
    """Ordered by the place of the term in the question, then by document, whatever scopes they come from."""
    terms = list(dict.fromkeys(term for term, _ in query))
    with fresh() as conn:
        index.add(conn, numbered(drawn))
        found, matches = (
            index.postings(conn, sorted(scopes), terms),
            index.matches(conn, sorted(scopes), terms),
        )
    assert (found.docs, found.tokens) == (matches.docs, matches.tokens)
    assert list(zip(found.term.tolist(), found.doc.tolist(), found.times.tolist(), strict=True)) == [
        (place, doc, times)
        for place, term in enumerate(terms)
        for doc, times in sorted(matches.postings[term].items())
    ]


def test_numbers_of_documents_change_no_digit(conn: Connection) -> None:
    """The score of a text does not depend on the number that it was indexed under, nor on the other numbers."""
    chance, query = random.Random(1), [("lake", 1.0), ("dog", 0.3), ("집", 1.0)]
    tokens = [chance.choices(WORDS, k=5) for _ in range(50)]
    index.add(conn, [LexicalDocument(doc, 1, words) for doc, words in enumerate(tokens)])
    index.add(conn, [LexicalDocument(9000 - 7 * doc, 2, words) for doc, words in enumerate(tokens)])
    one, two = dict(index.search(conn, [1], query)), dict(index.search(conn, [2], query))
    assert {doc: two[9000 - 7 * doc] for doc in one} == one and len(one) == len(two)


def test_an_unknown_scope_and_an_empty_question_find_nothing(conn: Connection) -> None:
    """No scope, no terms or no documents: an empty answer, not an error."""
    index.add(conn, [LexicalDocument(1, 1, ["dog"]), LexicalDocument(2, 1, [])])
    assert index.search(conn, [1], []) == index.search(conn, [], [("dog", 1.0)]) == []
    assert index.search(conn, [2], [("dog", 1.0)]) == []
    assert [doc for doc, _ in index.search(conn, [1, 1], [("dog", 1.0)])] == [1]


def test_ties_go_to_the_newer_or_as_the_caller_says() -> None:
    """Equal scores are ordered by the caller's notion of newness, by default the greater number first."""
    assert [doc for doc, _ in ranked({1: 1.0, 3: 1.0, 2: 2.0})] == [2, 3, 1]
    assert [doc for doc, _ in ranked({1: 1.0, 3: 1.0, 2: 2.0}, newness=lambda doc: -doc, limit=2)] == [2, 1]


def test_wrong_tokens_are_refused_before_anything_changes(conn: Connection) -> None:
    """Removing with other tokens or another scope raises and leaves the index as it was; absent ones are skipped."""
    good = LexicalDocument(1, 1, ["dog", "lake"])
    index.add(conn, [good, LexicalDocument(2, 1, ["dog"])])
    before = dump(conn)
    for wrong in (
        good._replace(tokens=["lake", "dog"]),
        good._replace(scope=2),
        good._replace(tokens=["dog"]),
    ):
        with pytest.raises(CorruptStore):
            index.remove(conn, [LexicalDocument(2, 1, ["dog"]), wrong])
        assert dump(conn) == before
    assert index.remove(conn, [good, good, LexicalDocument(77, 1, ["x"])]) == 1


def test_a_session_can_be_scored_as_one_document() -> None:
    """Grouped matches equal the matches of documents joined by hand."""
    turns = Matches(3, 6, {"dog": {1: 1, 2: 2}, "lake": {3: 1}}, {1: 2, 2: 3, 3: 1})
    sessions = turns.grouped({1: 10, 2: 10, 3: 20}, {10: 5, 20: 1, 30: 4})
    assert sessions.postings == {"dog": {10: 3}, "lake": {20: 1}} and (sessions.docs, sessions.tokens) == (
        3,
        10,
    )
    assert set(bm25(sessions, [("dog", 1.0)])) == {10}


def test_a_look_up_uses_the_index_of_the_vocabulary(conn: Connection) -> None:
    """The query plan reaches postings by term, and documents by key: no scan grows with the neighbours."""
    sql = (
        "EXPLAIN QUERY PLAN SELECT v.term, v.doc, d.length FROM json_each(?) k CROSS JOIN turns_lex_vocab v"
        " CROSS JOIN turns_lex_docs d WHERE v.term = k.value AND d.doc = v.doc"
    )
    plan = [row[3] for row in conn.exec_driver_sql(sql, ('["1zdog"]',))]
    assert any("turns_lex_docs" in step or "d USING INTEGER PRIMARY KEY" in step for step in plan)
    (vocabulary,) = [step for step in plan if step.startswith(("SCAN v", "SEARCH v"))]
    assert "INDEX 0:" not in vocabulary


def test_a_name_cannot_carry_sql() -> None:
    """Index names are plain identifiers."""
    with pytest.raises(InvalidInput):
        SqliteLexicalIndex("x; DROP TABLE y")


def test_removed_tokens_leave_the_file(tmp_path: Path) -> None:
    """After optimise, vacuum and checkpoint no byte of a removed token is in the file or its WAL."""
    path, secret = tmp_path / "views.db", "zanzibarjetlag"
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as conn:
        conn.exec_driver_sql("PRAGMA journal_mode=WAL")
        index.create(conn)
        for start in range(0, 3000, 300):
            index.add(
                conn,
                [
                    LexicalDocument(doc, doc % 5, [f"{secret}{doc % 7}", "dog"])
                    for doc in range(start, start + 300)
                ],
            )
            conn.commit()
        assert any(secret.encode()[2:] in file.read_bytes() for file in tmp_path.iterdir())
        gone = [
            LexicalDocument(doc, doc % 5, [f"{secret}{doc % 7}", "dog"])
            for doc in range(3000)
            if doc % 7 != 3
        ]
        for start in range(0, len(gone), 400):
            index.remove(conn, gone[start : start + 400])
            conn.commit()
        last = [LexicalDocument(doc, doc % 5, [f"{secret}3", "dog"]) for doc in range(3, 3000, 7)]
        index.remove(conn, last)
        index.optimize(conn)
        conn.commit()
    engine.dispose()
    raw = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA secure_delete=ON", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
        raw.execute(statement)
    raw.close()
    for file in tmp_path.iterdir():
        assert secret.encode()[1:] not in file.read_bytes(), file.name

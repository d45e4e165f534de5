"""The same events give the same views and the same scores, in SQLite and in PostgreSQL."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from face_world import U1, U2, VIEWS, open_memory
from postgres_world import keep_log_in_postgres, keep_views_in_postgres, new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog import Memory, Scope  # noqa: E402
from mnemolog.domain.errors import CorruptStore, InvalidInput  # noqa: E402
from mnemolog.domain.lexical import Term  # noqa: E402
from mnemolog.infra.postgres.lexical import PostgresLexicalIndex  # noqa: E402
from mnemolog.infra.postgres.views import PostgresViews  # noqa: E402
from mnemolog.infra.views.lexical import SqliteLexicalIndex  # noqa: E402
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex  # noqa: E402
from mnemolog.projections.postings import Postings  # noqa: E402

pytestmark = pytest.mark.postgres

WORDS = "deploy lake 배포는 금요일 집으로 Ärger zebra apple k-7741 CAFÉ éclair 猫が好き \ue000 don't".split()
QUERIES = ("lake deploy", "배포 금요일", "k-7741", "Ärger zebra", "猫", "what about the café?", "집")

BACK = Scope("acme", user="u-2", project="billing", session="s-9")


def said(chance: random.Random) -> str:
    """A turn in several languages, now and then with a NUL in it."""
    words = chance.choices(WORDS, k=chance.randint(1, 12))
    return " ".join(words) + ("\x00end" if chance.random() < 0.1 else "")


def fill(memory: Memory) -> None:
    """Events of every kind, with corrections and erasures in the middle."""
    chance = random.Random(3)
    records, turns = [], []
    for number in range(60):
        scope = (U1, U2)[number % 2]
        turns.append(
            (
                scope,
                memory.record_turn(
                    scope, role="user", content=said(chance), author="Zoë" if number % 3 else None
                ),
            )
        )
        if number % 4 == 0:
            memory.record_tool_call(
                scope, name="read", arguments=f'{{"path": "a{number}"}}', call_id=f"c{number}"
            )
            memory.record_tool_result(scope, output=said(chance), name="read", call_id=f"c{number}")
        if number % 5 == 0:
            slot = (f"Ä{number % 3}", "z") if number % 2 else None
            evidence = [turns[-1][1].event_id]
            records.append((scope, memory.remember(scope, said(chance), slot=slot, evidence=evidence)))
        if number % 9 == 0:
            memory.feedback(scope, turns[-1][1].event_id, "up", comment="좋아요")
            memory.set_state(scope, "task", {"step": number, "β": None if number % 2 else "é"})
    for scope in (U1, U2):
        paragraphs = [f"{number}: {said(chance)}" for number in range(150)]
        memory.record_tool_result(scope, output="\n\n".join(paragraphs), name="read", call_id="large")
    for (scope, record), act in zip(records, ("correct", "retract", "dispute", "confirm"), strict=False):
        more = (said(chance),) if act == "correct" else ()
        getattr(memory, act)(scope, record.record_id, *more)
    memory.context(U1, "lake deploy", budget=500)
    memory.erase(*turns[7][:1], event=turns[7][1].event_id).apply()
    memory.erase(records[5][0], record=records[5][1].record_id).apply()
    memory.erase(Scope("acme"), subject="u-2").apply()
    memory.record_turn(BACK, role="user", content="back again")


def dumps(memory: Memory) -> dict[str, list[tuple[object, ...]]]:
    memory._store.accesses.flush()
    memory.operations.catch_up()
    return {name: memory._store.runner.dump(name) for name in VIEWS}


@pytest.fixture(params=["C", "a language"])
def database(request: pytest.FixtureRequest, postgres_url: str) -> str:
    """A database in the order of bytes, and one in the order of a language: É beside e, case aside."""
    if request.param == "C":
        return postgres_url
    name = new_schema()
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        )
    return f"{postgres_url.rpartition('/')[0]}/{name}"


def test_the_same_events_give_the_same_views_and_the_same_scores(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All dumps are equal, row by row, at any batch size; and so is every digit of what recall finds."""
    path, copy = tmp_path / "data", tmp_path / "copy"
    with open_memory(path) as memory:
        fill(memory)
        memory.operations.catch_up()
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("views", "lock"))
    with open_memory(path) as memory:
        here = dumps(memory)
        found = [memory.recall(scope, query, k=50) for scope in (U1, U2) for query in QUERIES]
    assert all(here.values())
    assert any(found)
    keep_views_in_postgres(monkeypatch, database)
    with open_memory(copy) as memory:
        assert isinstance(memory._store.views, PostgresViews)
        assert dumps(memory) == here
        for name in VIEWS:
            memory.operations.rebuild(name, batch_size=7)
        assert dumps(memory) == here
        assert [memory.recall(scope, query, k=50) for scope in (U1, U2) for query in QUERIES] == found


def test_a_memory_lives_in_postgres_through_reopening(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log and views: what was appended live, corrected and erased is folded as a rebuild folds it, and stays."""
    keep_log_in_postgres(monkeypatch, postgres_url)
    keep_views_in_postgres(monkeypatch, postgres_url)
    with open_memory(tmp_path) as memory:
        fill(memory)
        live = dumps(memory)
        for name in VIEWS:
            memory.operations.rebuild(name, batch_size=11)
        assert dumps(memory) == live
    with open_memory(tmp_path) as memory:
        assert dumps(memory) == live
        assert memory.operations.verify_log() == memory.operations.status().head
        assert [hit.text for hit in memory.recall(BACK, "back again")] == ["back again"]


# The lexical index ---------------------------------------------------------------------------------------------------

TERMS = ["dog", "배포", "집", "k7741", "lake", "금요", "5월", "猫"]
Documents = list[LexicalDocument]
bodies = st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from(TERMS), max_size=8)), max_size=12)
queries = st.lists(st.sampled_from(TERMS), min_size=1, unique=True).map(
    lambda terms: [(term, 0.5 + len(term) / 16) for term in terms]
)


class _Undo(Exception):
    """Ends a transaction without a trace."""


@pytest.fixture(scope="module")
def views(postgres_url: str) -> Iterator[PostgresViews]:
    views = PostgresViews(postgres_url, schema=new_schema())
    yield views
    views.close()


@contextmanager
def both(views: PostgresViews) -> Iterator[list[tuple[Any, Connection]]]:
    """An empty index in each database, with its connection."""
    file = views.create_shadow("lexical", "1")
    indexes: list[LexicalIndex] = [SqliteLexicalIndex("lex"), PostgresLexicalIndex("lex")]
    try:
        with create_engine("sqlite://").connect() as one, views.begin(file) as two:
            pairs = list(zip(indexes, (one, two), strict=True))
            for index, conn in pairs:
                index.create(conn)
            yield pairs
            raise _Undo
    except _Undo:
        views.drop(file)


def told(found: Postings) -> tuple[object, ...]:
    return found.docs, found.tokens, found.term.tolist(), found.doc.tolist(), found.times.tolist()


@settings(max_examples=15, deadline=None)
@given(
    drawn=bodies, query=queries, scopes=st.sets(st.integers(0, 3)), chance=st.randoms(use_true_random=False)
)
def test_both_indexes_answer_alike_whatever_was_added_and_removed(
    views: PostgresViews, drawn: Any, query: list[Term], scopes: set[int], chance: random.Random
) -> None:
    """Statistics, postings, lengths and every bit of the scores."""
    docs = [LexicalDocument(doc, scope, tokens) for doc, (scope, tokens) in enumerate(drawn, 1)]
    gone = [doc for doc in docs if chance.random() < 0.4]
    asked, words = sorted(scopes), [term for term, _ in query]
    with both(views) as pairs:
        answers = []
        for index, conn in pairs:
            for start in range(0, len(docs), 5):
                index.add(conn, docs[start : start + 5])
            removed = index.remove(conn, gone)
            index.optimize(conn)
            numbers = [doc.doc for doc in docs]
            answers.append(
                (
                    removed,
                    index.matches(conn, asked, words),
                    told(index.postings(conn, asked, words)),
                    index.lengths(conn, numbers),
                    index.search(conn, asked, query),
                )
            )
        assert answers[0] == answers[1]


def test_a_neighbour_changes_no_digit(views: PostgresViews) -> None:
    """Promise 4, on PostgreSQL: scores and order are bit-identical beside 1,500 documents of another scope."""
    chance, query = random.Random(5), [("dog", 1.0), ("집", 0.7)]
    with both(views) as (_, (index, conn)):
        index.add(conn, [LexicalDocument(doc, 7, chance.choices(TERMS, k=5)) for doc in range(40)])
        before = index.search(conn, [7], query)
        index.add(conn, [LexicalDocument(doc, 8, chance.choices(TERMS, k=6)) for doc in range(1000, 2500)])
        assert index.search(conn, [7], query) == before
        assert len(index.search(conn, [7, 8], query)) > len(before) > 0


def test_wrong_tokens_are_refused_before_anything_changes(views: PostgresViews) -> None:
    """Removing with other tokens or another scope raises and leaves the index as it was."""
    good = LexicalDocument(1, 1, ["dog", "lake"])
    with both(views) as (_, (index, conn)):
        index.add(conn, [good, LexicalDocument(2, 1, ["dog"])])
        before = index.search(conn, [1], [("dog", 1.0)])
        for wrong in (
            good._replace(tokens=["lake", "dog"]),
            good._replace(scope=2),
            good._replace(tokens=["dog"]),
        ):
            with pytest.raises(CorruptStore):
                index.remove(conn, [LexicalDocument(2, 1, ["dog"]), wrong])
        assert index.search(conn, [1], [("dog", 1.0)]) == before
        assert index.remove(conn, [good, good, LexicalDocument(77, 1, ["x"])]) == 1


def test_a_look_up_reads_the_postings_of_its_scope_only(views: PostgresViews) -> None:
    """The plan goes by the index of the postings: no scan grows with the neighbours."""
    with both(views) as (_, (index, conn)):
        docs = [LexicalDocument(doc, doc % 50, ["dog", f"w{doc % 90}"]) for doc in range(5000)]
        index.add(conn, docs)
        conn.exec_driver_sql("ANALYZE lex_postings")
        plan: Sequence[Any] = conn.exec_driver_sql(
            "EXPLAIN SELECT doc FROM lex_postings WHERE scope = ANY(%s) AND term = ANY(%s)", ([3], [1, 2])
        ).all()
        assert any("lex_postings_pkey" in row[0] for row in plan)


def test_a_name_cannot_carry_sql() -> None:
    """Index names are plain identifiers."""
    with pytest.raises(InvalidInput):
        PostgresLexicalIndex("x; DROP TABLE y")

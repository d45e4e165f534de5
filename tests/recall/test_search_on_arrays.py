"""The search on arrays answers as the plain one: the same hits, the same signals, to the last digit."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding_fakes import embedding_memory
from face_world import U1, U2
from mnemolog import Memory, Scope
from mnemolog._recalling import Asked
from mnemolog.domain.lexical import Matches
from mnemolog.domain.passages import PARTS
from mnemolog.domain.records import READABLE, Record, Status
from mnemolog.domain.retrieval import (
    Candidate,
    Facts,
    Moments,
    Ranked,
    Scores,
    joined,
    retrieve,
)
from mnemolog.projections import hybrid
from mnemolog.projections.postings import Postings, Rarity, counted, rarity
from mnemolog.projections.questions import Places, Question
from mnemolog.projections.ranking import Pool, RecordTable, Spoken, rank
from mnemolog.projections.turn_arrays import TurnTable
from mnemolog.projections.turns_view import Sketch
from plain_search import plain_search, with_passages

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = "walrus friday deploys budget lunch 예산 회의 금요일에 배포는 바다코끼리가 K-7741 April 3월에".split()
QUESTIONS = (
    "walrus 예산",
    "when did Mina deploy on friday",
    "민수가 배포한 walrus",
    "yesterday's budget",
    "지난달 회의",
    "what of the budget in April",
    "3월에 배포한 것",
    "the of",
)
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"k": 3},
    {"author": "mina"},
    {"tool": "search"},
    {"since": "2026-02-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"},
    {"kinds": ["turn", "fact"], "history": True},
    {"status": ["superseded", "expired"]},
    {"slot": ("walrus", "n1")},
)


def talk(memory: Memory, rng: random.Random, count: int, scope: Scope = U1) -> None:
    """Turns, tool outputs (large ones too) and records that supersede and expire, in two languages."""
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randint(1, 60 if number % 7 == 0 else 8)))
        place = replace(scope, session=rng.choice(["s-1", "s-2", f"s-{number // 20}", None]))
        at = f"2026-0{rng.randint(1, 5)}-1{rng.randint(0, 9)}T10:00:00Z"
        if number % 9 == 4:
            output = "\n\n".join([text] * (60 if number % 2 else 1))
            memory.record_tool_result(
                place, output=output, name=rng.choice(["search", "shell"]), occurred_at=at
            )
        elif number % 11 == 5:
            day = NOW + timedelta(days=rng.randint(-9, 9))
            memory.remember(
                scope, text, slot=("walrus", f"n{number % 3}"), expires_at=rng.choice([None, day])
            )
        else:
            author = rng.choice(["Mina", "민수", "Jun", "user", None])
            role = rng.choice(["user", "assistant", "system"])
            memory.record_turn(place, role=role, content=text, author=author, occurred_at=at)


@contextmanager
def asked(
    memory: Memory, scope: Scope, query: str, options: dict[str, Any]
) -> Iterator[tuple[Question, Places]]:
    """A question and the views that it is asked of."""
    recaller, options = memory._reader._recaller, dict(options)
    k = options.pop("k", 12)
    question = recaller._question(scope, query, k, Asked(now=NOW, **options))
    with memory._reader.views(None) as views:
        turns, records = (views.of(name, scope) for name in ("turns", "curated"))
        epochs = views.turn_epoch, views.record_epoch
        yield question, Places(turns.conn, turns.scopes, records.conn, records.scopes, *epochs)


def told(found: list[Ranked]) -> list[tuple[int, float, dict[str, float]]]:
    return [(one.candidate.key, one.score, dict(one.signals)) for one in found]


def compare(memory: Memory, scope: Scope = U1) -> list[Any]:
    """Every question in every way, on arrays and in plain; what was found."""
    every = []
    for query in QUESTIONS:
        for options in ASKED:
            with asked(memory, scope, query, options) as (question, at):
                found = told(list(memory._reader._recaller._search.search(question, at).ranked))
                assert found == told(plain_search(memory, question, at)), (query, options)
            every.append(found)
    return every


@pytest.mark.parametrize(("whole", "best"), [(4_000, 150), (20, 5), (20, 60)])
def test_the_same_digits_as_the_plain_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: int, best: int
) -> None:
    """Of a scope where all is a candidate, and of one where the best are, also after an erasure, again and again."""
    monkeypatch.setattr(hybrid, "WHOLE", whole)
    monkeypatch.setattr(hybrid, "BEST", best)
    with embedding_memory(tmp_path / "data") as memory:
        rng = random.Random(best)
        talk(memory, rng, 120)
        assert sum(map(len, compare(memory))) > 100
        memory.erase(replace(U1, session=None), session="s-3").apply()
        talk(memory, rng, 15)
        compare(memory)


def test_a_huge_neighbour_changes_no_digit(tmp_path: Path) -> None:
    """Scores and order of a small scope are the same with and without a large one beside it."""
    found = []
    for neighbours in (0, 400):
        with embedding_memory(tmp_path / f"{neighbours}") as memory:
            talk(memory, random.Random(1), 40)
            talk(memory, random.Random(2), neighbours, U2)
            found.append([[one[1:] for one in hits] for hits in compare(memory)])
    assert found[0] == found[1]


# Parts ------------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1, 1, width=32)


@st.composite
def ranked(draw: st.DrawFn) -> tuple[Any, ...]:
    """Turns in sessions, records of any status, and what the indexes say of some of them."""
    count = draw(st.integers(0, 25))
    rows = [
        Sketch(
            position,
            draw(st.integers(0, 9)),
            draw(st.sampled_from([None, "a", "b", "c"])),
            draw(st.sampled_from([None, "Ann", "민수", "user"])),
            None,
            "turn",
        )
        for position in range(1, count + 1)
    ]
    lengths = {row.position: draw(st.sampled_from([0, 3, 40, 41, 300])) for row in rows}
    records = {
        number: Record(
            f"r{number}",
            1,
            draw(st.sampled_from(list(Status))),
            1,
            100 + number,
            kind="fact",
            occurred_at=f"1970-01-01T00:00:0{draw(st.integers(0, 9))}+00:00",
        )
        for number in range(1, draw(st.integers(0, 5)) + 1)
    }
    keys = [*lengths, *(-number for number in records)]
    some = st.dictionaries(st.sampled_from(keys or [0]), NUMBERS)
    words = draw(st.dictionaries(st.sampled_from(keys or [0]), st.floats(0, 20)))
    return rows, lengths, records, words, draw(some), draw(some)


@given(ranked(), st.integers(1, 30), st.booleans(), st.booleans(), st.data())
def test_rank_is_retrieve(
    given_: tuple[Any, ...], k: int, history: bool, strict: bool, data: st.DataObject
) -> None:
    """Keys, scores and signals are equal to the last digit, whatever is missing."""
    rows, lengths, records, words, dense, window = given_
    facts = Facts(frozenset({"Ann"}), data.draw(st.sampled_from([None, 4])), None, strict)
    moments = data.draw(
        st.sampled_from([{}, {"lexical": Moments(50, 0.7, 0.9), "dense": Moments(9, 0.1, 0.2)}])
    )
    table = TurnTable().with_more(rows[:7], lengths).with_more(rows[7:], lengths)
    whole = RecordTable.of(records, {})
    kept = whole if history else whole.some(whole.readable)
    pool = Pool.of(table, kept)
    sessions = data.draw(st.sampled_from([None, [1.5, 0.0, 2.25]]))
    at = {name: number for number, name in enumerate(table.sessions)}
    only = data.draw(st.sampled_from([None, set(pool.keys[::2].tolist())]))
    spoken = Spoken(
        np.array([words.get(key, 0.0) for key in pool.keys.tolist()]),
        np.array([dense.get(key, np.nan) for key in pool.keys.tolist()]),
        np.array([window.get(key, np.nan) for key in pool.keys.tolist()]),
        None if sessions is None else np.array(sessions[: len(at)]),
        moments,
    )
    wanted = None if only is None else np.isin(pool.keys, list(only))
    found = rank(pool, spoken, facts, k=k, only=wanted)
    scores = Scores(words, dense, window, dict(enumerate(sessions[: len(at)])) if sessions else {}, moments)
    places: dict[str, int] = {}
    plain = []
    for row in rows:
        number = None if row.session is None else at[row.session]
        place = places[row.session or ""] = places.get(row.session or "", -1) + 1
        author = None if row.author == "user" else row.author
        plain.append(Candidate(row.position, row.occurred_us, number, place, author, lengths[row.position]))
    for number, record in records.items():
        occurred = int(record.occurred_at[18]) * 1_000_000
        plain.append(Candidate(-number, occurred, status=record.status))
    assert told(found) == told(retrieve(plain, scores, facts, k=k, history=history, only=only))
    assert history or all(one.candidate.status in READABLE for one in found)


TERMS = [("budget", 1.0), ("k7741", 0.5), ("예산", 1.0), ("회의", 0.25)]
TEXTS = st.lists(st.lists(st.sampled_from([term for term, _ in TERMS] + ["x"]), max_size=9), max_size=12)


@given(TEXTS, TEXTS, TEXTS)
def test_bm25_on_arrays_is_bm25(
    turns: list[list[str]], records: list[list[str]], pieces: list[list[str]]
) -> None:
    """Of turns, records and passages taken together, each score is equal to the last digit."""
    numbers = [(at % 5 + 1) * PARTS + at for at in range(len(pieces))]
    given_ = [_both(some, range(1, len(some) + 1)) for some in (turns, records)]
    (turns_m, turns_p), (records_m, records_p) = given_
    pieces_m, pieces_p = _both(pieces, numbers)
    rare = rarity(TERMS, [turns_p, records_p], pieces_p)
    average = -(-rare.tokens // max(rare.docs, 1))
    of_turns, of_records, found = (
        _scored(rare, postings, matches, least)
        for postings, matches, least in (
            (turns_p, turns_m, 0),
            (records_p, records_m, 0),
            (pieces_p, pieces_m, average),
        )
    )
    plain = with_passages(joined(turns_m, records_m), pieces_m, TERMS)
    for piece, score in found.items():
        of_turns[piece // PARTS] = max(score, of_turns.get(piece // PARTS, 0.0))
    assert plain == ({**of_turns, **{-number: score for number, score in of_records.items()}}, found)


def _scored(rare: Rarity, postings: Postings, matches: Matches, least: int) -> dict[int, float]:
    docs = postings.documents()
    lengths = np.array([max(matches.lengths[doc], least) for doc in docs.tolist()], np.int64)
    return dict(zip(docs.tolist(), rare.scores(postings, docs, lengths).tolist(), strict=True))


def _both(texts: list[list[str]], numbers: Any) -> tuple[Matches, Postings]:
    """The same documents as matches and as postings."""
    docs = list(zip(numbers, texts, strict=True))
    tokens = sum(map(len, texts))
    found: dict[str, dict[int, int]] = {
        term: {doc: words.count(term) for doc, words in docs if term in words} for term, _ in TERMS
    }
    lengths = {doc: len(words) for doc, words in docs if any(term in words for term, _ in TERMS)}
    named = [(place, doc, n) for place, (term, _) in enumerate(TERMS) for doc, n in found[term].items()]
    every = [(place, doc) for place, doc, times in named for _ in range(times)]
    postings = counted(len(docs), tokens, [place for place, _ in every], [doc for _, doc in every])
    return Matches(len(docs), tokens, found, lengths), postings


def test_an_empty_store_opens_without_arrays(tmp_path: Path) -> None:
    """What searches on arrays is loaded by the first question."""
    code = (
        "import sys; from mnemolog import Memory, Scope\n"
        f"with Memory.open({str(tmp_path / 'data')!r}, background=False) as memory:\n"
        "    memory.record_turn(Scope('acme', user='u-1'), role='user', content='the walrus')\n"
        "    assert 'numpy' not in sys.modules\n"
        "    assert memory.recall(Scope('acme', user='u-1'), 'walrus') and 'numpy' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

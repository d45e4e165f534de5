"""What recall and contexts keep in memory between questions: it changes no digit, and nothing outlives its erasure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from face_world import U1
from mnemolog import Hit, Memory, Scope
from mnemolog.domain.records import Record
from mnemolog.projections import hybrid
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.kept import Kept
from mnemolog.projections.record_tables import RecordTables

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = "walrus friday deploys budget lunch 예산 회의 금요일 배포 바다코끼리".split()
QUERIES = ("walrus 예산", "when does Mina deploy")
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"k": 3},
    {"author": "Mina"},
    {"since": "2026-02-01T00:00:00Z"},
    {"kinds": ["turn"], "history": True},
)


def talk(memory: Memory, rng: random.Random, count: int, step: int = 0) -> None:
    """Turns of several sessions (two of them this step's own), and of none, said by people and the system."""
    for _ in range(count):
        memory.record_turn(
            replace(U1, session=rng.choice(["s-1", f"s-{step}-a", f"s-{step}-b", None])),
            role=rng.choice(["user", "assistant", "user", "system"]),
            content=" ".join(rng.choices(WORDS, k=rng.randint(1, 6))),
            author=rng.choice(["Mina", "Jun", None]),
            occurred_at=f"2026-0{rng.randint(1, 5)}-1{rng.randint(0, 9)}T10:00:00Z",
        )


def hits(memory: Memory, anew: bool = False) -> list[list[Hit]]:
    """anew: with nothing in memory, so that everything is read."""
    found = []
    for query in QUERIES:
        for options in ASKED:
            if anew:
                forget(memory)
            found.append(memory.recall(U1, query, now=NOW, **options))
    return found


def forget(memory: Memory) -> None:
    memory._store.forget()


@pytest.mark.parametrize("seed", range(3))
def test_a_large_scope_kept_in_memory_scores_as_one_that_is_read(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Hits and signals are equal to the last digit, also after turns, records and erasures came in between."""
    monkeypatch.setattr(hybrid, "WHOLE", 5)
    monkeypatch.setattr(hybrid, "BEST", 4)
    rng, anew = random.Random(seed), list[bool]()
    read = hybrid.HybridSearch._around
    monkeypatch.setattr(hybrid.HybridSearch, "_around", lambda *given: (anew.append(True), read(*given))[1])
    for step in range(3):
        talk(memory, rng, 25, step)
        memory.remember(U1, f"the budget of step {step}", slot=("budget", "limit"))
        if step == 1:
            memory.erase(replace(U1, session=None), session="s-0-a").apply()
        memory.operations.embed()
        hits(memory)
        anew.clear()
        kept = hits(memory)
        assert not anew
        assert kept == hits(memory, anew=True)
        assert len(anew) == len(kept)


def test_a_context_is_the_same_from_memory_and_from_the_views(memory: Memory) -> None:
    """Text, tokens and what was left out are equal, and a change in between is seen."""
    talk(memory, random.Random(4), 40)
    for number in range(10):
        memory.remember(U1, f"walrus number {number}", slot=("walrus", f"n{number % 4}"))
    made = [context(memory)]
    memory.remember(U1, "walrus number 11", slot=("walrus", "n1"))
    made.append(context(memory))
    assert made[0] != made[1]
    forget(memory)
    memory._contexts._estimate._known.clear()
    assert context(memory) == made[1]


def context(memory: Memory) -> tuple[Any, ...]:
    made = memory.context(U1, QUERIES[0], budget=600, now=NOW)
    return made.text, made.receipt.tokens, made.receipt.entries, made.receipt.left_out


def test_a_context_opens_each_view_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it reads of a view is as the view was at one moment."""
    talk(memory, random.Random(5), 10)
    memory.context(U1, "the session's zone is known from here on", budget=600)
    opened, read = list[str](), memory._store.runner.read

    @contextmanager
    def noted(name: str, *given: Any) -> Iterator[Any]:
        opened.append(name)
        with read(name, *given) as conn:
            yield conn

    monkeypatch.setattr(memory._store.runner, "read", noted)
    memory.context(U1, "walrus", budget=600)
    assert sorted(opened) == ["curated", "summaries", "turns", "working"]


# Records ----------------------------------------------------------------------------------------------------------


def judged(memory: Memory, tables: RecordTables, now: datetime) -> dict[int, Record]:
    with memory._reader.views(None) as views:
        view = views.of("curated", U1)
        return dict(tables.of(view.conn, view.scopes, now, tables.epoch).records)


def judged_anew(memory: Memory, now: datetime) -> dict[int, Record]:
    return judged(memory, RecordTables(memory._store.curated), now)


def state(memory: Memory, number: int) -> None:
    """Statements with bounds in time, of which some compete."""
    day = NOW + timedelta(days=number)
    bounds: list[dict[str, Any]] = [{}, {"valid_from": day}, {"valid_to": day}, {"expires_at": day}]
    slot = ("walrus", f"n{number % 3}") if number % 2 else None
    memory.remember(U1, f"walrus number {number}", slot=slot, **bounds[number % 4])


def test_records_are_judged_as_without_a_memory_at_every_moment(memory: Memory) -> None:
    """In whatever order moments are asked for, on the bounds and beside them, and as the view itself judges."""
    for number in range(16):
        state(memory, number)
    tables, moments = RecordTables(memory._store.curated), [NOW - timedelta(days=1)]
    for number in range(16):
        moments += [NOW + timedelta(days=number, microseconds=beside) for beside in (-1, 0, 1)]
    random.Random(6).shuffle(moments)
    for now in moments:
        kept = judged(memory, tables, now)
        assert kept == judged_anew(memory, now)
        listed = {
            record.record_id: str(record.status) for record in memory.records(U1, now=now, history=True)
        }
        assert {record.id: str(record.status) for record in kept.values()} == listed


def test_what_another_writer_changed_is_seen(memory: Memory) -> None:
    """A memory of records is checked against the view, whoever wrote: statements, decisions, votes, a new file."""
    state(memory, 1)
    other = RecordTables(memory._store.curated)
    receipt = memory.remember(U1, "the walrus sleeps")
    changes = (
        lambda: state(memory, 2),
        lambda: memory.correct(U1, receipt.record_id, "the walrus swims"),
        lambda: memory.dispute(U1, receipt.record_id),
        lambda: memory.operations.rebuild("curated"),
        lambda: memory.retract(U1, receipt.record_id),
        lambda: memory.erase(U1, record=receipt.record_id).apply(),
    )
    for change in changes:
        judged(memory, other, NOW)
        change()
        assert judged(memory, other, NOW) == judged_anew(memory, NOW)


def test_promise_8_nothing_that_was_erased_stays_in_memory(memory: Memory) -> None:
    """Neither the author's name nor any record of an erased person is kept, and what is kept has no text at all."""
    memory.record_turn(U1, role="user", content="the zyxwombat sleeps", author="Mina")
    memory.remember(U1, "the zyxwombat swims")
    hits(memory)
    assert "zyxwombat" not in repr(memory._store.records._tables._entries)
    assert "zyxwombat" not in repr(memory._store.tables._tables._entries)
    assert "Mina" in repr(memory._store.tables._tables._entries)
    memory.erase(Scope("acme"), subject="u-1").apply()
    assert not memory._store.tables._tables._entries
    assert not memory._store.records._tables._entries


def test_promise_8_what_was_read_before_an_erasure_is_not_kept_after_it(memory: Memory) -> None:
    """A read that is under way still sees the author; when it ends behind the erasure, nothing of it is kept."""
    talk(memory, random.Random(7), 5)
    memory.record_turn(U1, role="user", content="the walrus sleeps", author="Zoltan")
    receipt = memory.remember(U1, "the walrus swims", kind="procedure")
    store = memory._store
    with memory._reader.views(None) as views:
        turns, records = views.of("turns", U1), views.of("curated", U1)
        store.forget()
        documents = store.turns.index.postings(turns.conn, list(turns.scopes), [])
        table = store.tables.of(turns.conn, turns.scopes, documents, views.turn_epoch)
        judged = store.records.of(records.conn, records.scopes, NOW, views.record_epoch)
        (record,) = judged.records.values()
        assert store.records.aspect(record, "the goal is to swim", views.record_epoch) is not None
    assert "Zoltan" in table.authors and record.id == receipt.record_id
    kept = store.tables._tables, store.records._tables, store.records._aspects
    assert not any(one._entries for one in kept)


def test_promise_8_no_read_looks_at_a_view_without_an_erasure_that_was_heard_of(memory: Memory) -> None:
    """Also one that asks for an older position: else it would keep again what was erased."""
    first = memory.record_turn(U1, role="user", content="the walrus sleeps", author="Zoltan")
    memory._store.runner.background.hold()
    hits(memory)
    memory.record_turn(U1, role="user", content="lunch")
    store = memory._store
    store.erased = store.log.head()
    with memory._reader.views(first.position) as views:
        assert views.of("turns", U1).conn is not None
    assert store.runner._lane("turns").position >= store.erased


def test_as_many_records_are_kept_as_there_is_room_for(memory: Memory) -> None:
    """More than there is room for is judged all the same, and takes the room of nothing else."""
    tables = RecordTables(memory._store.curated, kept=3)
    for number in range(4):
        state(memory, number)
    assert judged(memory, tables, NOW) == judged_anew(memory, NOW)
    assert not tables._tables._entries
    assert tables._tables._size == 0


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    """An answer from memory counts as asking; what is larger than all the room is not kept, and drops nothing."""
    kept = Kept[str, str](2)
    for name in "ab":
        kept.put(name, name.upper(), 1, 0)
    assert kept.get("a") == "A"
    kept.put("c", "C", 1, 0)
    kept.put("d", "D", 3, 0)
    assert [kept.get(name) for name in "abcd"] == ["A", None, "C", None]
    kept.put("a", "AA", 2, 0)
    assert [kept.get(name) for name in "ac"] == ["AA", None]
    kept.forget()
    kept.put("a", "A", 1, 0)
    assert kept.get("a") is None and kept.epoch == 1


def test_a_turn_that_was_masked_scores_as_if_it_were_read_anew(memory: Memory) -> None:
    """Masking makes a turn shorter; what is kept in memory of its scope follows, also after another policy."""
    memory.record_turn(
        U1, role="user", content="my walrus pays by card 4111 1111 1111 1111 and 010-1234-5678"
    )
    memory.record_turn(U1, role="user", content="the walrus sleeps")
    memory.operations.extract()
    hits(memory)
    assert hits(memory) == hits(memory, anew=True)
    memory.operations.adopt_policy("version: 1\npersonal:\n  phone: keep\n")
    assert hits(memory) == hits(memory, anew=True)


def test_promise_8_words_of_an_erased_turn_leave_the_memory_of_every_process(memory: Memory) -> None:
    """What was remembered of words and speakers goes when an erasure is heard of, whoever erased."""
    memory.record_turn(U1, role="user", content="the zyxwombat sleeps", author="Zoltan")
    hits(memory)
    turns = memory._store.turns
    assert "zyxwombat" in turns.analyzer._words
    assert "Zoltan" in repr(turns._known)
    memory._store.forget()
    assert not turns.analyzer._words and not turns._known


def test_the_view_judges_single_records_alike(memory: Memory) -> None:
    """Records asked for by their ids stand as they do among all."""
    for number in range(8):
        state(memory, number)
    with memory._reader.views(None) as views:
        view, now = views.of("curated", U1), NOW + timedelta(days=3)
        curated = CuratedView(memory._store.curated)
        listed = {one.id: one for one in curated.records(view.conn, view.scopes, now, include_history=True)}
        assert curated.by_ids(view.conn, list(listed), view.scopes, now) == listed

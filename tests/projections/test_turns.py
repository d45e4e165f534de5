"""The turns view: what was said and returned, found by its words, gone when erased."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projection_fakes import FakeLog, runner_over
from sqlalchemy import Connection, MetaData

from mnemolog.domain.events import (
    FORGOTTEN,
    FeedbackGiven,
    Recorded,
    SessionClosed,
    SessionOpened,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.principal import Tier
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.projections import turns_view
from mnemolog.projections.runner import Runner
from mnemolog.projections.scopes import ScopeTable
from mnemolog.projections.turns import Turns
from mnemolog.projections.turns_view import TurnRow

INDEX, PASSAGES = SqliteLexicalIndex("turns"), SqliteLexicalIndex("passages_lex")
ANALYZER = default_analyzer()


def turns() -> Turns:
    return Turns(INDEX, PASSAGES, default_analyzer())


def scopes_of(conn: Any, user: str | None = "u1", project: str | None = None) -> list[int]:
    return list(ScopeTable(MetaData()).visible(conn, ScopeIds(Scope("t1", user=user, project=project))))


def hits(conn: Any, scopes: list[int], query: str) -> list[tuple[TurnRow, float]]:
    """The turns that the index has for a query, best first."""
    scored = INDEX.search(conn, sorted(scopes), ANALYZER.query(query))
    rows = turns_view.at(conn, [position for position, _ in scored], scopes)
    return [(rows[position], score) for position, score in scored]


def found(runner: Runner, query: str, user: str = "u1") -> list[str]:
    with runner.read("turns") as conn:
        return [row.text for row, _ in hits(conn, scopes_of(conn, user), query)]


def test_what_was_said_and_returned_is_kept_as_it_was(tmp_path: Path) -> None:
    """One row per event with its speaker or tool, time with offset, tier and text."""
    log = FakeLog()
    log.turn("안녕 Ünïcode\x00", author="Min", origin=Tier.USER_STATED)
    log.add(UtteranceChunkRecorded("assistant", "half a", "utterance-1"))
    log.add(ToolCalled("read_file", '{"path": "\\uba54\\ubaa8.md"}', "c-1"))
    log.add(ToolReturned("no such file", "read_file", "c-1", error=True, blob={"ref": "b"}))
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        said, chunk, call, result = turns_view.recent(conn, scopes_of(conn))
        assert turns_view.get(conn, said.event_id, scopes_of(conn)) == said
        assert turns_view.get(conn, said.event_id, []) is None
    assert (said.kind, said.text, said.author, said.role) == ("turn", "안녕 Ünïcode\x00", "Min", "user")
    assert (said.occurred_at, said.occurred_us) == ("2026-03-02T10:00:00+09:00", 1_772_413_200_000_000)
    assert (said.origin, said.session, said.blob) == (Tier.USER_STATED, "s1", None)
    assert (chunk.kind, chunk.text) == ("chunk", "half a")
    assert (call.kind, call.tool, call.text) == ("tool_call", "read_file", '{"path": "메모.md"}')
    assert (result.kind, result.error, result.blob) == ("tool_result", True, {"ref": "b"})


def test_arguments_that_cannot_be_stored_as_letters_stay_escaped(tmp_path: Path) -> None:
    """A lone surrogate or broken JSON in tool arguments is kept as the runtime wrote it."""
    log = FakeLog()
    for arguments in ('{"a": "\\ud800"}', '{"a": "\\u0041'):
        log.add(ToolCalled("t", arguments))
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        rows = turns_view.recent(conn, scopes_of(conn))
    assert [row.text for row in rows] == ['{"a": "\\ud800"}', '{"a": "\\u0041']


@pytest.mark.parametrize("nest", [("[", "]"), ('{"a":', "}"), ('{"a]":[', "]}")])
def test_promise_10_arguments_that_are_nested_too_deep_stay_as_they_are(
    tmp_path: Path, nest: tuple[str, str]
) -> None:
    """Deep JSON is kept as the runtime wrote it and parks nobody; brackets in strings are no depth."""
    log = FakeLog()
    deep = nest[0] * 2_000 + '"\\u0041"' + nest[1] * 2_000
    text = '["' + "[" * 2_000 + '\\"[\\uba54"]'
    for arguments in (deep, text):
        log.add(ToolCalled("t", arguments))
    log.turn("after")
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        rows = turns_view.recent(conn, scopes_of(conn))
    assert [row.text for row in rows] == [deep, text.replace("\\uba54", "메"), "after"]
    assert runner.parked("turns") == []


def test_turns_are_found_by_words_speaker_tool_and_date(tmp_path: Path) -> None:
    """The searched text holds all of them; what a system turn says is kept but not found."""
    log = FakeLog()
    log.turn("보고서는 엑셀로 보내 주세요", author="Min")
    log.turn("the deployment failed", author="Ana", occurred_at="2025-12-24T23:30:00-05:00")
    log.add(ToolReturned("ok", "run_tests", "c-1"))
    log.add(TurnRecorded("system", "you are a helpful deployment bot"))
    runner = runner_over(log, tmp_path, turns())
    assert found(runner, "보고서") == ["보고서는 엑셀로 보내 주세요"]
    assert found(runner, "deployments") == ["the deployment failed"]
    assert found(runner, "what did Ana say?") == ["the deployment failed"]
    assert found(runner, "24 December") == ["the deployment failed"]
    assert found(runner, "run_tests") == ["ok"]
    assert found(runner, "") == found(runner, "nonsense") == []
    with runner.read("turns") as conn:
        assert len(turns_view.recent(conn, scopes_of(conn))) == 4


def test_a_very_long_text_is_stored_whole_and_indexed_to_a_bound(tmp_path: Path) -> None:
    """The words of the first 64 K characters find it."""
    log = FakeLog()
    log.turn("first " + "x " * 40_000 + "last")
    runner = runner_over(log, tmp_path, turns())
    assert len(found(runner, "first")[0]) == 80_010
    assert found(runner, "last") == []


def test_promise_4_reads_return_nothing_from_outside_the_scope(tmp_path: Path) -> None:
    """Neither search nor recent nor get gives a row of a neighbour, and a neighbour changes no score."""
    log = FakeLog()
    mine = log.turn("my secret plan", "u1")
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        alone = hits(conn, scopes_of(conn, "u1"), "secret plan")
    for number in range(300):
        log.turn(f"secret plan of a neighbour {number}", "u2", session="s1")
    with runner.read("turns") as conn:
        scopes = scopes_of(conn, "u1")
        assert hits(conn, scopes, "secret plan") == alone
        assert [row.event_id for row in turns_view.recent(conn, scopes, session="s1")] == [mine.envelope.id]
        assert turns_view.get(conn, log.rows[5].envelope.id, scopes) is None
        assert turns_view.between(conn, scopes, "s1", 1, 400) == [alone[0][0]]


def test_recent_returns_the_last_turns_in_order(tmp_path: Path) -> None:
    """Of the scopes or of one session, before a position if one is given."""
    log = FakeLog()
    for number in range(10):
        log.turn(f"turn {number}", session=f"s{number % 2}")
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        scopes = scopes_of(conn)
        assert [row.position for row in turns_view.recent(conn, scopes, limit=3)] == [8, 9, 10]
        of_session = turns_view.recent(conn, scopes, session="s0", limit=2, before=7)
        assert [row.position for row in of_session] == [3, 5]


def test_sessions_and_feedback_are_kept(tmp_path: Path) -> None:
    """A session shows its opening, its closing, its zone and title; it can be opened again."""
    log = FakeLog()
    log.add(SessionOpened("Asia/Seoul", "Monday"))
    said = log.turn("a")
    log.add(SessionClosed())
    log.add(SessionOpened(None, "Tuesday"), session="s2")
    log.add(SessionOpened(None, "Monday again"))
    log.add(FeedbackGiven(said.envelope.id, "good", "well said"))
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        again = turns_view.session(conn, "s1")
        assert again is not None
        assert (again.opened_at, again.closed_at) == (1, None)
        assert (again.timezone, again.title) == ("Asia/Seoul", "Monday again")
        assert [row.session for row in turns_view.sessions(conn, scopes_of(conn))] == ["s1", "s2"]
        assert turns_view.session(conn, "s3") is None
        (judged,) = turns_view.feedback(conn, said.envelope.id, scopes_of(conn))
        assert (judged.rating, judged.comment) == ("good", "well said")


def test_forgotten_and_half_forgotten_content_leaves_no_text(tmp_path: Path) -> None:
    """A turn whose content is destroyed has no row; one that lost only its author has no author."""
    log = FakeLog()
    log.erase_events(log.turn("gone"))
    half: Any = FORGOTTEN
    log.add(TurnRecorded("user", half, "Min"))
    log.add(TurnRecorded("user", "kept", half))
    runner = runner_over(log, tmp_path, turns())
    with runner.read("turns") as conn:
        rows = turns_view.recent(conn, scopes_of(conn))
    assert [(row.text, row.author) for row in rows] == [("kept", None)]


def test_promise_8_an_erased_subject_is_gone_and_neighbours_are_untouched(tmp_path: Path) -> None:
    """Own turns, turns of others about the person, sessions and feedback go, from rows, index and bytes."""
    log = FakeLog()
    log.add(SessionOpened("Asia/Seoul", "quetzalcoatl"), "u1")
    log.turn("quetzalcoatl was here", "u1")
    log.turn("quetzalcoatl again", None, project="p1", subjects=("u1", "u2"))
    log.turn("neighbour", "u2")
    log.add(FeedbackGiven(log.rows[3].envelope.id, "bad", "quetzalcoatl"), "u1")
    log.add(ToolReturned("quetzalcoatl", "t"), "u2", session="s2")
    runner = runner_over(log, tmp_path, turns())
    runner.catch_up("turns")
    assert b"quetzalcoatl" in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    log.erase_subject("u1")
    log.erase_events(log.rows[5])
    assert found(runner, "quetzalcoatl") == found(runner, "quetzalcoatl", "u2") == []
    assert found(runner, "neighbour", "u2") == ["neighbour"]
    with runner.read("turns") as conn:
        assert turns_view.session(conn, "s1") is None
        assert turns_view.feedback(conn, log.rows[3].envelope.id, scopes_of(conn)) == []
    assert runner.purge("turns") is True
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"quetzal" not in stored
    assert b"neighbour" in stored
    live = runner.dump("turns")
    runner.rebuild("turns", batch_size=2)
    assert runner.dump("turns") == live


class Failing(Turns):
    """Fails on the word poison, after its rows are written."""

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        super().fold(conn, batch)
        if any(isinstance(e.event, TurnRecorded) and e.event.content == "poison" for e in batch):
            raise ValueError


def test_promise_10_nothing_of_a_failed_fold_is_remembered(tmp_path: Path) -> None:
    """A scope that a failing event was the first to bring is made anew for the next event."""
    log = FakeLog()
    poison = log.turn("poison", "u1")
    log.turn("b", "u2")
    log.turn("c", "u1")
    runner = runner_over(log, tmp_path, Failing(INDEX, PASSAGES, default_analyzer()))
    log.dismiss("turns", poison)
    runner.catch_up("turns")
    assert (found(runner, "b", "u2"), found(runner, "c", "u1"), found(runner, "c", "u2")) == (
        ["b"],
        ["c"],
        [],
    )
    assert [row[-4] for row in runner.dump("turns") if row[0] == "indexed"] == [1, 1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["turn", "shared", "tool", "open", "close", "feedback", "erase", "forget"]),
              st.integers(0, 2), st.integers(0, 40)),
    max_size=30,
)  # fmt: skip


def step(log: FakeLog, kind: str, user: int, pick: int) -> None:
    target = log.rows[pick % len(log.rows)] if log.rows else log.turn("first")
    name, session = f"u{user}", f"s{pick % 3}"
    if kind == "erase":
        log.erase_events(target)
    elif kind == "forget":
        log.erase_subject(name)
    elif kind == "shared":
        log.turn(f"about {name} {pick}", None, project="p1", subjects=(name, "u1"), session=session)
    else:
        events = {
            "turn": TurnRecorded("system" if pick == 7 else "user", f"word{pick} 단어{user}", "Min"),
            "tool": ToolReturned(f"output {pick}", "tool", f"c-{pick}"),
            "open": SessionOpened("Asia/Seoul", f"title {pick}"),
            "close": SessionClosed(),
            "feedback": FeedbackGiven(target.envelope.id, "good", f"comment {pick}"),
        }
        log.add(events[kind], name, session=session, subjects=() if kind == "close" else None)


@given(STEPS, st.integers(1, 8), st.integers(1, 8), st.integers(1, 5))
def test_promise_3_turns_rebuild_equals_live(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], batch: int, rebuilt: int, stride: int
) -> None:
    """With erasures anywhere and any batch sizes, rows, sessions, feedback and index are the same."""
    log = FakeLog()
    runner = runner_over(log, tmp_path_factory.mktemp("views"), turns(), batch_size=batch)
    for number, (kind, user, pick) in enumerate(steps):
        step(log, kind, user, pick)
        if number % stride == 0:
            runner.catch_up("turns")
    runner.catch_up("turns")
    live = runner.dump("turns")
    assert runner.parked("turns") == []
    runner.rebuild("turns", batch_size=rebuilt)
    assert runner.dump("turns") == live

"""Promise 10: poison never blocks, and is never lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from face_world import U1, U2, contents, dump_hashes, open_memory, rebuilt_hashes, texts
from mnemolog import Memory
from mnemolog.errors import InvalidInput, NotFound, RebuildRefused

POISON = "arsenic"


class Allergic(Exception):
    """What the fold raises; its message quotes the text, as messages do."""


def poison(memory: Memory, patch: pytest.MonkeyPatch, *names: str) -> None:
    """Make folds fail on events that say the poison word."""
    for name in names:
        projection = memory._store.runner._shared[name].projection
        fold = projection.fold

        def refuse(conn: Any, batch: Sequence[Any], fold: Any = fold) -> None:
            for recorded in batch:
                if POISON in str(getattr(recorded.event, "content", "")):
                    raise Allergic(recorded.event.content)
            fold(conn, batch)

        patch.setattr(projection, "fold", refuse)


def test_promise_10_others_go_on_and_the_owner_waits_in_order(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing event is parked with its reason, its owner's later events wait behind it, and others go on."""
    memory.remember(U1, "before")
    with monkeypatch.context() as patch:
        poison(memory, patch, "curated")
        bad = memory.remember(U1, f"{POISON} text")
        for number in range(3):
            memory.remember(U1, f"mine {number}")
            memory.remember(U2, f"theirs {number}")
        memory.operations.catch_up()
        assert contents(memory, U2) == ["theirs 0", "theirs 1", "theirs 2"]
        assert contents(memory, U1) == ["before"]
        first, *waiting = memory.operations.parked("curated")
        assert (first.event_id, first.position, first.state) == (bad.event_id, bad.position, "failed")
        assert "Allergic" in first.reason
        assert POISON not in repr(memory.operations.parked()), "a reason holds no text"
        assert [row.state for row in waiting] == ["waiting"] * 3
        lag = {one.name: one for one in memory.operations.projections()}
        assert (lag["curated"].lag, lag["curated"].parked, lag["curated"].waiting) == (0, 1, 3)
        assert lag["turns"].parked == 0
        assert any("parked" in warning for warning in memory.operations.status().warnings)
        again = memory.operations.replay_parked("curated", bad.position)
        assert [row.state for row in memory.operations.parked("curated")] == ["failed", *["waiting"] * 3]
    second = memory.operations.replay_parked("curated", bad.position)
    memory.operations.catch_up()
    assert memory.operations.parked() == []
    assert contents(memory, U1) == ["before", f"{POISON} text", "mine 0", "mine 1", "mine 2"]
    logged = [each.envelope.id for each in memory.log(topics={"ParkedEventReplayed"})]
    assert logged == [again.event_id, second.event_id]
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory, 2) == live


def test_promise_10_a_rebuild_that_lacks_more_is_not_switched_to(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live view stays, and the error says what failed and how to switch all the same; forced, it is parked."""
    memory.remember(U1, "before")
    bad = memory.remember(U1, f"{POISON} text")
    memory.remember(U1, "after")
    live = dump_hashes(memory)
    with monkeypatch.context() as patch:
        poison(memory, patch, "curated")
        for rebuild in (
            lambda: memory.operations.rebuild("curated"),
            lambda: memory.operations.rebuild_all(["curated"]),
        ):
            with pytest.raises(RebuildRefused, match=r"--force.*projections parked curated") as refused:
                rebuild()
        (position, reason), waiting = refused.value.events
        assert (position, "Allergic" in reason, waiting[1]) == (bad.position, True, "waiting")
        assert POISON not in str(refused.value)
        assert dump_hashes(memory) == live
        assert memory.operations.parked("curated") == []
        memory.operations.rebuild("curated", force=True)
        assert len(memory.operations.parked("curated")) == 2
        memory.operations.rebuild("curated")
    memory.operations.rebuild("curated")
    assert dump_hashes(memory) == live


def test_promise_10_a_dismissal_is_an_event_that_rebuilds_honour(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dismissed event is left out for good, also by rebuilds after the fault is mended; what waited goes on."""
    with monkeypatch.context() as patch:
        poison(memory, patch, "curated", "turns")
        memory.record_turn(U1, role="user", content=f"{POISON} turn")
        bad = memory.remember(U1, f"{POISON} text")
        memory.remember(U1, "after")
        memory.record_turn(U1, role="user", content="turn after")
        memory.operations.catch_up()
        for row in memory.operations.parked():
            if row.state == "failed":
                memory.operations.dismiss_parked(row.projection, row.position, reason="no use")
        memory.operations.catch_up()
        assert memory.operations.parked() == []
        assert contents(memory, U1) == ["after"]
        assert texts(memory, U1, "after turn", kinds=["turn"]) == ["turn after"]
    live = dump_hashes(memory)
    for batch in (1, 1000):
        assert rebuilt_hashes(memory, batch) == live
    assert contents(memory, U1) == ["after"]
    assert [each.event.content for each in memory.log() if each.envelope.id == bad.event_id] == [
        f"{POISON} text"
    ]
    assert len(memory.log(topics={"ParkedEventDismissed"})) == 2
    assert {each.event.reason for each in memory.log(topics={"ParkedEventDismissed"})} == {"no use"}


def test_promise_10_what_is_parked_survives_reopening_and_is_erased_too(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parked events are still parked after a restart; erasing their person closes them and frees the queue."""
    with monkeypatch.context() as patch:
        poison(memory, patch, "curated")
        memory.remember(U1, f"{POISON} text")
        memory.remember(U1, "waits")
        memory.remember(U2, "neighbour")
        memory.operations.catch_up()
    path = memory.path
    memory.close()
    with open_memory(path) as again:
        assert [row.state for row in again.operations.parked("curated")] == ["failed", "waiting"]
        assert again.erase(U1.at(()), subject="u-1").apply().complete
        assert again.operations.parked() == []
        assert contents(again, U2) == ["neighbour"]
        live = dump_hashes(again)
        assert rebuilt_hashes(again, 1) == live


def test_promise_10_there_is_nothing_to_decide_where_nothing_is_parked(memory: Memory) -> None:
    """Replaying or dismissing what is not parked, or in a view that does not exist, is a typed error."""
    memory.remember(U1, "fine")
    for decide in (memory.operations.replay_parked, memory.operations.dismiss_parked):
        with pytest.raises(NotFound):
            decide("curated", 1)
        with pytest.raises(InvalidInput):
            decide("poems", 1)


def frames() -> int:
    """How deep the caller is in its stack."""
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return depth


def test_promise_10_a_reader_deep_in_its_stack_harms_nobody(tmp_path: Path) -> None:
    """A first read with little stack left may fail for the reader; it parks nothing, and the next one finds all."""

    def deep(depth: int, memory: Memory) -> object:
        return deep(depth - 1, memory) if depth else memory.recall(U1, "zebra")

    failed = 0
    for room in range(36, 70, 4):
        with open_memory(tmp_path / str(room)) as memory:
            memory.remember(U1, f"zebra {room}")
            memory.record_turn(U1, role="user", content="a zebra")
            try:
                deep(sys.getrecursionlimit() - frames() - room, memory)
            except RecursionError:
                failed += 1
            assert memory.operations.parked() == []
            assert sorted(texts(memory, U1, "zebra")) == ["a zebra", f"zebra {room}"]
            live = dump_hashes(memory)
            assert rebuilt_hashes(memory, 1) == live
            assert memory.erase(U1.at(()), subject="u-1").apply().complete
    assert failed


def test_promise_10_deep_tool_arguments_silence_nobody(memory: Memory) -> None:
    """A call with absurdly nested arguments is kept, and its owner goes on."""
    arguments = "[" * 2_000 + '"\\u0041"' + "]" * 2_000
    call = memory.record_tool_call(U1, name="t", arguments=arguments)
    memory.record_turn(U1, role="user", content="walrus behind it")
    assert texts(memory, U1, "walrus", kinds=["turn"]) == ["walrus behind it"]
    assert memory.operations.parked() == []
    assert memory.read_output(U1, call.event_id).text == arguments

"""Promise 2: one event changes one view exactly once."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from face_world import U1, U2, VIEWS, dump_hashes, open_memory
from mnemolog import Memory
from mnemolog.errors import ProjectionStalled

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def tell_a_story(memory: Memory) -> None:
    """Turns, statements, corrections, feedback and an erasure of two users."""
    for number in range(12):
        scope = U1 if number % 2 else U2
        turn = memory.record_turn(scope, role="user", content=f"walrus number {number}")
        note = memory.remember(scope, f"fact {number % 4}", slot=("walrus", str(number % 3)))
        memory.correct(scope, note.record_id, f"corrected {number}")
        memory.feedback(scope, note.record_id, "up")
        memory.set_state(scope, "count", {"at": number, f"key {number % 3}": number})
        memory.context(scope, "walrus", budget=200)
        if number == 7:
            memory.erase(scope, event=turn.event_id).apply()


def hashes_of_a_clean_run(path: Path) -> dict[str, str]:
    with open_memory(path) as memory:
        tell_a_story(memory)
        return dump_hashes(memory)


def rows(memory: Memory) -> dict[str, int]:
    """How many rows each view has."""
    return {name: len(memory._store.runner.dump(name)) for name in VIEWS}


def test_promise_2_delivery_twice_and_out_of_order_changes_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that delivers events again, shuffled, and with old ones among them folds to the same rows."""
    tell_a_story(memory)
    clean, counted = dump_hashes(memory), rows(memory)
    read, rng = memory._store.log.read, random.Random(7)

    def sloppy(after: int, limit: int, **options: Any) -> Any:
        page = read(after, limit, **options)
        old = read(max(0, after - 3), 3, **options).events if after else []
        events = [*page.events, *page.events[: len(page.events) // 2], *old]
        rng.shuffle(events)
        return replace(page, events=events)

    monkeypatch.setattr(memory._store.log, "read", sloppy)
    for batch in (1, 4, 1000):
        for name in VIEWS:
            memory.operations.rebuild(name, batch_size=batch)
        assert dump_hashes(memory) == clean
        assert rows(memory) == counted


@pytest.mark.embedded
@pytest.mark.parametrize("name", VIEWS)
def test_promise_2_a_batch_that_is_cut_off_leaves_nothing_and_is_folded_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """When the disk fails after the rows of a batch and before its commit, neither rows nor checkpoint stay."""
    tell_a_story(memory)
    memory.operations.catch_up()
    memory.context(U1, "one more", budget=200)
    memory.record_turn(U1, role="user", content="one more")
    memory.remember(U1, "one more")
    memory.set_state(U1, "count", {"at": "one more"})
    clean = {name: memory.operations.dump_hash(name)}
    projection = memory._store.runner._shared[name].projection
    fold: Callable[[Any, Sequence[Any]], None] = projection.fold

    def cut_off(conn: Any, batch: Sequence[Any]) -> None:
        fold(conn, batch)
        full = sqlite3.OperationalError("disk is full")
        full.sqlite_errorcode = 13
        raise OperationalError("fold", {}, full)

    with monkeypatch.context() as patch:
        patch.setattr(projection, "fold", cut_off)
        for _ in range(2):
            with pytest.raises(ProjectionStalled):
                memory._store.runner.catch_up(name)
        assert memory.operations.dump_hash(name) == clean[name]
    live = dump_hashes(memory)
    memory.operations.rebuild(name)
    assert memory.operations.dump_hash(name) == live[name] != clean[name]


def test_promise_2_many_readers_at_once_fold_each_event_once(tmp_path: Path) -> None:
    """Eight threads that all advance the views, beside the background thread, leave the rows of a single one."""
    with open_memory(tmp_path / "alone") as alone:
        tell_a_story(alone)
        alone.operations.catch_up()
        counted = rows(alone)
    with open_memory(tmp_path / "together", background=True) as memory, ThreadPoolExecutor(8) as pool:
        readers = [
            pool.submit(lambda: [memory._reader.records_now(U1, ["x"], NOW) for _ in range(25)])
            for _ in range(7)
        ]
        tell_a_story(memory)
        for reader in readers:
            reader.result()
        memory.operations.catch_up()
        assert rows(memory) == counted
        live = dump_hashes(memory)
        for name in VIEWS:
            memory.operations.rebuild(name)
        assert dump_hashes(memory) == live

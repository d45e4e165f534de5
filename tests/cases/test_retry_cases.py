"""Complaints about crashes, retries and concurrency elsewhere, and what is right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from face_world import U1, U2, open_memory, texts
from mnemolog import Memory, Receipt
from mnemolog.errors import IdempotencyConflict, InvalidInput, StoreUnavailable


def test_a_failed_append_leaves_no_limbo(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """I01: when the disk refuses, the call fails, nothing is counted, no blob stays, and the retry goes in once."""

    def refuse(*_: object) -> None:
        raise StoreUnavailable("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(memory._store.log._storage, "commit", refuse)
        with pytest.raises(StoreUnavailable):
            memory.record_tool_result(U1, output="x" * 100_000, key="k")
        results = memory.record_batch(
            [{"type": "turn", "scope": U1, "role": "user", "content": f"{n}"} for n in range(3)]
        )
        assert all(isinstance(result, StoreUnavailable) for result in results)
    assert memory.operations.status().head == 0
    assert list((memory.path / "blobs").iterdir()) == []
    assert memory.record_tool_result(U1, output="x" * 100_000, key="k").position == 1


def test_a_batch_takes_the_good_and_names_the_bad(memory: Memory) -> None:
    """I01: each item of a batch has a receipt or an error in its place; what has a receipt is there."""
    good = {"type": "turn", "scope": U1, "role": "user", "content": "walrus"}
    results = memory.record_batch(
        [
            good | {"key": "1"},
            good | {"role": "pirate"},
            good | {"key": "1"},
            good | {"key": "1", "content": "other"},
            {"type": "poem", "scope": U1},
            good | {"occurred_at": "2026-01-01T00:00:00"},
            good | {"colour": "red"},
            good,
        ]
    )
    kinds = [type(result) for result in results]
    assert kinds == [
        Receipt, InvalidInput, Receipt, IdempotencyConflict, InvalidInput, InvalidInput, InvalidInput, Receipt,
    ]  # fmt: skip
    assert results[2].duplicate and results[2].event_id == results[0].event_id
    assert memory.operations.status().head == 2
    assert texts(memory, U1, "walrus") == ["walrus", "walrus"]


def test_statements_of_a_batch_are_one_commit_and_each_what_it_is_alone(
    memory: Memory, tmp_path: Path
) -> None:
    """I05: order, records, subjects and refusals are those of statements one by one; said twice is one record."""
    told = [
        {"content": "Min prefers tea.", "key": "1", "subjects": ["min"]},
        {"content": "Reports go out as PDF.", "slot": ("report", "format"), "key": "2"},
        {"content": "min prefers tea.", "key": "3"},
        {"content": "x", "confidence": 2},
        {"content": "x", "colour": "red"},
        {"key": "4"},
        {"content": "Reports go out as ODF.", "slot": ("report", "format"), "key": "2"},
        {"content": "Reports go out as PDF.", "slot": ("report", "format"), "key": "2"},
    ]
    batch = [{"type": "remember", "scope": U1, **one} for one in told]
    commits = memory.operations.status().head
    results = memory.record_batch(
        [*batch, {"type": "turn", "scope": U1, "role": "user", "content": "walrus"}]
    )
    kinds = [type(result) for result in results]
    assert kinds == [
        Receipt, Receipt, Receipt, InvalidInput, InvalidInput, InvalidInput, IdempotencyConflict, Receipt, Receipt,
    ]  # fmt: skip
    assert memory.operations.status().head == commits + 4
    events = memory.log()
    assert [one.envelope.topic for one in events] == [*["MemoryStated"] * 3, "TurnRecorded"]
    assert events[0].envelope.subjects == events[2].envelope.subjects > events[1].envelope.subjects
    with open_memory(tmp_path / "single") as single:
        for one in (told[0], told[1], told[2]):
            single.remember(U1, **one)  # type: ignore[arg-type]
        assert [record.content for record in single.records(U1)] == [
            record.content for record in memory.records(U1)
        ]
    assert len(memory.records(U1)) == 2


def test_statements_of_a_batch_share_a_commit(memory: Memory) -> None:
    """One fsync for all of them, as for turns."""
    before = memory._store.log.stats()["groups"]
    items = [{"type": "remember", "scope": U1, "content": f"Fact number {n}."} for n in range(20)]
    assert all(isinstance(result, Receipt) for result in memory.record_batch(items))
    assert memory._store.log.stats()["groups"] == before + 1


def test_the_same_key_is_one_event_and_another_body_a_conflict(memory: Memory) -> None:
    """I03: resending with the same key yields the first receipt; another body raises; the key is the scope's own."""
    first = memory.record_turn(U1, role="user", content="walrus", key="turn-1", author="Min")
    again = memory.record_turn(U1, role="user", content="walrus", key="turn-1", author="Min")
    assert again.duplicate and not first.duplicate
    assert (again.event_id, again.position) == (first.event_id, first.position)
    with pytest.raises(IdempotencyConflict) as conflict:
        memory.record_turn(U1, role="user", content="otter", key="turn-1")
    assert conflict.value.event_id == first.event_id
    assert not memory.record_turn(U2, role="user", content="otter", key="turn-1").duplicate
    assert memory.operations.status().head == 2
    assert texts(memory, U1, "walrus otter") == ["walrus"]


def test_the_key_holds_after_reopening(tmp_path: Path) -> None:
    """I03: a key that was used before a restart is still known, for every kind of write."""

    def write(memory: Memory) -> list[Receipt]:
        return [
            memory.open_session(U1, timezone="UTC", key="a"),
            memory.record_tool_call(U1, name="f", arguments={"b": 1, "a": 2}, key="b"),
            memory.record_tool_result(U1, output={"x": 1}, key="c"),
            memory.remember(U1, "note", slot=("a", "b"), key="d"),
            memory.close_session(U1, key="e"),
        ]

    with open_memory(tmp_path) as memory:
        first = write(memory)
    with open_memory(tmp_path) as memory:
        again = write(memory)
        assert all(receipt.duplicate for receipt in again)
        assert [one.event_id for one in first] == [one.event_id for one in again]


def test_fifty_parallel_equal_statements_are_one_record(tmp_path: Path) -> None:
    """I04: fifty threads state the same at once: one record with fifty pieces of evidence, or one by key."""
    with open_memory(tmp_path, background=True) as memory:
        barrier = Barrier(50)

        def state(key: str | None) -> Receipt:
            barrier.wait()
            return memory.remember(U1, "Lunch is at noon" if key is None else "Dinner is at six", key=key)

        with ThreadPoolExecutor(50) as pool:
            unkeyed = list(pool.map(state, [None] * 50))
            keyed = list(pool.map(state, ["dinner"] * 50))
        assert len({receipt.record_id for receipt in unkeyed}) == 1
        assert sorted(receipt.version for receipt in unkeyed) == list(range(1, 51))
        assert len({receipt.event_id for receipt in keyed}) == 1
        lunch, dinner = memory.records(U1)
        assert (len(lunch.event_ids), len(dinner.event_ids)) == (50, 1)


def test_a_write_is_in_the_next_read(tmp_path: Path) -> None:
    """I07: what a thread has written is in its next recall, whatever the other threads do; `at_least` waits for it."""
    with open_memory(tmp_path, background=True) as memory:

        def write_and_read(number: int) -> bool:
            scope = U1.of({"tenant": "acme", "user": f"u-{number}", "session": "s"})
            for step, word in enumerate(("walrus", "otter", "heron", "lynx", "gecko"), 1):
                receipt = memory.record_turn(scope, role="user", content=f"the {word}")
                if texts(memory, scope, word) != [f"the {word}"]:
                    return False
                if (
                    len(memory.recall(scope, "the walrus otter heron lynx gecko", at_least=receipt.position))
                    != step
                ):
                    return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(write_and_read, range(8)))

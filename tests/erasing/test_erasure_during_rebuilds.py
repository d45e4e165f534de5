"""A view that is being built while something is erased keeps nothing of it either."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from face_world import ACME, U1, U2, VIEWS, contents, dump_hashes, files_with, rebuilt_hashes
from mnemolog import ErasureReceipt, Memory
from mnemolog.errors import StoreUnavailable

SECRET = "zyxwombatqk"


def fill(memory: Memory) -> None:
    """The secret comes first, so that the first batches of a rebuild read it."""
    for number in range(6):
        memory.record_turn(U1, role="user", content=f"{SECRET} turn {number}")
        memory.remember(U1, f"{SECRET} fact {number}")
    for number in range(20):
        memory.record_turn(U2, role="user", content=f"turn {number}")
        memory.remember(U2, f"fact {number}")
    memory.operations.catch_up()


def erase(memory: Memory) -> ErasureReceipt:
    return memory.erase(ACME, subject="u-1").apply()


@pytest.mark.embedded
@pytest.mark.parametrize("view", ["turns", "curated"])
@pytest.mark.parametrize("at", [1, 3])
def test_promise_8_no_byte_is_left_by_a_rebuild_that_an_erasure_met(
    memory: Memory, view: str, at: int
) -> None:
    """Once the receipt is complete no file holds the text, the half-built one neither; nor later, when it is live."""
    fill(memory)
    steps, receipts, seen = list[int](), list[ErasureReceipt](), list[set[str]]()

    def meet(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == at:
            seen.append(files_with(memory.path / "views", SECRET))
            receipts.append(erase(memory))
            seen.append(files_with(memory.path, SECRET))

    memory.operations.rebuild(view, batch_size=10, progress=meet)
    before, after = seen
    assert len([name for name in before if name.startswith(view)]) >= 2, (
        "the half-built view had read the text"
    )
    assert receipts[0].complete
    assert after == set()
    assert files_with(memory.path, SECRET) == set()
    assert sorted(map(str, contents(memory, U2))) == sorted(f"fact {number}" for number in range(20))
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory, 3) == live
    path = memory.path
    memory.close()
    assert files_with(path, SECRET) == set()


def test_promise_8_rebuilds_and_an_erasure_in_threads_leave_nothing(memory: Memory) -> None:
    """Rebuilds that go on in other threads while a person is erased hide no text from the purge."""
    fill(memory)
    begun, ends = Event(), Event()

    def rebuild(view: str) -> None:
        while not ends.is_set():
            memory.operations.rebuild(view, batch_size=4, progress=lambda done, total: begun.set())

    with ThreadPoolExecutor(len(VIEWS)) as pool:
        rebuilds = [pool.submit(rebuild, view) for view in VIEWS]
        begun.wait()
        receipt = erase(memory)
        found = files_with(memory.path / "views", SECRET) if receipt.complete else set()
        ends.set()
        for each in rebuilds:
            each.result()
    assert found == set()
    for finished in memory.operations.finish_erasures():
        assert finished.complete
    assert files_with(memory.path, SECRET) == set()


def test_promise_8_a_failed_rebuild_leaves_nothing_of_what_was_erased(memory: Memory) -> None:
    """When the rebuild breaks off behind the erasure its file is gone with all that it had read."""
    fill(memory)

    def meet(done: int, total: int) -> None:
        assert erase(memory).complete
        raise StoreUnavailable("the disk is away")

    with pytest.raises(StoreUnavailable):
        memory.operations.rebuild("turns", batch_size=10, progress=meet)
    assert files_with(memory.path, SECRET) == set()
    assert memory._store.runner.purge("turns")


@pytest.mark.embedded
def test_a_view_that_was_replaced_and_is_still_read_is_not_clean(memory: Memory) -> None:
    """A reader keeps the replaced file: the receipt says that a purge is due, and is complete when the reader left."""
    fill(memory)
    runner: Any = memory._store.runner
    with runner.read("turns"):
        memory.operations.rebuild("turns")
        receipt = erase(memory)
        assert not receipt.complete
        assert files_with(memory.path / "views", SECRET) != set()
    (again,) = memory.operations.finish_erasures()
    assert again.complete
    assert files_with(memory.path, SECRET) == set()

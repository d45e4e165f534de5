"""Summaries are written behind the log by a thread of the open memory, and end with it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from face_world import U1, files_with, open_memory
from mnemolog import Memory
from summaries_world import current, talk, written

PATIENCE = 20.0


def wait_for(memory: Memory, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while written(memory) < count:
        assert time.monotonic() < deadline, "no summary was written"
        time.sleep(0.05)


def test_a_summary_is_written_remade_after_an_erasure_and_the_thread_ends(tmp_path: Path) -> None:
    """A03 in the background: written once due, remade from what is left, nothing runs on after the close."""
    with open_memory(tmp_path / "data", background=True) as memory:
        secret = memory.record_turn(U1, role="user", content="The budget is 48M won zebra99")
        talk(memory, U1, *(f"Word {at} of the harbour" for at in range(40)))
        wait_for(memory, 1)
        assert (found := current(memory, U1)) is not None and "zebra99" in found.rendered
        assert memory.erase(U1, event=secret.event_id).apply().complete
        wait_for(memory, 2)
        assert (found := current(memory, U1)) is not None and "zebra99" not in found.rendered
        assert memory.operations.status().warnings is not None
        assert files_with(memory.path, "zebra99") == set()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("mnemolog-")] == []


def test_nothing_runs_without_a_background(tmp_path: Path) -> None:
    """With background=False no thread starts and no summary is written."""
    with open_memory(tmp_path / "data") as memory:
        talk(memory, U1, *(f"Word {at} of the harbour" for at in range(60)))
        memory.operations.catch_up()
        assert written(memory) == 0
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("mnemolog-")] == []

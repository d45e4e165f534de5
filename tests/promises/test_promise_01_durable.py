"""Promise 1: acknowledged is durable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from face_world import open_memory
from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings

WRITER = """
import sys
from mnemolog import Memory, Scope
with Memory.open(sys.argv[1]) as memory:
    number = 0
    while True:
        number += 1
        scope = Scope("acme", user=f"u-{number % 3}", session="s")
        if number % 7 == 0:
            receipts = [memory.record_tool_result(scope, output=f"large {number} " * 20_000)]
        elif number % 5 == 0:
            receipts = memory.record_batch(
                [{"type": "turn", "scope": scope, "role": "user", "content": f"b {number} {n}"} for n in range(20)]
            )
        elif number % 3 == 0:
            receipts = [memory.remember(scope, f"fact {number}")]
        else:
            receipts = [memory.record_turn(scope, role="user", content=f"turn {number}")]
        for receipt in receipts:
            print(receipt.position, receipt.event_id, flush=False)
        sys.stdout.flush()
"""


def killed_writer(path: Path, after: int) -> dict[int, str]:
    """Position → event id of everything that a writer had acknowledged when it was killed."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    lines = []
    while len(lines) < after:
        lines.append(process.stdout.readline())
    time.sleep(after % 7 / 200)
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()
    pairs = [line.split() for line in lines if len(line.split()) == 2 and len(line.split()[1]) == 32]
    return {int(position): event_id.decode() for position, event_id in pairs}


@pytest.mark.embedded
def test_promise_1_what_a_killed_writer_acknowledged_is_there(tmp_path: Path) -> None:
    """Everything acknowledged before kill -9 is in the log and readable after reopening, without a gap."""
    path = tmp_path / "data"
    acknowledged: dict[int, str] = {}
    for after in (1, 40, 93):
        acknowledged |= killed_writer(path, after)
        with open_memory(path) as memory:
            head = memory.operations.verify_log()
            stored = {each.position: each for each in memory.log(limit=10_000)}
            assert list(stored) == list(range(1, head + 1))
            assert {at: stored[at].envelope.id for at in acknowledged} == acknowledged
            scope = Scope("acme", user="u-1", session="s")
            large = [
                each
                for each in stored.values()
                if each.envelope.clear.get("blob") and memory.names(each.envelope.scope) == scope
            ]
            for each in large:
                assert memory.read_output(scope, each.envelope.id, 0, 5).text == "large"
            blobs = {path.name for path in (path / "blobs").iterdir()}
            assert blobs == {each.envelope.id for each in stored.values() if each.envelope.clear.get("blob")}
    assert len(acknowledged) >= 134


@pytest.mark.embedded
@pytest.mark.parametrize(("durability", "synchronous"), [("fsync", 2), ("os", 1)])
def test_promise_1_the_log_waits_for_the_disk_unless_told_otherwise(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    """By default a commit waits for fsync (SQLite's FULL); the faster mode is a setting with a name."""
    with Memory.open(tmp_path, background=False, settings=Settings.load(durability=durability)) as memory:
        writer = memory._store.log._storage.sql
        assert writer.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    assert Settings.load().durability == "fsync"

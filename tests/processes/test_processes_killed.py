"""Several processes write at once and are killed at any moment: acknowledged equals present, once, in every view."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from embedding_fakes import WordHashes
from face_world import dump_hashes, open_memory, rebuilt_hashes
from mnemolog import Scope

WRITER = Path(__file__).with_name("writing_peer.py")


class Writing:
    """A writer and what it was told is on disk."""

    def __init__(self, path: Path, name: str) -> None:
        command = [sys.executable, str(WRITER), str(path), name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.acknowledged: list[str] = []

    def until(self, count: int) -> None:
        """Read until so many more writes are acknowledged."""
        assert self.process.stdout is not None and self.process.stderr is not None
        for line in islice(self.process.stdout, count + (not self.acknowledged)):
            self.acknowledged.append(line.strip())
        assert len(self.acknowledged) >= count, self.process.stderr.read()

    def kill(self) -> list[str]:
        """All that was acknowledged, the last whole line included."""
        assert self.process.stdout is not None and self.process.stderr is not None
        self.process.kill()
        # Not `communicate`, which reads past what the stream has buffered: half a line could be lost.
        out, error = self.process.stdout.read(), self.process.stderr.read()
        self.process.communicate(timeout=60)
        assert not error, error
        rest = [line.strip() for line in out.splitlines(keepends=True) if line.endswith("\n")]
        return [*self.acknowledged, *rest][1:]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[str], Writing]]:
    """Starts a writer; all are gone when the test is over."""
    started: list[Writing] = []

    def one(name: str) -> Writing:
        started.append(Writing(tmp_path / "data", name))
        return started[-1]

    yield one
    for writer in started:
        if writer.process.poll() is None:
            writer.process.kill()
            writer.process.communicate()


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in range(3)])
def test_killed_writers_lose_and_double_nothing(
    tmp_path: Path, write: Callable[[str], Writing], seed: int
) -> None:
    """Three writers, killed and replaced in turn, the leader among them."""
    path, random = tmp_path / "data", Random(seed)
    writers = [write(name) for name in "abc"]
    random.shuffle(writers)
    acknowledged: list[str] = []
    for count, name in zip((20, 10, 10), "def", strict=True):
        for writer in writers:
            writer.until(count)
        time.sleep(random.random() / 10)
        acknowledged += writers.pop(0).kill()
        writers.append(write(name))
    for writer in writers:
        writer.until(2)
        acknowledged += writer.kill()
    with open_memory(path, embedder=WordHashes()) as memory:
        assert memory.operations.status().leads
        memory.operations.verify_log()
        present = Counter(recorded.envelope.id for recorded in memory.log(limit=100_000))
        assert len(acknowledged) > 20
        assert {event: present[event] for event in acknowledged if present[event] != 1} == {}
        assert len(memory.records(Scope("acme", user="all", project="common"))) == 1
        memory.operations.embed()
        live = dump_hashes(memory)
        assert rebuilt_hashes(memory) == live

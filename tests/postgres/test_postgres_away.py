"""A server that is away, at the start or in the middle: every call says so, and what to check."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from face_world import U1, open_memory
from mnemolog import Memory, MemoryRecord
from mnemolog.errors import StoreUnavailable
from mnemolog.infra.postgres.cluster import Cluster
from mnemolog.infra.settings import Settings
from postgres_world import running_cluster
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

from sqlalchemy import text  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]

CALLS: dict[str, Callable[[Memory], object]] = {
    "record_turn": lambda memory: memory.record_turn(U1, role="user", content="lost"),
    "remember": lambda memory: memory.remember(U1, "lost"),
    "recall": lambda memory: memory.recall(U1, "tea"),
    "context": lambda memory: memory.context(U1, "tea", budget=200),
    "records": lambda memory: memory.records(U1),
    "log": lambda memory: memory.log(),
    "erase": lambda memory: memory.erase(U1, subject="u-1"),
    "status": lambda memory: memory.operations.status(),
}


def read_on(cluster: Cluster, memory: Memory) -> None:
    """A read in the middle of which the server is gone."""
    with memory._store.views.connect("turns") as conn:
        cluster.kill()
        conn.execute(text("SELECT 1"))


def test_it_says_what_to_check_and_goes_on_afterwards(tmp_path: Path) -> None:
    """Every call fails typed, no other error comes through; when the server is back, all goes on."""
    check = "check that PostgreSQL runs .* then retry"
    with running_cluster() as cluster:
        settings = Settings.load(database_url=cluster.status().url, durability="fsync")
        with open_memory(tmp_path / "data", settings=settings) as memory:
            memory.remember(U1, "likes tea")
            memory.recall(U1, "tea")
            with pytest.raises(StoreUnavailable, match=check):
                read_on(cluster, memory)
            for call in CALLS.values():
                with pytest.raises(StoreUnavailable, match=check):
                    call(memory)
            with pytest.raises(StoreUnavailable, match=check):
                open_memory(tmp_path / "other", settings=settings)
            cluster.up()
            assert [record.content for record in retried(memory)] == ["likes tea"]
            memory.record_turn(U1, role="user", content="I am back")
            assert len(memory.recall(U1, "back", k=1)) == 1


def retried(memory: Memory) -> list[MemoryRecord]:
    """What the first call after a crash may find emptied is built anew for the next."""
    for _ in range(3):
        with suppress(StoreUnavailable):
            return memory.records(U1)
    raise AssertionError

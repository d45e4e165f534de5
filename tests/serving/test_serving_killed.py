"""`serve projections`, killed at any moment or run twice: the views are those of a rebuild, nothing lost or doubled."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from face_world import VIEWS, dump_hashes, rebuilt_hashes
from mnemolog import Memory, Scope
from postgres_world import new_schema, running_cluster
from served import Served

Serve = Callable[..., Served]
S = Scope("acme", user="u-1", project="billing", session="s-1")
ROOT_KEY = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0ISEhISE="


@pytest.fixture(params=["embedded", pytest.param("postgres", marks=pytest.mark.postgres)])
def places(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Data directories of the writer and of two that serve: one and the same, or, over PostgreSQL, each its own."""
    monkeypatch.setenv("MNEMOLOG_BATCH_SIZE", "3")
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY", ROOT_KEY)
    if request.param == "embedded":
        return [tmp_path / "data"] * 3
    in_database(monkeypatch, request.getfixturevalue("postgres_url"))
    return [tmp_path / name for name in ("writer", "one", "two")]


def in_database(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Log, views and keys are there, in a place of the test's own."""
    for name, value in {"DATABASE_URL": url, "KEYS_URL": url, "DATABASE_SCHEMA": new_schema()}.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)


def write(memory: Memory, numbers: range) -> None:
    for number in numbers:
        memory.record_turn(S, role="user" if number % 2 else "assistant", content=f"turn {number} 차례")
        if number % 5 == 0:
            memory.remember(S, f"fact {number}", slot=("fact", str(number % 3)))


def is_caught_up(served: Served, head: int) -> bool:
    """Whether the process, by itself, has brought every view to this position."""
    positions = [served.metric(f'mnemolog_projection_position{{projection="{name}"}}') for name in VIEWS]
    return all(position >= head for position in positions)


def assert_whole(memory: Memory, turns: int) -> None:
    counts = memory.operations.status().counts
    assert counts["TurnRecorded"] == turns
    assert len(memory.recall(S, "turn", k=3 * turns, kinds=["turn"])) == turns
    assert memory.operations.parked() == []
    written = [each.envelope.clear for each in memory.log(topics=["SummaryWritten"], limit=1000)]
    assert set(Counter(str(clear) for clear in written).values()) <= {1}
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory) == live


def test_killed_and_started_again_it_loses_and_doubles_nothing(places: list[Path], serve: Serve) -> None:
    """kill -9 in the middle of its work, twice: whoever is started next goes on where it was."""
    random, numbers = Random(7), itertools.count(step=20)
    Memory.open(places[0], background=False).close()
    for _ in range(2):
        served = serve(data=places[1]).ready()
        with Memory.open(places[0], background=False) as memory:
            start = next(numbers)
            write(memory, range(start, start + 20))
            time.sleep(random.random() / 5)
            served.kill()
    served = serve(data=places[1]).ready()
    with Memory.open(places[0], background=False) as memory:
        head = memory.operations.health().head
        served.until(lambda: is_caught_up(served, head))
        assert_whole(memory, next(numbers))
    assert served.terminate() == 0, served.said


def test_twice_at_once_does_no_harm(places: list[Path], serve: Serve) -> None:
    """Two of them over one log: the views are right, and when one is killed the other goes on."""
    Memory.open(places[0], background=False).close()
    one, two = serve(data=places[1]).ready(), serve(data=places[2]).ready()
    with Memory.open(places[0], background=False) as memory:
        write(memory, range(20))
        one.until(lambda: is_caught_up(one, 20))
        one.kill()
        write(memory, range(20, 40))
        head = memory.operations.health().head
        two.until(lambda: is_caught_up(two, head))
        assert two.metric("mnemolog_leads") == 1
        assert_whole(memory, 40)
    assert two.terminate() == 0, two.said


@pytest.mark.postgres
@pytest.mark.slow
def test_it_outlives_the_server(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of the database: it is healthy and not ready, and goes on by itself when the server is back."""
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY", ROOT_KEY)
    with running_cluster() as cluster:
        in_database(monkeypatch, cluster.status().url or "")
        with Memory.open(tmp_path / "writer", background=False) as memory:
            write(memory, range(5))
        served = serve(data=tmp_path / "one").ready()
        cluster.kill()
        served.until(lambda: served.get("/readyz")[0] == 503)
        assert served.get("/healthz")[0] == 200
        cluster.up()
        served.ready()
        with Memory.open(tmp_path / "writer", background=False) as memory:
            write(memory, range(5, 10))
            head = memory.operations.health().head
            served.until(lambda: is_caught_up(served, head))
            assert_whole(memory, 10)
        assert served.terminate() == 0, served.said

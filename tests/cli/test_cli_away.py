"""What is away is told in one line that names it and what to do, and nothing is said that does not happen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_world import invoke

from mnemolog.infra.cli.exits import Exit


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    "command", [("topics", "status"), ("topics", "create"), ("dlq", "list")], ids=" ".join
)
def test_kafka_that_is_away(nowhere: str, data: Path, command: tuple[str, str]) -> None:
    """The address and the setting are named; that it is tried again is not promised by a command that ends."""
    done = invoke(data, *command, MNEMOLOG_KAFKA=nowhere)
    assert done.exit_code == Exit.IN_USE
    assert nowhere in done.stderr and "MNEMOLOG_KAFKA" in done.stderr
    assert done.stderr.count("\n") == 1 and "tried again" not in done.stderr


def test_postgresql_that_is_away(nowhere: str, tmp_path: Path) -> None:
    """PostgreSQL is named, and that it is to run."""
    done = invoke(tmp_path / "none", "status", MNEMOLOG_DATABASE_URL=f"postgresql://{nowhere}/x")
    assert done.exit_code == Exit.IN_USE
    assert "check that PostgreSQL runs" in done.stderr and done.stderr.count("\n") == 1


def test_an_embedder_that_is_away(nowhere: str, data: Path) -> None:
    """The setting is named."""
    model = {"MNEMOLOG_EMBEDDER_MODEL": "m", "MNEMOLOG_EMBEDDER_DIMENSIONS": "8"}
    done = invoke(data, "catch-up", MNEMOLOG_EMBEDDER=f"http://{nowhere}/v1", **model)
    assert done.exit_code == Exit.IN_USE
    assert "MNEMOLOG_EMBEDDER" in done.stderr and "Traceback" not in done.stderr

"""Roles in processes of their own, on the test's directory and topics, that are gone when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_world import Kafka
from served import Served


@pytest.fixture
def serve(kafka: Kafka, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts a role."""
    started: list[Served] = []

    def one(role: str, data: str = "data", **environment: str) -> Served:
        given = {"MNEMOLOG_KAFKA_PARTITIONS": "2", "MNEMOLOG_DURABILITY": "os"}
        started.append(Served(role, tmp_path / data, **kafka.environment, **given, **environment))
        return started[-1]

    yield one
    for served in started:
        served.kill()

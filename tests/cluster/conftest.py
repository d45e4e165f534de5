"""A deployment per test, on one PostgreSQL and one broker for the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_world import Deployment
from kafka_world import Kafka
from support import require_module


@pytest.fixture
def deployment(tmp_path: Path, postgres_url: str, kafka: Kafka) -> Iterator[Deployment]:
    """Nothing runs yet; what a test starts is ended."""
    require_module("faust", "pip install 'mnemolog[kafka]'")
    made = Deployment(tmp_path, postgres_url, kafka)
    yield made
    made.end()

"""Faults by seed: afterwards nothing is lost, nothing is there twice, and views are as one process makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_chaos import Chaos
from cluster_world import Deployment
from kafka_world import Kafka
from mnemolog.infra.postgres.cluster import Cluster
from postgres_world import running_cluster
from support import require_module

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    """A server of these tests alone, which may be killed."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def deployment(tmp_path: Path, database: Cluster, kafka: Kafka) -> Iterator[Deployment]:
    """What a test starts is ended."""
    require_module("faust", "pip install 'mnemolog[kafka]'")
    url = database.up().url
    assert url is not None
    made = Deployment(tmp_path, url, kafka)
    yield made
    made.end()


@pytest.mark.parametrize("faults", [Chaos.FAULTS[:4], Chaos.FAULTS[4:]], ids=["processes", "deliveries"])
def test_promise_2_faults_neither_lose_nor_double(
    deployment: Deployment, database: Cluster, tmp_path: Path, faults: tuple[str, ...]
) -> None:
    """Workers, relay, broker and database are killed or frozen under load; messages come twice; partitions grow."""
    chaos = Chaos(deployment, database, seed=7, tell=print)
    with deployment.memory() as memory:
        for fault in faults:
            chaos.harm(memory, fault)
        chaos.check(memory, tmp_path / "embedded")

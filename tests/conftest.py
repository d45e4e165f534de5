"""Fixtures for every test, and Hypothesis profiles: `ci` (the default: the same each time), `short`, `explore`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kafka_world import Kafka, running_broker
from mnemolog.infra.kafka.cluster import Broker
from postgres_world import keep_log_in_postgres, keep_views_in_postgres, running_cluster
from support import shared_data_folder

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, max_examples=30, suppress_health_check=SLOW_IS_FINE
)
settings.register_profile(
    "short",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=8,
    suppress_health_check=SLOW_IS_FINE,
)
settings.register_profile(
    "explore", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=SLOW_IS_FINE
)
# Tests that are about vectors bring an embedder of their own.
os.environ.setdefault("MNEMOLOG_EMBEDDER", "none")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of recorded transcripts and public test sets; skips where it is absent."""
    folder = shared_data_folder()
    if not folder.is_dir():
        pytest.skip("no shared data here: point MNEMOLOG_SHARED_DATA to it")
    return folder


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The url of a PostgreSQL server that runs for the tests; skips where none is installed."""
    with running_cluster() as cluster:
        url = cluster.status().url
        assert url is not None
        yield url


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A Kafka broker that runs for the tests; skips where none can run."""
    with running_broker() as broker:
        yield broker


@pytest.fixture
def kafka(kafka_broker: Broker) -> Kafka:
    """The broker, up, and topic names that are this test's own."""
    kafka_broker.up()
    return Kafka.of(kafka_broker)


IN_POSTGRES = os.environ.get("MNEMOLOG_TEST_STORE") == "postgres"


def pytest_configure(config: pytest.Config) -> None:
    if IN_POSTGRES:
        # Tests that play a dying process leave its connections to the collector.
        config.addinivalue_line("filterwarnings", "ignore:.*was deleted while still open:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if IN_POSTGRES and item.get_closest_marker("embedded"):
            item.add_marker(pytest.mark.skip("it is about the embedded store"))
        if "kafka_broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(autouse=IN_POSTGRES)
def in_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log and views of every data directory are in PostgreSQL: of all tests, with MNEMOLOG_TEST_STORE=postgres."""
    keep_log_in_postgres(monkeypatch, postgres_url)
    keep_views_in_postgres(monkeypatch, postgres_url)

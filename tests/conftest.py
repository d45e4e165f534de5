"""Fixtures for every test, and Hypothesis profiles: `ci` (the default, the same examples every time), `explore`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from postgres_world import keep_log_in_postgres, keep_views_in_postgres, running_cluster
from support import shared_data_folder

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, max_examples=30, suppress_health_check=SLOW_IS_FINE
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


@pytest.fixture(autouse=os.environ.get("MNEMOLOG_TEST_STORE") == "postgres")
def in_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log and views of every data directory are in PostgreSQL: of all tests, with MNEMOLOG_TEST_STORE=postgres."""
    keep_log_in_postgres(monkeypatch, postgres_url)
    keep_views_in_postgres(monkeypatch, postgres_url)

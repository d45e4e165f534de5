"""The server of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.postgres import cluster as module
from mnemolog.infra.postgres.cluster import Cluster
from postgres_world import require_postgres, running_cluster

pytestmark = pytest.mark.postgres


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def answer(cluster: Cluster, statement: str) -> object:
    import psycopg

    with psycopg.connect(cluster.status().url or "", autocommit=True) as conn:
        cursor = conn.execute(statement)
        return cursor.fetchone() if cursor.description else None


def test_a_server_comes_up_answers_and_goes_down(cluster: Cluster) -> None:
    """Up twice is one server; it listens on this machine only; down leaves nothing running, and can be repeated."""
    state = cluster.up()
    assert state == cluster.up() == cluster.status()
    assert answer(cluster, "SHOW listen_addresses") == ("127.0.0.1",)
    cluster.down()
    assert cluster.status().pid is None
    assert cluster.status().url is None
    cluster.down()


def test_a_killed_server_comes_back_where_it_was(cluster: Cluster) -> None:
    """With the same port and with what was committed."""
    before = cluster.status()
    answer(cluster, "CREATE TABLE kept AS SELECT 7 AS number")
    cluster.kill()
    assert cluster.status().pid is None
    after = cluster.up()
    assert (after.port, after.url) == (before.port, before.url)
    assert after.pid != before.pid
    assert answer(cluster, "SELECT number FROM kept") == (7,)


def test_removing_leaves_no_files(cluster: Cluster) -> None:
    """A test cluster is thrown away as a whole."""
    cluster.remove()
    assert not cluster.folder.exists()


def test_where_no_server_is_installed_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of a missing file somewhere."""
    monkeypatch.setattr(module, "bin_folder", lambda: None)
    with pytest.raises(StoreUnavailable, match="apt-get install postgresql"):
        Cluster(tmp_path / "cluster").up()


def test_a_missing_server_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It skips for a developer, and fails where all parts are required, as in CI."""
    monkeypatch.setattr("postgres_world.bin_folder", lambda: None)
    monkeypatch.setattr("support.REQUIRE_ALL", False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install postgresql"):
        require_postgres()
    monkeypatch.setattr("support.REQUIRE_ALL", True)
    with pytest.raises(pytest.fail.Exception, match="apt-get install postgresql"):
        require_postgres()

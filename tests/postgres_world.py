"""One PostgreSQL server for the whole run, and a place of its own in it for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mnemolog.infra.postgres.cluster import HOW_TO_INSTALL, Cluster, bin_folder
from mnemolog.infra.settings import Settings
from support import require, require_module

_NUMBERS = count(1)


def require_postgres() -> None:
    """Go on where a server and its driver are installed; else skip, or fail where all is required."""
    require("PostgreSQL", HOW_TO_INSTALL, present=bin_folder() is not None)
    require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A server that is stopped and removed at the end. Without fsync: no test here cuts the power."""
    require_postgres()
    with tempfile.TemporaryDirectory(prefix="mnemolog-") as folder:
        Path(folder).chmod(0o755)  # user postgres has to get in
        cluster = Cluster(Path(folder) / "cluster", fsync=False)
        cluster.up()
        try:
            yield cluster
        finally:
            cluster.remove()


def new_schema() -> str:
    """A name that no other test uses."""
    return f"test_{next(_NUMBERS)}"


def new_database(url: str) -> str:
    """The url of a database of its own on the server, for a test that changes who may connect."""
    import psycopg

    name = f"test_{next(_NUMBERS)}_db"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"


def schema_of(path: Path) -> str:
    """The same name each time for the same folder."""
    return "t" + sha256(str(path.absolute()).encode()).hexdigest()[:12]


def keep_log_in_postgres(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let every data directory that is opened from here on keep its log in this server, in its own schema."""
    from mnemolog.infra import compose
    from mnemolog.infra.postgres.log import PostgresEventLog, has_events

    def open_log(path: Path, settings: Settings, *parts: Any) -> PostgresEventLog:
        durability: Any = {"fsync": "full"}.get(settings.durability, settings.durability)
        return PostgresEventLog(url, *parts, schema=schema_of(path), durability=durability)

    monkeypatch.setattr(compose, "_log", open_log)
    monkeypatch.setattr(compose, "_has_log", lambda path, settings: has_events(url, schema_of(path)))


def keep_views_in_postgres(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let every data directory that is opened from here on keep its views in this server, in its own schemas."""
    from mnemolog.infra import compose
    from mnemolog.infra.postgres.lexical import PostgresLexicalIndex
    from mnemolog.infra.postgres.views import PostgresViews

    def open_views(path: Path, settings: Settings, *, sweep: bool) -> PostgresViews:
        return PostgresViews(url, schema=f"{schema_of(path)}_v")

    monkeypatch.setattr(compose, "_views", open_views)
    monkeypatch.setattr(compose, "_lexical", lambda path, settings, name: PostgresLexicalIndex(name))

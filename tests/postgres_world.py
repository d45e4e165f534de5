"""One PostgreSQL server for the whole run, and a place of its own in it for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from mnemolog.infra.postgres.cluster import HOW_TO_INSTALL, Cluster, bin_folder
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

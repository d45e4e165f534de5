"""Keys in a database of their own credentials. What holds for every key store is in tests/vault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from postgres_world import new_schema, running_cluster
from support import files_below, require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog import Scope  # noqa: E402
from mnemolog.domain.errors import CorruptStore, KeysMissing, StoreUnavailable  # noqa: E402
from mnemolog.infra.postgres.cluster import Cluster  # noqa: E402
from mnemolog.infra.postgres.keys import PostgresKeys, open_postgres_vault  # noqa: E402
from mnemolog.infra.vault import FileRootKey  # noqa: E402
from mnemolog.infra.vault.store import KeyStore  # noqa: E402

pytestmark = pytest.mark.postgres

TABLES = ("meta", "subjects", "nodes", "directory", "fences")


@pytest.fixture
def root(tmp_path: Path) -> FileRootKey:
    return FileRootKey(tmp_path / "root.key")


@pytest.fixture
def schema() -> str:
    return new_schema()


@pytest.fixture
def sql(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        yield conn


def fill(store: KeyStore, users: int) -> list[str]:
    found = []
    for number in range(users):
        ids = store.resolve(Scope("acme", user=f"user{number}"), create=True)
        assert ids is not None
        assert ids.user is not None
        found.append(ids.user)
    return found


def test_keys_are_never_created_silently(postgres_url: str, schema: str, root: FileRootKey) -> None:
    """Where a log has events and its keys are not there, opening fails, and leaves nothing."""
    for _ in range(2):
        with pytest.raises(KeysMissing, match="restore"):
            open_postgres_vault(postgres_url, root, create=False, schema=schema)
    open_postgres_vault(postgres_url, root, create=True, schema=schema).close()
    open_postgres_vault(postgres_url, root, create=False, schema=schema).close()


def test_a_wait_in_vain_leaves_the_connection_usable(
    postgres_url: str, schema: str, root: FileRootKey, sql: Any
) -> None:
    """Another process keeps the keys for long: the call is refused, and the next one works."""
    keys = PostgresKeys(postgres_url, root, create=True, schema=schema)
    keys._open().execute("SET lock_timeout = '20ms'")
    lock = crc32(schema.encode())
    sql.execute("SELECT pg_advisory_lock(%s)", (lock,))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="lock timeout"), keys.write():
            pass
    sql.execute("SELECT pg_advisory_unlock(%s)", (lock,))
    with keys.write():
        pass
    keys.close()


def test_another_root_key_does_not_open_the_store(
    postgres_url: str, schema: str, root: FileRootKey, tmp_path: Path
) -> None:
    """Nor is it replaced by a new one."""
    open_postgres_vault(postgres_url, root, create=True, schema=schema).close()
    other = FileRootKey(tmp_path / "other.key")
    other.create()
    for create in (False, True):
        with pytest.raises(KeysMissing, match="does not open"):
            open_postgres_vault(postgres_url, other, create=create, schema=schema)


def test_a_rotation_closes_every_stale_copy(
    postgres_url: str, schema: str, root: FileRootKey, sql: Any
) -> None:
    """As a backup, or what can be read from an archived WAL: the new root key does not open it."""
    vault = open_postgres_vault(postgres_url, root, create=True, schema=schema)
    vault.resolve(Scope("acme", user="ann"), create=True)
    stale = new_schema()
    sql.execute(f"CREATE SCHEMA {stale}")
    for table in TABLES:
        sql.execute(f"CREATE TABLE {stale}.{table} AS SELECT * FROM {schema}.{table}")
    vault.rotate_root()
    vault.close()
    with pytest.raises(KeysMissing, match="does not open"):
        open_postgres_vault(postgres_url, root, create=False, schema=stale)
    open_postgres_vault(postgres_url, root, create=False, schema=schema).close()


def test_the_log_has_no_way_to_the_keys(postgres_url: str, schema: str, root: FileRootKey, sql: Any) -> None:
    """Keys are opened by their own credentials; another role of the same server is refused with a typed error."""
    open_postgres_vault(postgres_url, root, create=True, schema=schema).close()
    sql.execute(f"CREATE ROLE other_{schema} LOGIN")
    with pytest.raises(StoreUnavailable, match="privileges"):
        open_postgres_vault(
            postgres_url.replace("postgres@", f"other_{schema}@"), root, create=False, schema=schema
        )


def test_a_lost_connection_is_replaced(postgres_url: str, schema: str, root: FileRootKey, sql: Any) -> None:
    """Nothing can have happened on an idle one, so nobody is bothered."""
    store = KeyStore(PostgresKeys(postgres_url, root, create=True, schema=schema))
    first = store.reserve(10)
    sql.execute(
        "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE application_name = 'mnemolog'"
    )
    assert store.reserve(10).start == first.stop
    store.close()


def test_an_unknown_format_is_refused(postgres_url: str, schema: str, root: FileRootKey, sql: Any) -> None:
    """A newer program's store is not read by guesswork."""
    open_postgres_vault(postgres_url, root, create=True, schema=schema).close()
    sql.execute(f"UPDATE {schema}.meta SET value = %s WHERE name = 'format'", (bytes([9]),))
    with pytest.raises(CorruptStore, match="format 9"):
        open_postgres_vault(postgres_url, root, create=False, schema=schema)


# Bytes ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def wrapped(store: KeyStore, where: str = "true") -> list[bytes]:
    with store._database.read() as connection:
        return [
            bytes(row[0])
            for query in (
                "secret FROM nodes",
                "hash_key FROM subjects",
                "name FROM directory",
                "lookup FROM directory",
            )
            for row in connection.execute(f"SELECT {query} WHERE {where}").fetchall()
        ]


def in_tables(cluster: Cluster, needles: list[bytes]) -> list[bytes]:
    """Which of them are in the files of tables and indexes, when the server has written all it had in memory."""
    cluster.down()
    content = b"".join(content for _, content in files_below(cluster.folder / "data" / "base"))
    cluster.up()
    return [needle for needle in needles if needle in content]


def test_destroyed_keys_leave_the_tables(
    own_cluster: Cluster, root: FileRootKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a crash came between the commit and the rewriting: the next opening makes up for it."""
    url = own_cluster.status().url or ""
    store = KeyStore(PostgresKeys(url, root, create=True))
    users = fill(store, 40)
    doomed, late = users[::3], users[1]
    gone = wrapped(store, "rid IN ({})".format(",".join(f"'{rid}'" for rid in doomed)))
    left = wrapped(store, f"rid = '{late}'")
    kept = [one for one in wrapped(store) if one not in {*gone, *left}]
    store.close()
    assert in_tables(own_cluster, gone) == gone
    store = KeyStore(PostgresKeys(url, root, create=False))
    for rid in doomed:
        store.destroy_subject(rid, before_us=1)
    monkeypatch.setattr(PostgresKeys, "_scrub", lambda *_: None)
    store.destroy_subject(late, before_us=1)
    monkeypatch.undo()
    store.close()
    assert in_tables(own_cluster, gone) == []
    assert in_tables(own_cluster, left) == left
    KeyStore(PostgresKeys(url, root, create=False)).close()
    assert in_tables(own_cluster, left) == []
    assert in_tables(own_cluster, kept) == kept

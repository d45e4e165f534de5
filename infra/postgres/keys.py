"""The key store in a PostgreSQL database, best one of its own with credentials of its own.

What is destroyed leaves the tables at once (`VACUUM FULL`). The server's WAL, its archive and backups keep the wrapped
bytes, as any copy of a key file does: a rotation of the root key closes all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import psycopg
from psycopg import Connection

from mnemolog.domain.errors import CorruptStore, KeysMissing, StoreClosed, StoreInUse, StoreUnavailable
from mnemolog.infra.postgres.connecting import connect, parameters, schema_name, typed
from mnemolog.infra.postgres.statements import Statements
from mnemolog.infra.vault.meta import (
    FORMAT,
    KeyConnection,
    StoreKeys,
    get_meta,
    get_number,
    load_store_keys,
    put_first_meta,
    put_number,
    rekey,
    settle,
)
from mnemolog.infra.vault.rootkey import RootKeyProvider
from mnemolog.infra.vault.store import BLOCK, KeyStore
from mnemolog.infra.vault.vault import Vault

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SECRETS: Final = ("meta", "subjects", "nodes", "directory")
_TEXT: Final = 'text COLLATE "C"'
_LAYOUT: Final = (
    "CREATE SCHEMA IF NOT EXISTS {schema}",
    f"CREATE TABLE {{schema}}.meta (name {_TEXT} PRIMARY KEY, value bytea NOT NULL)",
    f"CREATE TABLE {{schema}}.subjects (rid {_TEXT} PRIMARY KEY, hash_key bytea NOT NULL)",
    f"CREATE TABLE {{schema}}.nodes (rid {_TEXT} NOT NULL, height bigint NOT NULL, prefix bigint NOT NULL,"
    " secret bytea NOT NULL, PRIMARY KEY (rid, height, prefix))",
    f"CREATE TABLE {{schema}}.directory (rid {_TEXT} PRIMARY KEY, level {_TEXT} NOT NULL, tenant {_TEXT},"
    f' organization {_TEXT}, "user" {_TEXT}, project {_TEXT}, agent {_TEXT},'
    " lookup bytea NOT NULL UNIQUE, name bytea NOT NULL)",
    'CREATE INDEX directory_user ON {schema}.directory ("user") WHERE "user" IS NOT NULL',
    "CREATE INDEX directory_tenant ON {schema}.directory (tenant)",
    f"CREATE TABLE {{schema}}.fences (mark bytea PRIMARY KEY, kind {_TEXT} NOT NULL, before_us bigint,"
    " refused bigint NOT NULL DEFAULT 0)",
)


def open_postgres_vault(
    url: str, root: RootKeyProvider, *, create: bool, schema: str = "mnemolog_keys", block: int = BLOCK
) -> Vault:
    """The vault over the keys in this database; made when `create` says that there is no log yet that needs them.

    Raises KeysMissing when the keys or the root key are absent, or the root key is another store's; InvalidInput for
    a bad url, StoreUnavailable when the server cannot be reached or refuses.
    """
    return Vault(KeyStore(PostgresKeys(url, root, create=create, schema=schema)), block=block)


class PostgresKeys:
    """A `KeyDatabase`: one connection, shared by threads under a lock. Other processes may use the store as well."""

    def __init__(
        self, url: str, root: RootKeyProvider, *, create: bool, schema: str = "mnemolog_keys"
    ) -> None:
        self.root, self._schema = root, schema_name(schema)
        self.path = Path("postgresql:", schema)
        self._parameters = parameters(url)
        self._session = {"search_path": schema, "lock_timeout": "30s"}
        self._write = f"BEGIN; SELECT pg_advisory_xact_lock({crc32(schema.encode())})"
        self._lock = threading.RLock()
        self._connection: Connection[Any] | None = None
        self._closed = False
        try:
            self._load(create)
        except BaseException:
            self.close()
            raise

    copies = "the server's WAL, its archive and its backups"

    @property
    def keys(self) -> StoreKeys:
        return self._keys

    @contextmanager
    def read(self) -> Iterator[Statements]:
        """A snapshot of the store."""
        with self._transaction(_READ) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Statements]:
        """A transaction that is durable when the block ends, or did not happen; one at a time in all processes."""
        with self._transaction(self._write) as connection:
            yield connection

    @contextmanager
    def destroy(self) -> Iterator[tuple[Statements, list[bytes]]]:
        """A write that destroys. Afterwards the tables are rewritten, as deleted rows stay in them otherwise.

        A crash in between is made up for by the next destruction, or when the store is opened.
        """
        with self.write() as connection:
            yield connection, []
            generation = get_number(connection, "generation") + 1
            put_number(connection, "generation", generation)
            put_number(connection, "unscrubbed", generation)
        self._scrub(generation)

    def generation(self) -> int:
        """A number that grows with every destruction, in this process or another."""
        with self.read() as connection:
            return get_number(connection, "generation")

    def rekey(self, connection: KeyConnection, root: bytes) -> StoreKeys:
        """Put the store's own secrets under another root key; the caller re-wraps every row with the result."""
        return rekey(connection, self._keys, root)

    def settle(self, connection: KeyConnection) -> None:
        """Finish a rotation that was cut off: the store's fingerprint says which root key counts."""
        settle(connection, self.root)

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """In a forked child: the connection belongs to the parent, so only let go of it."""
        self._lock = threading.RLock()
        _abandoned.append(self._connection)
        self._connection, self._closed = None, True

    def _load(self, create: bool) -> None:
        with self._begun(self._write) as connection:
            there = connection.execute("SELECT to_regclass(?)", (f"{self._schema}.meta",)).fetchone()
            if there == (None,):
                self._create(connection, create)
            version = get_number(connection, "format")
            if version != FORMAT:
                raise CorruptStore(
                    f"the key store has format {version}, this program reads {FORMAT}: update it"
                )
            self._keys = load_store_keys(connection, self.root)
            settle(connection, self.root)
            left_over = get_number(connection, "unscrubbed")
        if left_over:
            self._scrub(left_over)

    def _create(self, connection: Statements, create: bool) -> None:
        if not create:
            raise KeysMissing(
                f"no key store in schema {self._schema}: restore it; without it the log cannot be read"
            )
        for statement in _LAYOUT:
            connection.execute(statement.format(schema=self._schema))
        put_first_meta(connection, self.root.create())

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Statements]:
        with self._begun(begin) as connection:
            # Another process may have rotated the root key: never write a row under the old one.
            if get_meta(connection, "root") != self._keys.wrapping.fingerprint:
                self._keys = load_store_keys(connection, self.root)
            yield connection

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Statements]:
        with self._lock:
            try:
                conn = self._begin(begin)
                try:
                    yield Statements(conn)
                    conn.execute("COMMIT")
                except BaseException:
                    with suppress(psycopg.Error):
                        conn.rollback()
                    raise
            except psycopg.Error as error:
                raise typed(error, "the key store cannot be used") from error

    def _begin(self, begin: str) -> Connection[Any]:
        try:
            self._open().execute(begin)
        except psycopg.OperationalError:
            if not self._open().closed:
                # Others kept the lock: what was begun must not be left to the next one.
                self._open().rollback()
                raise
            # It was lost while nobody used it.
            self._connection = None
            self._open().execute(begin)
        return self._open()

    def _open(self) -> Connection[Any]:
        if self._closed:
            raise StoreClosed("the key store was closed, or this is a fork of its process: open it anew")
        if self._connection is None:
            self._connection = connect(self._parameters, self._session)
        return self._connection

    def _scrub(self, generation: int) -> None:
        """Write the tables anew, without what was deleted from them."""
        with self._lock:
            try:
                self._open().execute(
                    "VACUUM (FULL) " + ", ".join(f"{self._schema}.{name}" for name in _SECRETS)
                )
            except psycopg.errors.LockNotAvailable:
                raise StoreInUse(
                    "another process keeps the key store busy, so old bytes stay: repeat the call"
                ) from None
            except psycopg.Error as error:
                raise StoreUnavailable(
                    f"destroyed keys may still be in the tables ({error.sqlstate}): repeat the call"
                ) from error
        with self.write() as connection:
            # A later destruction, by another process, has its own scrub to do.
            if get_number(connection, "unscrubbed") == generation:
                put_number(connection, "unscrubbed", 0)


_abandoned: list[Connection[Any] | None] = []

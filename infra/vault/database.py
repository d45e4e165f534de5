"""The SQLite file under the key store: how it is opened, locked, committed and scrubbed."""

from __future__ import annotations

import mmap
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mnemolog.domain.errors import CorruptStore, KeysMissing, StoreClosed, StoreInUse
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
from mnemolog.infra.vault.rootkey import RootKeyProvider, sync_directory

_SCAN_LIMIT: Final = 256 << 20

_SETTINGS: Final = """
PRAGMA busy_timeout = 30000;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
"""

_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE subjects (rid TEXT PRIMARY KEY, hash_key BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE nodes (rid TEXT NOT NULL, height INTEGER NOT NULL, prefix INTEGER NOT NULL,"
    " secret BLOB NOT NULL, PRIMARY KEY (rid, height, prefix)) WITHOUT ROWID",
    "CREATE TABLE directory (rid TEXT PRIMARY KEY, level TEXT NOT NULL, tenant TEXT, organization TEXT,"
    " user TEXT, project TEXT, agent TEXT, lookup BLOB NOT NULL UNIQUE, name BLOB NOT NULL) WITHOUT ROWID",
    "CREATE INDEX directory_user ON directory (user) WHERE user IS NOT NULL",
    "CREATE INDEX directory_tenant ON directory (tenant)",
    "CREATE TABLE fences (mark BLOB PRIMARY KEY, kind TEXT NOT NULL, before_us INTEGER,"
    " refused INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
)


class Database:
    """One connection, shared by threads under a lock. Other processes may have the file open as well."""

    def __init__(self, path: Path, root: RootKeyProvider, *, create: bool) -> None:
        self.path, self.root = path, root
        self._lock = threading.RLock()
        self._data_version, self._generation, self._own_changes = -1, 0, True
        self._connection: sqlite3.Connection | None = _connect(path, root, create=create)
        try:
            self._load_store()
        except BaseException:
            self.close()
            raise

    copies = ""

    @property
    def keys(self) -> StoreKeys:
        return self._keys

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A snapshot of the store."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk when the block ends, or did not happen."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def destroy(self) -> Iterator[tuple[sqlite3.Connection, list[bytes]]]:
        """A write that destroys: the block adds to the list which stored secrets it deleted.

        After the commit no byte of them is left in the file or its log. A crash in between is made up for by
        the next destruction, or when the store is opened.
        """
        gone: list[bytes] = []
        with self.write() as connection:
            yield connection, gone
            left_over = get_number(connection, "unscrubbed")
            generation = get_number(connection, "generation") + 1
            put_number(connection, "generation", generation)
            put_number(connection, "unscrubbed", generation)
        with self._lock:
            self._own_changes = True
            self._scrub(gone, generation, rebuild=bool(left_over))

    def generation(self) -> int:
        """A number that grows with every destruction, in this process or another; cheap to ask."""
        with self._lock:
            version = int(self._open().execute("PRAGMA data_version").fetchone()[0])
            if version != self._data_version or self._own_changes:
                with self.read() as connection:
                    self._generation = get_number(connection, "generation")
                # SQLite does not count what this connection committed.
                self._data_version, self._own_changes = version, False
            return self._generation

    def rekey(self, connection: KeyConnection, root: bytes) -> StoreKeys:
        """Put the store's own secrets under another root key; the caller re-wraps every row with the result."""
        return rekey(connection, self._keys, root)

    def settle(self, connection: KeyConnection) -> None:
        """Finish a rotation that was cut off: the store's fingerprint says which root key counts.

        Only inside `write`: no rotation is then under way, so a staged key is either committed or left over.
        """
        settle(connection, self.root)

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """In a forked child: the connection and its locks belong to the parent, so only let go of them."""
        self._lock = threading.RLock()
        _abandoned.append(self._connection)
        self._connection = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._open()
            connection.execute(begin)
            try:
                self._follow_rotation(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreClosed("the key store was closed, or this is a fork of its process: open it anew")
        return self._connection

    def _load_store(self) -> None:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        version = get_number(connection, "format")
        if version != FORMAT:
            raise CorruptStore(f"{self.path} has format {version}, this program reads {FORMAT}: update it")
        self._keys = load_store_keys(connection, self.root)
        self.settle(connection)
        connection.execute("COMMIT")
        if left_over := get_number(connection, "unscrubbed"):
            self._scrub([], left_over, rebuild=True)

    def _follow_rotation(self, connection: sqlite3.Connection) -> None:
        """Another process may have rotated the root key: never write a row under the old one."""
        if get_meta(connection, "root") != self._keys.wrapping.fingerprint:
            self._keys = load_store_keys(connection, self.root)

    def _scrub(self, gone: Sequence[bytes], generation: int, *, rebuild: bool) -> None:
        """`secure_delete` zeroes what is deleted, but cells that moved between pages may have left copies.

        So look at the bytes, and write the file anew when there are any (or too many to look for).
        """
        self._checkpoint()
        if rebuild or len(gone) * self.path.stat().st_size > _SCAN_LIMIT or self._holds(gone):
            self._open().execute("VACUUM")
            self._checkpoint()
        with self.write() as connection:
            # A later destruction, by another process, has its own scrub to do.
            if get_number(connection, "unscrubbed") == generation:
                put_number(connection, "unscrubbed", 0)

    def _checkpoint(self) -> None:
        """Empty the write-ahead log into the file."""
        busy = self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StoreInUse("another process keeps the key store busy, so old bytes stay: repeat the call")

    def _holds(self, needles: Sequence[bytes]) -> bool:
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(needle) >= 0 for needle in needles)


_abandoned: list[sqlite3.Connection | None] = []


def _connect(path: Path, root: RootKeyProvider, *, create: bool) -> sqlite3.Connection:
    """Open the file; where it is not there (or has no committed content), make it if `create` allows."""
    if not path.exists():
        if not create:
            raise KeysMissing(f"no key store at {path}: restore it; without it the log cannot be read")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        sync_directory(path.parent)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.executescript(_SETTINGS)
        _initialize(connection, root, path, create=create)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            raise CorruptStore(f"{path} is not a key store ({error}): restore it from a backup") from error
        raise
    return connection


def _initialize(connection: sqlite3.Connection, root: RootKeyProvider, path: Path, *, create: bool) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        if not create:
            raise KeysMissing(f"the key store at {path} is empty: restore it from a backup")
        _create_store(connection, root.create())
    connection.execute("COMMIT")


def _create_store(connection: sqlite3.Connection, root: bytes) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    put_first_meta(connection, root)

"""The SQLite file under the vector rows: its tables, one writer, and readers that do not wait for it."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final

from mnemolog.domain.errors import CorruptStore, StoreClosed
from mnemolog.infra.vectors.numbers import get_number
from mnemolog.infra.vectors.statements import Connection

FORMAT: Final = 2
_PATIENCE_MS: Final = 2000

# Rows of one scope lie side by side, several to a page: a scope is read with few reads.
_SETTINGS: Final = """
PRAGMA page_size = 16384;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 1073741824;
PRAGMA cache_size = -16384;
"""
_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE spaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL,
    position INTEGER NOT NULL, passages INTEGER NOT NULL DEFAULT 0);
CREATE TABLE scopes (number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, organization TEXT NOT NULL,
    "user" TEXT NOT NULL, project TEXT NOT NULL, UNIQUE (tenant, organization, "user", project));
CREATE INDEX scopes_user ON scopes ("user");
CREATE TABLE sources (position INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, scope INTEGER NOT NULL,
    session TEXT, record TEXT, origin INTEGER NOT NULL, occurred_us INTEGER NOT NULL);
CREATE INDEX sources_session ON sources (session, position) WHERE record IS NULL;
CREATE INDEX sources_scope ON sources (scope);
CREATE TABLE subjects (subject TEXT, position INTEGER, PRIMARY KEY (subject, position)) WITHOUT ROWID;
CREATE TABLE vectors (space INTEGER, scope INTEGER, kind INTEGER, change INTEGER, position INTEGER NOT NULL,
    before INTEGER, after INTEGER, digest BLOB NOT NULL, vector BLOB NOT NULL,
    part INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (space, scope, kind, change)) WITHOUT ROWID;
CREATE UNIQUE INDEX vectors_source ON vectors (position, kind, space, part);
CREATE INDEX vectors_passages ON vectors (scope) WHERE kind = 3;
CREATE INDEX vectors_change ON vectors (space, change);
CREATE INDEX vectors_before ON vectors (before) WHERE before IS NOT NULL;
CREATE INDEX vectors_after ON vectors (after) WHERE after IS NOT NULL;
CREATE TABLE dropped (space INTEGER, change INTEGER, kind INTEGER NOT NULL, position INTEGER NOT NULL,
    scope INTEGER NOT NULL, part INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (space, change)) WITHOUT ROWID;
CREATE INDEX dropped_scope ON dropped (space, scope, kind, change);
CREATE TABLE due (space INTEGER, position INTEGER, PRIMARY KEY (space, position)) WITHOUT ROWID;
CREATE TABLE fences (target TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
"""
_TO_FORMAT_2: Final = """
ALTER TABLE spaces ADD COLUMN passages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE vectors ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dropped ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
DROP INDEX vectors_source;
CREATE UNIQUE INDEX vectors_source ON vectors (position, kind, space, part);
CREATE INDEX vectors_passages ON vectors (scope) WHERE kind = 3;
UPDATE meta SET value = 2 WHERE name = 'format';
"""
"""Passages came: what is stored stays, and the passages of older texts are embedded from the start of the log."""


class Database:
    """Write transactions one at a time; each read transaction has a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path, self._pid = path, os.getpid()
        self._write_lock, self._pool_lock = RLock(), Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        if not path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        self._writer = _connect(path)
        try:
            self._prepare()
        except BaseException:
            self._writer.close()
            raise

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that happens whole or not at all."""
        with self._write_lock:
            self._check_open()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A snapshot."""
        connection = self._take()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give(connection)

    def number(self, name: str) -> int:
        """One of the numbers in `meta`, as it is now."""
        with self.read() as connection:
            return get_number(connection, name)

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement that reads: a snapshot by itself."""
        with self.read() as connection:
            return connection.execute(sql, parameters).fetchall()

    def insert_vectors(self, conn: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows with all columns of the table `vectors`, in order."""
        conn.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def vacuum(self) -> bool:
        """Rewrite the file and empty the write-ahead log; False where a reader kept that from being done."""
        with self._write_lock:
            self._check_open()
            self._writer.execute("VACUUM")
            self._writer.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
            busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            self._writer.execute("PRAGMA busy_timeout = 30000")
            return not busy

    def close(self) -> None:
        """Idempotent."""
        with self._write_lock, self._pool_lock:
            self._closed = True
            for connection in [self._writer, *self._idle]:
                connection.close()
            self._idle.clear()

    def _prepare(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        if self._writer.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
            for statement in _SCHEMA.split(";"):
                self._writer.execute(statement)
            values = [("format", FORMAT), ("change", 0), ("erasures", 0), ("identity", secrets.randbits(62))]
            self._writer.executemany("INSERT INTO meta VALUES (?, ?)", values)
        found = self._format()
        if found == (1,):
            for statement in _TO_FORMAT_2.split(";"):
                self._writer.execute(statement)
            found = self._format()
        self._writer.execute("COMMIT")
        if found is None or found[0] != FORMAT:
            raise CorruptStore(f"{self._path} has not the format {FORMAT}: remove it, and it is made anew")

    def _format(self) -> tuple[int] | None:
        found: tuple[int] | None = self._writer.execute(
            "SELECT value FROM meta WHERE name = 'format'"
        ).fetchone()
        return found

    def _check_open(self) -> None:
        if self._closed or os.getpid() != self._pid:
            raise StoreClosed(
                "the vectors were closed, or this is a fork of their process: open the memory anew"
            )

    def _take(self) -> sqlite3.Connection:
        with self._pool_lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        return _connect(self._path)

    def _give(self, connection: sqlite3.Connection) -> None:
        with self._pool_lock:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=30.0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        connection.executescript(_SETTINGS)
    except sqlite3.DatabaseError as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise CorruptStore(f"{path} is no store of vectors: remove it, and it is made anew") from error
    return connection

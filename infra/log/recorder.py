"""The SQLite recorder of the log: eventsourcing's, with positions, keys and leaves of its own.

All SQL of the log is here. Positions are AUTOINCREMENT: a number is never used twice, also after a deleted tail.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal
from uuid import UUID

import orjson
from eventsourcing.persistence import Notification, StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from mnemolog.domain.errors import CorruptStore, MnemologError, StoreClosed, StoreMoved, StoreUnavailable
from mnemolog.infra.log.codec import leaf_hash
from mnemolog.infra.log.storage import Row, StoredRow

Durability = Literal["full", "os"]
"""full: acknowledged survives a power cut. os: acknowledged survives a killed process, not a power cut."""

_SYNCHRONOUS: Final = {"full": "FULL", "os": "NORMAL"}
_CACHE_KIB: Final = 16_384
_CHECKPOINT_PAGES: Final = 4_000
"""Index pages are written again and again: the rarer the log's WAL is copied into the file, the fewer copies."""
_ROWS_AT_ONCE: Final = 100
_PLACES: Final = "(?,?,?,?,?,?)"
_NO_END: Final = (1 << 63) - 1
_ERASURES: Final = "topic IN ('SubjectErased', 'ContentErased')"


class LogConnectionPool(SQLiteConnectionPool):
    """Connections with the settings that the log's promises rest on."""

    def __init__(self, *, durability: Durability, **settings: Any) -> None:
        self._durability = durability
        super().__init__(**settings)

    def _create_connection(self) -> SQLiteConnection:
        connection = super()._create_connection()
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA synchronous={_SYNCHRONOUS[self._durability]}")
        cursor.execute("PRAGMA secure_delete=ON")
        cursor.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        cursor.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        return connection

    def put_connection(self, conn: SQLiteConnection) -> None:
        with self._put_condition:
            if self._closed:
                self._in_use.pop(id(conn), None)
                conn.close()
                return
        super().put_connection(conn)

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back.

        The library closes connections under the hands of other threads, which crashes the interpreter.
        """
        with self._put_condition:
            self._closed = True
            while self._pool:
                self._pool.popleft().close()


class LogDatastore(SQLiteDatastore):
    """A datastore whose write transactions take the write lock at once, so that they never fail half-way."""

    def __init__(self, path: str | Path, *, durability: Durability = "full", lock_timeout: int = 5) -> None:
        super().__init__(str(path), originator_id_type="text")
        self.pool = LogConnectionPool(
            durability=durability,
            db_name=str(path),
            lock_timeout=lock_timeout,
            pool_size=16,
            max_overflow=112,
            pool_timeout=30.0,
        )

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        if not commit:
            with super().transaction(commit=False) as cursor:
                yield cursor
            return
        with self.get_connection(commit=True) as connection, _Immediate(connection) as cursor:
            yield cursor

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """A cursor with plain tuples outside any transaction: each statement sees one snapshot."""
        with self.get_connection(commit=False) as connection:
            cursor = connection.cursor().sqlite_cursor
            cursor.row_factory = None
            try:
                yield cursor
            finally:
                cursor.close()


class _Immediate:
    """`connection.transaction(commit=True)` with BEGIN IMMEDIATE and the library's own error mapping."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._transaction = connection.transaction(commit=True)

    def __enter__(self) -> SQLiteCursor:
        # The library begins deferred; nothing was read yet, so beginning anew cannot lose a snapshot.
        cursor = self._transaction.__enter__()
        cursor.execute("ROLLBACK")
        cursor.execute("BEGIN IMMEDIATE")
        return cursor

    def __exit__(self, *exc: Any) -> None:
        self._transaction.__exit__(*exc)


class LogRecorder(SQLiteApplicationRecorder):
    """Inserts and selects stored events; positions are its notification ids."""

    def __init__(self, datastore: LogDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.log_datastore = datastore
        # FAIL, for whoever inserts rolls back: to undo one statement alone, SQLite would keep a journal of it.
        self._insert = (
            f"INSERT OR FAIL INTO {events_table_name} "
            "(originator_id, originator_version, topic, key, leaf, state) VALUES "
        )
        # The cast changes nothing of what we wrote; a text put there by hand must not stop a whole page.
        self._select = f"SELECT position, CAST(state AS BLOB) FROM {events_table_name} "

    def construct_create_table_statements(self) -> list[str]:
        table = self.events_table_name
        return [
            # Small columns first: a scan that filters by topic does not read the pages of large states.
            f"CREATE TABLE IF NOT EXISTS {table} (position INTEGER PRIMARY KEY AUTOINCREMENT, "
            "originator_id TEXT NOT NULL, originator_version INTEGER NOT NULL, topic TEXT NOT NULL, "
            "key TEXT, leaf BLOB NOT NULL, state BLOB NOT NULL)",
            f"CREATE UNIQUE INDEX IF NOT EXISTS {table}_version ON {table} (originator_id, originator_version)",
            f"CREATE UNIQUE INDEX IF NOT EXISTS {table}_key ON {table} (key) WHERE key IS NOT NULL",
            f"CREATE INDEX IF NOT EXISTS {table}_erasures ON {table} (position) WHERE {_ERASURES}",
        ]

    def _insert_events(
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        keys: Sequence[str | None] | None = None,
        leaves: Sequence[bytes] | None = None,
        **_: Any,
    ) -> Sequence[int] | None:
        """Insert inside the caller's transaction; the positions, which are consecutive."""
        if not stored_events:
            return []
        if keys is None:
            keys = [None] * len(stored_events)
        if leaves is None:
            leaves = [leaf_hash(stored.state) for stored in stored_events]
        rows = [
            (_text(s.originator_id), s.originator_version, s.topic, key, leaf, s.state)
            for s, key, leaf in zip(stored_events, keys, leaves, strict=True)
        ]
        last = self.insert_rows(c.sqlite_cursor, rows)
        return range(last - len(rows) + 1, last + 1)

    def insert_rows(self, c: sqlite3.Cursor, rows: Sequence[StoredRow]) -> int:
        """Insert inside the caller's transaction, which fails with it; the position of the last one."""
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            # In one statement: behind each, the thread queues for the interpreter again.
            some = rows[at : at + _ROWS_AT_ONCE]
            places = ",".join([_PLACES] * len(some))
            c.execute(self._insert + places, [value for row in some for value in row])
        return int(c.lastrowid or 0)

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert and commit; the new positions."""
        positions = super().insert_events(stored_events, **kwargs)
        return None if positions is None else list(positions)

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """As the library's, whose statement relies on the implicit rowid."""
        after = 0 if start is None else start - inclusive_of_start
        some = f"AND topic IN ({','.join('?' * len(topics))}) " if topics else ""
        with self.log_datastore.reading() as c:
            rows = c.execute(
                "SELECT position, originator_id, originator_version, topic, state "
                f"FROM {self.events_table_name} WHERE position>? AND position<=? {some}ORDER BY position LIMIT ?",
                (after, _NO_END if stop is None else stop, *topics, limit),
            ).fetchall()
        return [
            Notification(stream, version, topic, state, id=n) for n, stream, version, topic, state in rows
        ]

    # What the log reads; `c` is a plain cursor ------------------------------------------------------------------

    def head(self, c: sqlite3.Cursor) -> int:
        """The last position; 0 when there is none."""
        found = c.execute(f"SELECT MAX(position) FROM {self.events_table_name}").fetchone()
        return found[0] or 0

    def allocated(self, c: sqlite3.Cursor) -> int:
        """The last position that was ever used, also when its row is gone."""
        found = c.execute(
            "SELECT seq FROM sqlite_sequence WHERE name=?", (self.events_table_name,)
        ).fetchone()
        return found[0] if found else 0

    def version(self, c: sqlite3.Cursor, stream: str) -> int:
        """The last version of a stream; 0 when it does not exist."""
        found = c.execute(
            f"SELECT MAX(originator_version) FROM {self.events_table_name} WHERE originator_id=?", (stream,)
        ).fetchone()
        return found[0] or 0

    def by_keys(self, c: sqlite3.Cursor, keys: Collection[str]) -> list[Row]:
        """The events that have one of these idempotency keys."""
        if len(keys) == 1:
            return c.execute(self._select + "WHERE key=?", (*keys,)).fetchall()
        return c.execute(
            self._select + "WHERE key IN (SELECT value FROM json_each(?))",
            (orjson.dumps(list(keys)).decode(),),
        ).fetchall()

    def erasures(self, c: sqlite3.Cursor, after: int) -> list[Row]:
        """The erasure events behind a position, from their own partial index."""
        return c.execute(
            self._select + f"WHERE {_ERASURES} AND position>? ORDER BY position", (after,)
        ).fetchall()

    def last(self, c: sqlite3.Cursor) -> list[Row]:
        """The newest event, as a list of one or none."""
        return c.execute(self._select + "ORDER BY position DESC LIMIT 1").fetchall()

    def between(
        self, c: sqlite3.Cursor, after: int, upto: int, limit: int, topics: Collection[str] | None = None
    ) -> list[Row]:
        """Up to `limit` events of these topics with after < position <= upto."""
        some = "" if topics is None else f"AND topic IN ({','.join('?' * len(topics))}) "
        return c.execute(
            self._select + f"WHERE position>? AND position<=? {some}ORDER BY position LIMIT ?",
            (after, upto, *sorted(topics or ()), limit),
        ).fetchall()

    def at(self, c: sqlite3.Cursor, positions: Sequence[int]) -> list[Row]:
        """The events at these positions, in position order."""
        return c.execute(
            self._select + "WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position",
            (orjson.dumps(list(positions)).decode(),),
        ).fetchall()

    def stream(self, c: sqlite3.Cursor, stream: str, after_version: int) -> list[Row]:
        """The events of one stream behind a version, in version order."""
        return c.execute(
            self._select + "WHERE originator_id=? AND originator_version>? ORDER BY originator_version",
            (stream, after_version),
        ).fetchall()

    def leaves(self, c: sqlite3.Cursor, after: int, limit: int) -> list[Row]:
        """Position and leaf hash, in position order."""
        return c.execute(
            f"SELECT position, leaf FROM {self.events_table_name} WHERE position>? ORDER BY position LIMIT ?",
            (after, limit),
        ).fetchall()

    def rows(self, c: sqlite3.Cursor, after: int, limit: int) -> list[tuple[Any, ...]]:
        """Position, stream, version, topic, key, leaf and state, in position order."""
        return c.execute(
            "SELECT position, originator_id, originator_version, topic, key, leaf, CAST(state AS BLOB) "
            f"FROM {self.events_table_name} WHERE position>? ORDER BY position LIMIT ?",
            (after, limit),
        ).fetchall()

    def mark(self, c: sqlite3.Cursor) -> str | None:
        """What was noted about the log as a whole."""
        if c.execute("SELECT 1 FROM sqlite_master WHERE name='marks'").fetchone() is None:
            return None
        found = c.execute("SELECT mark FROM marks").fetchone()
        return found[0] if found else None

    def put_mark(self, c: sqlite3.Cursor, mark: str | None, *, closed: bool) -> None:
        """Note it, inside the caller's transaction; None takes the mark away. closed: refuse every append."""
        table = self.events_table_name
        c.execute(f"DROP TRIGGER IF EXISTS {table}_closed")
        if closed:
            c.execute(
                f"CREATE TRIGGER {table}_closed BEFORE INSERT ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'the log is closed'); END"
            )
        c.execute("CREATE TABLE IF NOT EXISTS marks (mark TEXT NOT NULL)")
        c.execute("DELETE FROM marks")
        if mark is not None:
            c.execute("INSERT INTO marks VALUES (?)", (mark,))


class SqliteStorage:
    """Implements `storage.Storage`: one connection with plain tuples, and transactions that lock at once."""

    failure: type[Exception] = sqlite3.Error
    conflict: type[Exception] = sqlite3.IntegrityError

    def __init__(self, recorder: LogRecorder) -> None:
        self._recorder = recorder
        self._connection = recorder.datastore.pool.get_connection(is_writer=True)
        self.sql: sqlite3.Cursor = self._connection.cursor().sqlite_cursor
        self.sql.row_factory = None

    def begin(self, *, eager: bool = False) -> int:
        self.sql.execute("BEGIN IMMEDIATE")
        (data_version,) = self.sql.execute("PRAGMA data_version").fetchone()
        return int(data_version)

    def commit(self, rows: Sequence[StoredRow], first: int) -> None:
        if rows and self._recorder.insert_rows(self.sql, rows) != first + len(rows) - 1:
            raise CorruptStore("positions were given out behind the log's back: verify the store")
        self.sql.execute("COMMIT")

    def rollback(self) -> None:
        with suppress(sqlite3.Error):
            self.sql.connection.rollback()

    def typed(self, error: Exception) -> MnemologError:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_CONSTRAINT_TRIGGER":
            return StoreMoved("this memory was moved: open it where it is now")
        if isinstance(error, sqlite3.OperationalError):
            return StoreUnavailable(
                f"the log could not be written ({error}): see to the disk, then retry with the same key"
            )
        return CorruptStore(f"the log is damaged ({error}): verify the store")

    def allocated(self) -> int:
        return self._recorder.allocated(self.sql)

    def last(self) -> list[Row]:
        return self._recorder.last(self.sql)

    def versions(self, streams: Collection[str]) -> dict[str, int]:
        return {stream: self._recorder.version(self.sql, stream) for stream in streams}

    def by_keys(self, keys: Collection[str]) -> list[Row]:
        return self._recorder.by_keys(self.sql, keys)

    def erasures(self, after: int) -> list[Row]:
        return self._recorder.erasures(self.sql, after)

    def put_mark(self, mark: str | None, *, closed: bool) -> None:
        """As `LogRecorder.put_mark`, in a transaction of its own."""
        self.begin()
        try:
            self._recorder.put_mark(self.sql, mark, closed=closed)
            self.sql.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def checkpoint(self) -> bool:
        """Move all of the WAL into the file and truncate it; whether no reader was in the way."""
        try:
            busy, _, _ = self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise self.typed(error) from error
        return not busy

    def close(self) -> None:
        self.sql.close()
        self._recorder.datastore.pool.put_connection(self._connection)


class HeadReader:
    """The head of the log by a connection of its own: every call asks for it, and the pool costs more than it."""

    def __init__(self, datastore: LogDatastore, recorder: LogRecorder) -> None:
        self._connection = datastore.pool.get_connection(is_writer=False)
        self._cursor = self._connection.cursor().sqlite_cursor
        self._cursor.row_factory = None
        self._datastore, self._recorder, self._lock = datastore, recorder, Lock()
        self._closed = False
        self._looks = 0
        self._found: int | None = None
        """How many looks have begun, and what the last one found."""

    def read(self) -> int:
        """The last position; 0 when there is none. Raises StoreClosed.

        Who waits for its turn takes what another one found, unless that one began to look earlier.
        """
        came = self._looks
        with self._lock:
            if self._closed:
                raise StoreClosed("the log was closed: open it anew")
            if self._looks == came or self._found is None:
                self._looks, self._found = self._looks + 1, None
                self._found = self._recorder.head(self._cursor)
            return self._found

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._cursor.close()
                self._datastore.pool.put_connection(self._connection)


def _text(originator_id: UUID | str) -> str:
    return originator_id.hex if isinstance(originator_id, UUID) else originator_id

"""The PostgreSQL recorder of the log: eventsourcing's, with positions, keys and leaves of its own.

All SQL of the log is here. A writer holds one advisory lock from before it looks to the end of its commit, and
numbers its events itself: positions are contiguous, in commit order, and nothing can appear below the head.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any, Final
from uuid import UUID

import psycopg
from eventsourcing.persistence import Notification, StoredEvent
from eventsourcing.postgres import ConnectionPool, PostgresApplicationRecorder, PostgresDatastore
from psycopg import Connection, Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row, tuple_row

from mnemolog.infra.log.codec import leaf_hash
from mnemolog.infra.log.storage import Row, StoredRow
from mnemolog.infra.postgres.appending import append, columns, functions
from mnemolog.infra.postgres.arrays import integers
from mnemolog.infra.postgres.connecting import CLOSED, configure, connect, parameters, schema_name
from mnemolog.infra.postgres.layout import bring_up_to_date, first_statements
from mnemolog.infra.postgres.walls import wall_of_log

_LOCK_SPACE: Final = 0x6D6E656D << 32
"""Our half of the numbers of advisory locks; the other half is the table."""
_ERASURES: Final = "topic IN ('SubjectErased', 'ContentErased')"
_COLUMNS: Final = "position, originator_id, originator_version, topic, key, leaf, state"
_NO_END: Final = (1 << 63) - 1
_POOL: Final = 16


class LogDatastore(PostgresDatastore):
    """Connections for one log. The library's `enable_db_functions`, which loses events, is not offered.

    lock_timeout: seconds to wait for another writer's transaction. pool_timeout: for a connection to read on, where
    all are in use; a server that is away is told of at once.
    """

    def __init__(
        self, url: str, *, schema: str = "mnemolog", lock_timeout: int = 5, pool_timeout: float = 30.0
    ) -> None:
        # First of all, for it is closed also where the url is refused.
        self._idle: list[Connection[Any]] = []
        self._lock, self._closed = Lock(), False
        self._patience, self._places = pool_timeout, BoundedSemaphore(_POOL)
        self.parameters = parameters(url)
        super().__init__("", "", "", "", "", schema=schema_name(schema), originator_id_type="text")
        self.session = {"lock_timeout": f"{lock_timeout}s", "idle_in_transaction_session_timeout": "30s"}
        session = self.session
        self.pool = ConnectionPool(
            connection_class=Connection[DictRow],
            kwargs={**self.parameters, "row_factory": dict_row},
            min_size=1,
            max_size=_POOL,
            open=False,
            configure=lambda conn: configure(conn, session),
            timeout=pool_timeout,
        )

    def register_type_adapters(self) -> None:
        """The library's composite types are not used."""

    @contextmanager
    def reading(self) -> Iterator[Cursor[Any]]:
        """A cursor with plain tuples outside any transaction: each statement sees all that was committed before."""
        if not self._places.acquire(timeout=self._patience):
            raise psycopg.errors.TooManyConnections("every connection that reads is in use")
        try:
            conn = self._take()
            try:
                with conn.cursor(binary=True, row_factory=tuple_row) as cursor:
                    yield cursor
            finally:
                self._give(conn)
        finally:
            self._places.release()

    def forget_idle(self) -> None:
        """After a failure: a restart of the server has ended them all."""
        with self._lock:
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()

    def close(self) -> None:
        """Idempotent."""
        self._closed = True
        self.forget_idle()
        super().close()

    def _take(self) -> Connection[Any]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return connect(self.parameters, self.session)

    def _give(self, conn: Connection[Any]) -> None:
        with self._lock:
            if not self._closed and conn.info.transaction_status == TransactionStatus.IDLE:
                self._idle.append(conn)
                return
        conn.close()


class LogRecorder(PostgresApplicationRecorder):
    """Inserts and selects stored events; positions are its notification ids."""

    def __init__(self, datastore: LogDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        self.log_datastore = datastore
        self.channel_name = f"{datastore.schema}_{events_table_name}"
        self.qualified = f"{datastore.schema}.{events_table_name}"
        self._select = f"SELECT position, state FROM {self.qualified} "
        self._used = 0
        """The last position that is known here to have been used."""

    def create_table(self) -> None:
        """Make what is absent. A role that may not create is enough where all is there."""
        with self.datastore.transaction(commit=True) as c:
            turn = f"SELECT pg_advisory_xact_lock({_LOCK_SPACE})"
            bring_up_to_date(c, self.datastore.schema, self.layout(), turn)

    def layout(self) -> list[list[str]]:
        """What each version of the tables adds. Every statement may be repeated."""
        appending = functions(self.qualified, self.channel_name, _LOCK_SPACE)
        return [self._first_layout(), appending, self._third_layout()]

    def _third_layout(self) -> list[str]:
        """A mark on the log as a whole, what refuses appends to one that is closed, and the wall between tenants."""
        table, schema = self.qualified, self.datastore.schema
        return [
            f"CREATE TABLE IF NOT EXISTS {schema}.marks (mark text NOT NULL)",
            f"CREATE OR REPLACE FUNCTION {table}_closed() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN RAISE EXCEPTION 'the log is closed' USING ERRCODE = '{CLOSED}'; END$$",
            *wall_of_log(table),
        ]

    def _first_layout(self) -> list[str]:
        table, name, schema = self.qualified, self.events_table_name, self.datastore.schema
        return [
            *first_statements(schema),
            # Byte order: an index in a language's order breaks when the system's collation changes.
            f"CREATE TABLE IF NOT EXISTS {table} (position bigint PRIMARY KEY, "
            'originator_id text COLLATE "C" NOT NULL, originator_version bigint NOT NULL, '
            'topic text COLLATE "C" NOT NULL, key text COLLATE "C", leaf bytea NOT NULL, state bytea NOT NULL)',
            # Ciphertext cannot be compressed: do not try.
            f"ALTER TABLE {table} ALTER COLUMN state SET STORAGE EXTERNAL",
            f"CREATE UNIQUE INDEX IF NOT EXISTS {name}_version ON {table} (originator_id, originator_version)",
            f"CREATE UNIQUE INDEX IF NOT EXISTS {name}_key ON {table} (key) WHERE key IS NOT NULL",
            f"CREATE INDEX IF NOT EXISTS {name}_erasures ON {table} (position) WHERE {_ERASURES}",
            f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'the log only grows: % is refused', TG_OP; END$$",
            f"CREATE OR REPLACE TRIGGER {name}_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()",
            f"CREATE SEQUENCE IF NOT EXISTS {table}_positions MINVALUE 0 START 0",
        ]

    def mark(self, c: Cursor[Any]) -> str | None:
        """What was noted about the log as a whole."""
        row = c.execute(f"SELECT mark FROM {self.datastore.schema}.marks").fetchone()
        return str(row[0]) if row else None

    def put_mark(self, c: Cursor[Any], mark: str | None, *, closed: bool) -> None:
        """Note it, inside the caller's transaction. closed: refuse appends of whoever has the log open."""
        marks, trigger = f"{self.datastore.schema}.marks", f"{self.events_table_name}_is_closed"
        c.execute(f"DELETE FROM {marks}")
        if mark is not None:
            c.execute(f"INSERT INTO {marks} VALUES (%s)", (mark,))
        c.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {self.qualified}")
        if closed:
            c.execute(
                f"CREATE TRIGGER {trigger} BEFORE INSERT ON {self.qualified} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {self.qualified}_closed()"
            )

    def freeze(self, c: Cursor[Any]) -> None:
        """Hold the lock of the log for the session: nobody appends while its connection is open."""
        c.execute(f"SELECT pg_advisory_lock({_LOCK_SPACE} + '{self.qualified}'::regclass::oid::bigint)")

    def lock(self, c: Cursor[Any], begin: str = "") -> int:
        """Inside a transaction: be the only writer until it ends. The last position that was ever used."""
        c.execute(f"{begin}SELECT {self.qualified}_lock() AS last", binary=False)
        while c.nextset():
            pass
        row = c.fetchone()
        assert row is not None
        self._used = max(self._used, int(row["last"] if isinstance(row, dict) else row[0]))
        return self._used

    def append(self, c: Cursor[Any], rows: Sequence[StoredRow], first: int) -> bool:
        """Lock, insert, commit and ring in one statement; False where somebody else has used `first` meanwhile."""
        if not append(c, self.qualified, rows, first):
            return False
        self._used = max(self._used, first + len(rows) - 1)
        return True

    def commit(self, c: Cursor[Any], last: int) -> None:
        """End the transaction that used the positions up to `last`, and ring."""
        c.execute(f"SELECT pg_notify('{self.channel_name}', '{last}'); COMMIT", binary=False)
        self._used = max(self._used, last)

    def insert_rows(self, c: Cursor[Any], rows: Sequence[StoredRow], first: int) -> None:
        """Insert inside the caller's transaction, with the lock held, at the positions from `first` on."""
        last = first + len(rows) - 1
        if len(rows) == 1:
            values = "VALUES (%b, %s, %b, %s, %s, %b, %b)"
            c.execute(f"INSERT INTO {self.qualified} ({_COLUMNS}) {values}", (first, *rows[0]))
        else:
            c.execute(
                f"INSERT INTO {self.qualified} ({_COLUMNS}) SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b)",
                (integers(range(first, last + 1)), *columns(rows)),
            )

    # What the library's contract asks for ------------------------------------------------------------------------

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],
        *,
        keys: Sequence[str | None] | None = None,
        leaves: Sequence[bytes] | None = None,
        **_: Any,
    ) -> Sequence[int] | None:
        """Insert and commit; the new positions, which are consecutive."""
        if not stored_events:
            return []
        keys = keys or [None] * len(stored_events)
        leaves = leaves or [leaf_hash(stored.state) for stored in stored_events]
        rows: list[StoredRow] = [
            (_text(s.originator_id), s.originator_version, s.topic, key, leaf, s.state)
            for s, key, leaf in zip(stored_events, keys, leaves, strict=True)
        ]
        with self.datastore.cursor() as c:
            try:
                first = self.lock(c, "BEGIN; ") + 1
                self.insert_rows(c, rows, first)
                self.commit(c, first + len(rows) - 1)
            except BaseException:
                c.connection.rollback()
                raise
        return list(range(first, first + len(rows)))

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """As the library's, over our columns."""
        after = 0 if start is None else start - inclusive_of_start
        some = "AND topic = ANY(%s) " if topics else ""
        with self.log_datastore.reading() as c:
            rows = c.execute(
                f"SELECT {_COLUMNS} FROM {self.qualified} WHERE position>%s AND position<=%s {some}"
                "ORDER BY position LIMIT %s",
                (after, _NO_END if stop is None else stop, *([list(topics)] if topics else []), limit),
            ).fetchall()
        return [
            Notification(stream, version, topic, state, id=n)
            for n, stream, version, topic, _, _, state in rows
        ]

    def max_notification_id(self) -> int | None:
        """The last position; None when there is none."""
        with self.log_datastore.reading() as c:
            return self.head(c) or None

    # What the log reads; `c` is a cursor of plain tuples ----------------------------------------------------------

    def head(self, c: Cursor[Any]) -> int:
        """The last position; 0 when there is none."""
        return _one(c.execute(f"SELECT coalesce(max(position), 0) FROM {self.qualified}"))

    def allocated(self, c: Cursor[Any]) -> int:
        """The last position that was ever used, also when its row is gone."""
        marked = _one(c.execute(f"SELECT last_value FROM {self.qualified}_positions"))
        return max(self._used, marked, self.head(c))

    def versions(self, c: Cursor[Any], streams: Collection[str]) -> dict[str, int]:
        """The last version of each stream; 0 for one that does not exist."""
        return dict(
            c.execute(
                "SELECT s, coalesce((SELECT max(originator_version) FROM "
                f"{self.qualified} WHERE originator_id=s), 0) FROM unnest(%s::text[]) s",
                (list(streams),),
            ).fetchall()
        )

    def by_keys(self, c: Cursor[Any], keys: Collection[str]) -> list[Row]:
        """The events that have one of these idempotency keys."""
        return c.execute(self._select + "WHERE key = ANY(%s)", (list(keys),)).fetchall()

    def erasures(self, c: Cursor[Any], after: int) -> list[Row]:
        """The erasure events behind a position, from their own partial index."""
        return c.execute(
            self._select + f"WHERE {_ERASURES} AND position>%s ORDER BY position", (after,)
        ).fetchall()

    def last(self, c: Cursor[Any]) -> list[Row]:
        """The newest event, as a list of one or none."""
        return c.execute(self._select + "ORDER BY position DESC LIMIT 1").fetchall()

    def between(
        self, c: Cursor[Any], after: int, upto: int, limit: int, topics: Collection[str] | None = None
    ) -> list[Row]:
        """Up to `limit` events of these topics with after < position <= upto."""
        some, names = ("", []) if topics is None else ("AND topic = ANY(%s) ", [sorted(topics)])
        return c.execute(
            self._select + f"WHERE position>%s AND position<=%s {some}ORDER BY position LIMIT %s",
            (after, upto, *names, max(0, limit)),
        ).fetchall()

    def at(self, c: Cursor[Any], positions: Sequence[int]) -> list[Row]:
        """The events at these positions, in position order."""
        return c.execute(
            self._select + "WHERE position = ANY(%s::bigint[]) ORDER BY position", (list(positions),)
        ).fetchall()

    def stream(self, c: Cursor[Any], stream: str, after_version: int) -> list[Row]:
        """The events of one stream behind a version, in version order."""
        return c.execute(
            self._select + "WHERE originator_id=%s AND originator_version>%s ORDER BY originator_version",
            (stream, after_version),
        ).fetchall()

    def leaves(self, c: Cursor[Any], after: int, limit: int) -> list[Row]:
        """Position and leaf hash, in position order."""
        return c.execute(
            f"SELECT position, leaf FROM {self.qualified} WHERE position>%s ORDER BY position LIMIT %s",
            (after, limit),
        ).fetchall()

    def rows(self, c: Cursor[Any], after: int, limit: int) -> list[tuple[Any, ...]]:
        """Position, stream, version, topic, key, leaf and state, in position order."""
        return c.execute(
            f"SELECT {_COLUMNS} FROM {self.qualified} WHERE position>%s ORDER BY position LIMIT %s",
            (after, limit),
        ).fetchall()

    def is_stored(self, c: Cursor[Any], rows: Sequence[StoredRow], first: int) -> bool:
        """Whether exactly these rows are at the positions from `first` on."""
        found = self.leaves(c, first - 1, len(rows))
        return found == [(position, row[4]) for position, row in enumerate(rows, first)]


def _one(cursor: Cursor[Any]) -> int:
    row = cursor.fetchone()
    return int(row[0] or 0) if row else 0


def _text(originator_id: UUID | str) -> str:
    return originator_id.hex if isinstance(originator_id, UUID) else originator_id

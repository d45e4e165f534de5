"""The vector rows in PostgreSQL, for several machines.

The tables are UNLOGGED, as those of views are: a vector tells much of its text, and what enters the server's WAL and
its archive cannot be erased from there. A crash of the server empties them; the texts are then embedded again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final
from zlib import crc32

import psycopg
from psycopg import Connection, Cursor
from psycopg.pq import TransactionStatus

from mnemolog.domain.errors import CorruptStore, StoreClosed
from mnemolog.infra.postgres.connecting import connect, parameters, schema_name, typed
from mnemolog.infra.postgres.statements import Statements
from mnemolog.infra.vectors import StoredVectors
from mnemolog.infra.vectors.database import FORMAT
from mnemolog.infra.vectors.numbers import get_number

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TEXT: Final = 'text COLLATE "C"'
_LAYOUT: Final = (
    "CREATE SCHEMA IF NOT EXISTS {schema}",
    f"CREATE UNLOGGED TABLE {{schema}}.meta (name {_TEXT} PRIMARY KEY, value bigint NOT NULL)",
    "CREATE UNLOGGED TABLE {schema}.spaces (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    f" name {_TEXT} NOT NULL UNIQUE, dimensions bigint NOT NULL, position bigint NOT NULL,"
    " passages bigint NOT NULL DEFAULT 0)",
    "CREATE UNLOGGED TABLE {schema}.scopes (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    f" tenant {_TEXT} NOT NULL, organization {_TEXT} NOT NULL,"
    f' "user" {_TEXT} NOT NULL, project {_TEXT} NOT NULL, UNIQUE (tenant, organization, "user", project))',
    'CREATE INDEX scopes_user ON {schema}.scopes ("user")',
    f"CREATE UNLOGGED TABLE {{schema}}.sources (position bigint PRIMARY KEY, event_id {_TEXT} NOT NULL UNIQUE,"
    f" scope bigint NOT NULL, session {_TEXT}, record {_TEXT}, origin bigint NOT NULL, occurred_us bigint NOT NULL)",
    "CREATE INDEX sources_session ON {schema}.sources (session, position) WHERE record IS NULL",
    "CREATE INDEX sources_scope ON {schema}.sources (scope)",
    f"CREATE UNLOGGED TABLE {{schema}}.subjects (subject {_TEXT}, position bigint, PRIMARY KEY (subject, position))",
    "CREATE UNLOGGED TABLE {schema}.vectors (space bigint, scope bigint, kind bigint, change bigint,"
    " position bigint NOT NULL, before bigint, after bigint, digest bytea NOT NULL, vector bytea NOT NULL,"
    " part bigint NOT NULL DEFAULT 0, PRIMARY KEY (space, scope, kind, change))",
    # Floats cannot be compressed: do not try.
    "ALTER TABLE {schema}.vectors ALTER COLUMN vector SET STORAGE EXTERNAL",
    "CREATE UNIQUE INDEX vectors_source ON {schema}.vectors (position, kind, space, part)",
    "CREATE INDEX vectors_passages ON {schema}.vectors (scope) WHERE kind = 3",
    "CREATE INDEX vectors_change ON {schema}.vectors (space, change)",
    "CREATE INDEX vectors_before ON {schema}.vectors (before) WHERE before IS NOT NULL",
    "CREATE INDEX vectors_after ON {schema}.vectors (after) WHERE after IS NOT NULL",
    "CREATE UNLOGGED TABLE {schema}.dropped (space bigint, change bigint, kind bigint NOT NULL,"
    " position bigint NOT NULL, scope bigint NOT NULL, part bigint NOT NULL DEFAULT 0, PRIMARY KEY (space, change))",
    "CREATE INDEX dropped_scope ON {schema}.dropped (space, scope, kind, change)",
    "CREATE UNLOGGED TABLE {schema}.due (space bigint, position bigint, PRIMARY KEY (space, position))",
    f"CREATE UNLOGGED TABLE {{schema}}.fences (target {_TEXT} PRIMARY KEY, position bigint NOT NULL)",
)
_TABLES: Final = ("meta", "spaces", "scopes", "sources", "subjects", "vectors", "dropped", "due", "fences")
_COPY: Final = "COPY vectors FROM STDIN (FORMAT BINARY)"
_TYPES: Final = (*["int8"] * 7, "bytea", "bytea", "int8")


_First = Callable[[Connection[Any]], Cursor[Any]]


def postgres_vectors(url: str, schema: str = "mnemolog_vectors") -> StoredVectors:
    """The rows of this database, made if missing. Raises InvalidInput, StoreUnavailable, CorruptStore."""
    return StoredVectors(PostgresVectorDatabase(url, schema))


def has_vectors(url: str, schema: str) -> bool:
    """Whether there are such rows. Raises InvalidInput, StoreUnavailable."""
    try:
        with connect(parameters(url), {}) as conn:
            found = conn.execute("SELECT to_regclass(%s)", (f"{schema_name(schema)}.meta",)).fetchone()
            return found != (None,)
    except psycopg.Error as error:
        raise typed(error, "the vectors cannot be used") from error


class PostgresVectorDatabase:
    """A `VectorDatabase` for many processes. Thread-safe."""

    def __init__(self, url: str, schema: str) -> None:
        self._schema, self._parameters = schema_name(schema), parameters(url)
        self._session = {"search_path": schema, "lock_timeout": "30s", "synchronous_commit": "off"}
        self._lock, self._closed = Lock(), False
        self._idle: list[Connection[Any]] = []
        self._turn = f"SELECT pg_advisory_xact_lock({crc32(schema.encode()) - (1 << 31)}, 1)"
        with self._begun(f"BEGIN; {self._turn}") as (conn, _):
            self._prepare(conn)

    @contextmanager
    def write(self) -> Iterator[Statements]:
        """A transaction that happens whole or not at all, one at a time among all processes."""
        with self._begun(f"BEGIN; {self._turn}; {_number('format')}") as (conn, found):
            self._fill(conn, found)
            yield Statements(conn)

    @contextmanager
    def read(self) -> Iterator[Statements]:
        """A snapshot."""
        with self._begun(f"{_READ}; {_number('format')}") as (conn, found):
            if found is None:
                conn.execute("ROLLBACK")
                with self.write():
                    pass
                conn.execute(_READ)
            yield Statements(conn)

    def number(self, name: str) -> int:
        """One of the numbers in `meta`, as it is now: in one round trip."""
        for (found,) in self.ask("SELECT value FROM meta WHERE name = ?", (name,)):
            return int(found)
        with self.read() as conn:
            return get_number(conn, name)

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement that reads: in one round trip."""
        with self._connected(lambda conn: Statements(conn).execute(sql, parameters)) as (_, cursor):
            found: list[Any] = cursor.fetchall()
            return found

    def insert_vectors(self, conn: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows with all columns of the table `vectors`, in order."""
        if rows:
            conn.copy(_COPY, _TYPES, rows)

    def vacuum(self) -> bool:
        """Rewrite the tables without what was deleted; False where a reader kept that from being done."""
        self._check_open()
        try:
            with connect(self._parameters, {**self._session, "lock_timeout": "2s"}) as conn:
                conn.execute("VACUUM (FULL) " + ", ".join(_TABLES))
        except psycopg.errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            raise typed(error, "the vectors cannot be rewritten") from error
        return True

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            self._closed = True
            for conn in self._idle:
                conn.close()
            self._idle.clear()

    def _prepare(self, conn: Connection[Any]) -> None:
        found = conn.execute("SELECT to_regclass(%s)", (f"{self._schema}.meta",)).fetchone()
        if found == (None,):
            for statement in _LAYOUT:
                conn.execute(statement.format(schema=self._schema))
        row = conn.execute(_number("format")).fetchone()
        self._fill(conn, None if row is None else row[0])

    def _fill(self, conn: Connection[Any], found: int | None) -> None:
        """First values, in tables that are new or that a crash of the server has emptied. found: their format."""
        if found is None:
            values = [("format", FORMAT), ("change", 0), ("erasures", 0), ("identity", secrets.randbits(62))]
            Statements(conn).executemany("INSERT INTO meta VALUES (?, ?)", values)
        elif found != FORMAT:
            raise CorruptStore(f"the schema {self._schema} has not the format {FORMAT}: drop it")

    @contextmanager
    def _begun(self, begin: str) -> Iterator[tuple[Connection[Any], int | None]]:
        """A transaction, and the number that the last statement of its beginning gives, if any."""
        with self._connected(lambda conn: conn.execute(begin)) as (conn, cursor):
            try:
                yield conn, _last(cursor)
                conn.execute("COMMIT")
            except BaseException:
                if not conn.closed and conn.info.transaction_status != TransactionStatus.IDLE:
                    conn.rollback()
                raise

    @contextmanager
    def _connected(self, first: _First) -> Iterator[tuple[Connection[Any], Cursor[Any]]]:
        """A connection, on which the first statement was run."""
        try:
            conn, cursor = self._run(first)
            try:
                yield conn, cursor
            finally:
                self._give(conn)
        except psycopg.Error as error:
            raise typed(error, "the vectors cannot be used") from error

    def _run(self, first: _First) -> tuple[Connection[Any], Cursor[Any]]:
        conn = self._take()
        try:
            return conn, first(conn)
        except psycopg.OperationalError:
            if not conn.closed:
                conn.close()
                raise
            # It was lost while nobody used it, and so were the others.
            with self._lock:
                self._idle.clear()
            conn = self._take()
            return conn, first(conn)
        except BaseException:
            conn.close()
            raise

    def _take(self) -> Connection[Any]:
        with self._lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        return connect(self._parameters, self._session)

    def _give(self, conn: Connection[Any]) -> None:
        with self._lock:
            if self._closed or conn.closed:
                conn.close()
            else:
                self._idle.append(conn)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the vectors were closed: open the memory anew")


def _number(name: str) -> str:
    return f"SELECT value FROM meta WHERE name = '{name}'"


def _last(cursor: Cursor[Any]) -> int | None:
    while cursor.nextset():
        pass
    row = cursor.fetchone() if cursor.description else None
    return row[0] if row and isinstance(row[0], int) else None


__all__ = ["PostgresVectorDatabase", "has_vectors", "postgres_vectors"]

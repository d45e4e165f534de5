"""`PostgresViews`: one schema per projection version, and one table whose rows say which are live.

The tables of views are UNLOGGED: their text never enters the server's WAL, its archive, or a backup, from where no
erasure could fetch it back, and a commit waits for no disk. A crash of the server empties them; views are disposable,
so that is noticed (`alive` is unlogged too) and they are built anew from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Final
from zlib import crc32

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from mnemolog.domain.errors import InvalidInput, NotFound, StoreClosed, StoreUnavailable
from mnemolog.infra.postgres.connecting import connect, is_gone, parameters, schema_name, typed
from mnemolog.infra.postgres.engine import driver_of, view_engine
from mnemolog.infra.postgres.layout import bring_up_to_date, first_statements
from mnemolog.infra.postgres.privileges import Roles
from mnemolog.infra.postgres.walls import wall_of_views
from mnemolog.projections.ports import ViewSize
from mnemolog.projections.versions import ViewFile

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN; SET LOCAL synchronous_commit = off"
# 08 connection, 40 deadlock, 53 resources, 55 locked, 57 intervention, 58 system, XX damaged; read-only, dropped.
_AT_FAULT: Final = frozenset({"08", "40", "53", "55", "57", "58", "XX", "25006", "42P01", "3F000"})
_BUILDING: Final = ("shadow", "joint")
"""Built by one process, or by workers together."""
_LARGE: Final = 1 << 20
"""Bytes of a table from which on its statistics matter."""
_LAYOUT: Final = (
    "CREATE TABLE IF NOT EXISTS {schema}.views (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " name text NOT NULL, version text NOT NULL, generation integer NOT NULL, state text NOT NULL,"
    " UNIQUE (name, generation))",
    "CREATE UNIQUE INDEX IF NOT EXISTS views_live ON {schema}.views (name) WHERE state = 'live'",
    "CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.alive (id integer PRIMARY KEY)",
)
_USED: Final = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' AND EXISTS "
    "(SELECT 1 FROM unnest(ARRAY[c.oid, c.reltoastrelid]) h WHERE h <> 0 AND (pg_relation_size(h) > 0 OR EXISTS "
    "(SELECT 1 FROM pg_index i WHERE i.indrelid = h AND "
    "pg_relation_size(i.indexrelid) > current_setting('block_size')::int)))"
)
"""Tables with a page, here, in what is stored beside them, or in an index, whose first page has no entries."""


def _layout(schema: str) -> list[list[str]]:
    """What each version of the tables adds. Every statement may be repeated."""
    roles = Roles.of(schema.removesuffix("_views"))
    there = f"SELECT '{schema}_' || name || '_' || generation AS place FROM {schema}.views"
    return [
        [*first_statements(schema), *(statement.format(schema=schema) for statement in _LAYOUT)],
        [
            wall_of_views(schema, roles.reader, roles.auditor),
            f"SELECT {schema}.wall(place) FROM ({there}) v WHERE to_regnamespace(place) IS NOT NULL",
        ],
    ]


class PostgresViews:
    """A `ViewStore` for many processes. schema: of the table that names the views; theirs begin with it.

    lock_timeout: seconds to wait for another writer of the same view, and for readers where a view is rewritten.
    Raises InvalidInput for a bad url, StoreUnavailable when the server cannot be reached or refuses.
    """

    def __init__(self, url: str, *, schema: str = "mnemolog_views", lock_timeout: float = 30.0) -> None:
        self._schema, self._parameters = schema_name(schema), parameters(url)
        self._session = {"lock_timeout": f"{int(lock_timeout * 1000)}ms"}
        self._lock = RLock()
        self._live: dict[str, ViewFile] = {}
        self._ids: dict[ViewFile, int] = {}
        self._lost: set[ViewFile] = set()
        self._held: set[ViewFile] = set()
        self._keeper: psycopg.Connection[Any] | None = None
        self._closed = False
        self._engine = view_engine(self._parameters, self._session, schema)
        try:
            with self._table() as sql:
                turn = f"SELECT pg_advisory_xact_lock({self._space('layout')}, 0)"
                bring_up_to_date(sql, schema, _layout(schema), turn)
                self._look(sql)
            self._sweep()
        except BaseException:
            self.close()
            raise

    # Which are live ----------------------------------------------------------------------------------------------

    def live(self, name: str) -> ViewFile | None:
        """The view that readers of this projection see; None where there is none, or a crash has emptied it."""
        file = self._live.get(name)
        return None if file is None or file in self._lost else file

    def refresh(self) -> bool:
        """Look whether this process or another has activated other views since; whether it was so."""
        before = self._live
        with self._table() as sql:
            self._look(sql)
        return self._live != before

    def create_shadow(self, name: str, version: str) -> ViewFile:
        """An empty schema beside the live one, of a new generation. It is ours as long as we are connected."""
        with self._table() as sql:
            sql.execute("SELECT pg_advisory_xact_lock(%s, 0)", (self._space(name),))
            return self._make(sql, name, version, "shadow")

    def join_shadow(self, name: str, version: str) -> ViewFile:
        """The view of this version that workers build together, or a new one; there as long as one is connected."""
        with self._table() as sql:
            sql.execute("SELECT pg_advisory_xact_lock(%s, 0)", (self._space(name),))
            row = sql.execute(
                f"SELECT v.id, v.generation FROM {self._schema}.views v JOIN {self._schema}.alive a USING (id) "
                "WHERE v.name = %s AND v.version = %s AND v.state = 'joint' ORDER BY v.generation DESC LIMIT 1",
                (name, version),
            ).fetchone()
            if row is None:
                return self._make(sql, name, version, "joint")
            file = ViewFile(name, version, row[1])
            self._hold(sql, file, row[0])
        return file

    def _make(self, sql: psycopg.Connection[Any], name: str, version: str, state: str) -> ViewFile:
        found = sql.execute(
            f"SELECT coalesce(max(generation), 0) + 1 FROM {self._schema}.views WHERE name = %s", (name,)
        ).fetchone()
        assert found is not None
        file = ViewFile(name, version, found[0])
        row = sql.execute(
            f"INSERT INTO {self._schema}.views (name, version, generation, state) "
            "VALUES (%s, %s, %s, %s) RETURNING id",
            (name, version, file.generation, state),
        ).fetchone()
        assert row is not None
        sql.execute(f"CREATE SCHEMA {self._schema_of(file)}")
        sql.execute(f"INSERT INTO {self._schema}.alive VALUES (%s)", (row[0],))
        self._hold(sql, file, row[0])
        return file

    def _hold(self, sql: psycopg.Connection[Any], file: ViewFile, number: int) -> None:
        """For the session, not the transaction: it tells others that somebody is building here."""
        if file not in self._held:
            sql.execute("SELECT pg_advisory_lock_shared(%s, %s)", (self._space("build"), number))
        self._ids[file] = number
        self._held.add(file)

    def activate(self, file: ViewFile) -> None:
        """Make this view the live one, durably and at once for every new reader, and drop the one before."""
        self._analyze(file)
        with self._table() as sql:
            sql.execute("SELECT pg_advisory_xact_lock(%s, 0)", (self._space(file.name),))
            table, number = f"{self._schema}.views", self._id(file)
            sql.execute(
                f"UPDATE {table} SET state = 'retired' WHERE name = %s AND state = 'live' AND id <> %s",
                (file.name, number),
            )
            sql.execute(f"SELECT {self._schema}.wall(%s)", (self._schema_of(file),))
            made = sql.execute(f"UPDATE {table} SET state = 'live' WHERE id = %s", (number,))
            if made.rowcount != 1:
                raise NotFound(f"there is no view {self._schema_of(file)}")
            self._look(sql)
        with self._table() as sql:
            # After the commit: whoever finds the lock free must find the view live, too.
            self._let_go(sql, file)
        self._sweep()

    def _let_go(self, sql: psycopg.Connection[Any], file: ViewFile) -> None:
        if file in self._held:
            sql.execute("SELECT pg_advisory_unlock_shared(%s, %s)", (self._space("build"), self._id(file)))
            self._held.discard(file)

    def _analyze(self, file: ViewFile) -> None:
        """A view that was just filled has no statistics yet, and its first readers would not go by its indexes."""
        with self._connected() as sql:
            large = sql.execute(
                "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname = %s "
                "AND pg_relation_size((quote_ident(schemaname) || '.' || quote_ident(tablename))::regclass) > %s",
                (self._schema_of(file), _LARGE),
            ).fetchall()
            for (table,) in large:
                sql.execute(f"ANALYZE {table}")

    def drop(self, file: ViewFile) -> None:
        """Remove the view as soon as its last reader, in whatever process, has finished."""
        with self._table() as sql:
            sql.execute(
                f"UPDATE {self._schema}.views SET state = 'retired' WHERE id = %s AND state <> 'live'",
                (self._id(file),),
            )
            self._let_go(sql, file)
        self._sweep()

    # Transactions ------------------------------------------------------------------------------------------------

    @contextmanager
    def begin(self, file: ViewFile, partitions: Collection[int] | None = None) -> Iterator[Connection]:
        """A write transaction: commits at the end, rolls back on an error. One writer at a time per view.

        partitions: then one at a time of each of these, and nobody who writes the whole view.
        """
        number = self._id(file)
        turn = f"SELECT pg_advisory_xact_lock({self._space('write')}, {number})"
        if partitions is not None:
            own = self._space(f"write/{number}")
            locks = [f"SELECT pg_advisory_xact_lock({own}, {one})" for one in sorted(partitions)]
            turn = "; ".join([turn.replace("lock(", "lock_shared("), *locks])
        with self._transaction(file, f"{_WRITE}; {turn}") as conn:
            yield conn
        self._sweep_after(file)

    @contextmanager
    def connect(self, name: str) -> Iterator[Connection]:
        """A read transaction on the live view; it stays on that view, also while another is activated."""
        with self._taken() as conn:
            file = self._begin_live(conn, name)
            yield conn
        self._sweep_after(file)

    @contextmanager
    def connect_to(self, file: ViewFile) -> Iterator[Connection]:
        """A read transaction on this view."""
        with self._transaction(file, _READ) as conn:
            yield conn
        self._sweep_after(file)

    @contextmanager
    def _transaction(self, file: ViewFile, begin: str) -> Iterator[Connection]:
        with self._taken() as conn:
            self._begin(conn, file, begin)
            yield conn

    @contextmanager
    def _taken(self) -> Iterator[Connection]:
        """A connection. Raises StoreUnavailable where nothing can be begun, or the server goes away inside."""
        try:
            with self._engine_of().begin() as conn:
                yield conn
        except OperationalError as error:
            if error.statement == "BEGIN" or is_gone(error.orig):
                raise typed(error.orig or error, "the views cannot be used") from error
            raise

    def _begin_live(self, conn: Connection, name: str) -> ViewFile:
        """Begin to read on the live view. The pointer is read in the same transaction: another process moves it."""
        while True:
            file = self._live.get(name)
            if file is None:
                raise NotFound(
                    f"no view of {name!r} is live: `mnemolog projections rebuild {name}` builds it"
                )
            with suppress(NotFound):
                if self._begin(conn, file, _READ) == "live":
                    return file
            driver_of(conn).rollback()
            if self._live.get(name) == file:
                raise StoreUnavailable(f"the schema of the view {name!r} is gone: rebuild it")

    def _begin(self, conn: Connection, file: ViewFile, begin: str) -> str:
        """Begin a transaction on this view, which nobody drops before its end; the state of the view."""
        number, schema = self._id(file), self._schema_of(file)
        try:
            cursor = driver_of(conn).execute(
                f"{begin}; SELECT pg_advisory_xact_lock_shared({self._space('use')}, {number}); "
                f"SET LOCAL search_path = {schema}; "
                f"SELECT v.state, a.id IS NOT NULL, to_regnamespace('{schema}') IS NOT NULL "
                f"FROM {self._schema}.views v LEFT JOIN {self._schema}.alive a USING (id) WHERE v.id = {number}"
            )
            while cursor.nextset():
                pass
            row = cursor.fetchone()
        except psycopg.Error as error:
            if driver_of(conn).closed:
                # A restart of the server: the other idle connections are dead as well.
                conn.invalidate(error)
                self._engine.dispose()
            raise OperationalError("BEGIN", None, error) from error
        if row is None or not row[2] or row[0] == "retired":
            self.refresh()
        if row is None or not row[2]:
            raise NotFound(f"there is no view {self._schema_of(file)}")
        if not row[1]:
            self._lost.add(file)
            raise StoreUnavailable(
                f"a crash of the server has emptied the view {file.name!r}: retry, it is rebuilt"
            )
        return str(row[0])

    # Rewriting and looking ---------------------------------------------------------------------------------------

    def purge(self, file: ViewFile, rewrite: Callable[[Connection], None]) -> bool:
        """Run `rewrite` in a transaction, then rewrite all tables ever used, so that no deleted byte is left in them.

        False where a reader was in the way: purge again later.
        """
        with self.begin(file) as conn:
            rewrite(conn)
        schema = self._schema_of(file)
        with self._connected() as sql:
            rows = sql.execute(_USED, (schema,)).fetchall()
            if not rows:
                return True
            try:
                sql.execute("SET lock_timeout = '2s'")
                sql.execute("VACUUM (FULL) " + ", ".join(f'{schema}."{name}"' for (name,) in rows))
            except psycopg.errors.LockNotAvailable:
                return False
        return True

    def files(self) -> list[ViewSize]:
        """What is there and how large, the live ones and those being built."""
        self._sweep()
        with self._table() as sql:
            rows = sql.execute(
                "SELECT v.name, v.version, v.generation, v.state = 'live', coalesce((SELECT "
                "sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = "
                f"to_regnamespace(%s || '_' || v.name || '_' || v.generation)), 0)::bigint FROM {self._schema}.views v "
                'ORDER BY v.name COLLATE "C", v.generation',
                (self._schema,),
            ).fetchall()
        return [ViewSize(ViewFile(*row[:3]), row[3], row[4]) for row in rows]

    def is_unavailable(self, error: Exception) -> bool:
        """Whether an error of a fold lies with the store (away, full, locked, damaged), not with the event."""
        if isinstance(error, StoreUnavailable | PoolTimeout):
            return True
        cause = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(cause, psycopg.Error):
            return False
        state = cause.sqlstate
        if state is None:
            return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
        return state in _AT_FAULT or state[:2] in _AT_FAULT

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._closed = True
            if self._keeper is not None:
                with suppress(psycopg.Error):
                    self._keeper.close()
            self._engine.dispose()

    # The table of views ------------------------------------------------------------------------------------------

    @contextmanager
    def _table(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction on the keeper, the connection that also holds what is ours for longer."""
        with self._lock:
            self._check_open()
            try:
                keeper = self._kept()
                with keeper.transaction():
                    yield keeper
            except psycopg.Error as error:
                raise typed(error, "the views cannot be used") from error

    def _kept(self) -> psycopg.Connection[Any]:
        with suppress(psycopg.Error):
            if self._keeper is not None:
                self._keeper.execute("SELECT 1")
                return self._keeper
        if self._keeper is not None:
            self._keeper.close()
        self._keeper = connect(self._parameters, self._session)
        for file in self._held:
            lock = (self._space("build"), self._ids[file])
            self._keeper.execute("SELECT pg_advisory_lock_shared(%s, %s)", lock)
        return self._keeper

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection outside any transaction."""
        self._check_open()
        try:
            with connect(self._parameters, self._session) as conn:
                yield conn
        except psycopg.Error as error:
            raise typed(error, "the views cannot be used") from error

    def _look(self, sql: psycopg.Connection[Any]) -> None:
        """Learn which views are live, and which of them a crash has emptied."""
        rows = sql.execute(
            f"SELECT v.name, v.version, v.generation, v.id, a.id IS NULL FROM {self._schema}.views v "
            f"LEFT JOIN {self._schema}.alive a USING (id) WHERE v.state = 'live'"
        ).fetchall()
        found = {ViewFile(*row[:3]): row for row in rows}
        self._ids.update({file: row[3] for file, row in found.items()})
        self._lost = {file for file, row in found.items() if row[4]}
        self._live = {file.name: file for file in found}

    def _sweep(self) -> None:
        """Remove what is retired, and what nobody builds any more, where nobody reads it."""
        with self._table() as sql:
            rows = sql.execute(
                f"SELECT id, name, version, generation, state FROM {self._schema}.views WHERE state <> 'live'"
            ).fetchall()
        for number, name, version, generation, state in rows:
            self._remove(number, ViewFile(name, version, generation), state)

    def _remove(self, number: int, file: ViewFile, state: str) -> None:
        with self._lock:
            if state in _BUILDING and file in self._held:
                return
        spaces = ("use", "build") if state in _BUILDING else ("use",)
        with self._table() as sql:
            for space in spaces:
                free = sql.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (self._space(space), number))
                if free.fetchone() != (True,):
                    return
            # What we saw may be old: a shadow that was activated since is neither locked nor ours to remove.
            due = f"SELECT 1 FROM {self._schema}.views WHERE id = %s AND state <> 'live' FOR UPDATE"
            if sql.execute(due, (number,)).fetchone() is None:
                return
            sql.execute(f"DROP SCHEMA IF EXISTS {self._schema_of(file)} CASCADE")
            sql.execute(f"DELETE FROM {self._schema}.alive WHERE id = %s", (number,))
            sql.execute(f"DELETE FROM {self._schema}.views WHERE id = %s", (number,))
        self._ids.pop(file, None)

    def _sweep_after(self, file: ViewFile) -> None:
        """Whoever read a view that was replaced meanwhile was perhaps its last reader."""
        if file.name in self._live and self._live[file.name] != file and not self._closed:
            self._sweep()

    def _id(self, file: ViewFile) -> int:
        if file not in self._ids:
            with self._table() as sql:
                row = sql.execute(
                    f"SELECT id FROM {self._schema}.views WHERE (name, version, generation) = (%s, %s, %s)",
                    (file.name, file.version, file.generation),
                ).fetchone()
            if row is None:
                raise NotFound(f"there is no view {self._schema_of(file)}")
            self._ids[file] = row[0]
        return self._ids[file]

    def _schema_of(self, file: ViewFile) -> str:
        name = f"{self._schema}_{file.name}_{file.generation}"
        if len(name) > 63:
            raise InvalidInput(f"{name} is too long for a schema: choose a shorter schema for the views")
        return name

    def _space(self, purpose: str) -> int:
        """The first half of the numbers of our advisory locks."""
        return crc32(f"{self._schema}/{purpose}".encode()) - (1 << 31)

    def _engine_of(self) -> Engine:
        self._check_open()
        return self._engine

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the views are closed: open the memory anew")

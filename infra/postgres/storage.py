"""The one connection of a process that writes into the log, and what becomes of a commit whose answer was lost."""

from __future__ import annotations

import select
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

import psycopg
from psycopg import Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from mnemolog.domain.errors import MnemologError, StoreUnavailable
from mnemolog.infra.log.recorder import Durability
from mnemolog.infra.log.storage import Overtaken, Row, StoredRow
from mnemolog.infra.postgres.connecting import connect, typed
from mnemolog.infra.postgres.recorder import LogRecorder

_SYNCHRONOUS: Final = {"full": "on", "os": "off"}
_RETRY_SECONDS: Final = 0.1
_LOST: Final = "the connection was lost and nothing of this append is stored: retry with the same key"
_UNKNOWN: Final = "the server went away during a commit, which may or may not have happened"


class PostgresStorage:
    """Implements `infra.log.storage.Storage`. Connects when needed, and anew when the connection was lost.

    settle_seconds: how long to look for the outcome of a commit whose answer was lost.
    idle_seconds: a writer that stops in the middle of a transaction (a paused process) loses it after so long, so
        that the others can go on.
    """

    failure: type[Exception] = psycopg.Error
    conflict: type[Exception] = psycopg.IntegrityError

    def __init__(
        self,
        recorder: LogRecorder,
        *,
        durability: Durability = "full",
        settle_seconds: float = 15.0,
        idle_seconds: float = 5.0,
    ) -> None:
        self._recorder = recorder
        self._session = {
            **recorder.log_datastore.session,
            "synchronous_commit": _SYNCHRONOUS[durability],
            "idle_in_transaction_session_timeout": f"{int(idle_seconds * 1000)}ms",
        }
        self._settle_seconds = settle_seconds
        self._cursor: Cursor[Any] | None = None
        self._last, self._epoch = -1, 0
        """The last position that is known here; and how often somebody else has moved it."""
        self._alone = self._eager = False
        """Whether nobody else has moved it lately; and whether this transaction leaves the lock to its commit."""

    def begin(self, *, eager: bool = False) -> int:
        self._eager = eager and self._alone and self._is_live()
        if self._eager:
            return self._epoch
        try:
            last = self._recorder.lock(self._sql(), "BEGIN; ")
        except psycopg.OperationalError:
            if self._is_connected():
                raise
            # It was lost while nobody used it: nothing can have happened on it.
            last = self._recorder.lock(self._sql(), "BEGIN; ")
        self._alone = last == self._last
        if not self._alone:
            self._last, self._epoch = last, self._epoch + 1
        return self._epoch

    def commit(self, rows: Sequence[StoredRow], first: int) -> None:
        if not rows:
            self._end_without()
            return
        sql = self._sql()
        try:
            if self._eager and not self._recorder.append(sql, rows, first):
                self._overtaken()
            elif not self._eager:
                self._insert(sql, rows, first)
        except psycopg.OperationalError:
            if self._is_connected():
                raise
            self._settle(rows, first)
        self._last = first + len(rows) - 1

    def _end_without(self) -> None:
        """What was looked up is still so where nobody has written since."""
        if not self._eager:
            self._sql().execute("ROLLBACK")
        elif self._recorder.head(self._sql()) > self._last:
            self._overtaken()

    def _overtaken(self) -> NoReturn:
        self._alone = False
        raise Overtaken

    def _insert(self, sql: Cursor[Any], rows: Sequence[StoredRow], first: int) -> None:
        """With the lock held."""
        self._recorder.insert_rows(sql, rows, first)
        self._recorder.commit(sql, first + len(rows) - 1)

    def _settle(self, rows: Sequence[StoredRow], first: int) -> None:
        """Look whether the commit happened, and do it where it did not and nobody else has used its positions.

        Whoever holds the lock sees what became of it for good: what is on its way yet finds its position used then.
        """
        deadline = time.monotonic() + self._settle_seconds
        while True:
            try:
                sql = self._sql()
                last = self._recorder.lock(sql, "BEGIN; ")
                if last == first - 1:
                    self._insert(sql, rows, first)
                    return
                stored = self._recorder.is_stored(sql, rows, first)
                sql.execute("ROLLBACK")
                break
            except psycopg.IntegrityError:
                raise
            except psycopg.Error as error:
                self.rollback()
                if time.monotonic() > deadline:
                    raise StoreUnavailable(f"{_UNKNOWN}: retry with the same key") from error
                time.sleep(_RETRY_SECONDS)
        if not stored and self._eager:
            self._overtaken()
        if not stored:
            raise StoreUnavailable(_LOST)

    def rollback(self) -> None:
        cursor = self._cursor
        if cursor is None:
            return
        try:
            if cursor.connection.info.transaction_status != TransactionStatus.IDLE:
                cursor.connection.execute("ROLLBACK")
        except psycopg.Error:
            self._disconnect()

    def typed(self, error: Exception) -> MnemologError:
        return typed(error, "the log cannot be written")

    def allocated(self) -> int:
        return self._last

    def last(self) -> list[Row]:
        return self._recorder.last(self._sql())

    def versions(self, streams: Collection[str]) -> dict[str, int]:
        return self._recorder.versions(self._sql(), streams)

    def by_keys(self, keys: Collection[str]) -> list[Row]:
        return self._recorder.by_keys(self._sql(), keys)

    def erasures(self, after: int) -> list[Row]:
        return self._recorder.erasures(self._sql(), after)

    def close(self) -> None:
        self._disconnect()

    def _sql(self) -> Cursor[Any]:
        if self._cursor is None or self._cursor.connection.closed:
            self._cursor = None
            conn = connect(self._recorder.log_datastore.parameters, self._session)
            self._cursor = conn.cursor(binary=True, row_factory=tuple_row)
        return self._cursor

    def _is_connected(self) -> bool:
        return self._cursor is not None and not self._cursor.connection.closed

    def _is_live(self) -> bool:
        """Whether there is a connection of which no end was heard; on such a one nothing can have been begun."""
        if self._cursor is None or self._cursor.connection.closed:
            return False
        heard = select.poll()
        heard.register(self._cursor.connection.fileno(), select.POLLIN)
        return not heard.poll(0)

    def _disconnect(self) -> None:
        if self._cursor is not None:
            with suppress(psycopg.Error):
                self._cursor.connection.close()
            self._cursor = None

"""Statements as SQLite takes them, for psycopg: the key store and the vector rows write them once for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from psycopg import Connection


class Statements:
    """A transaction whose parameters are question marks. Used by one thread, as a transaction is."""

    def __init__(self, conn: Connection[Any]) -> None:
        self._conn = conn

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        return self._conn.execute(_translated(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        """All in one round trip; none where there are no parameters."""
        if rows := list(parameters):
            with self._conn.cursor() as cursor:
                cursor.executemany(_translated(sql), rows)

    def copy(self, sql: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        with self._conn.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


@lru_cache(maxsize=1024)
def _translated(sql: str) -> str:
    return sql.replace("?", "%s")

"""Many rows in one statement, without the price of a dictionary and a bind per value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.engine import Dialect

BULK_INSERT: Final = "mnemolog.insert_rows"
"""In the `info` of a connection: a quicker way of its database, with the same parameters as `insert_rows`."""


def insert_rows(conn: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, each with all columns in the table's order. Values are passed to the driver as they are."""
    if not rows:
        return
    quick = conn.info.get(BULK_INSERT)
    if quick is not None:
        quick(conn, table, rows)
        return
    statement = _statement(table, conn.dialect)
    if conn.dialect.positional:
        conn.exec_driver_sql(statement, list(rows))
    else:
        names = [column.name for column in table.columns]
        conn.exec_driver_sql(statement, [dict(zip(names, row, strict=True)) for row in rows])


@lru_cache(maxsize=256)
def _statement(table: Table, dialect: Dialect) -> str:
    return str(table.insert().compile(dialect=dialect))

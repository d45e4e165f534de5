"""What SQLite and PostgreSQL say differently. All else in the views is SQLAlchemy Core."""

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy
from sqlalchemy import BigInteger, Connection, Table
from sqlalchemy.dialects import sqlite

Integer: Final = BigInteger().with_variant(sqlalchemy.Integer(), "sqlite")
"""64 bits: positions and microseconds. SQLite has only those, and its row ids go by this name alone."""

String: Final = sqlalchemy.String().with_variant(sqlalchemy.String(collation="C"), "postgresql")
"""Text in the order of its bytes, whatever the language of the database."""


def insert(conn: Connection, table: Table) -> sqlite.Insert:
    """An INSERT that knows ON CONFLICT. The two are used alike: name the columns of the conflict."""
    if conn.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)  # type: ignore[return-value]
    return sqlite.insert(table)


class JsonSql(NamedTuple):
    """Lists in plain SQL. each: a table with a column `value` of the integers of a JSON parameter.

    group: the column `position` as one JSON list.
    """

    each: str
    group: str


_SQLITE: Final = JsonSql("json_each(?)", "json_group_array(position)")
_POSTGRESQL: Final = JsonSql(
    "(SELECT value::bigint AS value FROM json_array_elements_text(%s::json))",
    "coalesce(json_agg(position), '[]')::text",
)


def json_sql(conn: Connection) -> JsonSql:
    """How the connection's database says it."""
    return _POSTGRESQL if conn.dialect.name == "postgresql" else _SQLITE

"""An append in one statement: functions in the log's schema that look at the head, insert, and ring, under the lock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from psycopg import Cursor

from mnemolog.infra.log.storage import StoredRow

_COLUMNS: Final = "position, originator_id, originator_version, topic, key, leaf, state"
_ONE_BY_ONE: Final = 8
"""Up to so many rows each value is a parameter: the client packs lists into arrays in more time than that takes."""


def functions(table: str, channel: str, lock_space: int) -> list[str]:
    """The statements that make them. Each of their statements sees what was committed before it began."""
    # The mark is a sequence: a row that every commit changes grows slow under a long reader. It is no part of a
    # transaction, so it is moved when the commit before is known to have happened.
    begin = f"""
        PERFORM pg_advisory_xact_lock({lock_space} + '{table}'::regclass::oid::bigint);
        SELECT last_value, coalesce((SELECT max(position) FROM {table}), 0) INTO used, head FROM {table}_positions;
        IF head > used THEN PERFORM setval('{table}_positions', head); used := head; END IF;"""
    end = f"PERFORM pg_notify('{channel}', used::text); RETURN used;"
    one = "stream text, version bigint, topic text, key text, leaf bytea, state bytea"
    many = "streams text[], versions bigint[], topics text[], keys text[], leaves bytea[], states bytea[]"
    rows = (
        "unnest(streams, versions, topics, keys, leaves, states) WITH ORDINALITY AS r (s, v, t, k, l, d, n)"
    )
    head = "DECLARE used bigint; head bigint; BEGIN"
    refuse = "IF used <> expected THEN RETURN NULL; END IF;"
    return [
        f"CREATE OR REPLACE FUNCTION {table}_lock() RETURNS bigint LANGUAGE plpgsql AS "
        f"$${head}{begin} RETURN used; END$$",
        f"CREATE OR REPLACE FUNCTION {table}_append(expected bigint, {one}) RETURNS bigint LANGUAGE plpgsql AS "
        f"$${head}{begin} {refuse} used := expected + 1; INSERT INTO {table} ({_COLUMNS}) "
        f"VALUES (used, stream, version, topic, key, leaf, state); {end} END$$",
        f"CREATE OR REPLACE FUNCTION {table}_append(expected bigint, {many}) RETURNS bigint LANGUAGE plpgsql AS "
        f"$${head}{begin} {refuse} INSERT INTO {table} ({_COLUMNS}) "
        f"SELECT expected + n, s, v, t, k, l, d FROM {rows}; used := expected + cardinality(streams); {end} END$$",
    ]


def append(c: Cursor[Any], table: str, rows: Sequence[StoredRow], first: int) -> bool:
    """Insert at the positions from `first` on; durable when it returns, outside a transaction.

    False, and nothing was inserted, where `first` is not the next position any more.
    """
    if len(rows) <= _ONE_BY_ONE:
        values = [value for column in zip(*rows, strict=True) for value in column]
        c.execute(_call(table, len(rows)), (first - 1, *values))
    else:
        columns = [list(column) for column in zip(*rows, strict=True)]
        call = f"SELECT {table}_append(%b, %b::text[], %b::bigint[], %b::text[], %b::text[], %b::bytea[], %b::bytea[])"
        c.execute(call, (first - 1, *columns))
    row = c.fetchone()
    return row is not None and row[0] is not None


@lru_cache(64)
def _call(table: str, rows: int) -> str:
    """With a parameter for each value."""
    if rows == 1:
        return f"SELECT {table}_append(%b, %s, %b, %s, %s, %b, %b)"
    kinds = ("text", "bigint", "text", "text", "bytea", "bytea")
    columns = (f"ARRAY[{', '.join(['%s' if kind == 'text' else '%b'] * rows)}]::{kind}[]" for kind in kinds)
    return f"SELECT {table}_append(%b, {', '.join(columns)})"

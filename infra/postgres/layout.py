"""Versions of the tables in a schema: one row says which, and what is missing is added in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from mnemolog.domain.errors import CorruptStore, StoreUnavailable

Versions = Sequence[Sequence[str]]
"""The statements of each version, the first one's first. All may be repeated: a schema without a row begins anew."""


def bring_up_to_date(cursor: Any, schema: str, versions: Versions, lock: str) -> None:
    """Add, inside the caller's transaction, what the schema lacks. A role that may not is enough where all is there.

    cursor: of any row type. lock: a statement that keeps others from doing the same.
    Raises CorruptStore for tables of a newer release, StoreUnavailable where this role may not change the older ones.
    """
    if _found(cursor, schema, len(versions)) == len(versions):
        return
    try:
        cursor.execute(lock)
        # Somebody may have done it meanwhile.
        found = _found(cursor, schema, len(versions))
        for number, statements in enumerate(versions[found:], found + 1):
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(f"DELETE FROM {schema}.layout")
            cursor.execute(f"INSERT INTO {schema}.layout VALUES ({number})")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"the tables in schema {schema} are not there or of an older release, and this role may not change them: "
            "open it once as their owner"
        ) from error


def first_statements(schema: str) -> list[str]:
    """The schema, and the table that has its version: what every first version begins with."""
    return [
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        f"CREATE TABLE IF NOT EXISTS {schema}.layout (version integer NOT NULL)",
    ]


def _found(cursor: Any, schema: str, known: int) -> int:
    """The version that is there; 0 where there is none, or from before there was a row."""
    if _value(cursor.execute("SELECT to_regclass(%s) IS NULL AS value", (f"{schema}.layout",))):
        return 0
    found = int(_value(cursor.execute(f"SELECT coalesce(max(version), 0) AS value FROM {schema}.layout")))
    if found > known:
        raise CorruptStore(
            f"the tables in schema {schema} have layout {found}, this program knows {known}: update it"
        )
    return found


def _value(cursor: Any) -> Any:
    row = cursor.fetchone()
    return row["value"] if isinstance(row, dict) else row[0]

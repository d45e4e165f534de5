"""Small numbers inside the file: of changes, of spaces, of scopes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from functools import lru_cache

from mnemolog.domain.scope import RECORD_LEVELS, Scope, ScopeIds


def get_number(conn: sqlite3.Connection, name: str) -> int:
    return int(conn.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])


def put_number(conn: sqlite3.Connection, name: str, value: int) -> None:
    conn.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def next_change(conn: sqlite3.Connection, count: int = 1) -> int:
    """The first of `count` new change numbers."""
    last = get_number(conn, "change")
    if count:
        put_number(conn, "change", last + count)
    return last + 1


def space_of(conn: sqlite3.Connection, space: str) -> tuple[int, int, int] | None:
    """Number, dimensions and position of a space."""
    found = conn.execute("SELECT number, dimensions, position FROM spaces WHERE name = ?", (space,))
    row: tuple[int, int, int] | None = found.fetchone()
    return row


def levels_of(scope: Scope) -> tuple[str, ...]:
    """The levels of a scope as they are stored: without agent and session, absent ones empty."""
    return tuple(getattr(scope, level) or "" for level in RECORD_LEVELS)


def find_scopes(conn: sqlite3.Connection, scopes: Collection[ScopeIds]) -> list[int]:
    """The numbers of those scopes that have one."""
    query = "SELECT number FROM scopes WHERE tenant = ? AND organization = ? AND user = ? AND project = ?"
    rows = (conn.execute(query, levels_of(scope)).fetchone() for scope in scopes)
    return sorted({int(row[0]) for row in rows if row})


def make_scope(conn: sqlite3.Connection, scope: ScopeIds) -> int:
    """The number of a scope, made if it is new."""
    found = find_scopes(conn, [scope])
    if found:
        return found[0]
    query = "INSERT INTO scopes (tenant, organization, user, project) VALUES (?, ?, ?, ?)"
    return int(conn.execute(query, levels_of(scope)).lastrowid or 0)


@lru_cache(maxsize=4096)
def scope_from(tenant: str, organization: str, user: str, project: str) -> ScopeIds:
    return ScopeIds(
        Scope(tenant, organization=organization or None, user=user or None, project=project or None)
    )

"""Small numbers inside the file: of changes, of spaces, of scopes."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from mnemolog.domain.scope import RECORD_LEVELS, Scope, ScopeIds
from mnemolog.infra.vectors.statements import Connection


def get_number(conn: Connection, name: str) -> int:
    return int(conn.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])


def put_number(conn: Connection, name: str, value: int) -> None:
    conn.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def next_change(conn: Connection, count: int = 1) -> int:
    """The first of `count` new change numbers."""
    last = get_number(conn, "change")
    if count:
        put_number(conn, "change", last + count)
    return last + 1


def space_of(conn: Connection, space: str) -> tuple[int, int, int] | None:
    """Number, dimensions and position of a space."""
    found = conn.execute("SELECT number, dimensions, position FROM spaces WHERE name = ?", (space,))
    row: tuple[int, int, int] | None = found.fetchone()
    return row


def levels_of(scope: Scope) -> tuple[str, ...]:
    """The levels of a scope as they are stored: without agent and session, absent ones empty."""
    return tuple(getattr(scope, level) or "" for level in RECORD_LEVELS)


def find_scopes(conn: Connection, scopes: Collection[ScopeIds]) -> list[int]:
    """The numbers of those scopes that have one."""
    query = 'SELECT number FROM scopes WHERE tenant = ? AND organization = ? AND "user" = ? AND project = ?'
    rows = (conn.execute(query, levels_of(scope)).fetchone() for scope in scopes)
    return sorted({int(row[0]) for row in rows if row})


def make_scope(conn: Connection, scope: ScopeIds) -> int:
    """The number of a scope, made if it is new."""
    found = find_scopes(conn, [scope])
    if found:
        return found[0]
    query = 'INSERT INTO scopes (tenant, organization, "user", project) VALUES (?, ?, ?, ?) RETURNING number'
    return int(conn.execute(query, levels_of(scope)).fetchone()[0])


@lru_cache(maxsize=4096)
def scope_from(tenant: str, organization: str, user: str, project: str) -> ScopeIds:
    return ScopeIds(
        Scope(tenant, organization=organization or None, user=user or None, project=project or None)
    )

"""Small numbers inside the file: of changes, of spaces, of scopes."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from mnemolog.domain.scope import RECORD_LEVELS, Scope, ScopeIds
from mnemolog.infra.vectors.statements import Connection

SAME: Final = 'c.tenant = ? AND c.organization = ? AND c."user" = ? AND c.project = ?'
"""A row `c` of scopes that has these levels."""
_LEVELS: Final = 'tenant, organization, "user", project'
_TOGETHER: Final = 100


def get_number(conn: Connection, name: str) -> int:
    return int(conn.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])


def put_number(conn: Connection, name: str, value: int) -> None:
    conn.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def next_change(conn: Connection, count: int = 1) -> int:
    """The first of `count` new change numbers."""
    query = "UPDATE meta SET value = value + ? WHERE name = 'change' RETURNING value"
    return int(conn.execute(query, (count,)).fetchone()[0]) - count + 1


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
    return sorted(numbers_of(conn, scopes).values())


def numbers_of(conn: Connection, scopes: Collection[ScopeIds]) -> dict[tuple[str, ...], int]:
    """Levels → number of those scopes that have one."""
    wanted, found = sorted(map(levels_of, scopes)), dict[tuple[str, ...], int]()
    for at in range(0, len(wanted), _TOGETHER):
        some = wanted[at : at + _TOGETHER]
        query = f"SELECT {_LEVELS}, number FROM scopes c WHERE {' OR '.join([f'({SAME})'] * len(some))}"
        rows = conn.execute(query, [level for levels in some for level in levels]).fetchall()
        found |= {tuple(row[:-1]): int(row[-1]) for row in rows}
    return found


def make_scopes(conn: Connection, scopes: Collection[ScopeIds]) -> dict[ScopeIds, int]:
    """The number of each scope, made for those that are new."""
    found = numbers_of(conn, scopes)
    query = f"INSERT INTO scopes ({_LEVELS}) VALUES (?, ?, ?, ?) RETURNING number"
    for levels in sorted({levels_of(scope) for scope in scopes} - found.keys()):
        found[levels] = int(conn.execute(query, levels).fetchone()[0])
    return {scope: found[levels_of(scope)] for scope in scopes}


@lru_cache(maxsize=4096)
def scope_from(tenant: str, organization: str, user: str, project: str) -> ScopeIds:
    return ScopeIds(
        Scope(tenant, organization=organization or None, user=user or None, project=project or None)
    )

"""Fences: what keeps late writers from bringing back what was erased. They hold keyed hashes, never names."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from mnemolog.domain.scope import SESSION_LEVELS, Scope
from mnemolog.infra.vault.meta import KeyConnection

_KINDS: Final = ("tenant", "user", "session")
_FOR_EVER: Final = 1 << 62


def mark(key: bytes, kind: str, names: Scope) -> bytes:
    """The keyed hash under which a fence around a tenant, a user of it, or a session is found again."""
    levels = {"tenant": (), "user": ("user",), "session": SESSION_LEVELS}[kind]
    fenced = names.at(levels)
    return blake2b(kind.encode() + b"|" + fenced.encode(), key=key, digest_size=16).digest()


def marks(key: bytes, names: Scope) -> Iterator[bytes]:
    """Every mark that could fence an event of this scope."""
    for kind in _KINDS:
        if getattr(names, kind) is not None:
            yield mark(key, kind, names)


def put_fence(connection: KeyConnection, kind: str, found: bytes, before_us: int | None) -> None:
    """Fence what occurred before `before_us` (UTC microseconds), or for ever; an older fence never weakens."""
    connection.execute(
        "INSERT INTO fences VALUES (?, ?, ?, 0) ON CONFLICT (mark) DO UPDATE SET before_us ="
        " CASE WHEN fences.before_us IS NULL OR excluded.before_us IS NULL THEN NULL"
        " WHEN fences.before_us > excluded.before_us THEN fences.before_us ELSE excluded.before_us END",
        (found, kind, before_us),
    )


def load_fences(connection: KeyConnection) -> dict[bytes, int]:
    """All marks with the time before which they refuse, UTC microseconds."""
    rows = connection.execute("SELECT mark, before_us FROM fences")
    return {found: _FOR_EVER if before is None else before for found, before in rows}


def all_fences(connection: KeyConnection) -> list[tuple[bytes, str, int | None, int]]:
    """Every row."""
    rows = connection.execute("SELECT mark, kind, before_us, refused FROM fences")
    return [tuple(row) for row in rows.fetchall()]


def replace_fences(connection: KeyConnection, rows: list[tuple[bytes, str, int | None, int]]) -> None:
    """Store these rows instead of all others."""
    connection.execute("DELETE FROM fences")
    connection.executemany("INSERT INTO fences VALUES (?, ?, ?, ?)", rows)


def count_refusal(connection: KeyConnection, found: bytes) -> None:
    connection.execute("UPDATE fences SET refused = refused + 1 WHERE mark = ?", (found,))


def refusals(connection: KeyConnection) -> int:
    return int(connection.execute("SELECT coalesce(sum(refused), 0) FROM fences").fetchone()[0])

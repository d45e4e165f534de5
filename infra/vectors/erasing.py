"""What an erasure takes from the vector rows: vectors of erased texts, and every window that holds one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from mnemolog.domain.events import Recorded
from mnemolog.infra.vectors.numbers import next_change
from mnemolog.infra.vectors.statements import Connection

CHUNK: Final = 500
_KEY: Final = "space, scope, kind, change, position, part"


def apply_erasures(conn: Connection, erasures: Iterable[Recorded]) -> None:
    """Fence what was erased, then remove it. Ids are never used again, so a fence stands for ever."""
    for recorded in erasures:
        clear = recorded.envelope.clear
        subject = clear.get("subject")
        events, sessions = clear.get("events") or (), list(clear.get("sessions") or ())
        sessions += [session for session in (clear.get("session"),) if session]
        marks = [*events, *sessions, *([subject] if subject else [])]
        rows = [(mark, recorded.position) for mark in marks]
        conn.executemany("INSERT INTO fences VALUES (?, ?) ON CONFLICT DO NOTHING", rows)
        gone = {p for ids in chunks(events) for p in _where(conn, "event_id", ids)}
        gone |= {p for ids in chunks(sessions) for p in _where(conn, "session", ids)}
        if subject:
            gone |= set(_of_subject(conn, subject))
        remove(conn, sorted(gone))


def remove(conn: Connection, positions: Sequence[int]) -> None:
    """Take these events out. Windows of others that hold their text go too, and are due to be made anew."""
    gone = set(positions)
    for some in chunks(positions):
        holes = marks(some)
        near = conn.execute(
            f"SELECT {_KEY} FROM vectors WHERE before IN ({holes})"
            f" UNION SELECT {_KEY} FROM vectors WHERE after IN ({holes})",
            [*some, *some],
        ).fetchall()
        due = [(row[0], row[4]) for row in near if row[4] not in gone]
        conn.executemany("INSERT INTO due VALUES (?, ?) ON CONFLICT DO NOTHING", due)
        drop(conn, near)
        drop(conn, conn.execute(f"SELECT {_KEY} FROM vectors WHERE position IN ({holes})", some).fetchall())
        for table in ("sources", "subjects", "due"):
            conn.execute(f"DELETE FROM {table} WHERE position IN ({holes})", some)


def drop(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Remove vectors, and tell those that follow the changes. rows: space, scope, kind, change, position, part."""
    first = next_change(conn, len(rows))
    told = [
        (space, number, kind, position, scope, part)
        for number, (space, scope, kind, _, position, part) in enumerate(rows, first)
    ]
    conn.executemany(
        "DELETE FROM vectors WHERE space = ? AND scope = ? AND kind = ? AND change = ?",
        [row[:4] for row in rows],
    )
    conn.executemany("INSERT INTO dropped VALUES (?, ?, ?, ?, ?, ?)", told)


def fences_of(conn: Connection, names: Collection[str]) -> set[str]:
    """Which of these events, sessions and subjects were erased."""
    if conn.execute("SELECT 1 FROM fences LIMIT 1").fetchone() is None:
        return set()
    query = "SELECT target FROM fences WHERE target IN ({})"
    return {row[0] for some in chunks(sorted(names)) for row in conn.execute(query.format(marks(some)), some)}


def marks(values: Sequence[Any]) -> str:
    """The question marks of an IN list."""
    return ",".join("?" * len(values))


def chunks(values: Sequence[Any], size: int = CHUNK) -> Iterator[list[Any]]:
    for at in range(0, len(values), size):
        yield list(values[at : at + size])


def _where(conn: Connection, column: str, ids: Sequence[str]) -> list[int]:
    query = f"SELECT position FROM sources WHERE {column} IN ({marks(ids)})"
    if column == "session":
        query += " AND record IS NULL"
    return [row[0] for row in conn.execute(query, list(ids))]


def _of_subject(conn: Connection, subject: str) -> list[int]:
    query = (
        'SELECT position FROM sources WHERE scope IN (SELECT number FROM scopes WHERE "user" = ?)'
        " UNION SELECT position FROM subjects WHERE subject = ?"
    )
    return [row[0] for row in conn.execute(query, (subject, subject))]

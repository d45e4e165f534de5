"""The vector rows of one store for another, in files or in a database: nothing is embedded again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mnemolog.infra.vectors.statements import Connection, VectorDatabase

_NUMBERED: Final = {
    "spaces": "name, dimensions, position, passages",
    "scopes": 'tenant, organization, "user", project',
}
_TABLES: Final = {
    "sources": "position, event_id, scope, session, record, origin, occurred_us",
    "subjects": "subject, position",
    "fences": "target, position",
    "due": "space, position",
    "dropped": "space, change, kind, position, scope, part",
}
_VECTORS: Final = "space, scope, kind, change, position, before, after, digest, vector, part"
_PAGE: Final = 2000
_Numbers = dict[str, dict[int, int]]


def carry(given: VectorDatabase, taken: VectorDatabase) -> int:
    """Hold exactly what the other one holds, in one transaction; how many vectors.

    What was held before is gone; its bytes go with the next `vacuum`.
    """
    count = 0
    with given.read() as source, taken.write() as target:
        for table in ("vectors", *_TABLES, *_NUMBERED, "meta"):
            target.execute(f"DELETE FROM {table}")
        target.executemany(
            "INSERT INTO meta VALUES (?, ?)", source.execute("SELECT name, value FROM meta").fetchall()
        )
        numbers = {table[:-1]: _numbered(source, target, table) for table in _NUMBERED}
        for table, columns in _TABLES.items():
            names = columns.split(", ")
            found = source.execute(f"SELECT {columns} FROM {table}").fetchall()
            rows = [_renumbered(names, row, numbers) for row in found]
            target.executemany(
                f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})", rows
            )
        for page in _pages(source):
            names = _VECTORS.split(", ")
            taken.insert_vectors(target, [_renumbered(names, row, numbers) for row in page])
            count += len(page)
    return count


def _numbered(source: Connection, target: Connection, table: str) -> dict[int, int]:
    """Spaces and scopes get numbers of the target's: those of the source by those."""
    columns = _NUMBERED[table]
    found = source.execute(f"SELECT number, {columns} FROM {table} ORDER BY number").fetchall()
    marks = ", ".join("?" * len(columns.split(", ")))
    target.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [row[1:] for row in found])
    made = target.execute(f"SELECT number, {columns} FROM {table}").fetchall()
    by_content = {tuple(row[1:]): row[0] for row in made}
    return {row[0]: by_content[tuple(row[1:])] for row in found}


def _renumbered(names: list[str], row: Any, numbers: _Numbers) -> tuple[Any, ...]:
    return tuple(
        numbers[name][value] if name in numbers else value for name, value in zip(names, row, strict=True)
    )


def _pages(source: Connection) -> Iterator[list[Any]]:
    after: tuple[Any, ...] = (-1, -1, -1, -1)
    query = (
        f"SELECT {_VECTORS} FROM vectors WHERE (position, kind, space, part) > (?, ?, ?, ?) "
        "ORDER BY position, kind, space, part LIMIT ?"
    )
    while page := source.execute(query, (*after, _PAGE)).fetchall():
        yield page
        last = page[-1]
        after = (last[4], last[2], last[0], last[9])

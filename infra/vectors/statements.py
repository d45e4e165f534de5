"""What the vector rows need of a database. Statements are in what SQLite and PostgreSQL both understand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Connection(Protocol):
    """A transaction. Parameters are question marks."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...


class VectorDatabase(Protocol):
    """The tables of `infra.vectors.database`, wherever they are."""

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction that happens whole or not at all, one at a time among all processes."""

    def read(self) -> AbstractContextManager[Connection]:
        """A snapshot."""

    def number(self, name: str) -> int:
        """One of the numbers in `meta`, as it is now."""

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement that reads: a snapshot by itself."""

    def insert_vectors(self, conn: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows with all columns of the table `vectors`, in order."""

    def vacuum(self) -> bool:
        """Rewrite the tables without what was deleted; False where a reader kept that from being done."""

    def close(self) -> None:
        """Idempotent."""

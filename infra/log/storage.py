"""What the log needs of a database. One set of statements that read, one connection that writes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from mnemolog.domain.errors import MnemologError

Row = tuple[int, bytes]
"""Position and state, or position and leaf hash."""

StoredRow = tuple[str, int, str, str | None, bytes, bytes]
"""Stream, version, topic, key, leaf hash and state."""


class Statements(Protocol):
    """What the log reads. `c` is a cursor of the database's driver that yields plain tuples."""

    def head(self, c: Any) -> int:
        """The last position; 0 when there is none."""

    def allocated(self, c: Any) -> int:
        """The last position that was ever used, also when its row is gone."""

    def between(
        self, c: Any, after: int, upto: int, limit: int, topics: Collection[str] | None = None
    ) -> list[Row]:
        """Up to `limit` events of these topics with after < position <= upto, in position order."""

    def at(self, c: Any, positions: Sequence[int]) -> list[Row]:
        """The events at these positions, in position order."""

    def stream(self, c: Any, stream: str, after_version: int) -> list[Row]:
        """The events of one stream behind a version, in version order."""

    def by_keys(self, c: Any, keys: Collection[str]) -> list[Row]:
        """The events that have one of these idempotency keys."""

    def leaves(self, c: Any, after: int, limit: int) -> list[Row]:
        """Position and leaf hash, in position order."""

    def rows(self, c: Any, after: int, limit: int) -> list[tuple[Any, ...]]:
        """Position, stream, version, topic, key, leaf and state, in position order."""

    def mark(self, c: Any) -> str | None:
        """What was noted about the log as a whole; None when nothing was."""


class Overtaken(Exception):
    """Another writer was quicker: nothing was written, look around and write again."""


class Storage(Protocol):
    """The connection that writes: one transaction at a time, by whoever holds the commit lock."""

    @property
    def failure(self) -> type[Exception]:
        """What the driver raises."""

    @property
    def conflict(self) -> type[Exception]:
        """What it raises where a unique index refuses a row."""

    def begin(self, *, eager: bool = False) -> int:
        """Take the write lock of the log. The number is another one when another writer has committed since.

        eager: the lock may be left to the commit, where it is likely that nobody else writes.
        """

    def commit(self, rows: Sequence[StoredRow], first: int) -> None:
        """Insert at the positions from `first` on and end the transaction; all of it is durable then, or none.

        Raises Overtaken, after an eager beginning, where another writer has committed since.
        """

    def rollback(self) -> None:
        """Leave the transaction, if there is one. Raises nothing."""

    def typed(self, error: Exception) -> MnemologError:
        """Our error for a failure of the driver."""

    def allocated(self) -> int:
        """The last position that was ever used, also when its row is gone."""

    def last(self) -> list[Row]:
        """The newest event, as a list of one or none."""

    def versions(self, streams: Collection[str]) -> dict[str, int]:
        """The last version of each of these streams; 0 for one that does not exist."""

    def by_keys(self, keys: Collection[str]) -> list[Row]:
        """The events that have one of these idempotency keys."""

    def erasures(self, after: int) -> list[Row]:
        """The erasure events behind a position, in position order."""

    def close(self) -> None:
        """Give the connection back."""

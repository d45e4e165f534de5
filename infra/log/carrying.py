"""The rows of a log as they are stored, for a log that takes them over: sealed, numbered and hashed already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from mnemolog.infra.log.reading import Reader
from mnemolog.infra.log.storage import StoredRow
from mnemolog.infra.log.writer import Writer


class Stored:
    """Of every log. alone: inside it nobody else of this process appends; it raises StoreClosed."""

    def __init__(
        self, reader: Reader, writer: Writer, alone: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._reader, self._writer, self._alone = reader, writer, alone

    def rows(self, after: int, limit: int) -> list[StoredRow]:
        """Up to `limit` rows behind a position, in order."""
        return self._reader.rows(after, limit)

    def carry(self, rows: Sequence[StoredRow], first: int) -> None:
        """Store rows of another log as they are, at the positions from `first` on; durable when it returns.

        Raises AnotherLog where they would not follow what is stored, StoreUnavailable.
        """
        with self._alone():
            self._writer.carry(rows, first)

    def mark(self) -> str | None:
        """What was noted last about the log as a whole."""
        return self._reader.mark()

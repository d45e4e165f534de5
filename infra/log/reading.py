"""What every log answers to its readers, over the statements of its database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mnemolog.domain.events import Recorded
from mnemolog.infra.log.codec import Codec
from mnemolog.infra.log.storage import Row, Statements, StoredRow
from mnemolog.infra.log.verification import Progress, verify
from mnemolog.projections.ports import Page, SealedPage


class Reader:
    """Reads as the port says. reading: a cursor; each statement on it sees everything committed before it."""

    def __init__(
        self, statements: Statements, reading: Callable[[], AbstractContextManager[Any]], codec: Codec
    ) -> None:
        self._statements, self._reading, self._codec = statements, reading, codec

    def read(self, after: int, limit: int, topics: Collection[str] | None, bodies: bool) -> Page:
        """`Page.position` is the head when fewer than `limit` events were left."""
        rows, position = self._rows(after, limit, topics)
        return Page(self._decode(rows, bodies), position)

    def sealed(self, after: int, limit: int) -> SealedPage:
        """What is stored, for those who pass it on as it is."""
        rows, position = self._rows(after, limit, None)
        decode = self._codec.decode
        return SealedPage([(decode(at, state, bodies=False), state) for at, state in rows], position)

    def _rows(self, after: int, limit: int, topics: Collection[str] | None) -> tuple[list[Row], int]:
        with self._reading() as cursor:
            # The head first: everything up to a head that was seen is committed, whatever is appended meanwhile.
            head = self._statements.head(cursor)
            rows = self._statements.between(cursor, after, head, limit, topics)
        position = rows[-1][0] if rows and len(rows) >= limit else max(after, head)
        return rows, position if limit > 0 else after

    def read_at(self, positions: Sequence[int], bodies: bool) -> list[Recorded]:
        with self._reading() as cursor:
            rows = self._statements.at(cursor, positions)
        return self._decode(rows, bodies)

    def read_stream(self, stream: str, after_version: int, bodies: bool) -> list[Recorded]:
        with self._reading() as cursor:
            rows = self._statements.stream(cursor, stream, after_version)
        return self._decode(rows, bodies)

    def by_key(self, key: str) -> Recorded | None:
        """The event with this stored key, without its body; None where there is none."""
        with self._reading() as cursor:
            rows = self._statements.by_keys(cursor, [key])
        return next(iter(self._decode(rows, bodies=False)), None)

    def head(self) -> int:
        with self._reading() as cursor:
            return self._statements.head(cursor)

    def leaves(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` pairs of position and leaf hash behind a position, in order."""
        with self._reading() as cursor:
            return self._statements.leaves(cursor, after, limit)

    def rows(self, after: int, limit: int) -> list[StoredRow]:
        """Up to `limit` rows, as they are stored, behind a position."""
        with self._reading() as cursor:
            return [row[1:] for row in self._statements.rows(cursor, after, limit)]

    def mark(self) -> str | None:
        """What was noted about the log as a whole, as that it was moved."""
        with self._reading() as cursor:
            return self._statements.mark(cursor)

    def verify(self, progress: Progress | None) -> int:
        """Recompute every leaf and check every number; how many events are right. Raises CorruptStore."""
        with self._reading() as cursor:
            return verify(self._statements, cursor, self._codec, progress)

    def _decode(self, rows: Sequence[Row], bodies: bool) -> list[Recorded]:
        decode = self._codec.decode
        return [decode(position, state, bodies=bodies) for position, state in rows]

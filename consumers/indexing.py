"""`IndexFiller`: keeps a vector index equal to the vector rows; builds it anew where it cannot be."""

from __future__ import annotations

from threading import RLock
from typing import Final

from mnemolog.projections.vectors import VectorIndex, VectorRows

BATCH: Final = 10_000
"""Vectors between two flushes, which are slow."""


class IndexFiller:
    """Follows the changes of one space. Any thread may call it."""

    def __init__(
        self, rows: VectorRows, index: VectorIndex, space: str, dimensions: int, batch_size: int = BATCH
    ) -> None:
        self._rows, self._index = rows, index
        self._space, self._dimensions, self._batch_size = space, dimensions, batch_size
        self._lock = RLock()

    def catch_up(self) -> int:
        """Bring the index to the newest change of the rows; returns the change."""
        with self._lock, self._index.exclusively():
            if not self._is_ours() or self._index.flushed > self._rows.change():
                return self.rebuild()
            return self._follow()

    def rebuild(self) -> int:
        """Fill an empty index from the rows, then switch to it; searches see the old one until then."""
        with self._lock, self._index.exclusively():
            self._index.begin(self._space, self._dimensions, self._rows.identity)
            change = self._follow()
            self._index.activate()
            return change

    def purge(self) -> None:
        """Bring the index up to date, then make the bytes of what was removed leave its files."""
        with self._lock, self._index.exclusively():
            self.catch_up()
            self._index.compact()

    def lag(self) -> int:
        """Changes that the index has not on disk: all of them where it is of other rows or of another space."""
        return self._rows.change() - (self._index.flushed if self._is_ours() else 0)

    def _is_ours(self) -> bool:
        return (self._index.space, self._index.identity) == (self._space, self._rows.identity)

    def _follow(self) -> int:
        while True:
            flushed = self._index.flushed
            changes = self._rows.changes(self._space, flushed, self._batch_size)
            if changes.change <= flushed:
                return flushed
            self._index.apply(changes)

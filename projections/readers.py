"""`Readers`: background work lets a read that is under way finish first, for both need the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Final

PATIENCE: Final = 0.05
"""Seconds that background work waits before each step, so that a busy store falls behind only a little."""


class Readers:
    """How many reads are under way in this process. Thread-safe."""

    def __init__(self) -> None:
        self._count, self._changed = 0, Condition()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def let_pass(self, patience: float = PATIENCE) -> bool:
        """Wait until nobody reads, or for so long; whether nobody reads."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._count, patience)

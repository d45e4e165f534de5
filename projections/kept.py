"""What is kept in memory between questions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """What was asked for last, as far as its sizes together are at most `room`. Thread-safe.

    epoch: how often everything was dropped. A read names the epoch in which its transaction began: what it saw before
    an erasure is not kept after it.
    """

    def __init__(self, room: int) -> None:
        self._room, self._lock = room, Lock()
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = self.epoch = 0

    def get(self, name: K) -> V | None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return None
            self._entries.move_to_end(name)
            return entry[0]

    def put(self, name: K, value: V, size: int, epoch: int) -> None:
        """Keep it, in place of what had its name. What is larger than all there is room for is not kept."""
        with self._lock:
            if epoch != self.epoch:
                return
            self._size -= self._entries.pop(name, (None, 0))[1]
            if size <= self._room:
                self._entries[name] = value, size
                self._size += size
            while self._size > self._room:
                self._size -= self._entries.popitem(last=False)[1][1]

    def forget(self) -> None:
        """Drop everything, also what reads that are under way have seen."""
        with self._lock:
            self.epoch += 1
            self._entries.clear()
            self._size = 0

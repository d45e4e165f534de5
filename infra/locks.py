"""Locks between processes, on files of the data directory. The kernel lets go of them when their holder dies."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mnemolog.domain.errors import StoreInUse

_POLL: Final = 0.02


class FileLock:
    """One lock file, open in this process. The holder of the exclusive lock leaves its process id in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        _open_locks.add(self)

    def take(self, *, shared: bool = False) -> bool:
        """Take the lock, or exchange the other kind for it; False where somebody else's is in the way."""
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if not shared:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        return True

    def holder(self) -> int | None:
        """The process that held it exclusively last."""
        content = os.pread(self._descriptor, 32, 0)
        return int(content) if content.isdigit() else None

    def release(self) -> None:
        """Let go. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            # Closing alone would not do while a forked child has the descriptor too.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _after_fork(self) -> None:
        """The lock stays the parent's, and dies with the parent: so the child may not have it open."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def exclusively(path: Path, seconds: float, doing: str) -> Iterator[None]:
    """Hold a lock file inside the block. Raises StoreInUse, which says what is being done, after `seconds`."""
    lock, deadline = FileLock(path), time.monotonic() + seconds
    try:
        while not lock.take():
            if time.monotonic() >= deadline:
                raise StoreInUse(f"process {lock.holder() or '?'} is {doing}: retry when it has finished")
            time.sleep(_POLL)
        yield
    finally:
        lock.release()


_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for lock in list(_open_locks):
        lock._after_fork()


os.register_at_fork(after_in_child=_let_go_in_child)

"""What workers share that go behind the log in threads of their own, and know how far they are after a restart."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

import orjson

from mnemolog.domain.errors import ErasedScope, IdempotencyConflict, VersionConflict
from mnemolog.domain.events import Draft, Receipt, Recorded
from mnemolog.projections.ports import Page
from mnemolog.projections.private import private
from mnemolog.projections.supervision import Background

_SMALL: Final = 50
"""A batch of fewer events is worth waiting for more,"""
_SECOND: Final = 1.0
_GATHERING: Final = 0.05
"""so many seconds: what a batch costs besides its events would slow down whoever appends one by one."""


class DerivingLog(Protocol):
    """What such a worker needs of the log."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]: ...

    def read(
        self, after: int, limit: int, *, topics: frozenset[str] | None = None, bodies: bool = True
    ) -> Page: ...

    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]: ...

    def head(self) -> int: ...

    def wait(self, after: int, timeout: float) -> int: ...

    def wake(self) -> None: ...


class KeyedHashes(Protocol):
    """Hashes that nobody can test guesses against once the subject is erased."""

    def keyed_hash(self, subject: str, purpose: bytes, data: bytes) -> bytes: ...


class Places:
    """How far each worker is, in one small file. Lost, it only costs work: what is appended twice is appended once.

    So it is written once a second at most, and by `flush`.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._lock, self._written = file, Lock(), 0.0
        self._known: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = orjson.loads(file.read_bytes())
            self._known = found if isinstance(found, dict) else {}

    def get(self, worker: str) -> Any:
        return self._known.get(worker)

    def put(self, worker: str, place: Any, *, dear: bool = False) -> None:
        """dear: to come here again would cost more than work."""
        with self._lock:
            self._known[worker] = place
        if dear or time.monotonic() - self._written >= _SECOND:
            self.flush()

    def flush(self) -> None:
        """Write what is known."""
        with self._lock:
            beside = self._file.with_suffix(f".{os.getpid()}")
            with open(beside, "wb", opener=private) as file:
                file.write(orjson.dumps(self._known))
            os.replace(beside, self._file)
            self._written = time.monotonic()


def following(name: str, log: DerivingLog, run_once: Callable[[], int], poll: float = 0.1) -> Background:
    """Runs `run_once`, which tells how far it went: soon after appends, and at least every `poll` seconds."""

    def step() -> None:
        seen = log.head()
        moved = run_once()
        if not moved:
            log.wait(seen, poll)
        elif moved < _SMALL:
            background.rest(_GATHERING)

    background = Background(name, step, log.wake)
    return background


def append_new(log: DerivingLog, drafts: Sequence[Draft]) -> int:
    """Append what is not there yet and not erased since; how many were new. One commit, unless one is refused."""
    if not drafts:
        return 0
    try:
        return sum(not receipt.duplicate for receipt in log.append(drafts))
    except (ErasedScope, IdempotencyConflict, VersionConflict):
        return 0 if len(drafts) == 1 else sum(append_new(log, [draft]) for draft in drafts)

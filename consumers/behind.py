"""A worker that goes behind the log in a thread of its own, and knows how far it is after a restart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, Final, Protocol

import orjson

from mnemolog.domain.errors import ErasedScope, IdempotencyConflict, StoreClosed, VersionConflict
from mnemolog.domain.events import Draft, Receipt, Recorded
from mnemolog.projections.ports import Page
from mnemolog.projections.supervision import Supervisor, Trouble

_BACKOFF: Final = (0.1, 30.0)
_SMALL: Final = 50
"""A batch of fewer events is worth waiting for more,"""
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
    """How far each worker is, in one small file. Lost, it only costs work: what is appended twice is appended once."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, Lock()
        self._known: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = orjson.loads(file.read_bytes())
            self._known = found if isinstance(found, dict) else {}

    def get(self, worker: str) -> Any:
        return self._known.get(worker)

    def put(self, worker: str, place: Any) -> None:
        with self._lock:
            self._known[worker] = place
            beside = self._file.with_suffix(".new")
            beside.write_bytes(orjson.dumps(self._known))
            os.replace(beside, self._file)


class Following:
    """Runs `run_once` of a worker in a daemon thread until it is stopped."""

    def __init__(self, name: str, log: DerivingLog, run_once: Callable[[], int]) -> None:
        self._name, self._log, self._run_once = name, log, run_once
        self._stopping = Signal()
        self._thread: Thread | None = None
        self._supervisor = Supervisor(*_BACKOFF)

    @property
    def trouble(self) -> Trouble:
        """What went wrong in the background."""
        return self._supervisor.trouble

    def start(self, poll: float = 0.1) -> None:
        """Work in the background: soon after appends, and at least every `poll` seconds."""
        if self._thread is None or not self._thread.is_alive():
            self._stopping.clear()
            self._thread = Thread(target=self._run, args=(poll,), name=f"mnemolog-{self._name}", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """End the thread after the batch that it is at."""
        self._stopping.set()
        if self._thread is not None:
            self._log.wake()
            self._thread.join(timeout)
            self._thread = None

    def _run(self, poll: float) -> None:
        while not self._stopping.is_set():
            try:
                seen = self._log.head()
                moved = self._run_once()
                if not moved:
                    self._log.wait(seen, poll)
                elif moved < _SMALL:
                    self._stopping.wait(_GATHERING)
                self._supervisor.worked()
            except StoreClosed:
                return
            except Exception as error:
                self._supervisor.crashed(error)
                self._stopping.wait(self._supervisor.delay)


def append_new(log: DerivingLog, drafts: Sequence[Draft]) -> int:
    """Append what is not there yet and not erased since; how many were new. One commit, unless one is refused."""
    if not drafts:
        return 0
    try:
        return sum(not receipt.duplicate for receipt in log.append(drafts))
    except (ErasedScope, IdempotencyConflict, VersionConflict):
        return 0 if len(drafts) == 1 else sum(append_new(log, [draft]) for draft in drafts)

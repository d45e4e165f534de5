"""Group commit without a thread of its own: whoever comes first commits for all who wait.

An appender puts its request on a list and takes the lock. Whoever holds the lock commits everything on the list in
one transaction, so that many appenders share one fsync; the others find their request settled when they get in.

Appenders that commit one thing after the other would form two groups that take turns, each half as large as it could
be: the ones come while the others commit. So who comes looks how many were seen lately, and where somebody is missing
waits for a part of the time of a commit; the one who makes them complete leads at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, RLock
from time import perf_counter
from typing import Final

from mnemolog.domain.errors import StoreUnavailable
from mnemolog.domain.events import Receipt
from mnemolog.infra.log.codec import Prepared

_INTERRUPTED: Final = "the commit was interrupted and may or may not have happened: retry with the same key"


_PATIENCE: Final = 0.05
"""After so many seconds without a bell an appender looks for itself."""


_SHARE: Final = 0.5
"""How much of the time of a commit it is worth to wait for who is missing: it saves one."""
_LONGEST: Final = 0.005
"""Seconds."""
_DISCOURAGED: Final = 64
"""Where somebody did not come, the next group goes without waiting, then two, four, up to so many."""


class Group:
    """Requests that are committed together. `outcome` is set once, with one store: all of them see it at once."""

    __slots__ = ("outcome",)

    def __init__(self) -> None:
        self.outcome: Exception | bool = False


class Request:
    """One append: all of its drafts or none. `error` is its own; the group's outcome stands above it."""

    __slots__ = ("_bell", "drafts", "error", "group", "receipts")

    def __init__(self, drafts: Sequence[Prepared]) -> None:
        self.drafts = drafts
        self.receipts: list[Receipt] = []
        self.error: Exception | None = None
        self.group: Group | None = None
        self._bell = Lock()
        self._bell.acquire()

    def wait(self, seconds: float = _PATIENCE) -> None:
        """Until it is settled, or it is time to try to lead."""
        self._bell.acquire(timeout=seconds)

    def ring(self) -> None:
        with suppress(RuntimeError):  # rung before
            self._bell.release()

    @property
    def settled(self) -> bool:
        return self.group is not None and self.group.outcome is not False

    def result(self) -> list[Receipt]:
        """The receipts, or the request's error, or the group's. Call when settled."""
        if self.error is not None:
            raise self.error
        outcome = self.group.outcome if self.group is not None else False
        if isinstance(outcome, Exception):
            raise outcome
        return self.receipts


class GroupCommit:
    """Hands all waiting requests to `commit` at once. `commit` sets receipts or error of each, or raises for all."""

    def __init__(self, commit: Callable[[Sequence[Request]], None]) -> None:
        self._commit = commit
        self._waiting: deque[Request] = deque()
        self._lock = RLock()
        self._busy = False
        self._crowd, self._took = 1, 0.0
        """How many appenders were seen at the last group; and its seconds."""
        self._discouraged, self._pause = 0, 1
        """How many groups go without waiting; and how many will when it is in vain once more."""

    def submit(self, request: Request) -> list[Receipt]:
        """Commit the request, or wait until another appender has. Raises its error."""
        self._waiting.append(request)
        here = 0
        try:
            # Nobody blocks on the lock: who is settled by another must get away at once, else groups stay small.
            while not request.settled:
                if self._worth_waiting(here):
                    here = len(self._waiting)
                    request.wait(min(_LONGEST, _SHARE * self._took))
                elif self._lock.acquire(blocking=False):
                    self._lead(request)
                else:
                    request.wait()
                    here = 0
        except BaseException:
            with suppress(ValueError):
                self._waiting.remove(request)
            self._release()
            raise
        return request.result()

    def _worth_waiting(self, before: int) -> bool:
        """Whether somebody is missing, and more are here than before."""
        return before < len(self._waiting) < self._crowd and not self._discouraged and not self._busy

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody commits inside."""
        try:
            with self._lock:
                yield
        finally:
            self._wake_next()

    def _lead(self, own: Request) -> None:
        """With the lock held; gives it back."""
        requests: list[Request] = []
        self._busy = True
        try:
            if not own.settled:
                self._run(own, requests)
        finally:
            self._busy = False
            self._release()
            for request in requests:
                if request is not own:
                    request.ring()
            self._wake_next()

    def _release(self) -> None:
        # An interrupt can come between taking the lock and knowing it; only the lock itself is sure.
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.release()

    def _run(self, own: Request, requests: list[Request]) -> None:
        group, started = Group(), perf_counter()
        try:
            self._gather(own, group, requests)
            self._commit(requests)
            group.outcome = True
        except Exception as error:
            group.outcome = error
        finally:
            # Only an interrupt of this thread leaves the group open here; nobody may wait for it, or repeat it.
            if group.outcome is False:
                group.outcome = StoreUnavailable(_INTERRUPTED)
        self._took, self._crowd = perf_counter() - started, len(requests) + len(self._waiting)

    def _gather(self, own: Request, group: Group, requests: list[Request]) -> None:
        """Everything that waits. A request that an interrupted leader dropped is picked up by its own thread."""
        with suppress(IndexError):  # an interrupted appender may take its own away meanwhile
            while self._waiting:
                requests.append(self._waiting.popleft())
        if own not in requests:
            requests.append(own)
        for request in requests:
            request.group = group
        if self._discouraged:
            self._discouraged -= 1
        elif len(requests) < self._crowd:
            self._discouraged, self._pause = self._pause, min(_DISCOURAGED, 2 * self._pause)
        else:
            self._pause = 1

    def _wake_next(self) -> None:
        # Who came while the lock was held is seen here; who comes later finds the lock free.
        if self._waiting:
            with suppress(IndexError):
                self._waiting[0].ring()

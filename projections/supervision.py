"""Work in the background: a thread that goes on, what went wrong in it, and when to try again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event, Lock, Thread, current_thread
from typing import Final

from mnemolog.domain.errors import StoreClosed
from mnemolog.projections.parking import reason_of

_HELD: Final = 0.02
"""Seconds between two looks of a held thread."""
_AGAIN: Final = 0.005
"""Seconds between two wake-ups of a thread that is to end."""
_QUIET: Final = 0.02
"""Seconds without a call after which work in the background goes on,"""
_PATIENCE: Final = 0.25
"""and seconds that a step of it waits for that at most."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """crashes: since the start; last_error: class and place, never text; backoff: seconds, 0 when it works."""

    crashes: int = 0
    last_error: str | None = None
    backoff: float = 0.0


def first_of(troubles: Mapping[str, Trouble]) -> str | None:
    """What keeps one of several from going on, with its name; None while all work."""
    found = (f"{name}: {one.last_error}" for name, one in troubles.items() if one.backoff)
    return next(found, None)


class Supervisor:
    """Doubles the delay with every crash in a row, up to a bound; work that succeeds resets it."""

    def __init__(self, first: float, most: float) -> None:
        self._first, self._most = first, most
        self._next_try = 0.0
        self.trouble = Trouble()

    @property
    def delay(self) -> float:
        return self.trouble.backoff

    @property
    def now(self) -> str | None:
        """What keeps the work from going on, as class and place; None while it works."""
        return self.trouble.last_error if self.trouble.backoff else None

    def is_due(self) -> bool:
        return time.monotonic() >= self._next_try

    def crashed(self, error: Exception) -> None:
        backoff = min(self._most, self.trouble.backoff * 2 or self._first)
        self.trouble = Trouble(self.trouble.crashes + 1, reason_of(error), backoff)
        self._next_try = time.monotonic() + backoff

    def worked(self) -> None:
        if self.trouble.backoff:
            self.trouble = Trouble(self.trouble.crashes, self.trouble.last_error)


class Foreground:
    """What somebody waits for: while it lasts, and for a moment after, work in the background begins nothing new.

    One interpreter runs one thread at a time: every wait of a read for the disk would else hand it to such work.
    """

    def __init__(self) -> None:
        self._lock, self._running, self._last = Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._running -= 1
            self._last = time.monotonic()

    def touch(self) -> None:
        """A call has begun: what follows it is likely to be waited for, too."""
        self._last = time.monotonic()

    def give_way(self, stopping: Event, patience: float = _PATIENCE) -> float:
        """Return once it is quiet, when `stopping` is set, and after `patience` seconds in any case, as calls may never
        stop; the seconds that it took."""
        now = started = time.monotonic()
        while now < started + patience and (self._running or now - self._last < _QUIET):
            if stopping.wait(_QUIET):
                break
            now = time.monotonic()
        return now - started


def stop_all(backgrounds: Iterable[Background]) -> None:
    """End these threads. Each is asked before the first is waited for: one may sleep through a wake-up for a while."""
    ending = list(backgrounds)
    for one in ending:
        one.ask_to_stop()
    for one in ending:
        one.stop()


class Background:
    """Repeats `step` in a daemon thread until it is stopped; one that crashes comes again after a while.

    wake: ends a wait of the step early. backoff: seconds before the first repetition, and the most they double to.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], object],
        wake: Callable[[], None],
        backoff: tuple[float, float] = (0.1, 30.0),
    ) -> None:
        self._name, self._step, self._wake = name, step, wake
        self._stopping, self._held, self._turn = Event(), Event(), Lock()
        self._thread: Thread | None = None
        self._foreground, self._patience = Foreground(), 0.0
        self.supervisor = Supervisor(*backoff)

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def name(self) -> str:
        return self._name

    @property
    def held(self) -> bool:
        return self._held.is_set()

    @property
    def trouble(self) -> Trouble:
        """What went wrong since the start."""
        return self.supervisor.trouble

    def start(self, foreground: Foreground | None = None) -> None:
        """Begin, or begin again, giving way to these calls. Nothing happens where it runs."""
        if not self.running:
            self._foreground = foreground or self._foreground
            self._stopping.clear()
            self._thread = Thread(target=self._run, name=f"mnemolog-{self._name}", daemon=True)
            self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the thread end after its present step, without waiting for it."""
        self._stopping.set()
        if self._thread is not None:
            self._wake()

    def stop(self, timeout: float = 30.0) -> None:
        """End the thread after its present step, waited for at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        self.ask_to_stop()
        thread = self._thread
        while thread is not None and thread.is_alive() and time.monotonic() < deadline:
            thread.join(_AGAIN)
            self._wake()  # it may have begun to wait just after it was asked
        self._thread = None

    def hold(self) -> None:
        """No step is under way when this returns, and none begins before `resume`."""
        self._held.set()
        if self.running:
            self._wake()
        with self._turn:
            pass

    def resume(self) -> None:
        self._held.clear()

    def rest(self, seconds: float) -> None:
        """For a step: let the time pass, unless it is stopped."""
        self._stopping.wait(seconds)

    def give_way(self) -> None:
        """For a step between two parts of it: calls go first here too, in all parts together as long as before it.

        Does nothing in any other thread than its own.
        """
        if current_thread() is self._thread:
            self._patience -= self._foreground.give_way(self._stopping, self._patience)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._foreground.give_way(self._stopping)
            self._patience = _PATIENCE
            try:
                with self._turn:
                    held = self.held
                    if not held:
                        self._step()
                        self.supervisor.worked()
                if held:
                    self.rest(_HELD)
            except StoreClosed:
                return
            except Exception as error:
                self.supervisor.crashed(error)
                self.rest(self.supervisor.delay)

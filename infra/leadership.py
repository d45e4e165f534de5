"""Several processes on one data directory: one leads, the others stand by and take over when it is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from mnemolog.domain.errors import StoreClosed
from mnemolog.infra.locks import FileLock, exclusively
from mnemolog.projections.supervision import Supervisor, Trouble

LOCK_FILE: Final = "lock"
OPENING_FILE: Final = "opening.lock"
USERS_FILE: Final = "users.lock"
OPENING_SECONDS: Final = 120.0
"""How long an opening waits for another one, which may be building views."""
_POLL: Final = 0.25


class Leadership:
    """This process's place in a data directory.

    leads: whether views, vectors and index are this process's to keep up; it may turn true at any time, never back.
    alone: whether nobody else had the directory open when this process came.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lead, self._users = FileLock(folder / LOCK_FILE), FileLock(folder / USERS_FILE)
        self._stopping = Event()
        self._thread: Thread | None = None
        self._supervisor = Supervisor(0.5, 30.0)
        self.leads = self.alone = False

    @property
    def trouble(self) -> Trouble:
        """What went wrong in the background."""
        return self._supervisor.trouble

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Come in: one process at a time. Raises StoreInUse where another one does not get done with it."""
        with self._entering():
            self.alone = self._users.take()
            self.leads = self._lead.take()
            self._users.take(shared=True)
            yield

    def leader(self) -> int | None:
        """The id of the process that leads, or led last."""
        return self._lead.holder()

    def watch(self, take_over: Callable[[], None], look: Callable[[], None]) -> None:
        """In a daemon thread: look around now and then, and when the leader is gone, call `take_over` and lead."""
        self._thread = Thread(
            target=self._watch, args=(take_over, look), name="mnemolog-leadership", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Idempotent."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def give_up(self) -> None:
        """Leave the lead to a process that stands by, and do not stand by oneself: before `watch`."""
        self.leads = False
        self._lead.release()

    def release(self) -> None:
        """Leave. Idempotent."""
        self.stop()
        self._users.release()
        self._lead.release()

    def _entering(self) -> AbstractContextManager[None]:
        doing = f"opening {self._folder}"
        return exclusively(self._folder / OPENING_FILE, OPENING_SECONDS, doing)

    def _watch(self, take_over: Callable[[], None], look: Callable[[], None]) -> None:
        leads = self.leads
        while not self._stopping.wait(self._supervisor.delay or _POLL):
            try:
                look()
                self.leads = self.leads or self._lead.take()
                if self.leads and not leads:
                    with self._entering():
                        take_over()
                    leads = True
                self._supervisor.worked()
            except StoreClosed:
                return
            except Exception as error:
                self._supervisor.crashed(error)

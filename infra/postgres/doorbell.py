"""Wakes those who wait for a commit of any process. NOTIFY is a doorbell; looking at the log is the truth."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Event, Lock, Thread
from typing import Any, Final

import psycopg
from psycopg import Connection

from mnemolog.infra.postgres.connecting import connect

POLL_SECONDS: Final = 0.05
"""Between two looks while nobody listens."""
LISTENING_SECONDS: Final = 1.0
"""Between two looks while somebody listens: a bell may break silently."""
_BACKOFF: Final = (0.05, 2.0)


class Doorbell:
    """`position` is the last one that was heard of; it is committed. Any thread may wait, ring or close.

    look: asked for the head after each (new) beginning to listen, as what was rung before is lost.
    """

    def __init__(self, parameters: dict[str, Any], channel: str, look: Callable[[], int]) -> None:
        self._parameters, self._channel, self._look = parameters, channel, look
        self._changed = Condition(Lock())
        self._thread: Thread | None = None
        self._conn: Connection[Any] | None = None
        self._listening, self._closed = False, Event()
        self.position, self.wakes = 0, 0

    def ring(self, position: int) -> None:
        """Somebody has committed up to here."""
        with self._changed:
            self.position = max(self.position, position)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let everybody who waits return now."""
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def wait(self, after: int, timeout: float, wakes: int) -> None:
        """Until something behind `after` was heard of, or it is time to look for oneself, or `timeout`.

        wakes: how often it had been woken when the waiting began.
        """
        with self._changed:
            self._start()
            patience = LISTENING_SECONDS if self._listening else POLL_SECONDS
            if self.position <= after and self.wakes == wakes and not self._closed.is_set():
                self._changed.wait(min(timeout, patience))

    def close(self) -> None:
        """Wake everybody and stop listening."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
            thread, conn = self._thread, self._conn
        if conn is not None:
            _hang_up(conn)
        if thread is not None:
            thread.join(5)

    def _start(self) -> None:
        if self._thread is None and not self._closed.is_set():
            self._thread = Thread(target=self._run, name="mnemolog-doorbell", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        pause = _BACKOFF[0]
        while not self._closed.is_set():
            # Whatever fails: polling goes on, and we try again.
            with suppress(Exception), connect(self._parameters, {}) as conn:
                conn.execute(f"LISTEN {self._channel}")
                pause = _BACKOFF[0]
                self._listen(conn)
            self._set_listening(None)
            self._closed.wait(pause)
            pause = min(2 * pause, _BACKOFF[1])

    def _listen(self, conn: Connection[Any]) -> None:
        self._set_listening(conn)
        if self._closed.is_set():
            return
        # Who commits after LISTEN is heard; who committed before is seen now.
        self.ring(self._look())
        for notice in conn.notifies():
            self.ring(int(notice.payload))

    def _set_listening(self, conn: Connection[Any] | None) -> None:
        with self._changed:
            self._conn, self._listening = conn, conn is not None
            # Who waits with the patience of a listener has to look for itself now.
            self._changed.notify_all()


def _hang_up(conn: Connection[Any]) -> None:
    """End the connection under the thread that waits on it."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(conn.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)

"""One BLAS thread while vectors are made: for small matrices more threads cost more than they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, Final


class _OneThread:
    """The limit is one of the process, so the first to need it sets it and the last to leave restores it."""

    def __init__(self) -> None:
        self._lock, self._users, self._limit = Lock(), 0, ExitStack()
        self._controller: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit.enter_context(self._threads().limit(limits=1, user_api="blas"))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.close()

    def _threads(self) -> Any:
        if self._controller is None:
            from threadpoolctl import ThreadpoolController

            self._controller = ThreadpoolController()
        return self._controller


one_blas_thread: Final = _OneThread()

"""What went wrong in the background, and when to try again."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mnemolog.projections.parking import reason_of


@dataclass(frozen=True, slots=True)
class Trouble:
    """crashes: since the start; last_error: class and place, never text; backoff: seconds, 0 when it works."""

    crashes: int = 0
    last_error: str | None = None
    backoff: float = 0.0


class Supervisor:
    """Doubles the delay with every crash in a row, up to a bound; work that succeeds resets it."""

    def __init__(self, first: float, most: float) -> None:
        self._first, self._most = first, most
        self._next_try = 0.0
        self.trouble = Trouble()

    @property
    def delay(self) -> float:
        return self.trouble.backoff

    def is_due(self) -> bool:
        return time.monotonic() >= self._next_try

    def crashed(self, error: Exception) -> None:
        backoff = min(self._most, self.trouble.backoff * 2 or self._first)
        self.trouble = Trouble(self.trouble.crashes + 1, reason_of(error), backoff)
        self._next_try = time.monotonic() + backoff

    def worked(self) -> None:
        if self.trouble.backoff:
            self.trouble = Trouble(self.trouble.crashes, self.trouble.last_error)

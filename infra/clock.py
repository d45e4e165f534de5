"""Time and ids: the real ones, and seeded ones that make a test repeatable."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from struct import Struct
from threading import Lock
from time import time_ns
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mnemolog.domain.errors import InvalidInput

_COUNTER_BITS = 12
_RANDOM_BITS = 62
_POOL = Struct("256Q")
_START_MASK = (1 << (_COUNTER_BITS - 1)) - 1
"""A fresh millisecond starts its counter in the lower half, so that ids of one millisecond have room to grow."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class UuidV7:
    """Event ids as RFC 9562 UUIDv7: 32 hex digits, strictly increasing in this process, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tails: list[int] = []
        self._last = 0

    def event_id(self) -> str:
        with self._lock:
            if not self._tails:
                # Many at once: whoever asks the system for one lets another thread have the interpreter.
                self._tails = [
                    one >> 64 - _RANDOM_BITS for one in _POOL.unpack(secrets.token_bytes(_POOL.size))
                ]
            tail = self._tails.pop()
            fresh = (time_ns() // 1_000_000) << _COUNTER_BITS | (tail & _START_MASK)
            # A clock that stands still or steps back only counts on: order within the process comes first.
            self._last = fresh if fresh > self._last else self._last + 1
            return _layout(self._last, tail)


class SeededClock:
    """Starts at `start` and moves by `step` at every look; `advance` moves it by hand."""

    def __init__(
        self,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        step: timedelta = timedelta(milliseconds=1),
    ) -> None:
        self._now, self._step, self._lock = start, step, Lock()

    def now(self) -> datetime:
        with self._lock:
            now, self._now = self._now, self._now + self._step
            return now

    def advance(self, by: timedelta) -> None:
        with self._lock:
            self._now += by


class SeededIds:
    """The same increasing UUIDv7-shaped ids for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._seed, self._count, self._lock = seed, 0, Lock()

    def event_id(self) -> str:
        with self._lock:
            self._count += 1
            count = self._count
        tail = int.from_bytes(sha256(b"%d/%d" % (self._seed, count)).digest()[:8], "big")
        return _layout((1_767_225_600_000 << _COUNTER_BITS) + count, tail >> 2)


def _layout(tick: int, tail: int) -> str:
    """tick: milliseconds and counter, 60 bits; tail: 62 bits. Version and variant go between them."""
    milliseconds, counter = tick >> _COUNTER_BITS, tick & ((1 << _COUNTER_BITS) - 1)
    return f"{milliseconds << 80 | 7 << 76 | counter << 64 | 2 << 62 | tail:032x}"


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name. Raises InvalidInput for one that does not exist."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"no time zone {name!r}: use an IANA name such as Asia/Seoul") from None

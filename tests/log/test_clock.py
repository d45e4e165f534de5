"""Time and ids."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

import pytest

from mnemolog.infra import clock
from mnemolog.infra.clock import SeededClock, SeededIds, SystemClock, UuidV7


def test_ids_are_version_seven_and_carry_the_time() -> None:
    """RFC 9562: 48 bits of milliseconds, version, variant."""
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    made = UUID(UuidV7().event_id())
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= datetime.fromtimestamp((made.int >> 80) / 1000, UTC) <= datetime.now(UTC)


def test_ids_increase_within_a_process_from_any_thread() -> None:
    """Each thread sees its own ids grow, and none is made twice."""
    ids = UuidV7()
    with ThreadPoolExecutor(8) as pool:
        lists = list(pool.map(lambda _: [ids.event_id() for _ in range(5_000)], range(8)))
    assert all(made == sorted(made) for made in lists)
    assert len({one for made in lists for one in made}) == 40_000


def test_ids_increase_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter goes on where the time does not."""
    ids, times = UuidV7(), iter([2_000_000_000, *[1_000_000_000] * 10_000])
    monkeypatch.setattr(clock, "time_ns", lambda: next(times))
    made = [ids.event_id() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_seeded_ids_repeat() -> None:
    """The same seed gives the same ids, another seed others; they grow as real ones do."""
    one, two, other = SeededIds(1), SeededIds(1), SeededIds(2)
    first = [one.event_id() for _ in range(100)]
    assert first == [two.event_id() for _ in range(100)]
    assert first == sorted(set(first))
    assert first != [other.event_id() for _ in range(100)]
    assert UUID(first[0]).version == 7


def test_seeded_time_moves_by_its_step() -> None:
    """And by hand."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    seeded = SeededClock(start, step=timedelta(seconds=1))
    assert [seeded.now(), seeded.now()] == [start, start + timedelta(seconds=1)]
    seeded.advance(timedelta(days=1))
    assert seeded.now() == start + timedelta(days=1, seconds=2)


def test_system_time_is_aware_and_utc() -> None:
    """What the log records has no local zone in it."""
    assert SystemClock().now().utcoffset() == timedelta(0)

"""From when on a statement holds."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from mnemolog.domain.gate.when import when

SEOUL = ZoneInfo("Asia/Seoul")
NOW = datetime(2026, 3, 4, 15, 30, tzinfo=SEOUL)


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("starting tomorrow", "2026-03-05", None),
        ("next Monday", "2026-03-09", "2026-03-10"),
        ("until next Friday", None, "2026-03-14"),
        ("next month", "2026-04-01", "2026-05-01"),
        ("as of 1 April", "2026-04-01", None),
        ("since 20 February", "2026-02-20", None),
        ("from December 30", "2025-12-30", None),
        ("since 2020", "2020-01-01", None),
        ("last week", "2026-02-23", "2026-03-02"),
        ("내일부터", "2026-03-05", None),
        ("다음 주 월요일부터", "2026-03-09", None),
        ("다음 달에", "2026-04-01", "2026-05-01"),
        ("4월 1일부터", "2026-04-01", None),
        ("내년까지", None, "2028-01-01"),
        ("2020년부터", "2020-01-01", None),
        ("지난주에", "2026-02-23", "2026-03-02"),
    ],
)
def test_times_before_and_after_today(text: str, since: str | None, until: str | None) -> None:
    """A time is a stretch of local days; with a word that says that something begins or ends it is open."""
    found = when(text, NOW, SEOUL)
    assert found is not None
    days = [
        None if day is None else day.astimezone(SEOUL).date().isoformat()
        for day in (found.since, found.until)
    ]
    assert days == [since, until]


@pytest.mark.parametrize(
    "text", ["soon", "on 31 June", "as of 31 June", "in a while", "나중에", "4월 31일부터"]
)
def test_what_is_no_time(text: str) -> None:
    """Vague words and days that do not exist are no time."""
    assert when(text, NOW, SEOUL) is None

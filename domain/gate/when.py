"""When a statement holds: the time words in it, also those that lie ahead, seen from the day on which it was made.

`timewords` reads what a question says about the past; a statement may also begin to hold next Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from mnemolog.domain.timewords import time_words

_DAY: Final = timedelta(days=1)
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
Days = tuple[date, date]


@dataclass(frozen=True, slots=True)
class When:
    """A time at text[start:end]. since is included, until is not; None is open; both in UTC."""

    since: datetime | None
    until: datetime | None
    start: int
    end: int
    relative: bool


def when(text: str, at: datetime, zone: tzinfo) -> When | None:
    """The time that a statement made at `at` (with a zone) speaks of; None where it names none, or several."""
    today = at.astimezone(zone).date()
    for pattern, rule in _AHEAD:
        found = pattern.search(text)
        days = None if found is None else _days(rule, found, today)
        if found is not None and days is not None:
            since, until = _bent(found, days)
            relative = rule is not _nearest
            return When(_midnight(since, zone), _midnight(until, zone), found.start(), found.end(), relative)
    words = time_words(text, at, zone)
    if words is None or (start := text.find(words.words)) < 0:
        return None
    return When(words.since, words.until, start, start + len(words.words), words.relative)


def _midnight(day: date | None, zone: tzinfo) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


_Rule = Callable[[re.Match[str], date], Days]


def _days(rule: _Rule, found: re.Match[str], today: date) -> Days | None:
    try:
        return rule(found, today)
    except (ValueError, OverflowError):  # the 31st of June
        return None


def _bent(found: re.Match[str], days: Days) -> tuple[date | None, date | None]:
    """With "until" or 까지 only the end counts, with "from" or 부터 only the beginning."""
    word = (found["before"] or found.groupdict().get("after") or "").lower()
    if word in ("until", "till", "through", "까지"):
        return None, days[1]
    return days[0], None if word else days[1]


def _in_days(count: int) -> _Rule:
    return lambda found, today: (today + count * _DAY, today + (count + 1) * _DAY)


def _next_week(found: re.Match[str], today: date) -> Days:
    """Next week, or a weekday in it."""
    monday = today + (7 - today.weekday()) * _DAY
    name = found["day"]
    if name is None:
        return monday, monday + 7 * _DAY
    day = monday + _weekday(name) * _DAY
    return day, day + _DAY


def _next_weekday(found: re.Match[str], today: date) -> Days:
    """The first such weekday of the week to come."""
    return _next_week(found, today)


def _weekday(name: str) -> int:
    return "월화수목금토일".index(name) if len(name) == 1 else _WEEKDAYS.index(name.lower())


def _next_month(found: re.Match[str], today: date) -> Days:
    following = today.year * 12 + today.month
    first = date(following // 12, following % 12 + 1, 1)
    return first, (first + 31 * _DAY).replace(day=1)


def _next_year(found: re.Match[str], today: date) -> Days:
    return date(today.year + 1, 1, 1), date(today.year + 2, 1, 1)


def _year(found: re.Match[str], today: date) -> Days:
    return date(int(found["y"]), 1, 1), date(int(found["y"]) + 1, 1, 1)


def _nearest(found: re.Match[str], today: date) -> Days:
    """A day or month of the year without its year is the nearest one, before or after today."""
    name, number = found["m"].lower(), found["d"]
    month = int(name) if name.isdigit() else _MONTHS.index(name[:3]) + 1
    every = (date(today.year + step, month, int(number or 1)) for step in (-1, 0, 1))
    day = min(every, key=lambda each: abs(each - today))
    return day, day + _DAY if number else (day + 31 * _DAY).replace(day=1)


_BEFORE: Final = (
    r"(?:\b(?P<before>starting|beginning|effective|as of|as from|from|since|until|till|through)\s+(?:on\s+)?)"
)
_AFTER: Final = r"\s*(?P<after>부터|까지)(?:는|로|의)?"
_MONTH: Final = (
    r"(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)


def _english(pattern: str, sure: bool = False) -> re.Pattern[str]:
    """sure: only behind a word that says that something begins or ends."""
    return re.compile(rf"{_BEFORE}{'' if sure else '?'}\b(?:{pattern})\b", re.IGNORECASE)


def _korean(pattern: str, sure: bool = False) -> re.Pattern[str]:
    after = _AFTER if sure else rf"(?:{_AFTER}|에는|에|은|는)?"
    return re.compile(rf"(?P<before>)(?<![\w])(?:{pattern}){after}(?![가-힣])")


_AHEAD: Final[tuple[tuple[re.Pattern[str], _Rule], ...]] = (
    (_english("the day after tomorrow"), _in_days(2)),
    (_english("tomorrow"), _in_days(1)),
    (_english(rf"next (?P<day>{'|'.join(_WEEKDAYS)})"), _next_weekday),
    (_english(r"next week(?P<day>\Z)?"), _next_week),
    (_english("next month"), _next_month),
    (_english("next year"), _next_year),
    (_english(rf"{_MONTH} (?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?(?!,? [0-9]{{4}})", sure=True), _nearest),
    (
        _english(
            rf"(?:the )?(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?!,? [0-9]{{4}})", sure=True
        ),
        _nearest,
    ),
    (_english(rf"(?:in )?{_MONTH}(?P<d>)(?!,? [0-9])", sure=True), _nearest),
    (_english("(?P<y>(?:19|20)[0-9]{2})(?![-./][0-9])", sure=True), _year),
    (_korean("내일"), _in_days(1)),
    (_korean("모레"), _in_days(2)),
    (_korean(r"(?:다음|담|내)\s?주(?:\s*(?P<day>[월화수목금토일])요일)?"), _next_week),
    (_korean(r"다음\s?달|내달"), _next_month),
    (_korean("내년"), _next_year),
    (_korean(r"(?P<m>1[0-2]|[1-9])월\s*(?P<d>[0-9]{1,2})일", sure=True), _nearest),
    (_korean(r"(?P<m>1[0-2]|[1-9])월(?P<d>)", sure=True), _nearest),
)

"""Time words of a question, English and Korean, as bounds of local days: `time_words`.

A question says "last week" and means a stretch of the asker's own calendar. Words that only look like a time
("may I", "march on", "a second", 그제야) yield nothing: a missed bound costs a little order, a wrong one the answer.
A week begins on Monday. Times to come yield nothing either, because nothing has been said in them yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Final

Span = tuple[date | None, date | None]
"""First local day, and the first one after; None: open."""

_DAY: Final = timedelta(days=1)
_FIRST_YEAR, _LAST_YEAR = 1_000, 9_000
_MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
_SHORT: Final = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_MONTH_OF: Final = {name: number for number, name in enumerate(_MONTHS, 1)} | _SHORT
_WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        "a|an|one|한|하루|일 two|이틀|두|이 three|사흘|세|석|삼 four|나흘|네|넉|사 five|닷새|다섯|오 six|엿새|여섯|육 "
        "seven|이레|일곱|칠 eight|여드레|여덟|팔 nine|아흐레|아홉|구 ten|열흘|열|십 eleven|열한 twelve|열두".split(), 1
    )
    for word in words.split("|")
}  # fmt: skip
_UNITS: Final = {"일": "day", "주": "week", "주일": "week", "달": "month", "개월": "month", "년": "year"}
_LARGEST: Final = 1_000
_LONGEST_QUESTION: Final = 1_000


@dataclass(frozen=True, slots=True)
class TimeWords:
    """What a question says about time. since is included, until is not, None is open; both in UTC.

    query: the question without those words; words: as they stood in it; relative: they count from now ("last
    week"), and so speak of when it was said; a date ("in March") may as well be what was spoken about.
    """

    since: datetime | None
    until: datetime | None
    query: str
    words: str
    relative: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A time at text[start:end]."""

    start: int
    end: int
    span: Span
    relative: bool


def time_words(query: str, now: datetime, zone: tzinfo) -> TimeWords | None:
    """The time that a question speaks of, seen from `now` in the asker's zone; None where it names none, or several.

    `now` needs a zone of its own. A day has the length that the zone's calendar gives it.
    """
    if len(query) > _LONGEST_QUESTION:  # a pasted text, not a question
        return None
    today = now.astimezone(zone).date()
    if not _FIRST_YEAR < today.year < _LAST_YEAR:  # the calendar has no years around it to count in
        return None
    found = _joined(query, [_bent(query, each) for each in _spans(query, today)])
    if found is None or _is_quoted(query, found):
        return None
    since, until = (None if day is None else _midnight(day, zone) for day in found.span)
    if since is not None and since > now:
        return None
    rest = f"{query[: found.start]} {query[found.end :]}"
    rest = re.sub(r"\s+([?!.,])", r"\1", " ".join(rest.split()))
    return TimeWords(since, until, rest, query[found.start : found.end].strip(), found.relative)


def _midnight(day: date, zone: tzinfo) -> datetime:
    # fold=0 is right twice: the first of two midnights, and for a midnight that is skipped the moment of the jump.
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _spans(query: str, today: date) -> list[_Found]:
    """Every time in the query, in order; of two that overlap the longer."""
    every = [found for pattern, rule in _RULES for found in _matches(pattern, rule, query, today)]
    kept: list[_Found] = []
    for found in sorted(every, key=lambda one: (one.start - one.end, one.start)):
        if all(found.end <= one.start or one.end <= found.start for one in kept):
            kept.append(found)
    return sorted(kept, key=lambda one: one.start)


def _matches(pattern: str, rule: _Rule, query: str, today: date) -> Iterator[_Found]:
    for match in _compiled(pattern).finditer(query):
        try:
            span = rule(match, today)
        except (ValueError, OverflowError):  # the 31st of June
            span = None
        if span is not None:
            yield _Found(match.start(), match.end(), span, rule not in _DATES)


_BEFORE: Final = re.compile(
    r"(?<!\w)(since|after|before|until|till|through|by|from|up to|in|on|during|of|at|over|within|between)"
    r"(?:\s+(?:the|early|mid|late))?\s+$", re.IGNORECASE
)  # fmt: skip
_AFTER: Final = re.compile(
    r"(?:\s*(?:동안|중|초|말|중순|간))?(?:\s*(이후로는|이후로|이후에|이후|이전에|이전|부터|까지|전에|후에)|에서|에는|에도|에|의|은|는|도|이|가|을|를)?"
    r"(?![가-힣])"
)


def _bent(query: str, found: _Found) -> _Found:
    """The time with the words that bend it: since, before, 부터, 까지; a mere "in" or 에 is swallowed."""
    start, end, (since, until) = found.start, found.end, found.span
    if (before := _BEFORE.search(query[:start])) is not None:
        start, word = before.start(), before[1].lower()
        since, until = _bend(_ENGLISH_BENDS.get(word, ""), since, until)
    if "가" <= query[end - 1] <= "힣" and (after := _AFTER.match(query, end)) is not None:
        end = after.end()
        since, until = _bend(_KOREAN_BENDS.get((after[1] or "")[:2], ""), since, until)
    return _Found(start, end, (since, until), found.relative)


_ENGLISH_BENDS: Final = {
    "since": "from", "from": "from", "after": "after", "before": "before", "until": "to", "till": "to",
    "through": "to", "by": "to", "up to": "to",
}  # fmt: skip
_KOREAN_BENDS: Final = {
    "이후": "from", "부터": "from", "이전": "before", "전에": "before", "까지": "to", "후에": "after",
}  # fmt: skip


def _bend(how: str, since: date | None, until: date | None) -> Span:
    bent: dict[str, Span] = {
        "from": (since, None),
        "after": (until, None),
        "before": (None, since),
        "to": (None, until),
    }
    return bent.get(how, (since, until))


_LINK: Final = re.compile(
    r"\s*(?:and|to|or|until|till|through|[-–~,]|와|과|하고|랑|이랑)\s*\Z", re.IGNORECASE
)
_HALF_A_RANGE: Final = re.compile(
    r"(?<!\w)[0-9]{1,2}(?:st|nd|rd|th)?\s*(?:to|and|or|[-–~])\s*\Z", re.IGNORECASE
)


def _joined(query: str, found: Sequence[_Found]) -> _Found | None:
    """One stretch from the first time to the last, if nothing but a link lies between them."""
    if not found or _HALF_A_RANGE.search(query[: found[0].start]):
        return None
    whole = found[0]
    for one in found[1:]:
        between = query[whole.end : one.start]
        if not _LINK.match(between) and (between.strip() or whole.span[1] is not None):
            return None
        relative = whole.relative and one.relative
        whole = _Found(whole.start, one.end, _hull(whole.span, one.span), relative)
    return whole


def _hull(first: Span, second: Span) -> Span:
    """From "since A" and "until B": A to B; from two days: all of both. The later one may be open."""
    starts = [day for day in (first[0], second[0]) if day is not None]
    ends = [day for day in (first[1], second[1]) if day is not None]
    return min(starts, default=None), max(ends, default=None)


def _is_quoted(query: str, found: _Found) -> bool:
    """Whether the words are somebody's title: 'Yesterday'."""
    before, after = query[: found.start].rstrip()[-1:], query[found.end :].lstrip()[:1]
    return before != "" and after != "" and before in "'\"“‘「『《<" and after in "'\"”’」』》>"


# Rules -------------------------------------------------------------------------------------------------------------

_Rule = Callable[[re.Match[str], date], Span | None]


def _days(first: date, count: int = 1) -> Span:
    return first, first + count * _DAY


def _week(today: date, back: int) -> Span:
    return _days(today - (today.weekday() + 7 * back) * _DAY, 7)


def _month(year: int, month: int) -> Span:
    following = year * 12 + month
    return date(year, month, 1), date(following // 12, following % 12 + 1, 1)


def _months_back(today: date, back: int) -> Span:
    number = today.year * 12 + today.month - 1 - back
    return _month(number // 12, number % 12 + 1)


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _unit(unit: str, back: int, today: date) -> Span | None:
    """The day, week, month or year of the calendar that is `back` of them before today's."""
    if not 0 <= back <= _LARGEST:
        return None
    if unit == "day":
        return _days(today - back * _DAY)
    if unit == "week":
        return _week(today, back)
    if unit == "month":
        return _months_back(today, back)
    return _year(today.year - back)


def _rolling(unit: str, count: int, today: date) -> Span | None:
    """The last `count` units up to today, today included."""
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * count
    return (today - days * _DAY, today + _DAY) if 0 < days <= 365 * _LARGEST else None


def _last_month(month: int, today: date, *, before: bool = False) -> Span:
    """The newest such month that has begun; with `before` this month does not count."""
    return _month(today.year - (month > today.month or (before and month == today.month)), month)


def _last_date(month: int, day: int, today: date) -> Span | None:
    """The newest such date that is not to come. A 29th of February may be eight years back."""
    for year in range(today.year, today.year - 9, -1):
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found <= today:
            return _days(found)
    return None


def _weekday(number: int, today: date) -> Span:
    """The newest such weekday before today."""
    return _days(today - ((today.weekday() - number - 1) % 7 + 1) * _DAY)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]


def _fixed(unit: str, back: int) -> _Rule:
    return lambda match, today: _unit(unit, back, today)


def _weekend(back: int) -> _Rule:
    return lambda match, today: _days(today - (today.weekday() - 5 + 7 * back) * _DAY, 2)


def _night(match: re.Match[str], today: date) -> Span:
    return _days(today - _DAY, 2)


def _dated(match: re.Match[str], today: date) -> Span | None:
    """A day, with or without its year, by groups m, d, y. "May 3 people" is no date: see `_BARE`."""
    month, day = _MONTH_OF[match["m"].lower()], int(match["d"])
    if match["y"]:
        return _days(date(int(match["y"]), month, day))
    sure = match["o"] or _BEFORE.search(match.string[: match.start()])
    if not sure and (match["m"][0].islower() or _BARE.match(match.string, match.end())):
        return None
    return _last_date(month, day, today)


def _named_month(match: re.Match[str], today: date) -> Span | None:
    """March 2023, March last year, last March, in March. A month's bare name may be somebody's."""
    name, given = match["m"], (match["l"] or "").lower()
    month = _MONTH_OF[name.lower()]
    if match["y"]:
        return _month(int(match["y"]), month)
    if match["r"]:
        return _month(today.year - (match["r"].lower() == "last"), month)
    if name.lower() in ("march", "may") and name[0].islower():
        return None
    if given:
        return _month(today.year, month) if given == "this" else _last_month(month, today, before=True)
    before, after = match.string[: match.start()], match.string[match.end() :]
    ranged = _RANGE.search(before) and _TO_NEXT.match(after)
    sure = _IN_MONTH.search(before) or _TO_MONTH.search(before) or ranged
    return _last_month(month, today) if sure else None


def _named_weekday(match: re.Match[str], today: date) -> Span | None:
    """Last Friday; "on Friday" where the question speaks of the past."""
    asked = match["l"] or (
        _PAST.search(match.string) and re.search(r"\bon\s+$", match.string[: match.start()], re.IGNORECASE)
    )
    return _weekday(_WEEKDAYS.index(match["w"].lower()), today) if asked else None


def _bare_year(match: re.Match[str], today: date) -> Span | None:
    """In 2023, but not "in 2023 lines"; a year to come is none."""
    year = int(match["y"])
    return _year(year) if 1970 <= year <= today.year else None


def _iso(match: re.Match[str], today: date) -> Span:
    year, month = int(match["y"]), int(match["m"])
    return _days(date(year, month, int(match["d"]))) if match["d"] else _month(year, month)


def _korean_date(match: re.Match[str], today: date) -> Span | None:
    """[2023년|작년|올해|지난] 5월 [3일]; 작년 and its like stand for the year."""
    month, day, which = int(match["m"]), match["d"], match["l"] or ""
    year = int(match["y"]) if match["y"] else _KOREAN_YEARS.get(which.replace(" ", ""))
    if year is None:
        if day:
            return _last_date(month, int(day), today)
        return _last_month(month, today, before=which != "") if 1 <= month <= 12 else None
    year = year if match["y"] else today.year - year
    return _days(date(year, month, int(day))) if day else _month(year, month)


def _korean_weekday(match: re.Match[str], today: date) -> Span | None:
    """지난주 월요일 and 이번 주 월요일 by the calendar, 지난 월요일 the newest one, 월요일에 where something was."""
    number, which = "월화수목금토일".index(match["w"]), (match["l"] or "").replace(" ", "")
    if which.endswith("주"):
        back = {"이번": 0, "지난": 1, "저번": 1}[which[:2]]
        return _days(today + (number - today.weekday() - 7 * back) * _DAY)
    return _weekday(number, today) if which or _KOREAN_PAST.search(match.string) else None


def _ago(match: re.Match[str], today: date) -> Span | None:
    unit = match["u"].lower()
    return _unit(_UNITS.get(unit, unit), _number(match["n"]), today)


def _last_few(match: re.Match[str], today: date) -> Span | None:
    unit = match["u"].lower()
    return _rolling(_UNITS.get(unit, unit), _number(match["n"] or "1"), today)


_DATES: Final = frozenset({_dated, _named_month, _bare_year, _iso, _korean_date})
_KOREAN_YEARS: Final = {"올해": 0, "금년": 0, "작년": 1, "지난해": 1, "재작년": 2}
_BARE: Final = re.compile(r"\s+[a-z]")
_PAST: Final = re.compile(r"\b(?:did|was|were|had|said|told|went|happened|\w{3,}ed)\b", re.IGNORECASE)
_KOREAN_PAST: Final = re.compile(r"[았었했갔왔봤됐렸졌났썼]|[가-힣]던")
_MONTH_NAME: Final = "|".join(_MONTHS)
_ANY_MONTH: Final = "|".join([*_MONTHS, *sorted(_SHORT, key=len, reverse=True)])
_COUNT: Final = "[0-9]{1,4}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_IN_MONTH: Final = re.compile(
    r"(?<!\w)(?:in|during|since|until|till|before|after|(?:end|beginning|start|middle|rest|month)\s+of)"
    r"(?:\s+(?:early|mid|late))?\s+$", re.IGNORECASE
)  # fmt: skip
_TO_MONTH: Final = re.compile(
    rf"(?<!\w)(?:between|from|in)\s+(?:{_MONTH_NAME})\s+(?:and|to|until|till|through|or)\s+$", re.IGNORECASE
)
_RANGE: Final = re.compile(r"(?<!\w)(?:between|from)\s+$", re.IGNORECASE)
_TO_NEXT: Final = re.compile(rf"\s+(?:and|to|until|till|through)\s+(?:{_MONTH_NAME})\b", re.IGNORECASE)
_UNIT: Final = "(?P<u>day|week|month|year)"
_KOREAN_COUNT: Final = "[0-9]{1,4}|한|두|세|석|네|넉|다섯|여섯|일곱|여덟|아홉|열|열한|열두"
_KOREAN_DAYS: Final = "하루|이틀|사흘|나흘|닷새|엿새|이레|여드레|아흐레|열흘"
_TAIL: Final = (
    r"(?=\s*(?:동안|중|초|말|중순|간|이후|이전|부터|까지|전에|후에)(?![가-힣])"
    r"|(?:이후|이전|부터|까지|동안|에서|에는|에도|에|의|은|는|도|이|가|을|를|와|과|랑|하고)?(?:로|로는|에|는)?(?![가-힣]))"
)
_APOSTROPHE: Final = r"(?:['’]s)?"


_compiled: Final = cache(re.compile)
"""The rules are compiled with the first question: it would be a tenth of the time in which a memory opens."""


def _english(pattern: str) -> str:
    return rf"(?i:(?<![\w'’-])(?:{pattern})(?![\w-]))"


def _hangul(pattern: str) -> str:
    return rf"(?<![\w])(?:{pattern}){_TAIL}"


_RULES: Final[Sequence[tuple[str, _Rule]]] = (
    (_english(r"(?:earlier\s+)?today|this\s+(?:morning|afternoon|evening)|tonight"), _fixed("day", 0)),
    (_english(rf"yesterday{_APOSTROPHE}(?:\s+(?:morning|afternoon|evening))?"), _fixed("day", 1)),
    (_english(r"(?:the\s+)?day\s+before\s+yesterday"), _fixed("day", 2)),
    (_english(r"last\s+night"), _night),
    *(
        (_english(rf"{word}\s+{unit}{_APOSTROPHE}"), _fixed(unit, back))
        for unit in ("week", "month", "year")
        for word, back in (("this", 0), ("last", 1), (r"(?:the\s+)?previous", 1))
    ),
    (_english(r"last\s+weekend"), _weekend(1)),
    (_english(r"this\s+weekend"), _weekend(0)),
    (_english(rf"(?P<n>{_COUNT})\s+{_UNIT}s?\s+ago"), _ago),
    (_english(rf"(?:the\s+)?(?:last|past)\s+(?P<n>(?:{_COUNT}))\s+{_UNIT}s?"), _last_few),
    (_english(rf"(?:the\s+)?past\s+(?P<n>){_UNIT}"), _last_few),
    (
        _english(
            rf"(?P<m>{_ANY_MONTH})\.?\s+(?P<d>[0-9]{{1,2}})(?P<o>st|nd|rd|th)?(?:,?\s*(?P<y>[0-9]{{4}}))?"
        ),
        _dated,
    ),
    (
        _english(
            rf"(?:the\s+)?(?P<d>[0-9]{{1,2}})(?P<o>st\s+|nd\s+|rd\s+|th\s+|(?:st|nd|rd|th)?\s+of\s+)?\s*"
            rf"(?P<m>{_ANY_MONTH})\.?(?:,?\s+(?P<y>[0-9]{{4}}))?"
        ),
        _dated,
    ),
    (
        _english(
            rf"(?:(?P<l>last|this)\s+)?(?P<m>{_MONTH_NAME})"
            r"(?:\s+(?:(?:of\s+)?(?P<y>(?:19|20)[0-9]{2})|(?:of\s+)?(?P<r>last|this)\s+year))?"
        ),
        _named_month,
    ),
    (_english(rf"(?:(?P<l>last|this\s+past|past)\s+)?(?P<w>{'|'.join(_WEEKDAYS)})"), _named_weekday),
    (
        (
            r"(?<=\bin )(?P<y>(?:19|20)[0-9]{2})(?=\s*(?:[?!.,;:]|\Z)(?![0-9])|\s+(?:and|or|did|was|were|when)\b)"
        ),
        _bare_year,
    ),
    (
        (r"(?<![\w./-])(?P<y>(?:19|20)[0-9]{2})([-/.])(?P<m>[0-9]{1,2})\2(?P<d>[0-9]{1,2})(?![\w/-])"),
        _iso,
    ),
    (r"(?<![\w./-])(?P<y>(?:19|20)[0-9]{2})-(?P<m>0[1-9]|1[0-2])(?P<d>)(?![\w./-])", _iso),
    (_hangul("오늘(?:\\s*(?:아침|새벽|오전|오후|점심|저녁|밤))?"), _fixed("day", 0)),
    (_hangul("어제(?:\\s*(?:아침|새벽|오전|오후|점심|저녁))?"), _fixed("day", 1)),
    (_hangul("어젯밤|어제\\s*밤|간밤|지난\\s*밤"), _night),
    (_hangul("그제|그저께"), _fixed("day", 2)),
    (_hangul("그끄저께"), _fixed("day", 3)),
    (_hangul(r"이번\s*주|금주"), _fixed("week", 0)),
    (_hangul(r"지난\s*주|저번\s*주"), _fixed("week", 1)),
    (_hangul(r"지지난\s*주|저저번\s*주"), _fixed("week", 2)),
    (_hangul(r"이번\s*달|이달"), _fixed("month", 0)),
    (_hangul(r"지난\s*달|저번\s*달"), _fixed("month", 1)),
    (_hangul(r"지지난\s*달|저저번\s*달"), _fixed("month", 2)),
    *((_hangul(word), _fixed("year", back)) for word, back in _KOREAN_YEARS.items()),
    (_hangul(r"(?:지난|저번)\s*주말|지난\s*주\s*주말"), _weekend(1)),
    (_hangul(r"이번\s*주말"), _weekend(0)),
    (_hangul(rf"(?P<n>{_KOREAN_COUNT}|일|이|삼|사|오|육)\s*(?P<u>주일|주|달|개월|년|일)\s*전"), _ago),
    (
        _hangul(rf"(?P<n>{_KOREAN_DAYS})(?P<u>)\s*전"),
        lambda match, today: _unit("day", _number(match["n"]), today),
    ),
    (
        _hangul(rf"(?:최근|지난)\s*(?P<n>{_KOREAN_COUNT}|일)\s*(?P<u>주일|주|달|개월|년|일)"),
        _last_few,
    ),
    (
        _hangul(
            r"(?:(?P<y>(?:19|20)[0-9]{2})년\s*|(?P<l>작년|지난해|재작년|올해|금년|지난)\s*)?(?P<m>1[0-2]|[1-9])월"
            r"(?:\s*(?P<d>[0-9]{1,2})일)?"
        ),
        _korean_date,
    ),
    (_hangul(r"(?P<y>(?:19|20)[0-9]{2})년"), _bare_year),
    (
        _hangul(r"(?:(?P<l>(?:지난|저번|이번)\s*주|지난|저번)\s*)?(?P<w>[월화수목금토일])요일"),
        _korean_weekday,
    ),
)

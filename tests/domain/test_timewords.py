"""Time words of a question become the bounds of local days; what only looks like a time yields nothing."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.timewords import time_words

SEOUL = ZoneInfo("Asia/Seoul")
NOW = datetime(2023, 5, 24, 0, 10, tzinfo=SEOUL)  # a Wednesday, ten minutes old

BOUNDS = [
    ("what did we decide yesterday?", "2023-05-23", "2023-05-24", "what did we decide?"),
    ("yesterday's meeting", "2023-05-23", "2023-05-24", "meeting"),
    ("the day before yesterday", "2023-05-22", "2023-05-23", ""),
    ("What did I ask today?", "2023-05-24", "2023-05-25", "What did I ask?"),
    ("what came up this morning", "2023-05-24", "2023-05-25", "what came up"),
    ("who called last night?", "2023-05-23", "2023-05-25", "who called?"),
    ("last week in Busan", "2023-05-15", "2023-05-22", "in Busan"),
    ("this week", "2023-05-22", "2023-05-29", ""),
    ("last weekend", "2023-05-20", "2023-05-22", ""),
    ("last month's report", "2023-04-01", "2023-05-01", "report"),
    ("during the previous month", "2023-04-01", "2023-05-01", ""),
    ("last year", "2022-01-01", "2023-01-01", ""),
    ("two days ago", "2023-05-22", "2023-05-23", ""),
    ("3 days ago", "2023-05-21", "2023-05-22", ""),
    ("a week ago", "2023-05-15", "2023-05-22", ""),
    ("five months ago", "2022-12-01", "2023-01-01", ""),
    ("a year ago", "2022-01-01", "2023-01-01", ""),
    ("over the last 3 days", "2023-05-21", "2023-05-25", ""),
    ("in the past week", "2023-05-17", "2023-05-25", ""),
    ("what did I cook in March", "2023-03-01", "2023-04-01", "what did I cook"),
    ("in early March", "2023-03-01", "2023-04-01", ""),
    ("in May", "2023-05-01", "2023-06-01", ""),
    ("in December", "2022-12-01", "2023-01-01", ""),
    ("the trip of August 2022", "2022-08-01", "2022-09-01", "the trip"),
    ("last March", "2023-03-01", "2023-04-01", ""),
    ("last May", "2022-05-01", "2022-06-01", ""),
    ("March last year", "2022-03-01", "2022-04-01", ""),
    ("between March and May, who came?", "2023-03-01", "2023-06-01", ", who came?"),
    ("from March to April", "2023-03-01", "2023-05-01", ""),
    ("on 3 May", "2023-05-03", "2023-05-04", ""),
    ("What happened on May 3rd, 2022?", "2022-05-03", "2022-05-04", "What happened?"),
    ("the 3rd of May", "2023-05-03", "2023-05-04", ""),
    ("December 25", "2022-12-25", "2022-12-26", ""),
    ("29 February", "2020-02-29", "2020-03-01", ""),
    ("from 3 May to 5 May", "2023-05-03", "2023-05-06", ""),
    ("logs of 2023-05-03", "2023-05-03", "2023-05-04", "logs"),
    ("2022-11", "2022-11-01", "2022-12-01", ""),
    ("what did we buy in 2021?", "2021-01-01", "2022-01-01", "what did we buy?"),
    ("last Monday", "2023-05-22", "2023-05-23", ""),
    ("last Wednesday", "2023-05-17", "2023-05-18", ""),
    ("What did I say on Monday?", "2023-05-22", "2023-05-23", "What did I say?"),
    ("yesterday and today", "2023-05-23", "2023-05-25", ""),
    ("since March", "2023-03-01", None, ""),
    ("after last week", "2023-05-22", None, ""),
    ("before last Monday", None, "2023-05-22", ""),
    ("until last week", None, "2023-05-22", ""),
    ("어제 회의", "2023-05-23", "2023-05-24", "회의"),
    ("오늘 아침에 뭐 했지", "2023-05-24", "2023-05-25", "뭐 했지"),
    ("그저께 산 책", "2023-05-22", "2023-05-23", "산 책"),
    ("어젯밤에 누가 왔어?", "2023-05-23", "2023-05-25", "누가 왔어?"),
    ("지난주에 뭐라고 했지", "2023-05-15", "2023-05-22", "뭐라고 했지"),
    ("저번 주 약속", "2023-05-15", "2023-05-22", "약속"),
    ("지지난주", "2023-05-08", "2023-05-15", ""),
    ("이번 달 예산", "2023-05-01", "2023-06-01", "예산"),
    ("지난달에는", "2023-04-01", "2023-05-01", ""),
    ("작년", "2022-01-01", "2023-01-01", ""),
    ("재작년에", "2021-01-01", "2022-01-01", ""),
    ("올해의 목표", "2023-01-01", "2024-01-01", "목표"),
    ("지난 주말에 뭐 했어?", "2023-05-20", "2023-05-22", "뭐 했어?"),
    ("이틀 전", "2023-05-22", "2023-05-23", ""),
    ("3일 전에 말한 것", "2023-05-21", "2023-05-22", "말한 것"),
    ("일주일 전에", "2023-05-15", "2023-05-22", ""),
    ("한 달 전", "2023-04-01", "2023-05-01", ""),
    ("2개월 전", "2023-03-01", "2023-04-01", ""),
    ("최근 3일 동안", "2023-05-21", "2023-05-25", ""),
    ("3월에 간 여행", "2023-03-01", "2023-04-01", "간 여행"),
    ("3월 말", "2023-03-01", "2023-04-01", ""),
    ("12월", "2022-12-01", "2023-01-01", ""),
    ("작년 3월", "2022-03-01", "2022-04-01", ""),
    ("5월 3일", "2023-05-03", "2023-05-04", ""),
    ("2022년 5월 3일에 뭐라고 했어", "2022-05-03", "2022-05-04", "뭐라고 했어"),
    ("2022년도 예산", "2022-01-01", "2023-01-01", "예산"),
    ("지난주 월요일", "2023-05-15", "2023-05-16", ""),
    ("월요일에 뭐 했지", "2023-05-22", "2023-05-23", "뭐 했지"),
    ("3월부터 5월까지", "2023-03-01", "2023-06-01", ""),
    ("어제부터", "2023-05-23", None, ""),
    ("4월 이전", None, "2023-04-01", ""),
]

LOOK_ALIKES = [
    "may I ask something", "march on", "Give me a second", "May 3 people come?", "march 3 miles", "may 5 be right?",
    "the last name", "the last line", "next week", "tomorrow", "What is due on Friday?", "Friday's plan",
    "every Monday", "an email from April", "June said hello", "June and May came", "by June's team", "everyday life",
    "in 2022 lines", "in 1024 bytes", "in 2030?", "version 2023.1", "build 2023-05-03-rc1", "5/3", "31 June",
    "February 30", "3 days", "some days ago", "9999 years ago", "3 to 5 May", "the song 'Yesterday'", "daily",
    "this second", "a year ago today", "yesterday I met Ann, not last week", "what is a week", "a decade ago",
    "그제야 알았다", "오늘의집", "3개월", "3월드", "13월", "3일", "며칠 전", "엊그제", "내일", "다음 주", "요즘",
    "이제", "월요일에 뭐 하지", "『어제』", "2030년", "작년산 와인", "전주", "주말농장", "5월 32일", "",
]  # fmt: skip


def local(day: str | None) -> datetime | None:
    """Midnight in Seoul."""
    return None if day is None else datetime.fromisoformat(day).replace(tzinfo=SEOUL)


@pytest.mark.parametrize(("query", "since", "until", "rest"), BOUNDS, ids=[case[0] for case in BOUNDS])
def test_time_words_become_local_days(query: str, since: str | None, until: str | None, rest: str) -> None:
    """A time in a question becomes the days that it means in the asker's calendar, and leaves the question."""
    found = time_words(query, NOW, SEOUL)
    assert found is not None
    assert (found.since, found.until, found.query) == (local(since), local(until), rest)


@pytest.mark.parametrize("query", LOOK_ALIKES)
def test_look_alikes_yield_nothing(query: str) -> None:
    """Words that only look like a time, times to come, and several times at once yield no bounds."""
    assert time_words(query, NOW, SEOUL) is None


def test_yesterday_is_judged_in_the_askers_zone() -> None:
    """Ten minutes after midnight in Seoul yesterday is that local day, whatever the day in UTC is."""
    found = time_words("yesterday", NOW.astimezone(UTC), SEOUL)
    assert found is not None
    assert found.since == datetime(2023, 5, 22, 15, tzinfo=UTC)
    assert found.until == datetime(2023, 5, 23, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Europe/Berlin", datetime(2024, 4, 1, 9, tzinfo=UTC), 23),
        ("Europe/Berlin", datetime(2024, 10, 28, 9, tzinfo=UTC), 25),
        ("Asia/Beirut", datetime(2024, 4, 1, 9, tzinfo=UTC), 23),
        ("America/Havana", datetime(2024, 11, 4, 9, tzinfo=UTC), 25),
        ("Asia/Seoul", datetime(2024, 4, 1, 9, tzinfo=UTC), 24),
    ],
)
def test_a_day_is_as_long_as_its_zone_makes_it(zone: str, now: datetime, hours: int) -> None:
    """A day on which clocks change has 23 or 25 hours, also where midnight itself is skipped or comes twice."""
    found = time_words("yesterday" if hours == 24 else "last Sunday", now, ZoneInfo(zone))
    assert found is not None
    assert found.since is not None and found.until is not None
    assert found.until - found.since == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("query", "relative"),
    [("지난주 회의", True), ("2 days ago", True), ("in March", False), ("5월 3일", False)],
)
def test_words_that_count_from_now_are_told_from_dates(query: str, relative: bool) -> None:
    """Last week speaks of when something was said, a date perhaps of what was spoken about."""
    found = time_words(query, NOW, SEOUL)
    assert found is not None
    assert found.relative is relative


def test_a_pasted_text_is_no_question() -> None:
    """A text of more than a thousand characters is not searched for times."""
    assert time_words("yesterday " + "x" * 1_000, NOW, SEOUL) is None


@given(
    st.lists(
        st.sampled_from([w for q, *_ in BOUNDS for w in q.split()] + ["3", "May", "to", "?", "'"]), max_size=8
    ),
    st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([SEOUL, UTC])),
)
def test_any_words_give_an_order_or_nothing(words: list[str], now: datetime) -> None:
    """Whatever the words, the bounds are in order, have begun, and do not fail."""
    found = time_words(" ".join(words), now, SEOUL)
    if found is not None:
        assert found.since is not None or found.until is not None
        assert found.since is None or found.since <= now
        assert found.since is None or found.until is None or found.since < found.until


@pytest.mark.parametrize("year", [1, 9999])
@pytest.mark.parametrize("query", ["what did we say last week?", "지난주에 뭐라고 했지?"])
def test_the_ends_of_the_calendar_bound_nothing(query: str, year: int) -> None:
    """Where there is no week before or behind, the words are words."""
    assert time_words(query, datetime(year, 1, 1, 12, tzinfo=UTC), SEOUL) is None

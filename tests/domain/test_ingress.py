"""One ingress rule for text, times, keys and JSON."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.ingress import (
    ESCAPE,
    carried,
    interval,
    json_text,
    microseconds,
    moment,
    original,
    short,
    statement,
)

ANY_TEXT = st.text(alphabet=st.characters(), max_size=60)
NOW = datetime(2026, 3, 2, tzinfo=UTC)


@given(ANY_TEXT)
def test_every_text_is_carried_and_comes_back_as_it_was(text: str) -> None:
    """H02: whatever Python can hold, lone surrogates included, becomes UTF-8 and is recovered."""
    assert original(carried(text, "content")).encode("utf-16", "surrogatepass") == text.encode(
        "utf-16", "surrogatepass"
    )
    carried(text, "content").encode()


@pytest.mark.parametrize(
    ("text", "stored"),
    [("\ud83d", f"{ESCAPE}d83d"), ("a\ud83d\ude00b", "a😀b"), ("x\x00y", "x\x00y"), (ESCAPE, ESCAPE * 2)],
)
def test_surrogates_are_joined_or_escaped_and_nul_is_kept(text: str, stored: str) -> None:
    """H01, H02: a pair becomes its character, a lone half an escape; NUL passes."""
    assert carried(text, "content") == stored


def test_bytes_are_refused_with_advice() -> None:
    """Bytes are refused with advice."""
    with pytest.raises(InvalidInput, match="decode bytes"):
        carried(b"x", "content")


def test_a_text_above_the_limit_is_refused_by_its_bytes() -> None:
    """A text above the limit is refused by its bytes."""
    with pytest.raises(InvalidInput, match="6 bytes"):
        carried("가나", "content", limit=5)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_statement_is_refused(text: str) -> None:
    """An empty statement is refused."""
    with pytest.raises(InvalidInput, match="empty"):
        statement(text)


@pytest.mark.parametrize(
    "value",
    ["2026-03-08T09:30+09:00", "2026-03-08T00:30:00Z", datetime(2026, 3, 8, 0, 30, tzinfo=UTC)],
)
def test_the_same_instant_in_every_form_has_the_same_microseconds(value: datetime | str) -> None:
    """D04: aware, Z and no-second forms are one instant; D01: to the microsecond."""
    assert microseconds(moment(value, "occurred_at", zone=lambda: None, now=NOW)) == 1_772_929_800_000_000


def test_the_original_offset_stays() -> None:
    """D01: UTC for order, the writer's own offset for people."""
    at = moment("2026-03-08T09:30:00+09:00", "occurred_at", zone=lambda: None, now=NOW)
    assert at.isoformat() == "2026-03-08T09:30:00+09:00"


@pytest.mark.parametrize("value", ["2026-03-08T09:30", datetime(2026, 3, 8)])
def test_a_naive_time_needs_the_zone_of_its_session(value: datetime | str) -> None:
    """D04: refused without a zone, one rule with it."""
    with pytest.raises(InvalidInput, match="no time zone"):
        moment(value, "occurred_at", zone=lambda: None, now=NOW)
    assert moment(value, "x", zone=lambda: ZoneInfo("Asia/Seoul"), now=NOW).utcoffset() == timedelta(hours=9)


def test_both_sides_of_a_clock_change_are_told_apart() -> None:
    """D01: 01:30 happens twice on the day that daylight saving ends."""
    zone = ZoneInfo("America/Los_Angeles")
    first = datetime(2026, 11, 1, 1, 30, tzinfo=zone)
    second = first.replace(fold=1)
    assert microseconds(second) - microseconds(first) == 3_600_000_000


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01T00:00Z", 5, "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_refused(value: object) -> None:
    """What is no time is refused."""
    with pytest.raises(InvalidInput):
        moment(value, "occurred_at", zone=lambda: None, now=NOW)  # type: ignore[arg-type]


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=-7)))))
def test_microseconds_are_exact(at: datetime) -> None:
    """Microseconds are exact."""
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds(at)) == at


def test_an_inverted_interval_is_refused_and_an_empty_one_is_not() -> None:
    """D07."""
    with pytest.raises(InvalidInput, match="before"):
        interval(NOW, NOW - timedelta(days=1))
    interval(NOW, NOW)


def test_json_is_kept_as_given_or_written_and_what_is_not_json_is_refused() -> None:
    """Json is kept as given or written and what is not json is refused."""
    assert json_text('{"a" : 1}', "arguments") == '{"a" : 1}'
    assert json_text({"경로": "a\x00"}, "arguments") == '{"경로": "a\\u0000"}'
    for value in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises(InvalidInput, match="not JSON"):
            json_text(value, "arguments")


def test_keys_are_bounded() -> None:
    """Keys are bounded."""
    with pytest.raises(InvalidInput, match="limit"):
        short("k" * 513, "key")

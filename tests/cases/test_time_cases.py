"""Complaints about time elsewhere, and what is right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from face_world import U1, contents, texts
from mnemolog import Memory
from mnemolog.errors import InvalidInput

KST = timezone(timedelta(hours=9))


def test_an_event_keeps_its_offset_and_ranges_are_exact(memory: Memory) -> None:
    """D01: 09:30+09:00 is stored with its offset and found by exactly the ranges that hold its instant."""
    receipt = memory.record_turn(U1, role="user", content="coffee", occurred_at="2026-03-08T09:30:00+09:00")
    at = datetime(2026, 3, 8, 0, 30, tzinfo=UTC)
    hit = memory.get(U1, receipt.event_id)
    assert hit.occurred_at == at
    assert hit.occurred_at.utcoffset() == timedelta(hours=9)
    tick = timedelta(microseconds=1)
    assert texts(memory, U1, "coffee", since=at, until=at + tick) == ["coffee"]
    assert texts(memory, U1, "coffee", until=at) == []
    assert texts(memory, U1, "coffee", since=at + tick) == []
    assert texts(memory, U1, "coffee", since=at.astimezone(KST)) == ["coffee"]


def test_both_sides_of_a_clock_change_are_told_apart(memory: Memory) -> None:
    """D01: in a session of New York, 01:30 before the gap and 03:30 after it are one hour apart."""
    memory.open_session(U1, timezone="America/New_York")
    before = memory.record_turn(U1, role="user", content="early walrus", occurred_at="2026-03-08T01:30:00")
    after = memory.record_turn(U1, role="user", content="late walrus", occurred_at="2026-03-08T03:30:00")
    times = [memory.get(U1, receipt.event_id).occurred_at for receipt in (before, after)]
    assert times[1] - times[0] == timedelta(hours=1)
    assert texts(memory, U1, "walrus", since="2026-03-08T07:00:00Z") == ["late walrus"]


def test_one_rule_for_every_form_of_time(memory: Memory) -> None:
    """D04: aware, "Z" and sub-second forms are normalised; a naive one needs its session's zone, else it is refused."""
    same = [
        "2026-03-02T00:14:00Z",
        "2026-03-02T00:14:00.000000+00:00",
        "2026-03-02T09:14:00+09:00",
        "2026-03-02T09:14+09:00",
        datetime(2026, 3, 2, 0, 14, tzinfo=UTC),
        datetime(2026, 3, 2, 9, 14, tzinfo=KST),
    ]
    receipts = [memory.record_turn(U1, role="user", content="tick", occurred_at=form) for form in same]
    assert len({memory.get(U1, receipt.event_id).occurred_at for receipt in receipts}) == 1
    for naive in ("2026-03-02T09:14:00", datetime(2026, 3, 2, 9, 14), "yesterday", 1_767_225_600):
        with pytest.raises(InvalidInput):
            memory.record_turn(U1, role="user", content="tick", occurred_at=naive)
        with pytest.raises(InvalidInput):
            memory.recall(U1, "tick", since=naive)
    memory.open_session(U1, timezone="Asia/Seoul")
    local = memory.record_turn(U1, role="user", content="tick", occurred_at="2026-03-02T09:14:00")
    assert memory.get(U1, local.event_id).occurred_at == datetime(2026, 3, 2, 0, 14, tzinfo=UTC)
    assert len(texts(memory, U1, "tick", since="2026-03-02T09:14:00", until="2026-03-02T09:15:00")) == 7


def test_an_inverted_interval_is_refused_and_an_empty_one_holds_nowhere(memory: Memory) -> None:
    """D07: valid_to before valid_from is refused, also across offsets; equal bounds are never current."""
    with pytest.raises(InvalidInput):
        memory.remember(U1, "x", valid_from="2026-02-02T00:00:00Z", valid_to="2026-02-01T00:00:00Z")
    with pytest.raises(InvalidInput):
        memory.remember(U1, "x", valid_from="2026-02-01T00:00:00Z", valid_to="2026-02-01T08:00:00+09:00")
    memory.remember(U1, "never", valid_from="2026-01-02T00:00:00Z", valid_to="2026-01-02T00:00:00Z")
    note = memory.remember(U1, "January", valid_from="2026-01-01T00:00:00Z", valid_to="2026-02-01T00:00:00Z")
    with pytest.raises(InvalidInput):
        memory.correct(
            U1, note.record_id, "y", valid_from="2026-02-02T00:00:00Z", valid_to="2026-02-01T00:00:00Z"
        )
    for now, current in (
        ("2025-12-31T23:59:59Z", []),
        ("2026-01-01T00:00:00Z", ["January"]),
        ("2026-01-02T00:00:00Z", ["January"]),
        ("2026-01-31T23:59:59.999999Z", ["January"]),
        ("2026-02-01T00:00:00Z", []),
    ):
        assert contents(memory, U1, now=now) == current


def test_equal_times_keep_the_order_of_the_log(memory: Memory) -> None:
    """D09: of twenty statements with one time the last one stands, and turns read back in log order."""
    at = "2026-01-05T12:00:00Z"
    for number in range(20):
        memory.remember(U1, f"value {number}", slot=("dial", "value"), occurred_at=at)
        memory.record_turn(U1, role="user", content=f"turn {number}", occurred_at=at)
    assert contents(memory, U1) == ["value 19"]
    text = memory.context(U1, "nothing of it", budget=4000).text
    places = [text.index(f"turn {number}\n") for number in range(20)]
    assert places == sorted(places)
    hits = memory.recall(U1, "turn", k=20, kinds=["turn"])
    newest_first = sorted(hits, key=lambda hit: (-hit.score, -int(hit.text.split()[1])))
    assert hits == newest_first

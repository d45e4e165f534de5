"""By which rule a record stands before another one: what is told agrees with what was judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_contests import MINUTE, PEERS, value

from mnemolog.domain.contests import after_merges
from mnemolog.domain.precedence import Compared, compared
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Precedence, Record, Status
from mnemolog.domain.standing import standing

NOW, WITHIN = 99 * MINUTE, 10 * MINUTE
LEADS = frozenset({Status.CURRENT, Status.DISPUTED, Status.CONTESTED})


def judged(*records: Record, now: int = NOW, within: int = WITHIN) -> dict[str, Record]:
    found = after_merges([(one.id, one) for one in standing(records, now, within)])
    return dict(found)


def told(one: str, other: str, records: dict[str, Record], now: int = NOW, within: int = WITHIN) -> Compared:
    found = compared(records[one], list(records.values()), now, within)
    return next(each for each in found if each.other == other)


@pytest.mark.parametrize(
    ("first", "second", "rule", "winner"),
    [
        ({}, {}, Precedence.OPEN, None),
        ({}, {"voice": "v1"}, Precedence.RECENT, "r2"),
        ({}, {"voice": "v1", "order_us": MINUTE}, Precedence.LATER, "r2"),
        ({}, {"authority": Tier.USER_STATED}, Precedence.AUTHORITY, "r2"),
        ({"ruled": True, "ruling": 3}, {"authority": Tier.OPERATOR}, Precedence.PERSON, "r1"),
        ({}, {"form": "f1"}, Precedence.SAME, "r2"),
        ({"confirmed": 3}, {}, Precedence.CONFIRMED, "r1"),
        ({}, {"confirmed": 3}, Precedence.CONFIRMED, "r2"),
        ({"to_us": 9 * MINUTE}, {}, Precedence.VALID_NOW, "r2"),
        ({"from_us": 9 * NOW}, {"to_us": 9 * MINUTE}, Precedence.VALID_NOW, None),
        ({}, {"merged_into": "r1"}, Precedence.MERGED, "r1"),
        ({}, {"status": Status.RETRACTED}, Precedence.RETRACTED, "r1"),
    ],
)
def test_the_rule_between_two(
    first: dict[str, object], second: dict[str, object], rule: Precedence, winner: str | None
) -> None:
    """The first rule of revision that tells the two apart, the same seen from either side."""
    records = judged(value(1, **first), replace(value(2), **second))  # type: ignore[arg-type]
    assert told("r1", "r2", records) == Compared("r1", "r2", rule, winner)
    assert told("r2", "r1", records) == Compared("r2", "r1", rule, winner)


def test_a_merge_into_another_slot_is_told() -> None:
    """What was merged into a record elsewhere stands behind all of its slot, for that reason."""
    elsewhere = replace(value(9), group="t", status=Status.CURRENT)
    peers = standing([value(1), value(2, merged_into="r9")], NOW, WITHIN)
    records = dict(after_merges([(one.id, one) for one in (*peers, elsewhere)]))
    del records["r9"]
    assert told("r1", "r2", records) == Compared("r1", "r2", Precedence.MERGED, "r1")


@given(PEERS, st.integers(0, 9), st.integers(0, 3))
def test_what_is_told_is_what_was_judged(values: list[dict[str, object]], now: int, within: int) -> None:
    """Whatever leads wins against all others by some rule, and what is open is open from both sides."""
    peers = [
        Record(f"r{at}", 1, Status.ACTIVE, 1, at, content="x", group="s", ruling=at * each["ruled"], **each)  # type: ignore[operator, arg-type]
        for at, each in enumerate(values, 1)
    ]
    records = {one.id: one for one in standing(peers, now, within)}
    for one in records.values():
        for pair in compared(one, list(records.values()), now, within):
            back = told(pair.other, one.id, records, now, within)
            assert (back.rule, back.winner) == (pair.rule, pair.winner)
            assert (pair.winner is None) == (pair.other in one.rivals)
            if one.status in LEADS and pair.other not in one.rivals:
                assert pair.winner == one.id
            if pair.other == one.superseded_by:
                assert pair.winner == pair.other

"""What nothing decides between values of one slot, and what a person decides: the pure rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.contests import after_merges
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import READABLE, Act, Assertion, Record, Status
from mnemolog.domain.revision import settle
from mnemolog.domain.standing import standing

MINUTE = 60_000_000
PEERS = st.lists(
    st.builds(
        dict,
        ruled=st.booleans(),
        human=st.booleans(),
        authority=st.sampled_from([Tier.AGENT, Tier.USER_STATED]),
        order_us=st.integers(0, 4),
        expires_us=st.one_of(st.none(), st.integers(0, 9)),
        form=st.sampled_from("abc"),
        voice=st.sampled_from("vw"),
        confirmed=st.integers(0, 7),
        merged_into=st.one_of(st.none(), st.sampled_from(["r1", "r2", "r3"])),
    ),
    max_size=6,
)


def value(number: int, **given: object) -> Record:
    """A value of one slot, said in its minute by its own voice."""
    fixed = {
        "form": f"f{number}",
        "voice": f"v{number}",
        "order_us": number * MINUTE,
        "authority": Tier.AGENT,
    }
    return Record(f"r{number}", 1, Status.ACTIVE, 1, number, content="x", group="s", **{**fixed, **given})


def said(*records: Record, within: int = 10 * MINUTE) -> dict[str, Status]:
    return {record.id: record.status for record in standing(records, 99 * MINUTE, within)}


BOTH = {"r1": Status.CONTESTED, "r2": Status.CONTESTED}
SECOND = {"r1": Status.SUPERSEDED, "r2": Status.CURRENT}
FIRST = {"r1": Status.CURRENT, "r2": Status.SUPERSEDED}
STANDS_ALONE = {Status.ACTIVE: Status.CURRENT, Status.DISPUTED: Status.DISPUTED}


@pytest.mark.parametrize(
    ("first", "second", "becomes"),
    [
        ({}, {}, BOTH),
        ({}, {"voice": "v1"}, SECOND),
        ({}, {"authority": Tier.USER_STATED}, SECOND),
        ({}, {"order_us": 30 * MINUTE}, SECOND),
        ({}, {"form": "f1"}, {"r1": Status.DUPLICATE, "r2": Status.CURRENT}),
        ({"confirmed": 3}, {}, FIRST),
        ({"confirmed": 3}, {"confirmed": 4}, SECOND),
        ({"confirmed": 1}, {}, BOTH),
        ({"ruled": True, "ruling": 3}, {}, FIRST),
        ({}, {"expires_us": 9 * MINUTE}, {"r1": Status.SUPERSEDED, "r2": Status.EXPIRED}),
        ({"to_us": 9 * MINUTE}, {}, {"r1": Status.EXPIRED, "r2": Status.CURRENT}),
        ({"merged_into": "r2"}, {}, SECOND),
        ({}, {"merged_into": "r1"}, FIRST),
    ],
)
def test_what_decides_between_two(
    first: dict[str, object], second: dict[str, object], becomes: dict[str, Status]
) -> None:
    """Only different voices of equal authority at about the same time need a person, until one decided."""
    assert said(value(1, **first), value(2, **second)) == becomes


def test_the_last_word_of_each_voice_counts() -> None:
    """Who says something else later has replaced their own word, and still contradicts the other's."""
    judged = said(value(1), value(2), value(3, voice="v1"))
    assert judged == {"r1": Status.SUPERSEDED, "r2": Status.CONTESTED, "r3": Status.CONTESTED}


def test_what_is_said_after_a_confirmation_is_asked_about_again() -> None:
    """A confirmation decides against what was said before it, and what it dismissed does not come back."""
    judged = said(value(1, confirmed=3), value(2), value(4))
    assert judged == {"r1": Status.CONTESTED, "r2": Status.SUPERSEDED, "r4": Status.CONTESTED}


def test_rivals_name_each_other() -> None:
    """Each of three values that stand against each other has the ids of the other two."""
    judged = {
        record.id: set(record.rivals) for record in standing([value(1), value(2), value(3)], 0, MINUTE * 9)
    }
    assert judged == {"r1": {"r2", "r3"}, "r2": {"r1", "r3"}, "r3": {"r1", "r2"}}


@given(PEERS, st.integers(0, 9), st.integers(0, 3), st.randoms())
def test_the_order_of_peers_does_not_matter(
    values: list[dict[str, object]], now: int, within: int, chance: object
) -> None:
    """With contests, confirmations and merges too the judgement is total, and loses nobody."""
    peers = [
        Record(f"r{at}", 1, Status.ACTIVE, 1, at, content="x", group="s", ruling=at * each["ruled"], **each)  # type: ignore[operator, arg-type]
        for at, each in enumerate(values, 1)
    ]
    shuffled = sorted(peers, key=lambda _: chance.random())  # type: ignore[attr-defined]
    judged = {record.id: record for record in standing(peers, now, within)}
    assert judged == {record.id: record for record in standing(shuffled, now, within)}
    assert judged.keys() == {record.id for record in peers}
    readable = [record for record in judged.values() if record.status in READABLE]
    assert len(readable) <= 1 or {record.status for record in readable} == {Status.CONTESTED}
    assert (
        len({record.form for record in readable})
        == len({record.voice for record in readable})
        == len(readable)
    )


def test_a_merged_record_is_behind_the_other_as_long_as_that_stands() -> None:
    """What was merged comes back when the other one is retracted, forgotten or not there."""
    one = replace(value(1, merged_into="r2"), status=Status.CURRENT)
    for status, becomes in (
        (Status.CURRENT, Status.SUPERSEDED),
        (Status.SUPERSEDED, Status.SUPERSEDED),
        (Status.RETRACTED, Status.CURRENT),
        (Status.FORGOTTEN, Status.CURRENT),
    ):
        judged = dict(after_merges([("a", one), ("b", replace(value(2), status=status))]))
        assert (judged["a"].status, judged["b"].status) == (becomes, status)
    assert dict(after_merges([("a", one)]))["a"].status is Status.CURRENT


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.DISPUTED])
def test_who_was_merged_away_is_nobodys_rival(status: Status) -> None:
    """Two that are left ask about each other; the last one stands as if it had had none, in doubt where it was."""
    other = replace(value(9), group="t")
    first, second = value(1, merged_into="r9"), value(2)
    third = replace(value(3), status=status)
    for peers, becomes in (
        ([first, second, third], {"r2": (Status.CONTESTED, ("r3",)), "r3": (Status.CONTESTED, ("r2",))}),
        ([first, third], {"r3": (STANDS_ALONE[status], ())}),
        ([first, replace(second, merged_into="r9"), third], {"r3": (STANDS_ALONE[status], ())}),
    ):
        judged = [*standing(peers, 0, 10 * MINUTE), *standing([other], 0)]
        after = dict(after_merges([(one.id, one) for one in judged]))
        readable = {id: (one.status, one.rivals) for id, one in after.items() if one.status in READABLE}
        assert readable == {"r9": (Status.CURRENT, ()), **becomes}


def test_a_merge_into_what_is_gone_leaves_the_rivals() -> None:
    """As long as what it was merged into does not stand, both are asked about."""
    other = replace(replace(value(9), group="t"), status=Status.RETRACTED)
    judged = [*standing([value(1, merged_into="r9"), value(2)], 0, 10 * MINUTE), other]
    after = {one.id: (one.status, one.rivals) for _, one in after_merges([(one.id, one) for one in judged])}
    assert after == {
        "r1": (Status.CONTESTED, ("r2",)),
        "r2": (Status.CONTESTED, ("r1",)),
        "r9": (Status.RETRACTED, ()),
    }


def test_two_that_were_merged_into_each_other_both_stand() -> None:
    """A circle of merges, whatever made it, hides nothing."""
    one, other = value(1, merged_into="r2"), value(2, merged_into="r1")
    judged = after_merges([(r.id, replace(r, status=Status.CURRENT)) for r in (one, other)])
    assert {record.status for _, record in judged} == {Status.CURRENT}


def act(position: int, what: Act, **given: object) -> Assertion:
    fixed = {"tier": Tier.USER_STATED, "human": True, "occurred_us": position, "occurred_at": f"t{position}"}
    return Assertion(position, f"e{position}", "r", position, what, 1, "a", "t", **{**fixed, **given})


def test_the_last_decision_about_a_pair_counts() -> None:
    """A merge is undone by keeping apart, keeping apart by a merge, and a merge by a correction to other words."""
    said_, merged = act(1, Act.STATED, content="x", form="x"), act(2, Act.MERGED, rejected=("other",))
    parted = act(3, Act.PARTED, rejected=("other",))
    assert settle([said_, merged], {}).merged_into == "other"
    for rows in permutations([said_, merged, parted]):
        record = settle(rows, {})
        assert (record.merged_into, record.apart) == (None, ("other",))
    again = settle([said_, merged, parted, act(4, Act.MERGED, rejected=("other",))], {})
    assert (again.merged_into, again.apart) == ("other", ())
    assert settle([said_, merged, act(3, Act.CORRECTED, content="y", form="y")], {}).merged_into is None


def test_only_a_person_confirms_for_good() -> None:
    """An agent's confirmation says when it was verified, and decides nothing."""
    said_ = act(1, Act.STATED, content="x", form="x", human=False, tier=Tier.AGENT)
    assert settle([said_, act(2, Act.CONFIRMED, human=False, tier=Tier.AGENT)], {}).confirmed == 0
    assert settle([said_, act(2, Act.CONFIRMED)], {}).confirmed == 2

"""Which statement is effective, and which record stands: the pure rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.normalise import normal_form, slot_key, statement_key
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import READABLE, Act, Assertion, Evidence, Record, Status, microseconds
from mnemolog.domain.revision import chronicle, settle
from mnemolog.domain.standing import standing, standing_alone

PEERS = st.lists(
    st.builds(
        dict,
        ruled=st.booleans(),
        human=st.booleans(),
        authority=st.sampled_from(Tier),
        order_us=st.integers(0, 3),
        from_us=st.one_of(st.none(), st.integers(0, 5)),
        to_us=st.one_of(st.none(), st.integers(0, 5)),
        expires_us=st.one_of(st.none(), st.integers(0, 9)),
        form=st.sampled_from("abc"),
    ),
    max_size=6,
)


def said(position: int, act: Act = Act.STATED, content: str | None = "x", **rest: object) -> Assertion:
    values = {"tier": Tier.USER_STATED, "human": True, "occurred_us": position, "occurred_at": f"t{position}"}
    form = None if content is None else statement_key(content)
    return Assertion(
        position, f"e{position}", "r", position, act, 1, "a", f"t{position}",
        **{**values, "content": content, "form": form, **rest},
    )  # fmt: skip


def peer(number: int, values: dict[str, object]) -> Record:
    fixed = {"id": f"r{number}", "position": number, "ruling": number if values["ruled"] else 0}
    return Record(scope=1, status=Status.ACTIVE, version=1, content="x", group="g", **{**values, **fixed})


def by_id(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.id)


@given(PEERS, st.integers(0, 9), st.randoms())
def test_the_order_of_peers_does_not_matter(
    values: list[dict[str, object]], now: int, chance: object
) -> None:
    """The judgement is total: any order of the same peers gives the same statuses and links."""
    peers = [peer(number, each) for number, each in enumerate(values, 1)]
    shuffled = sorted(peers, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert by_id(standing(peers, now)) == by_id(standing(shuffled, now))


@given(PEERS, st.integers(0, 9))
def test_one_at_most_stands_and_nobody_is_lost(values: list[dict[str, object]], now: int) -> None:
    """Every peer is judged once; one at most is readable, and it holds at the time."""
    peers = [peer(number, each) for number, each in enumerate(values, 1)]
    judged = standing(peers, now)
    assert sorted(r.id for r in judged) == sorted(r.id for r in peers)
    assert Status.ACTIVE not in {r.status for r in judged}
    readable = [r for r in judged if r.status in READABLE]
    assert len(readable) <= 1
    for r in readable:
        assert (r.from_us is None or r.from_us <= now) and (r.to_us is None or now < r.to_us)


@given(PEERS, st.integers(0, 9))
def test_a_loser_that_leaves_changes_no_winner(values: list[dict[str, object]], now: int) -> None:
    """Taking away a peer that lost, and had no ruling, leaves the same one standing."""
    peers = [peer(number, each) for number, each in enumerate(values, 1)]
    judged = standing(peers, now)
    for gone in [r for r in judged if r.status not in READABLE and not r.ruled]:
        rest = standing([p for p in peers if p.id != gone.id], now)
        before = [r.id for r in judged if r.status in READABLE]
        after = [r.id for r in rest if r.status in READABLE]
        assert before == after or (not before and gone.status is Status.EXPIRED)


def test_settling_does_not_depend_on_the_order_of_rows() -> None:
    """A record is a function of the set of its assertions."""
    rows = [
        said(1),
        said(2, Act.CORRECTED, "y"),
        said(3, Act.DISPUTED, None, human=False, tier=Tier.AGENT),
        said(4, Act.STATED, "x", human=False, tier=Tier.AGENT),
        said(5, Act.CONFIRMED, None),
    ]
    results = {settle(order, {}) for order in permutations(rows)}
    assert len(results) == 1
    record = results.pop()
    assert (record.content, record.status, record.last_verified) == ("y", Status.ACTIVE, "t5")


@pytest.mark.parametrize(
    ("tier", "human", "status"),
    [
        (Tier.AGENT, False, Status.RETRACTED),
        (Tier.SYSTEM_OF_RECORD, False, Status.RETRACTED),
        (Tier.USER_STATED, True, Status.ACTIVE),
        (Tier.OPERATOR, True, Status.ACTIVE),
    ],
)
def test_a_retraction_gives_way_to_equal_rank_only(tier: Tier, human: bool, status: Status) -> None:
    """What a person retracted is not brought back by a machine that says it again; a person may."""
    rows = [said(1), said(2, Act.RETRACTED, None), said(3, tier=tier, human=human)]
    assert settle(rows, {}).status is status


def test_a_late_restatement_does_not_bring_back_what_was_withdrawn_since() -> None:
    """What was said before the retraction stays retracted, whenever it arrives; what is said after it may stand."""
    first, gone = said(1, occurred_us=50), said(2, Act.RETRACTED, None, occurred_us=90)
    for late in (10, 50, 89):
        record = settle([first, gone, said(3, occurred_us=late)], {})
        assert (record.status, record.believed_to) == (Status.RETRACTED, 2)
    since = {"occurred_us": 99, "valid_from": "1970-01-01T00:00:00Z"}
    assert settle([first, gone, said(3, **since)], {}).status is Status.ACTIVE
    assert (
        settle([replace(first, forgotten=True), gone, said(3, occurred_us=10)], {}).status is Status.RETRACTED
    )


def test_an_end_before_the_beginning_that_is_corrected_drops_that_beginning() -> None:
    """A correction that says only until when holds until then, and not nowhere; bounds that fit are kept."""
    first = said(1, valid_from="2026-02-01T00:00:00Z", valid_to="2026-03-01T00:00:00Z")
    for end, begins in (
        ("2026-01-15T00:00:00Z", None),
        ("2026-02-01T09:00:00+09:00", None),
        ("2026-02-15T00:00:00Z", first.valid_from),
    ):
        record = settle([first, said(2, Act.CORRECTED, "y", valid_to=end)], {})
        assert (record.valid_from, record.valid_to) == (begins, end)
        assert standing([replace(record, group="g")], microseconds(end) - 1)[0].status in READABLE


def test_a_correction_keeps_what_it_leaves_open() -> None:
    """Kind, slot, times and consent stay; an end before the new beginning does not; a person is certain."""
    first = said(1, kind="preference", entity="report", attribute="format", valid_to="2026-01-02T00:00:00Z",
                 confidence=0.3, consent="contract", human=False, tier=Tier.AGENT)  # fmt: skip
    second = said(2, Act.CORRECTED, "y", valid_from="2026-02-01T00:00:00Z")
    record = settle([first, second], {})
    assert (record.kind, record.slot, record.consent) == ("preference", ("report", "format"), "contract")
    assert (record.valid_from, record.valid_to, record.confidence) == ("2026-02-01T00:00:00Z", None, 1.0)


def test_a_choice_of_a_person_makes_an_older_value_stand() -> None:
    """A resolved conflict ranks like a correction, and brings no trust to what it chose."""
    chosen = [said(1, human=False, tier=Tier.AGENT), said(9, Act.RESOLVED, None)]
    record = replace(settle(chosen, {}), id="chosen", group="g")
    other = replace(settle([said(5, content="z")], {}), id="other", group="g")
    assert record.trust is Tier.AGENT
    assert [r.status for r in standing([record, other], 99)] == [Status.CURRENT, Status.SUPERSEDED]


@pytest.mark.parametrize(
    ("act", "content", "status"),
    [
        (Act.APPROVED, None, Status.ACTIVE),
        (Act.REJECTED, None, Status.HELD),
        (Act.EDITED, "y", Status.ACTIVE),
    ],
)
def test_a_review_of_a_person_outlasts_machines(act: Act, content: str | None, status: Status) -> None:
    """Approval, rejection and edit stand against whatever a machine says later."""
    machine = {"human": False, "tier": Tier.SYSTEM_OF_RECORD}
    rows = [said(1, **machine), said(2, act, content), said(3, content="x", **machine)]
    record = settle(rows, {})
    assert (record.status, record.content, record.ruled) == (status, content or "x", True)


def test_a_correction_of_an_earlier_time_leaves_the_later_value() -> None:
    """Setting right what held before does not displace what a person said about later."""
    old = [said(1, valid_from="2020-01-01T00:00:00Z"), said(3, Act.CORRECTED, "y")]
    earlier = replace(settle(old, {}), id="old", group="g")
    later = replace(
        settle([said(2, content="z", valid_from="2023-01-01T00:00:00Z")], {}), id="new", group="g"
    )
    now = microseconds("2026-01-01T00:00:00Z")
    assert [(r.id, r.status) for r in standing([earlier, later], now)] == [
        ("new", Status.CURRENT),
        ("old", Status.SUPERSEDED),
    ]


def test_only_shells_are_forgotten() -> None:
    """A record whose content is all erased says so, keeps its version, and nothing else."""
    shell = Assertion(4, "e4", "r", 4, Act.STATED, 1, "a", "t4", forgotten=True)
    record = settle([shell, said(5, Act.CONFIRMED, None)], {"e4": 6})
    assert (record.status, record.content, record.version) == (Status.FORGOTTEN, None, 5)
    assert [step.effect for step in chronicle([shell])] == ["forgotten"]


def test_trust_is_the_minimum_over_what_is_cited() -> None:
    """A person's statement that cites an untrusted source is trusted as little as the source."""
    row = said(1, evidence=(Evidence("e0", tier=Tier.UNTRUSTED_TOOL), Evidence("e9")))
    assert settle([row], {}).trust is Tier.UNTRUSTED_TOOL


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("Reports go out as Excel", "  reports go out\nas EXCEL. ", True),
        ("「배포는 금요일」", "배포는 금요일。", True),
        ("ＫＤＨＡ", "kdha", True),
        ("Straße", "STRASSE", True),
        ("It is allowed", "It is not allowed", False),
        ("fee 3%", "fee 3", False),
        ("fee 3", "fee -3", False),
        ("A before B", "B before A", False),
        ("We deploy on Friday", "We deploy on Friday?", False),
        ("3.5", "35", False),
        ("...", "!", False),
        ("the board is 5'", 'the board is 5"', False),
        ("the board is 5", 'the board is 5"', False),
        ("the board is 5″", "the board is 5′", False),
        ('the board is 5"', " The board is 5”. ", True),
        ('the board is 5"', "'the board is 5\"'", True),
        ("the board is 5", "“The board is 5.”", True),
        ("the board is 5", "'The board is 5'", True),
        ('"X" is 5"', '"X" is 5', False),
        ("폭은 5'", '폭은 5"', False),
        ("he said ok", "'He said ok'!", True),
        ("Password is Abc", "password is aBC", False),
        ("the token is x7Q", "the token is X7q", False),
        ("it is in docs/Plans/Min", "it is in docs/plans/min", False),
        ("Reports go out as Excel", "reports go out as excel.", True),
        ("Ask O'Neil by E-MAIL", "ask o'neil by e-mail", True),
        ("보고서는 Excel로 보내요", "보고서는 excel로 보내요.", True),
        ("회의는 3월 2일", "회의는  3월 2일.", True),
    ],
)
def test_normal_form(one: str, two: str, same: bool) -> None:
    """Case, width, space and the final stop carry no meaning; negation, numbers, units, identifiers, order do."""
    assert (statement_key(one) == statement_key(two)) is same


@given(st.text(max_size=40))
def test_normal_form_is_stable(text: str) -> None:
    """A normal form is its own normal form."""
    assert normal_form(normal_form(text)) == normal_form(text)


def test_slot_keys_do_not_run_together() -> None:
    """Entity and attribute are two parts, wherever the boundary lies."""
    assert slot_key("a b", "c") != slot_key("a", "b c")


def test_a_slot_is_one_whatever_the_case_of_its_name() -> None:
    """Who names a slot quotes nothing: only in statements does the case of an identifier tell something."""
    assert slot_key("GitHub", "maxSize2") == slot_key("github", "MAXSIZE2") == slot_key("Github", "maxsize2")


@pytest.mark.parametrize("moment", ["2026-01-01", "yesterday", "2026-01-01T00:00:00"])
def test_a_time_without_zone_is_refused(moment: str) -> None:
    """There is no guessing of zones inside."""
    with pytest.raises(InvalidInput):
        microseconds(moment)


@given(peers=PEERS, now=st.integers(0, 9), status=st.sampled_from(Status))
def test_a_record_without_peers_is_judged_alike_either_way(
    peers: list[dict[str, object]], now: int, status: Status
) -> None:
    """What is judged without comparing gets the status that the comparison gives."""
    if status not in (Status.ACTIVE, Status.DISPUTED, Status.RETRACTED, Status.FORGOTTEN):
        return
    for values in peers:
        record = replace(peer(1, values), status=status)
        (judged,) = standing([record], now)
        times = record.from_us, record.to_us, record.expires_us
        assert standing_alone(status, *times, now) is judged.status

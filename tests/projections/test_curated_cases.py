"""Complaints about other memories, as small stories of curated memory with the right outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from curated_world import EVERYONE, LATER, MIN, START, Log, Reader, dumped, reading
from mnemolog.domain.events import Recorded
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.records import Record, Status
from mnemolog.domain.scope import ANY, Scope, ScopeIds

FOOD = ("min", "diet")


def get(reader: Reader, said: Recorded, **options: int) -> Record:
    record = reader.view.get(reader.conn, said.envelope.stream, reader.scopes, reader.now, **options)
    assert record is not None
    return record


def test_contradiction_keeps_both_and_only_the_new_is_current() -> None:
    """B01: the newer statement of a slot is current; the old one is superseded, linked and still there."""
    log = Log()
    old = log.state("I eat shellfish", slot=FOOD)
    new = log.state("No shellfish any more: allergy", slot=FOOD)
    with reading(log) as reader:
        assert reader.texts() == ["No shellfish any more: allergy"]
        assert get(reader, old).status is Status.SUPERSEDED
        assert get(reader, old).superseded_by == new.envelope.stream
        assert get(reader, new).supersedes == old.envelope.stream
        assert (get(reader, old).believed_from, get(reader, old).believed_to) == (1, 2)


def test_the_same_statement_twice_is_one_record_with_two_pieces_of_evidence() -> None:
    """B02, I04: saying it again adds evidence, whatever its case, spaces and full stop."""
    log = Log()
    first = log.state("Reports go out as Excel", confidence=0.5)
    second = log.state("reports  go out as Excel.", confidence=0.5)
    with reading(log) as reader:
        record = get(reader, first)
        assert record.event_ids == (first.envelope.id, second.envelope.id)
        assert (len(reader.texts()), record.version, record.confidence) == (1, 2, 0.5)


def test_unrelated_korean_facts_stay_apart() -> None:
    """B03: two unrelated statements are two records."""
    log = Log()
    log.state("주말에는 등산을 가요")
    log.state("매운 음식은 못 먹어요")
    with reading(log) as reader:
        assert reader.texts() == ["주말에는 등산을 가요", "매운 음식은 못 먹어요"]
        assert reader.found("등산") == ["주말에는 등산을 가요"]


def test_default_recall_gives_only_the_new_and_history_both() -> None:
    """B04: what is no longer so is found only when history is asked for."""
    log = Log()
    log.state("vegetarian since 2020", slot=FOOD, valid_from="2020-01-01T00:00:00+00:00")
    log.state("had steak, not vegetarian now", slot=FOOD)
    with reading(log) as reader:
        assert reader.found("vegetarian") == ["had steak, not vegetarian now"]
        assert len(reader.found("vegetarian", frozenset(Status))) == 2


def test_one_slot_however_its_entity_is_written() -> None:
    """B06: the exact key decides, in its normal form."""
    log = Log()
    for number, entity in enumerate(("KDHA", "kdha", " KDHA ", "ＫＤＨＡ")):
        log.state(f"budget is {number}", slot=(entity, "budget"))
    with reading(log) as reader:
        assert reader.texts() == ["budget is 3"]


def test_the_corrected_wording_is_gone_from_recall() -> None:
    """B10: the old value is excluded, even where it fits the query better."""
    log = Log()
    wrong = log.state("ssh port is 22")
    log.correct(wrong, "ssh listens on 49222 now")
    with reading(log) as reader:
        assert reader.found("ssh port is 22") == ["ssh listens on 49222 now"]
        assert reader.found("port") == []


def test_only_the_same_slot_is_replaced() -> None:
    """B11: a new home address replaces the home address, and never the office's."""
    log = Log()
    log.state("Home is Hanbit-ro 1", slot=("min", "home address"))
    log.state("Office is Hanbit-ro 2", slot=("min", "office address"))
    log.state("Home is Hanbit-ro 3", slot=("min", "home address"))
    with reading(log) as reader:
        assert sorted(reader.texts()) == ["Home is Hanbit-ro 3", "Office is Hanbit-ro 2"]


@pytest.mark.parametrize("how", ["erase", "retract"])
def test_the_older_value_returns_without_its_superseder(how: str) -> None:
    """A04: with the superseder erased or retracted, the older fact is current, and nothing is resurrected."""
    log = Log()
    old = log.state("lives in Daejeon", slot=("min", "home"))
    new = log.state("moved to Jeju", slot=("min", "home"))
    log.erase(new) if how == "erase" else log.retract(new)
    with reading(log) as reader:
        assert reader.texts() == ["lives in Daejeon"]
        assert reader.found("Jeju") == []
        before = reader.view.get(reader.conn, new.envelope.stream, reader.scopes, LATER, believed_at=2)
        assert before is not None
        assert (before.content is None) == (how == "erase")
        assert get(reader, old).superseded_by is None


def test_losing_one_of_two_pieces_of_evidence_lowers_confidence_and_says_so() -> None:
    """A16: a record backed by two statements stands on the other when one is erased."""
    log = Log()
    first, second = log.state("the fee is 2%"), log.state("The fee is 2%")
    log.erase(first)
    with reading(log) as reader:
        record = get(reader, second)
        assert (record.content, record.event_ids) == ("The fee is 2%", (second.envelope.id,))
        assert (record.confidence, record.weakened) == (0.5, "1 of 2 pieces of evidence were erased")


def test_cited_evidence_that_was_erased_is_dropped() -> None:
    """A16: a citation of an erased turn goes, whether the erasure came before or after it was folded."""
    log = Log()
    said = log.state("the fee is 2%", evidence=({"event_id": "e1", "start": 0, "end": 3}, {"event_id": "e4"}))
    log.erase("e1")
    with reading(log) as reader:
        record = get(reader, said)
        assert record.event_ids == (said.envelope.id, "e4")
        assert (record.confidence, record.lost) == (pytest.approx(2 / 3), 1)


def test_what_is_remembered_anew_after_an_erasure_is_not_weakened() -> None:
    """An erasure before the first statement that counts takes nothing from it."""
    log = Log()
    log.erase(log.state("the fee is 2%"))
    again = log.state("the fee is 2%")
    with reading(log) as reader:
        assert (get(reader, again).confidence, get(reader, again).version) == (1.0, 2)


def test_absent_levels_have_defined_semantics() -> None:
    """C05: a record without a project is seen from any project, and alone when no project is asked for exactly."""
    log = Log()
    log.state("for all projects", MIN)
    log.state("for billing", ScopeIds(Scope(tenant="acme", user="min", project="billing")))
    with reading(log) as reader:
        visible = reader.curated.scopes.visible
        for caller, exact, seen in (
            (Scope(tenant="acme", user="min"), (), {"for all projects"}),
            (Scope(tenant="acme", user="min", project="billing"), (), {"for all projects", "for billing"}),
            (Scope(tenant="acme", user="min", project="billing"), ("project",), {"for billing"}),
            (Scope(tenant="acme", user="min", project=ANY), (), {"for all projects", "for billing"}),
            (Scope(tenant="acme", user="eve", project=ANY), (), set()),
        ):
            scopes = visible(reader.conn, ScopeIds(caller), exact=exact)
            records = reader.view.records(reader.conn, scopes, LATER)
            assert {record.content for record in records} == seen


def test_a_neighbour_is_not_hinted_at() -> None:
    """C02: get, peers, history, search and list all answer as if the neighbour's record did not exist."""
    log = Log()
    said = log.state("Min's locker is 7741", slot=("min", "locker"))
    eve = ScopeIds(Scope(tenant="acme", user="eve"))
    log.state("Eve's locker is 12", eve, slot=("min", "locker"))
    with reading(log, eve) as reader:
        view, conn, scopes, stream = reader.view, reader.conn, reader.scopes, said.envelope.stream
        assert view.get(conn, stream, scopes, LATER) is None
        assert view.peers(conn, stream, scopes, LATER) == []
        assert view.history(conn, stream, scopes) == []
        assert reader.found("locker") == ["Eve's locker is 12"]
        assert reader.texts(include_history=True, believed_at=9) == ["Eve's locker is 12"]


def test_an_empty_interval_holds_nowhere() -> None:
    """D07: equal bounds hold at no time, and hide nothing."""
    log = Log()
    bound = START.isoformat()
    log.state("always", slot=FOOD)
    log.state("never", slot=FOOD, valid_from=bound, valid_to=bound)
    for now in (START - timedelta(days=1), START, LATER):
        with reading(log, now=now) as reader:
            assert reader.texts() == ["always"]


def test_equal_times_fall_back_to_the_position() -> None:
    """D09: of 20 values with one time the last in the log is current."""
    log = Log()
    for number in range(20):
        log.state(f"value {number}", slot=FOOD, at=START)
    with reading(log) as reader:
        assert reader.texts() == ["value 19"]


def test_promise_5_nothing_is_overwritten() -> None:
    """Superseded, corrected and retracted values answer in history and as-of; the older is back when needed."""
    log = Log()
    first = log.state("Reports as Excel", slot=("report", "format"))
    second = log.state("Reports as PDF", slot=("report", "format"))
    log.correct(second, "Reports as PDF/A", reason="archive")
    log.retract(second)
    with reading(log) as reader:
        assert [reader.texts(believed_at=at) for at in (1, 2, 3, 4)] == [
            ["Reports as Excel"],
            ["Reports as PDF"],
            ["Reports as PDF/A"],
            ["Reports as Excel"],
        ]
        steps = reader.view.history(reader.conn, second.envelope.stream, reader.scopes)
        assert [(s.act.value, s.content, s.reason) for s in steps] == [
            ("stated", "Reports as PDF", None),
            ("corrected", "Reports as PDF/A", "archive"),
            ("retracted", None, "not so"),
        ]
        chain = reader.view.peers(reader.conn, first.envelope.stream, reader.scopes, LATER)
        assert [(r.content, r.status) for r in chain] == [
            ("Reports as Excel", Status.CURRENT),
            ("Reports as PDF/A", Status.RETRACTED),
        ]


@pytest.mark.parametrize("machine", [Role.AGENT, Role.SERVICE])
def test_promise_6_people_outrank_machines(machine: Role) -> None:
    """A human correction survives later statements, corrections and retractions of machines of any tier."""
    log = Log()
    wrong = log.state("the fee is 3%", role=machine, slot=("fee", "rate"))
    log.correct(wrong, "the fee is 2%")
    log.state("the fee is 3%", role=machine, slot=("fee", "rate"))
    log.state("the fee is 4%", role=machine, slot=("fee", "rate"))
    log.correct(wrong, "the fee is 5%", role=machine)
    log.retract(wrong, role=machine)
    with reading(log) as reader:
        assert reader.texts() == ["the fee is 2%"]
        assert get(reader, log.events[3]).status is Status.OUTRANKED
        assert [s.effect for s in reader.view.history(reader.conn, wrong.envelope.stream, reader.scopes)] == [
            "replaced",
            "effective",
            "outranked",
            "outranked",
            "outranked",
        ]


def test_a_person_may_change_their_mind_after_a_correction() -> None:
    """A person's later statement of at least the correction's tier takes effect; it may be the corrected text again."""
    log = Log()
    first = log.state("reports as Excel", slot=FOOD)
    log.correct(first, "reports as PDF")
    log.state("reports as HTML", slot=FOOD)
    with reading(log) as reader:
        assert reader.texts() == ["reports as HTML"]
    log.state("reports as Excel", slot=FOOD)
    with reading(log) as reader:
        assert reader.texts() == ["reports as Excel"]


def test_promise_7_repetition_raises_no_trust() -> None:
    """Forty copies from an untrusted tool stay untrusted and displace nothing that a person said; a citation counts."""
    log = Log()
    log.state("vendor Z is denied", slot=("vendor Z", "approval"))
    for _ in range(40):
        web = log.state(
            "vendor Z is approved", role=Role.AGENT, tier=Tier.UNTRUSTED_TOOL, slot=("vendor Z", "approval")
        )
    laundered = log.state("Z pays", evidence=({"event_id": "e1", "tier": int(Tier.UNTRUSTED_TOOL)},))
    log.erase("e1")
    with reading(log) as reader:
        assert reader.texts() == ["vendor Z is denied", "Z pays"]
        assert get(reader, web).trust is Tier.UNTRUSTED_TOOL
        assert get(reader, web).status is Status.OUTRANKED
        assert get(reader, laundered).trust is Tier.UNTRUSTED_TOOL


def test_late_arrivals_become_history() -> None:
    """A fact about an earlier time that arrives later does not replace the current one."""
    log = Log()
    log.state("lives in Jeju", slot=FOOD, valid_from="2025-01-01T00:00:00+09:00")
    late = log.state("lived in Daejeon", slot=FOOD, valid_from="2020-01-01T00:00:00+09:00")
    with reading(log) as reader:
        assert reader.texts() == ["lives in Jeju"]
        assert get(reader, late).status is Status.SUPERSEDED
        reader.now = datetime(2022, 1, 1, tzinfo=UTC)
        assert reader.texts() == ["lived in Daejeon"]


def test_valid_time_and_time_to_live_are_judged_at_the_readers_now() -> None:
    """A value that is to come waits, one that has lapsed gives way; what outlived its time to live does not."""
    log = Log()
    log.state("A", slot=FOOD)
    log.state("B", slot=FOOD, valid_from="2026-06-01T00:00:00Z", valid_to="2026-07-01T00:00:00Z")
    with reading(log, now=START) as reader:
        seen = []
        for month in (5, 6, 7):
            reader.now = datetime(2026, month, 1, tzinfo=UTC)
            seen.append(reader.texts())
        assert seen == [["A"], ["B"], ["A"]]
    log.state("C", slot=FOOD, expires_at="2026-09-01T00:00:00Z")
    with reading(log, now=LATER) as reader:
        assert reader.texts() == []
        reader.now = datetime(2026, 8, 1, tzinfo=UTC)
        assert reader.texts() == ["C"]


def test_disputed_is_readable_and_flagged_until_confirmed() -> None:
    """A doubt flags a record; a confirmation of lower rank than the doubt does not lift it, a person's does."""
    log = Log()
    said = log.state("the server is in Seoul")
    log.dispute(said, Role.USER)
    log.confirm(said, Role.AGENT)
    with reading(log) as reader:
        assert (reader.texts(), get(reader, said).status) == (["the server is in Seoul"], Status.DISPUTED)
    confirmed = log.confirm(said)
    with reading(log) as reader:
        assert get(reader, said).status is Status.CURRENT
        assert get(reader, said).last_verified == confirmed.envelope.occurred_at


def test_two_records_that_come_to_say_the_same_count_as_one() -> None:
    """A correction may lead to what another record says: one is current, the other points to it, evidence is joined."""
    log = Log()
    first = log.state("the port is 22")
    other = log.state("the port is 2222")
    log.correct(first, "The port is 2222.")
    with reading(log) as reader:
        assert reader.texts() == ["The port is 2222."]
        assert reader.found("port") == ["The port is 2222."]
        assert get(reader, other).status is Status.DUPLICATE
        assert get(reader, other).superseded_by == first.envelope.stream
        assert other.envelope.id in get(reader, first).event_ids


def test_feedback_is_counted_and_goes_with_its_erasure() -> None:
    """Judgements count on the record; an erased one does not."""
    log = Log()
    said = log.state("use tabs")
    log.rate(said, "up")
    gone = log.rate(said, "down")
    with reading(log) as reader:
        assert (get(reader, said).up, get(reader, said).down) == (1, 1)
    log.erase(gone)
    with reading(log) as reader:
        assert (get(reader, said).up, get(reader, said).down) == (1, 0)


@pytest.mark.parametrize("erased", ["cust-9", "cust-8", "eve", "the feedback"])
def test_promise_3_feedback_about_a_person_goes_with_the_person_in_the_live_view_too(erased: str) -> None:
    """A judgement sealed for several people leaves the count when one of them goes, as in a rebuild."""
    log, eve = Log(), ScopeIds(Scope(tenant="acme", user="eve", session="s-2"))
    note = log.state("customers owe 5")
    log.rate(note, "down", eve, subjects=("eve",))
    about = log.rate(note, "up", eve, subjects=("eve", "cust-8", "cust-9"))
    if erased == "the feedback":
        log.erase(about)
    else:
        log.erase_subject(erased)
    log.rate(note, "up", MIN)
    assert dumped(log.events, (1,)) == dumped(log.as_read_now()) == dumped(log.events)
    assert dumped([*log.events, *log.events], (3,)) == dumped(log.events)
    with reading(log) as reader:
        downs = 0 if erased == "eve" else 1
        assert (get(reader, note).up, get(reader, note).down) == (1, downs)


def test_an_erased_person_leaves_and_the_neighbour_stays() -> None:
    """A18: what is about or from the person is forgotten, in every column; the neighbour keeps everything."""
    log = Log()
    eve = ScopeIds(Scope(tenant="acme", user="eve"))
    log.state("Min's locker is K-7741", slot=("min", "locker"), evidence=({"event_id": "e9"},))
    about = log.state("Min's gate is K-7742", eve, subjects=("eve", "min"))
    log.state("Eve likes tea", eve)
    log.erase_subject("min")
    with reading(log, EVERYONE) as reader:
        assert reader.texts() == ["Eve likes tea"]
        assert reader.found("K-7741 K-7742 locker gate") == []
        left = [row for row in reader.curated.dump(reader.conn) if row[0] in ("assertions", "records")]
        assert "K-774" not in repr(left)
        assert "locker" not in repr(left)
        steps = reader.view.history(reader.conn, about.envelope.stream, reader.scopes)
        assert [(s.effect, s.content) for s in steps] == [("forgotten", None)]

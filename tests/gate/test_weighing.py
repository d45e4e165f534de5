"""What becomes of a candidate among what was said of the same record before, and what people decided."""

from __future__ import annotations

from typing import Any

import pytest

from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.gate.weighing import Consents, Judged, Verdict, weigh
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Act, Assertion

WEB = Judged(Decision.QUARANTINE, (Reason.LOW_TRUST,), Tier.UNTRUSTED_TOOL, "web")
USER = Judged(Decision.ADMIT, (), Tier.USER_STATED, "u1")
OTHER = Judged(Decision.ADMIT, (), Tier.USER_STATED, "u2")
CRM = Judged(Decision.ADMIT, (), Tier.TRUSTED_TOOL, "crm")
HEALTH = Judged(Decision.ADMIT, (), Tier.USER_STATED, "u1", consent="health")


def row(position: int, act: Act = Act.FOUND, **given: Any) -> Assertion:
    values = {"content": "The port is 8080", "form": "port 8080", "tier": Tier.USER_STATED, **given}
    at = "2026-03-02T09:00:00+00:00"
    return Assertion(position, f"e{position}", "r1", position, act, 1, "somebody", at, **values)


def verdict(*judged: Judged, consents: Consents | None = None) -> Verdict:
    """What the last of these comes to, each found after the one before."""
    rows = [row(position) for position in range(1, len(judged) + 1)]
    each = {one.event_id: two for one, two in zip(rows, judged, strict=True)}
    return weigh(rows, each, consents or Consents())[1][rows[-1].event_id]


def test_the_same_again_is_evidence() -> None:
    """Another voice adds one and no record (case B02); the same voice adds none, however often (case E01)."""
    assert verdict(USER, OTHER) == Verdict(Decision.EVIDENCE, (Reason.SAID_BEFORE,), 2)
    assert verdict(USER, USER) == Verdict(Decision.EVIDENCE, (Reason.SAME_ORIGIN,), 1)
    assert verdict(USER, USER, OTHER, OTHER).voices == 2


def test_what_waits_does_not_get_in_by_repetition() -> None:
    """Forty copies of one page, or of two, are still held."""
    for copies in (
        [WEB] * 40,
        [WEB, Judged(Decision.QUARANTINE, (Reason.LOW_TRUST,), Tier.UNTRUSTED_TOOL, "mail")],
    ):
        found = verdict(*copies)
        assert (found.decision, found.voices) == (Decision.EVIDENCE, 1)
        rows = [row(position) for position in range(1, len(copies) + 1)]
        weighed, _ = weigh(rows, {one.event_id: WEB for one in rows}, Consents())
        assert {one.act for one in weighed} <= {Act.PROPOSED, Act.DROPPED}


def test_a_low_voice_takes_no_trust_away() -> None:
    """A page that repeats what a user stated is no evidence that counts, and does not state it anew."""
    assert verdict(USER, WEB).voices == 1
    weighed, _ = weigh([row(1), row(2)], {"e1": USER, "e2": WEB}, Consents())
    assert [one.act for one in weighed] == [Act.ADMITTED, Act.DROPPED]


def test_a_user_may_say_what_is_quarantined() -> None:
    """What a page claimed waits; the same from the user is a statement of its own."""
    assert verdict(WEB, USER).decision is Decision.ADMIT


@pytest.mark.parametrize("act", [Act.REJECTED, Act.RETRACTED])
def test_what_a_person_rejected_stays_out(act: Act) -> None:
    """No machine brings it back; a person who says it again is asked (promise 6)."""
    for judged, decision in ((CRM, Decision.REJECT), (USER, Decision.CONFIRM)):
        rows = [row(1, Act.STATED), row(2, act, human=True, content=None, form=None), row(3)]
        _, verdicts = weigh(rows, {"e3": judged}, Consents())
        assert verdicts["e3"] == Verdict(decision, (Reason.REJECTED_BEFORE,), 1)


def test_a_decision_is_about_what_came_before_it() -> None:
    """An approval admits what was held; what comes behind a rejection is judged anew."""
    approved = [row(1), row(2, Act.APPROVED, human=True)]
    assert weigh(approved, {"e1": WEB}, Consents())[1]["e1"].decision is Decision.ADMIT
    rejected = [row(1), row(2, Act.REJECTED, human=True, content=None, form=None)]
    assert weigh(rejected, {"e1": USER}, Consents())[1]["e1"].decision is Decision.REJECT


def test_consent_decides_at_any_time() -> None:
    """It waits without, stands with, and is dropped when taken back, also where others said it without a topic."""
    assert verdict(HEALTH).decision is Decision.CONFIRM
    assert verdict(HEALTH, consents=Consents(frozenset({"health"}))).decision is Decision.ADMIT
    back = Consents(taken_back=frozenset({"health"}))
    assert verdict(HEALTH, consents=back) == Verdict(Decision.REJECT, (Reason.WITHDRAWN,))
    rows = [row(1), row(2), row(3, Act.CORRECTED, human=True)]
    weighed, _ = weigh(rows, {"e1": HEALTH, "e2": OTHER}, back)
    assert {one.act for one in weighed} == {Act.DROPPED}
    assert verdict(USER, consents=Consents(withdrawn=True)).reasons == (Reason.WITHDRAWN,)

"""What becomes of the candidates of one record, all taken together: `weigh`, a pure function of their set.

Each was judged on its own when it came (`Judged`); what was said before it, what people decided and what they agree to
is looked at anew whenever one of them is touched, so that an erasure leaves no trace in what the others became.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import GATED, STATING, Act, Assertion

_DECIDED: Final = frozenset({Act.APPROVED, Act.EDITED})
_STANDS: Final = STATING | {Act.APPROVED, Act.CONFIRMED, Act.RESOLVED}


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate as it was judged on its own. consent: the topic that needs it; found: by an extractor."""

    decision: Decision
    reasons: tuple[Reason, ...]
    trust: Tier
    voice: str
    consent: str | None = None
    found: bool = True


@dataclass(frozen=True, slots=True)
class Consents:
    """What the person of a scope agrees to, and what they took back. withdrawn: that memory is kept about them at all."""

    granted: frozenset[str] = frozenset()
    taken_back: frozenset[str] = frozenset()
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a candidate, and why. voices: how many different ones say it so far, this one included."""

    decision: Decision
    reasons: tuple[Reason, ...]
    voices: int = 0


@dataclass(slots=True)
class _Said:
    """How far the record has come. standing: whether what it says is readable, waits, or was rejected by a person."""

    standing: Literal["readable", "quarantined", "rejected"] | None = None
    trust: Tier = Tier.IMPORT
    voices: set[str] = field(default_factory=set)


def weigh(
    rows: Sequence[Assertion], judged: Mapping[str, Judged], consents: Consents
) -> tuple[list[Assertion], dict[str, Verdict]]:
    """The assertions of one record with the acts that they come to, and a verdict per candidate, by event."""
    ordered = sorted(rows, key=lambda row: row.position)
    approved, rejected = _last(ordered, _DECIDED), _last(ordered, frozenset({Act.REJECTED}))
    said, weighed, verdicts = _Said(), list[Assertion](), dict[str, Verdict]()
    for row in ordered:
        one = None if row.forgotten else judged.get(row.event_id)
        decided = None if row.position > max(approved, rejected) else approved > rejected
        if one is None or row.act not in GATED:
            weighed.append(row)
            _note(said, row)
            if one is not None:
                verdicts[row.event_id] = _stands(one, consents, decided)
            continue
        agreed = consents if row.consent is None else _with(consents, one.consent)
        verdict = _verdict(one, said, agreed, decided)
        verdicts[row.event_id] = verdict
        weighed.append(replace(row, act=_act(row, one, said, verdict)))
        _count(said, one, verdict)
    if any(judged[event].consent in consents.taken_back for event in verdicts):
        weighed = [row if row.forgotten else replace(row, act=Act.DROPPED) for row in weighed]
    return weighed, verdicts


def _with(consents: Consents, topic: str | None) -> Consents:
    """What is agreed to where a statement brings the consent along."""
    return consents if topic is None else replace(consents, granted=consents.granted | {topic})


def _stands(one: Judged, consents: Consents, decided: bool | None) -> Verdict:
    """Of what people say with their consent, or correct: it stands until they take that back, or reject it."""
    if consents.withdrawn or one.consent in consents.taken_back:
        return Verdict(Decision.REJECT, (*one.reasons, Reason.WITHDRAWN))
    if decided is False:
        return Verdict(Decision.REJECT, (*one.reasons, Reason.REJECTED_BEFORE), 1)
    return Verdict(one.decision, one.reasons, 1)


def _note(said: _Said, row: Assertion) -> None:
    """What people and agents said of the record themselves."""
    if row.forgotten:
        return
    if row.act in _STANDS:
        said.standing, said.trust = "readable", max(said.trust, row.trust)
    elif row.human and row.act in (Act.REJECTED, Act.RETRACTED):
        said.standing = "rejected"


def _last(rows: Sequence[Assertion], acts: frozenset[Act]) -> int:
    """The position of a person's last act of these; 0 for none."""
    return max(
        (row.position for row in rows if row.act in acts and row.human and not row.forgotten), default=0
    )


def _verdict(one: Judged, said: _Said, consents: Consents, decided: bool | None) -> Verdict:
    """decided: whether a person approved it or rejected it since; None for neither."""
    decision, reasons = one.decision, list(one.reasons)
    if consents.withdrawn or one.consent in consents.taken_back:
        return Verdict(Decision.REJECT, (*reasons, Reason.WITHDRAWN))
    needs = one.consent is not None and one.consent not in consents.granted
    if needs:
        decision, reasons = max(decision, Decision.CONFIRM), [*reasons, Reason.NEEDS_CONSENT]
    if decided is False:
        return Verdict(Decision.REJECT, (*reasons, Reason.REJECTED_BEFORE), 1)
    if decided:
        return Verdict(Decision.ADMIT, (*reasons, Reason.APPROVED), 1)
    if decision is Decision.REJECT or said.standing is None:
        return Verdict(decision, tuple(reasons), 1)
    if said.standing == "rejected":
        by_person = one.trust >= Tier.USER_STATED and decision is not Decision.QUARANTINE
        decision = Decision.CONFIRM if by_person else Decision.REJECT
        return Verdict(decision, (*reasons, Reason.REJECTED_BEFORE), 1)
    if said.standing == "quarantined" and decision < Decision.QUARANTINE:
        return Verdict(decision, tuple(reasons), 1)
    repeated = one.voice in said.voices
    counts = decision < Decision.QUARANTINE and not needs and not repeated and one.trust >= said.trust
    reason = Reason.SAME_ORIGIN if repeated else Reason.SAID_BEFORE
    return Verdict(Decision.EVIDENCE, (*reasons, reason), len(said.voices) + counts)


def _act(row: Assertion, one: Judged, said: _Said, verdict: Verdict) -> Act:
    """A repetition states it anew where it is of no lower trust, so that the newest of a slot is known."""
    stated = Act.ADMITTED if one.found else Act.STATED
    if verdict.decision is Decision.ADMIT:
        return stated if row.content is not None else Act.DROPPED
    if verdict.decision is Decision.EVIDENCE:
        again = said.standing == "readable" and one.trust >= said.trust and one.decision is Decision.ADMIT
        return stated if again and Reason.NEEDS_CONSENT not in verdict.reasons else Act.DROPPED
    return Act.DROPPED if verdict.decision is Decision.REJECT else Act.PROPOSED


def _count(said: _Said, one: Judged, verdict: Verdict) -> None:
    said.voices.add(one.voice)
    if verdict.decision is Decision.ADMIT:
        said.standing, said.trust = "readable", max(said.trust, one.trust)
    elif verdict.decision in (Decision.CONFIRM, Decision.QUARANTINE) and said.standing is None:
        said.standing = "quarantined"

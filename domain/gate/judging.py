"""From an event to what becomes of it on its own: candidates through `admit`, and statements of people and agents too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from mnemolog.domain.events import (
    CandidatesExtracted,
    Event,
    MemoryCorrected,
    MemoryStated,
    QuarantineReviewed,
    Recorded,
)
from mnemolog.domain.gate.admission import (
    Decision,
    Outcome,
    Reason,
    SourceFacts,
    admit,
    topic_of,
)
from mnemolog.domain.gate.candidates import Candidate, restored
from mnemolog.domain.gate.findings import IDENTIFIERS, Finding, Sign, mask
from mnemolog.domain.gate.weighing import Judged
from mnemolog.domain.normalise import slot_key, statement_key
from mnemolog.domain.policy import GatePolicy, SystemOfRecord
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import RECORD_KINDS, Act, Assertion, Evidence
from mnemolog.domain.sensitivity import PERSONAL

_HANGUL: Final = range(0xAC00, 0xD7A4)
_ACTS: Final = {
    Decision.ADMIT: Act.FOUND,
    Decision.CONFIRM: Act.PROPOSED,
    Decision.QUARANTINE: Act.PROPOSED,
    Decision.REJECT: Act.DROPPED,
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Candidates of one voice in the hour of this one, itself included, and in an ordinary hour before."""

    recent: int = 1
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of one event on its own. source: the event it was found in; stated: its act where it was stated.

    topic: what it is about, where the policy names that; asked: somebody asked to remember it.
    """

    judged: Judged
    source: str
    stated: Act
    topic: str | None = None
    extractor: str | None = None
    rule: str | None = None
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """The policy, and what of it can be known beforehand."""

    policy: GatePolicy
    plain: bool = field(init=False)
    """Whether a statement without findings and signs passes as it is."""
    consents: frozenset[str] = field(init=False)
    """Taken as given: what a person really agrees to is looked at in `weigh`."""

    def __post_init__(self) -> None:
        admission = self.policy.admission
        asks = frozenset(name for name, topic in admission.topics.items() if topic.rule == "conditional")
        kept = set(RECORD_KINDS) <= set(admission.floors)
        plain = kept and not (admission.topics or self.policy.expiry or self.policy.systems)
        object.__setattr__(self, "consents", asks)
        object.__setattr__(self, "plain", plain)

    def needs_consent(self, topic: str | None) -> bool:
        """Whether a person must have agreed to be remembered in this."""
        return topic in self.consents

    def trust(self, origin: Tier, role: str, who: str | None) -> Tier:
        """What a source is worth, by its authenticated origin and the policy; never by what it says."""
        if role == "tool" and who is not None and who in self.policy.tools and origin > Tier.IMPORT:
            return self.policy.tools[who]
        return min(origin, self.policy.ceilings.get(role, origin))


def judge_candidates(
    frame: Mapping[str, Any], recorded: Recorded, event: CandidatesExtracted, gate: Gate, rate: Rate
) -> tuple[Assertion, Outcomes]:
    """The assertion that a candidate would be, and what becomes of it on its own. frame: the envelope's part of it."""
    source = recorded.envelope.sources[0]
    given = [restored(values) for values in event.candidates]
    tier = gate.trust(recorded.envelope.origin, str(event.said["role"]), event.said.get("who"))
    facts = replace(_facts(event, given, tier, rate), consents=gate.consents)
    each = [(one, admit(one, facts, gate.policy.admission)) for one in given]
    candidate, outcome = min(each, key=lambda pair: pair[1].decision)
    system = gate.policy.owner_of(candidate.slot)
    reasons = [*outcome.reasons, *([Reason.OWNED] if system is not None else [])]
    topic = outcome.topic
    judged = Judged(
        outcome.decision,
        tuple(reasons),
        outcome.trust,
        event.voice,
        topic if gate.needs_consent(topic) else None,
    )
    span = Evidence(source, *candidate.span, tier)
    said = {"evidence": (span,), "tier": tier, **_kept(outcome, system, gate, frame)}
    act = _ACTS[outcome.decision]
    return Assertion(**{**frame, **said, "act": act}), Outcomes(
        judged, source, Act.FOUND, topic, event.extractor, candidate.rule, candidate.explicit
    )


def _facts(
    event: CandidatesExtracted, candidates: Sequence[Candidate], tier: Tier, rate: Rate
) -> SourceFacts:
    signs = tuple(Sign(rule, 0, 0) for rule in event.signs)
    return SourceFacts(
        text=_quoted(candidates, int(event.said["length"])),
        role=str(event.said["role"]),
        tier=tier,
        findings=tuple(map(Finding.of, event.findings)),
        signs=signs,
        injected=tuple((start, end) for start, end in event.injected),
        extractor=event.extractor,
        recent=rate.recent,
        usual=rate.usual,
    )


def _quoted(candidates: Sequence[Candidate], length: int) -> str:
    """What is known of the source: blank but for what the candidates quote, each at its place."""
    text = [" "] * length
    for one in candidates:
        text[one.span[0] : one.span[1]] = one.content
    return "".join(text[:length])


def _kept(
    outcome: Outcome, system: SystemOfRecord | None, gate: Gate, frame: Mapping[str, Any]
) -> dict[str, Any]:
    """What a candidate says, masked where it must be; of what a system owns, where to look it up."""
    one = outcome.kept
    if one is None:
        return {}
    content, kind = one.content, one.kind
    if system is not None and one.slot is not None:
        content, kind = lookup(one.slot, system, content), "reference"
    form = statement_key(content)
    if one.slot is not None and system is None:
        form = statement_key(f"{slot_key(*one.slot)} {one.statement}")
    since, until = one.valid_from, one.valid_to
    return {
        "content": content,
        "form": form,
        "kind": kind,
        "entity": one.entity if one.slot is not None else None,
        "attribute": one.attribute,
        "valid_from": None if since is None else since.isoformat(),
        "valid_to": None if until is None or (since is not None and until <= since) else until.isoformat(),
        "expires_at": _expiry(gate, kind, frame["occurred_at"]),
        "sensitivity": _named(outcome.sensitivity),
        "confidence": one.confidence,
    }


def _named(sensitivity: str) -> str | None:
    """The gate finds that something is personal; that it is not, only people say."""
    return sensitivity if sensitivity == PERSONAL else None


def lookup(slot: tuple[str, str], system: SystemOfRecord, said: str) -> str:
    """The reference that stands for a value which a system of record owns, in the language of what was said."""
    entity, attribute = slot
    whose = f"{entity}: {attribute}"
    if any(ord(letter) in _HANGUL for letter in said):
        return f"{whose} — 원본에서 확인하세요: {system.verify}"
    return f"{whose} — verify at source: {system.verify}"


def _expiry(gate: Gate, kind: str, occurred_at: str) -> str | None:
    days = gate.policy.expiry.get(kind)
    end = None if days is None else later(datetime.fromisoformat(occurred_at), days)
    return None if end is None else end.isoformat()


def later(moment: datetime, days: float) -> datetime | None:
    """So many days after; None where the calendar has ended by then."""
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        return None


# What people and agents state themselves ------------------------------------------------------------------------------


def judge_stated(assertion: Assertion, event: Event, gate: Gate) -> tuple[Assertion, Outcomes | None]:
    """A statement or a correction, masked, held or dropped where the policy says so; as it was, where it does not."""
    content, kind = assertion.content, assertion.kind or "fact"
    if content is None or not isinstance(event, MemoryStated | MemoryCorrected | QuarantineReviewed):
        return assertion, None
    if not isinstance(event, MemoryStated):
        return _masked(assertion, content, event.findings, gate), _consented(assertion, content, gate)
    candidate = Candidate(
        kind, content, (0, len(content)), content, (0, len(content)), "", None, negated=False,
        confidence=1.0, rule="stated",
    )  # fmt: skip
    signs = tuple(Sign(rule, 0, 0) for rule in getattr(event, "signs", ()))
    facts = SourceFacts(
        text=content,
        role="user",
        tier=assertion.trust,
        findings=tuple(map(Finding.of, event.findings)),
        signs=signs,
        consents=gate.consents,
    )
    admission = gate.policy.admission
    floors = dict.fromkeys(admission.floors, Tier.IMPORT)
    policy = replace(admission, floors=floors, extractor=None, confirm=frozenset(), confirm_explicit=False)
    outcome = admit(candidate, facts, policy)
    return _gated(assertion, outcome, gate, kind)


def _masked(
    assertion: Assertion, content: str, findings: Sequence[Mapping[str, Any]], gate: Gate
) -> Assertion:
    """What people correct and decide stands under every policy; what may not show is hidden in it."""
    every = [Finding.of(one) for one in findings]
    if any(one.sort in IDENTIFIERS for one in every):
        assertion = replace(assertion, sensitivity=PERSONAL)
    found = [one for one in every if one.sort in gate.policy.masked]
    hidden = mask(content, found)
    return replace(assertion, content=hidden, form=statement_key(hidden)) if found else assertion


def _consented(assertion: Assertion, content: str, gate: Gate) -> Outcomes | None:
    """What people correct and decide is said with their consent; it falls when they take that back."""
    topic = topic_of(content, gate.policy.admission)
    if not gate.needs_consent(topic):
        return None
    judged = Judged(Decision.ADMIT, (), assertion.trust, assertion.actor, topic, found=False)
    return Outcomes(judged, assertion.event_id, assertion.act, topic)


def _gated(
    assertion: Assertion, outcome: Outcome, gate: Gate, kind: str
) -> tuple[Assertion, Outcomes | None]:
    topic = outcome.topic
    system = gate.policy.owner_of(assertion.slot)
    consent = topic if gate.needs_consent(topic) else None
    changed: dict[str, Any] = {}
    if outcome.kept is not None:
        changed = {"content": outcome.kept.content, "form": statement_key(outcome.kept.content)}
        if outcome.sensitivity == PERSONAL:
            changed["sensitivity"] = PERSONAL
        if system is not None and assertion.slot is not None:
            content = lookup(assertion.slot, system, outcome.kept.content)
            changed |= {"content": content, "form": statement_key(content), "kind": "reference"}
        if assertion.expires_at is None:
            changed["expires_at"] = _expiry(gate, str(changed.get("kind", kind)), assertion.occurred_at)
    reasons = (*outcome.reasons, *([Reason.OWNED] if system is not None else []))
    if not reasons and consent is None:
        return replace(assertion, **changed), None
    judged = Judged(outcome.decision, reasons, outcome.trust, assertion.actor, consent, found=False)
    if outcome.decision is Decision.REJECT:
        changed = {"content": None, "form": None}
    agreed = consent is None or assertion.consent is not None
    stays = outcome.decision is Decision.ADMIT and agreed
    act = assertion.act if stays or assertion.act is not Act.STATED else _ACTS[outcome.decision]
    if outcome.decision is Decision.REJECT:
        act = Act.DROPPED
    return replace(assertion, **changed, act=act), Outcomes(judged, assertion.event_id, assertion.act, topic)

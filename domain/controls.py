"""The way through the control points: at each, the rule that decided, by the name it has in the policy or in the code.

Told of what was judged, never judging anew: the outcome of a candidate, and how the records of its slot stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.gate.findings import IDENTIFIERS, Sort
from mnemolog.domain.policy import GatePolicy
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Evidence


@dataclass(frozen=True, slots=True)
class Control:
    """One control point that a record or an event came to.

    point: extract, origin, secrets, evidence, trust, instructions, topic, burst, system, consent, duplicate, people;
    then revise, read, forget. rule: the field of the policy with its value ("trust.floors.fact: trusted_tool"), or a
    rule of the code by its name ("more recent"). result: found, stated, passed, masked, held, stopped, evidence,
    reference, admitted; of revise: effective, won, lost, open. detail: what the rule looked at.
    event_id: what was judged, or decided; against: the record on the other side.
    """

    record_id: str
    point: str
    rule: str
    result: str
    detail: str = ""
    event_id: str | None = None
    evidence: tuple[Evidence, ...] = ()
    against: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A candidate, or a statement (extractor None), and all that a rule may have looked at.

    role, who: of the source; sorts, signs: what was found in it. kind is None where nothing of it is kept.
    """

    record_id: str
    event_id: str
    decision: Decision
    reasons: tuple[str, ...]
    trust: Tier
    kind: str | None = None
    confidence: float | None = None
    topic: str | None = None
    extractor: str | None = None
    rule: str | None = None
    asked: bool = False
    voices: int = 1
    slot: tuple[str, str] | None = None
    evidence: tuple[Evidence, ...] = ()
    role: str = ""
    who: str = ""
    sorts: tuple[Sort, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return self.extractor is not None


Told = Callable[[Seen, GatePolicy], str]
Fate = tuple[str, str, Told]
"""Where a reason belongs, what it came to there, and the rule."""


def at_the_gate(seen: Seen, policy: GatePolicy) -> Iterator[Control]:
    """What decided at each control point of admission, in order, to where it was stopped."""
    stopped = False
    for point, passed in _POINTS.items():
        fates = [(reason, *_FATES[reason]) for reason in map(Reason, seen.reasons)]
        objections = [each for each in fates if each[1] == point]
        for reason, _, result, rule in objections:
            stopped = stopped or result == "stopped"
            yield _control(seen, point, rule(seen, policy), _result(result, seen), _why(reason, seen))
        told = None if objections or stopped else passed(seen, policy)
        if told is not None:
            yield _control(seen, point, *told)


def _control(seen: Seen, point: str, rule: str, result: str, detail: str) -> Control:
    evidence = seen.evidence if point in ("extract", "evidence") else ()
    return Control(seen.record_id, point, rule, result, detail, seen.event_id, evidence)


def _result(result: str, seen: Seen) -> str:
    """What a person rejected is asked about again, or not heard: as it was decided."""
    if result != "rejected":
        return result
    return "stopped" if seen.decision is Decision.REJECT else "held"


def _why(reason: Reason, seen: Seen) -> str:
    """The reason in words, with the value that the rule was asked about."""
    more = {
        Reason.INSTRUCTS: ", ".join(seen.signs),
        Reason.LOW_TRUST: _name(seen.trust),
        Reason.LOW_CONFIDENCE: "" if seen.confidence is None else f"{seen.confidence:g}",
        Reason.SAID_BEFORE: _voices(seen),
        Reason.SAME_ORIGIN: _voices(seen),
    }.get(reason, "")
    return f"{reason.value}: {more}" if more else reason.value


def _voices(seen: Seen) -> str:
    return f"{seen.voices} voice{'s' * (seen.voices != 1)} so far"


def _name(tier: Tier) -> str:
    return tier.name.lower()


# Reasons ------------------------------------------------------------------------------------------------------------


def _handled(handling: str) -> Told:
    """The fields of the policy for the identifiers in it that are handled so."""

    def told(seen: Seen, policy: GatePolicy) -> str:
        sorts = [
            one for one in seen.sorts if one in IDENTIFIERS and policy.admission.handling(one) == handling
        ]
        return ", ".join(f"personal.{one.value}: {handling}" for one in sorts) or f"personal: {handling}"

    return told


def _secret(_: Seen, policy: GatePolicy) -> str:
    return f"personal.secret: {policy.admission.secrets}"


def _floor(seen: Seen, policy: GatePolicy) -> str:
    floor = policy.admission.floors.get(seen.kind or "")
    return "trust.floors" if floor is None else f"trust.floors.{seen.kind}: {_name(floor)}"


def _below(_: Seen, policy: GatePolicy) -> str:
    return f"trust.instructs_below: {_name(policy.admission.instructs_below)}"


def _topic(seen: Seen, policy: GatePolicy) -> str:
    topic = policy.admission.topics.get(seen.topic or "")
    return "topics" if topic is None else f"topics.{seen.topic}.rule: {topic.rule}"


def _asked_first(seen: Seen, policy: GatePolicy) -> str:
    return (
        f"memory.confirm: {seen.kind}"
        if seen.kind in policy.admission.confirm
        else "memory.confirm_explicit: true"
    )


def _rate(_: Seen, policy: GatePolicy) -> str:
    return f"burst.least: {policy.admission.burst_least:g}, burst.factor: {policy.admission.burst_factor:g}"


def _system(seen: Seen, policy: GatePolicy) -> str:
    name = next((name for name, one in policy.systems.items() if seen.slot and one.owns(*seen.slot)), None)
    return "systems" if name is None else f"systems.{name}.attributes"


def _named(rule: str) -> Told:
    return lambda seen, policy: rule


_FATES: Final[Mapping[Reason, Fate]] = MappingProxyType(
    {
        Reason.SECRET: ("secrets", "stopped", _secret),
        Reason.SECRET_MASKED: ("secrets", "masked", _secret),
        Reason.IDENTIFIER: ("secrets", "stopped", _handled("block")),
        Reason.IDENTIFIER_MASKED: ("secrets", "masked", _handled("redact")),
        Reason.NOTHING_LEFT: ("secrets", "stopped", _named("a value must be left")),
        Reason.NO_SPAN: ("evidence", "stopped", _named("word for word")),
        Reason.SYSTEM_TEXT: ("evidence", "stopped", _named("no system prompt")),
        Reason.OWN_TEXT: ("evidence", "stopped", _named("no text of memory's own")),
        Reason.OTHER_EXTRACTOR: ("trust", "stopped", lambda _, one: f"memory.extractor: {one.admission.extractor}"),
        Reason.KIND: ("trust", "stopped", lambda _, policy: f"memory.kinds: {', '.join(policy.admission.floors)}"),
        Reason.LOW_TRUST: ("trust", "held", _floor),
        Reason.LOW_CONFIDENCE: (
            "trust", "held", lambda _, policy: f"memory.least_confidence: {policy.admission.least_confidence:g}",
        ),
        Reason.INSTRUCTS: ("instructions", "held", _below),
        Reason.NO_STATEMENT: ("instructions", "held", _below),
        Reason.FORBIDDEN_TOPIC: ("topic", "stopped", _topic),
        Reason.NOT_ALLOWED_TOPIC: ("topic", "stopped", _named("topics: only what is allowed")),
        Reason.NEEDS_CONSENT: ("topic", "held", _topic),
        Reason.ASKED_FIRST: ("topic", "held", _asked_first),
        Reason.BURST: ("burst", "held", _rate),
        Reason.OWNED: ("system", "reference", _system),
        Reason.WITHDRAWN: ("consent", "stopped", _named("consent withdrawn")),
        Reason.SAID_BEFORE: ("duplicate", "evidence", _named("same statement")),
        Reason.SAME_ORIGIN: ("duplicate", "evidence", _named("same origin counts once")),
        Reason.APPROVED: ("people", "admitted", _named("people decide")),
        Reason.REJECTED_BEFORE: ("people", "rejected", _named("people decide")),
    }
)  # fmt: skip


# What a point that nothing objected at looked at ----------------------------------------------------------------------

Passed = Callable[[Seen, GatePolicy], tuple[str, str, str] | None]
"""The rule, the result, and what it looked at; None where the point is not on the way."""


def _extracted(seen: Seen, _: GatePolicy) -> tuple[str, str, str]:
    if not seen.found:
        return "stated", "stated", ""
    rule = f"{seen.extractor}: {seen.rule}" if seen.rule else str(seen.extractor)
    return rule, "found", "it was asked to be remembered" if seen.asked else ""


def _origin(seen: Seen, policy: GatePolicy) -> tuple[str, str, str]:
    """Which rule gave the source its trust."""
    rule = "origin of what it rests on"
    if seen.role == "tool" and seen.who in policy.tools and policy.tools[seen.who] == seen.trust:
        rule = f"trust.tools.{seen.who}: {_name(seen.trust)}"
    elif seen.role in policy.ceilings and policy.ceilings[seen.role] == seen.trust:
        rule = f"trust.ceilings.{seen.role}: {_name(seen.trust)}"
    return rule, "passed", _name(seen.trust)


def _no_findings(seen: Seen, policy: GatePolicy) -> tuple[str, str, str]:
    kept = [f"personal.{one.value}: keep" for one in seen.sorts if policy.admission.handling(one) == "keep"]
    return ", ".join(kept) or "personal", "passed", "" if kept else "no secret and no identifier in it"


def _quoted(seen: Seen, _: GatePolicy) -> tuple[str, str, str] | None:
    return ("word for word", "passed", "it stands so in its source") if seen.found else None


def _trusted(seen: Seen, policy: GatePolicy) -> tuple[str, str, str] | None:
    """Floors are for what is found; what somebody states keeps the trust of who does."""
    return (_floor(seen, policy), "passed", _name(seen.trust)) if seen.found else None


def _instructing(seen: Seen, policy: GatePolicy) -> tuple[str, str, str]:
    may = seen.trust >= policy.admission.instructs_below
    detail = f"{_name(seen.trust)} is not below" if may else "it tells nobody what to do"
    return _below(seen, policy), "passed", detail


def _about(seen: Seen, policy: GatePolicy) -> tuple[str, str, str]:
    topic = policy.admission.topics.get(seen.topic or "")
    if topic is None:
        return "topics", "passed", "about none of the policy's"
    return _topic(seen, policy), "passed", "the person agreed" if topic.rule == "conditional" else ""


def _usual(seen: Seen, policy: GatePolicy) -> tuple[str, str, str] | None:
    return (_rate(seen, policy), "passed", "not more than that") if seen.found else None


def _new(seen: Seen, _: GatePolicy) -> tuple[str, str, str] | None:
    decided = {Reason.APPROVED, Reason.REJECTED_BEFORE} & set(seen.reasons)
    return ("same statement", "passed", "no record says so yet") if seen.found and not decided else None


def _nothing(_: Seen, __: GatePolicy) -> None:
    return None


_POINTS: Final[Mapping[str, Passed]] = MappingProxyType(
    {
        "extract": _extracted,
        "origin": _origin,
        "secrets": _no_findings,
        "evidence": _quoted,
        "trust": _trusted,
        "instructions": _instructing,
        "topic": _about,
        "burst": _usual,
        "system": _nothing,
        "consent": _nothing,
        "duplicate": _new,
        "people": _nothing,
    }
)

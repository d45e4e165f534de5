"""What becomes of a candidate: `admit`, a pure function of the candidate, its source, the policy's values and the records.

The order is that of the design: secrets, identifiers, evidence, trust, instruction shape, consent and topic, burst, duplicate.
A rejection ends it; of everything else all reasons are told, and the strictest decides. A burst is judged before the
duplicate, so that what is repeated within one adds no voice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, Literal, overload

from mnemolog.domain.gate.candidates import Candidate, Span
from mnemolog.domain.gate.findings import IDENTIFIERS, Finding, Sign, Sort, mask
from mnemolog.domain.normalise import normal_form
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import RECORD_KINDS

Handling = Literal["keep", "redact", "block"]


class Decision(IntEnum):
    """The strictest is the highest."""

    ADMIT = 0
    EVIDENCE = 1
    """It says what a record says already."""
    CONFIRM = 2
    """A person is asked first."""
    QUARANTINE = 3
    REJECT = 4


class Reason(StrEnum):
    """Why, in the words that a reviewer reads."""

    SECRET = "holds a secret"
    SECRET_MASKED = "a secret in it was masked"
    IDENTIFIER = "holds a personal identifier"
    IDENTIFIER_MASKED = "a personal identifier in it was masked"
    NOTHING_LEFT = "says nothing once it is masked"
    NO_SPAN = "is not found word for word in its source"
    SYSTEM_TEXT = "stands in a system prompt"
    OWN_TEXT = "repeats what memory itself put in"
    LOW_TRUST = "comes from an origin that may not say this"
    LOW_CONFIDENCE = "was not understood with enough confidence"
    INSTRUCTS = "its source tells the reader what to do"
    NO_STATEMENT = "asks or orders instead of stating"
    OTHER_EXTRACTOR = "was found by rules that do not count"
    KIND = "is of a kind that is not kept"
    WITHDRAWN = "its subject has withdrawn consent"
    FORBIDDEN_TOPIC = "is about a forbidden topic"
    NEEDS_CONSENT = "is about a topic that needs consent"
    NOT_ALLOWED_TOPIC = "is about no topic that is allowed"
    ASKED_FIRST = "is asked about before it is kept"
    REJECTED_BEFORE = "was rejected by a person"
    SAID_BEFORE = "says what a record says already"
    SAME_ORIGIN = "is said again by the same origin"
    BURST = "is one of far more than this origin usually brings"
    APPROVED = "was approved by a person"
    OWNED = "its value is kept by a system of record"


@dataclass(frozen=True, slots=True)
class Topic:
    """Words (any case, part of a word suffices for Korean) that show what a statement is about, and the rule for it."""

    words: tuple[str, ...]
    rule: Literal["allowed", "conditional", "forbidden"]


_FLOORS: Final = MappingProxyType(
    {
        "fact": Tier.TRUSTED_TOOL,
        "episode": Tier.TRUSTED_TOOL,
        "reference": Tier.TRUSTED_TOOL,
        "preference": Tier.USER_INFERRED,
        "procedure": Tier.USER_INFERRED,
        "constraint": Tier.USER_STATED,
    }
)


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The values that decide. floors: the lowest trust that may state a kind; a kind without one is not kept.

    secrets, identifiers: what happens to a statement with one (a sort that is not named: redact).
    instructs_below: origins below it may not tell anybody what to do. topics: by name; where one is "allowed",
    everything else is not. confirm: kinds that a person is asked about first; confirm_explicit: also what somebody asked
    to remember. least_confidence: of the extractor, 0 to 1. extractor: the version that counts, None for any.
    burst_factor: times the usual number of candidates of an origin; burst_least: never a burst below this number.
    """

    floors: Mapping[str, Tier] = field(default_factory=lambda: _FLOORS)
    secrets: Literal["redact", "block"] = "block"
    identifiers: Mapping[Sort, Handling] = field(default_factory=lambda: MappingProxyType({}))
    instructs_below: Tier = Tier.AGENT
    topics: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    confirm: frozenset[str] = frozenset()
    confirm_explicit: bool = False
    least_confidence: float = 0.7
    extractor: str | None = None
    burst_factor: float = 5.0
    burst_least: int = 20

    def handling(self, sort: Sort) -> Handling:
        """What happens to a statement with this in it."""
        return self.secrets if sort is Sort.SECRET else self.identifiers.get(sort, "redact")


DEFAULT_ADMISSION: Final = AdmissionPolicy()
assert set(_FLOORS) == set(RECORD_KINDS)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What is known about the event that a candidate was found in, and about whoever brought it.

    tier: of the event, which is no higher than that of anything it rests on. findings, signs: of its text. injected:
    where it repeats what memory put in. consents: topics that the subject agreed to. recent, usual: candidates of this
    origin in the present hour and in an ordinary one.
    """

    text: str
    role: str
    tier: Tier
    findings: tuple[Finding, ...] = ()
    signs: tuple[Sign, ...] = ()
    injected: tuple[Span, ...] = ()
    consents: frozenset[str] = frozenset()
    extractor: str | None = None
    recent: int = 1
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the candidate. kept: it as it may be kept, masked where needed; None where it is rejected.

    reasons: in the order of the checks; none for a plain admission. found: identifiers and secrets in it, as places in
    the source. topic: what it is about, where named.
    """

    decision: Decision
    reasons: tuple[Reason, ...]
    trust: Tier
    kept: Candidate | None
    sensitivity: str = "normal"
    found: tuple[Finding, ...] = ()
    topic: str | None = None


Verdict = tuple[Decision, Reason]


def admit(candidate: Candidate, source: SourceFacts, policy: AdmissionPolicy) -> Outcome:
    """Judges one candidate on its own. What was said before it, and what people decided, `weigh` looks at."""
    found = tuple(one for one in source.findings if _overlap((one.start, one.end), candidate.span))
    kept = _masked(candidate, source, policy, found)
    topic = topic_of(candidate.content, policy)
    verdicts: list[Verdict] = []
    for check in _CHECKS:
        for verdict in check(_Case(candidate, kept, source, policy, found, topic)):
            verdicts.append(verdict)
            if verdict[0] is Decision.REJECT:
                return _outcome(verdicts, source, None, found, topic)
    return _outcome(verdicts, source, kept, found, topic)


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that a check may look at."""

    candidate: Candidate
    kept: Candidate
    source: SourceFacts
    policy: AdmissionPolicy
    found: tuple[Finding, ...]
    topic: str | None


def _outcome(
    verdicts: Sequence[Verdict],
    source: SourceFacts,
    kept: Candidate | None,
    found: tuple[Finding, ...],
    topic: str | None,
) -> Outcome:
    decision = max((decision for decision, _ in verdicts), default=Decision.ADMIT)
    personal = any(one.sort in IDENTIFIERS for one in found)
    return Outcome(
        decision=decision,
        reasons=tuple(dict.fromkeys(reason for _, reason in verdicts)),
        trust=source.tier,
        kept=kept,
        sensitivity="personal" if personal else "normal",
        found=found,
        topic=topic,
    )


# Secrets and identifiers ---------------------------------------------------------------------------------------------


def _masked(
    candidate: Candidate, source: SourceFacts, policy: AdmissionPolicy, found: Sequence[Finding]
) -> Candidate:
    """The candidate with a word in place of all that the policy redacts, in its content and in every part of it."""
    hidden = [one for one in found if policy.handling(one.sort) == "redact"]
    if not hidden:
        return candidate
    parts = {source.text[one.start : one.end]: f"[masked {one.sort.value}]" for one in hidden}
    value = _clipped(candidate.value, candidate.value_span, hidden)
    attribute = candidate.attribute
    if attribute is not None and attribute.endswith(candidate.value):
        attribute = attribute.removesuffix(candidate.value) + value
    return replace(
        candidate,
        content=_clipped(candidate.content, candidate.span, hidden),
        value=value,
        entity=_without(candidate.entity, parts),
        attribute=_without(attribute, parts),
        supersedes=_without(candidate.supersedes, parts),
        superseded_attribute=_without(candidate.superseded_attribute, parts),
    )


def _clipped(text: str, span: Span, hidden: Sequence[Finding]) -> str:
    """`text`, which stands at `span`, masked; of a finding that reaches beyond it the part within."""
    start, end = span
    inside = [one for one in hidden if _overlap((one.start, one.end), span)]
    return mask(
        text,
        [replace(one, start=max(one.start, start) - start, end=min(one.end, end) - start) for one in inside],
    )


@overload
def _without(text: str, parts: Mapping[str, str]) -> str: ...
@overload
def _without(text: str | None, parts: Mapping[str, str]) -> str | None: ...
def _without(text: str | None, parts: Mapping[str, str]) -> str | None:
    """Without the parts, wherever they stand."""
    if text is not None:
        for part, word in parts.items():
            text = text.replace(part, word)
    return text


def _sensitive(case: _Case) -> Iterator[Verdict]:
    for sort, blocked, masked in (
        (frozenset({Sort.SECRET}), Reason.SECRET, Reason.SECRET_MASKED),
        (IDENTIFIERS, Reason.IDENTIFIER, Reason.IDENTIFIER_MASKED),
    ):
        for one in case.found:
            handling = case.policy.handling(one.sort)
            if one.sort in sort and handling == "block":
                yield Decision.REJECT, blocked
            elif one.sort in sort and handling == "redact":
                yield Decision.ADMIT, masked
    if (
        case.kept is not case.candidate
        and case.kept.value.startswith("[masked ")
        and case.kept.value.endswith("]")
    ):
        yield Decision.REJECT, Reason.NOTHING_LEFT


# Evidence, trust, shape ----------------------------------------------------------------------------------------------


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _evidence(case: _Case) -> Iterator[Verdict]:
    """Word for word in what a user, an agent or a tool said; never in what the system or memory itself put there."""
    (start, end), source = case.candidate.span, case.source
    if not 0 <= start < end <= len(source.text) or source.text[start:end] != case.candidate.content:
        yield Decision.REJECT, Reason.NO_SPAN
    if source.role == "system":
        yield Decision.REJECT, Reason.SYSTEM_TEXT
    if any(_overlap(span, case.candidate.span) for span in source.injected):
        yield Decision.REJECT, Reason.OWN_TEXT


def _trust(case: _Case) -> Iterator[Verdict]:
    floor = case.policy.floors.get(case.candidate.kind)
    if case.policy.extractor not in (None, case.source.extractor):
        yield Decision.REJECT, Reason.OTHER_EXTRACTOR
    if floor is None:
        yield Decision.REJECT, Reason.KIND
    elif case.source.tier < floor:
        yield Decision.QUARANTINE, Reason.LOW_TRUST
    if case.candidate.confidence < case.policy.least_confidence:
        yield Decision.QUARANTINE, Reason.LOW_CONFIDENCE


def _shape(case: _Case) -> Iterator[Verdict]:
    """What a tool or a page gives may state things, and not tell anybody what to do, in whatever words."""
    if case.source.tier >= case.policy.instructs_below:
        return
    if case.source.signs:
        yield Decision.QUARANTINE, Reason.INSTRUCTS
    from mnemolog.domain.gate.mood import states

    if not states(case.candidate.content):
        yield Decision.QUARANTINE, Reason.NO_STATEMENT


# Consent and topic ---------------------------------------------------------------------------------------------------


def topic_of(content: str, policy: AdmissionPolicy) -> str | None:
    """The strictest topic whose words occur in it."""
    folded = normal_form(content).casefold()
    about = [
        name for name, topic in policy.topics.items() if any(_mentions(folded, word) for word in topic.words)
    ]
    strictness = ("allowed", "conditional", "forbidden")
    return max(about, key=lambda name: strictness.index(policy.topics[name].rule), default=None)


def _mentions(folded: str, word: str) -> bool:
    """Latin words as a whole; Korean ones carry particles and stand in compounds."""
    word = word.casefold()
    at = folded.find(word)
    while at >= 0:
        before, after = folded[:at][-1:], folded[at + len(word) :][:1]
        latin = word[-1:].isascii() and word[:1].isascii()
        if not latin or not any(each.isascii() and each.isalnum() for each in (before, after)):
            return True
        at = folded.find(word, at + 1)
    return False


def _consent(case: _Case) -> Iterator[Verdict]:
    topic = None if case.topic is None else case.policy.topics[case.topic]
    if topic is not None and topic.rule == "forbidden":
        yield Decision.REJECT, Reason.FORBIDDEN_TOPIC
    elif topic is not None and topic.rule == "conditional" and case.topic not in case.source.consents:
        yield Decision.CONFIRM, Reason.NEEDS_CONSENT
    elif topic is None and any(each.rule == "allowed" for each in case.policy.topics.values()):
        yield Decision.REJECT, Reason.NOT_ALLOWED_TOPIC
    if case.candidate.kind in case.policy.confirm or (
        case.candidate.explicit and case.policy.confirm_explicit
    ):
        yield Decision.CONFIRM, Reason.ASKED_FIRST


# Burst -------------------------------------------------------------------------------------------------


def _burst(case: _Case) -> Iterator[Verdict]:
    usual = max(case.policy.burst_least, case.policy.burst_factor * case.source.usual)
    if case.source.recent > usual:
        yield Decision.QUARANTINE, Reason.BURST


_CHECKS: Final[tuple[Callable[[_Case], Iterator[Verdict]], ...]] = (
    _sensitive, _evidence, _trust, _shape, _consent, _burst,
)  # fmt: skip

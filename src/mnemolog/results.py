"""What the face hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mnemolog.domain.context import LeftOut
from mnemolog.domain.controls import Control
from mnemolog.domain.events import Forgotten
from mnemolog.domain.gate.wording import WAITING
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Evidence, Step
from mnemolog.domain.scope import Scope
from mnemolog.projections.supervision import Trouble


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a recorded text that has `total` characters: what `read_output` takes."""

    start: int
    end: int
    total: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of `recall`.

    text: the stored text, or the passage of a large one that answers best; span: where that passage stands in the
    text of the event, None where `text` is no passage (of `get`, a preview of a very large one);
    score: higher is better, comparable within one recall; signals: the scores that it is made of;
    event_ids: where it comes from; record_id: set for records only;
    kind: turn, chunk, tool_call, tool_result, or the record's kind.
    """

    text: str
    score: float
    signals: Mapping[str, float]
    event_ids: tuple[str, ...]
    record_id: str | None
    occurred_at: datetime
    kind: str
    role: str | None = None
    author: str | None = None
    version: int = 1
    status: str = "current"
    origin: Tier = Tier.IMPORT
    session: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ContextReceipt:
    """Which records and events entered a context, in order, and what was left out and why. Holds no text.

    left_out lists the first ones, omitted counts all. incomplete: events of the owner were parked, so that
    something may be missing (`operations.parked`).
    """

    event_id: str
    position: int
    budget: int
    tokens: int
    entries: tuple[Mapping[str, Any], ...]
    left_out: tuple[LeftOut, ...]
    read_position: int
    omitted: int = 0
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """A context that fits: `text` has `receipt.tokens` tokens.

    memory: what is known, bordered; state: what is being done right now, bordered, for the place that is read last.
    """

    memory: str
    state: str
    receipt: ContextReceipt

    @property
    def text(self) -> str:
        return "\n".join(part for part in (self.memory, self.state) if part)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The whole as one chat message; none where there is nothing."""
        return [{"role": "user", "content": self.text}] if self.text else []

    def openai(self, messages: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Messages for OpenAI's chat API: system messages, what is known, the given ones, the present state."""
        leading = next((at for at, one in enumerate(messages) if not _is_system(one)), len(messages))
        known = [{"role": "user", "content": self.memory}] if self.memory else []
        now = [{"role": "user", "content": self.state}] if self.state else []
        return [*map(dict, messages[:leading]), *known, *map(dict, messages[leading:]), *now]

    def anthropic(self, messages: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Messages for Anthropic's API, whose system prompt is no message: roles alternate, contents are blocks."""
        made = [{"role": one["role"], "content": _blocks(one["content"])} for one in messages]
        for text, first in ((self.memory, True), (self.state, False)):
            if text:
                _add(made, {"type": "text", "text": text}, first)
        return made


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("system", "developer")


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _add(messages: list[dict[str, Any]], block: dict[str, str], first: bool) -> None:
    """Into the user's message at that end, behind results of tools, which must come first; else as a new one."""
    at = 0 if first else -1
    if not messages or messages[at]["role"] != "user":
        messages.insert(0 if first else len(messages), {"role": "user", "content": [block]})
        return
    content = messages[at]["content"]
    results = sum(isinstance(one, dict) and one.get("type") == "tool_result" for one in content)
    content.insert(results if first else len(content), block)


@dataclass(frozen=True, slots=True)
class OutputRange:
    """Characters [start, end) of a recorded text that has `total` characters."""

    text: str
    start: int
    end: int
    total: int


@dataclass(frozen=True, slots=True)
class Parked:
    """An event that is not in a view. state: failed, or waiting behind an earlier one of its owner."""

    projection: str
    position: int
    event_id: str
    owner: str | None
    reason: str
    state: str
    at: str


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One curated memory, judged at the reader's now. All times are ISO 8601 with offset.

    status: current, needs confirmation, superseded, outranked, duplicate, disputed, retracted, not yet valid, expired,
    forgotten. rivals: the records that it needs confirmation against; question: what to ask the person about them.
    trust: the lowest origin among its evidence. believed_from, believed_to: log positions.
    content is FORGOTTEN where it was erased.
    """

    record_id: str
    scope: Scope
    content: str | Forgotten
    kind: str
    slot: tuple[str, str] | None
    status: str
    version: int
    trust: Tier
    confidence: float
    sensitivity: str
    consent: str | None
    evidence: tuple[Evidence, ...]
    subjects: tuple[str, ...]
    valid_from: str | None
    valid_to: str | None
    expires_at: str | None
    last_verified: str | None
    believed_from: int
    believed_to: int | None
    supersedes: str | None
    superseded_by: str | None
    reason: str | None
    weakened: str | None
    occurred_at: str
    session: str | None
    feedback: tuple[int, int]
    rivals: tuple[str, ...] = ()
    question: str | None = None

    @property
    def event_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.event_id for one in self.evidence))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the gate decided about one candidate, or about a statement that it had something to say of.

    status: admitted, evidence, needs confirmation, quarantined, log only. content: as it may be kept, in the language
    of its source; None where it is not kept. found_in: the event it stands in; found_by: the extractor's version, None
    for what was stated. voices: how many different ones said it so far. question: what to ask the person.
    """

    record_id: str
    scope: Scope
    status: str
    reasons: tuple[str, ...]
    content: str | None
    kind: str | None
    slot: tuple[str, str] | None
    trust: Tier
    sensitivity: str
    topic: str | None
    found_in: str
    found_by: str | None
    rule: str | None
    asked: bool
    voices: int
    question: str | None
    occurred_at: str
    recorded_at: str
    session: str | None
    event_id: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Records of one slot between which nothing decides, oldest first, and the question that decides."""

    scope: Scope
    slot: tuple[str, str] | None
    records: tuple[MemoryRecord, ...]
    question: str
    status: str = "needs confirmation"


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two records that may say the same. into: the one that would stay; reason: which likeness was seen."""

    scope: Scope
    record: MemoryRecord
    into: MemoryRecord
    reason: str
    question: str
    status: str = "merge proposed"


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a statement or a correction, or how a record stands.

    status: of what is memory, the record's (`MemoryRecord.status`); "outranked" also where it says something else than
    the record, whose author has more authority. Else held for review; withheld: the person's consent was taken back;
    dropped: the policy keeps it in the log only; erased; undecided: events of its owner are parked.
    reasons: why, in words, and what was hidden in it. known: the record said so before. record_id: see `why`.
    """

    record_id: str
    status: str
    reasons: tuple[str, ...] = ()
    known: bool = False

    @property
    def kept(self) -> bool:
        """Whether it is memory, current or not."""
        return self.status not in NOT_KEPT


HELD, WITHHELD, DROPPED = "held for review", "withheld", "dropped"
ERASED, UNDECIDED = "erased", "undecided"
NOT_KEPT = frozenset({HELD, WITHHELD, DROPPED, ERASED, UNDECIDED})


@dataclass(frozen=True, slots=True)
class Why:
    """How a record came to be what it is. record: None where nothing of it is readable memory; standing says why.

    competing: the other records of its slot, what stands first. path: the control points that it came to, in order,
    each with the rule that decided, the evidence and the record on the other side.
    """

    record_id: str
    record: MemoryRecord | None
    outcomes: tuple[Outcome, ...]
    steps: tuple[Step, ...]
    competing: tuple[MemoryRecord, ...]
    standing: Standing
    path: tuple[Control, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of an event. looked: by extractor's version, whether it has looked at it; mode: the policy's.

    standing: of a statement or a correction; None of what was only said. path: as of `Why`, for each thing that was
    found in it, and on for the records that came of it.
    """

    event_id: str
    topic: str
    outcomes: tuple[Outcome, ...]
    looked: Mapping[str, bool]
    mode: str
    standing: Standing | None = None
    erased: bool = False
    path: tuple[Control, ...] = ()

    @property
    def reason(self) -> str:
        """In one sentence."""
        if self.erased:
            return "its content was erased"
        if self.standing is not None:
            return ": ".join(filter(None, (self.standing.status, ", ".join(self.standing.reasons))))
        if self.outcomes:
            return "; ".join(
                f"{one.status}: {', '.join(one.reasons) or 'no objection'}" for one in self.outcomes
            )
        if self.mode == "window":
            return "the policy keeps only the log and the window"
        if not any(self.looked.values()):
            return "nobody has looked at it yet"
        return "nothing in it is stated for good"


@dataclass(frozen=True, slots=True)
class ProjectionStatus:
    """How far a view is: position of `head`; parked and waiting events; state is running, paused, behind or failed."""

    name: str
    version: str
    position: int
    head: int
    lag: int
    parked: int
    waiting: int
    state: str


@dataclass(frozen=True, slots=True)
class Health:
    """The work in the background. leads: whether it is this process's; running: whether all its threads do.

    troubles: of each part, since the start; a part with a backoff is being tried again.
    """

    head: int
    leads: bool
    running: bool
    troubles: Mapping[str, Trouble]

    @property
    def failing(self) -> bool:
        return any(trouble.backoff for trouble in self.troubles.values())


@dataclass(frozen=True, slots=True)
class GateStatus:
    """What the gate decided in the whole store, as it stands now.

    candidates: by status, as of `Outcome`; reasons: by status and reason, one candidate may have several.
    people: what people did to records (corrected, approved, edited, ...). waiting_since: when the first of those that
    wait for a person was recorded; waited: seconds since then. refused: what yielded no candidate in this process, by
    extractor and reason.
    """

    candidates: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    people: Mapping[str, int] = field(default_factory=dict)
    waiting_since: str | None = None
    waited: float = 0.0
    refused: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Candidates that a person is to decide on."""
        return sum(self.candidates.get(name, 0) for name in WAITING)


@dataclass(frozen=True, slots=True)
class Status:
    """A data directory at a glance."""

    path: str
    head: int
    projections: tuple[ProjectionStatus, ...]
    vectors: tuple[ProjectionStatus, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    pending_erasures: tuple[str, ...] = ()
    refused_late: int = 0
    refused_access: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[ProjectionStatus, ...] = ()
    """Those that look for statements and for what must be hidden."""
    gate: GateStatus = field(default_factory=GateStatus)
    reads: Mapping[str, int] = field(default_factory=dict)
    """Recorded contexts and reads, by action."""
    crashes: Mapping[str, int] = field(default_factory=dict)
    """Of the background work of this process, by its name."""
    leads: bool = True
    """Whether this process keeps up views, vectors and index; `leader` is the id of the one that does."""
    leader: int | None = None

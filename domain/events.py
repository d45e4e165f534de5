"""The event catalogue: one frozen dataclass each, a closed registry of topics, and the envelope.

A field marked `clear()` is stored readable, so it may hold only ids, numbers, keyed hashes and closed words;
every other field is sealed. Stored names never cause an import: `REGISTRY` is the only way from a topic to a class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from mnemolog.domain.envelope import (
    FORGOTTEN,
    Draft,
    Envelope,
    Event,
    Forgotten,
    Json,
    Part,
    Receipt,
    Recorded,
    Undecodable,
    clear,
)
from mnemolog.domain.errors import UnknownEventType

__all__ = [
    "FORGOTTEN",
    "Draft",
    "Envelope",
    "Event",
    "Forgotten",
    "Json",
    "Part",
    "Receipt",
    "Recorded",
    "Undecodable",
    "clear",
]
"""Of the envelope; the events themselves stand below."""

REGISTRY: Final[dict[str, type[Event]]] = {}
UPCASTERS: Final[dict[tuple[str, int], Callable[[Json], Json]]] = {}
"""(topic, stored schema) -> function from that schema's fields to the next one's."""


def event(topic: str, schema: int = 1) -> Callable[[type[Event]], type[Event]]:
    def register(cls: type[Event]) -> type[Event]:
        if topic in REGISTRY:
            raise ValueError(f"topic {topic} is registered twice")
        cls.topic, cls.schema = topic, schema
        REGISTRY[topic] = cls
        return cls

    return register


# What happened --------------------------------------------------------------------------------------------------
@event("SessionOpened")
@dataclass(frozen=True, slots=True)
class SessionOpened(Event):
    """A session begins. timezone: IANA name, used for times that come without an offset."""

    timezone: str | None = None
    title: str | None = None


@event("TurnRecorded", schema=2)
@dataclass(frozen=True, slots=True)
class TurnRecorded(Event):
    """Somebody said something. Schema 1 called `content` `text` and had no author."""

    role: str
    content: str
    author: str | None = None
    blob: Json | None = clear(None)


@event("UtteranceChunkRecorded")
@dataclass(frozen=True, slots=True)
class UtteranceChunkRecorded(Event):
    """A piece of an utterance that is still being spoken or streamed."""

    role: str
    content: str
    utterance: str
    author: str | None = None
    index: int = clear(0)
    final: bool = clear(False)


@event("ToolCalled")
@dataclass(frozen=True, slots=True)
class ToolCalled(Event):
    """The agent asked a tool. arguments: the JSON text as the runtime gave it."""

    name: str
    arguments: str
    call_id: str | None = None
    blob: Json | None = clear(None)


@event("ToolReturned")
@dataclass(frozen=True, slots=True)
class ToolReturned(Event):
    """A tool answered, with `output` or with `error`. source: (what was read, its version)."""

    output: str
    name: str | None = None
    call_id: str | None = None
    error: bool = False
    source: tuple[str, ...] = ()
    blob: Json | None = clear(None)


@event("FeedbackGiven")
@dataclass(frozen=True, slots=True)
class FeedbackGiven(Event):
    """Somebody judged an event or a record. target: its id."""

    target: str = clear()
    rating: str = clear()
    comment: str | None = None


@event("SessionClosed")
@dataclass(frozen=True, slots=True)
class SessionClosed(Event):
    reason: str | None = None


# Memory, by people and agents. The stream is the record; `Envelope.stream` is the record id. ----------------------
@event("MemoryStated", schema=2)
@dataclass(frozen=True, slots=True)
class MemoryStated(Event):
    """A statement to remember. Times are ISO 8601 with offset. findings, signs: as of `CandidatesExtracted`.

    kind, sensitivity: None where they were not named. Schema 1 said "fact" and "normal" then too.
    """

    content: str
    kind: str | None = None
    slot: tuple[str, str] | None = None
    evidence: tuple[Json, ...] = ()
    valid_from: str | None = None
    valid_to: str | None = None
    expires_at: str | None = None
    sensitivity: str | None = None
    consent: str | None = None
    confidence: float = 1.0
    findings: tuple[Json, ...] = clear(())
    signs: tuple[str, ...] = clear(())


@event("MemoryCorrected", schema=2)
@dataclass(frozen=True, slots=True)
class MemoryCorrected(Event):
    """The record's content is replaced; what is None stays as it was.

    kind, slot, sensitivity: the record's when it was corrected, so that a correction stands without the statement.
    A sensitivity of "normal" was named by who corrected it; in schema 1 it was not.
    """

    content: str
    reason: str | None = None
    kind: str | None = None
    slot: tuple[str, str] | None = None
    sensitivity: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    expires_at: str | None = None
    evidence: tuple[Json, ...] = ()
    findings: tuple[Json, ...] = clear(())


@event("MemoryConfirmed")
@dataclass(frozen=True, slots=True)
class MemoryConfirmed(Event):
    reason: str | None = None


@event("MemoryDisputed")
@dataclass(frozen=True, slots=True)
class MemoryDisputed(Event):
    reason: str | None = None


@event("MemoryRetracted")
@dataclass(frozen=True, slots=True)
class MemoryRetracted(Event):
    reason: str | None = None


@event("ConflictResolved")
@dataclass(frozen=True, slots=True)
class ConflictResolved(Event):
    """A person chose this record over `rejected` (record ids) for their slot."""

    rejected: tuple[str, ...] = clear(())
    reason: str | None = None


@event("MergeReviewed")
@dataclass(frozen=True, slots=True)
class MergeReviewed(Event):
    """A person compared this record with another one. decision: merge (it says what `other` says) or apart."""

    decision: str = clear()
    other: str = clear()
    reason: str | None = None


@event("QuarantineReviewed", schema=2)
@dataclass(frozen=True, slots=True)
class QuarantineReviewed(Event):
    """A person approved, rejected or edited a held record. decision: approve, reject or edit.

    content and all that follows: what was approved, so that the decision stands whatever becomes of the candidate.
    sensitivity: of the candidate; in schema 1 "normal" where nothing was said of it, too.
    """

    decision: str = clear()
    content: str | None = None
    reason: str | None = None
    kind: str | None = None
    slot: tuple[str, str] | None = None
    sensitivity: str | None = None
    evidence: tuple[Json, ...] = ()
    findings: tuple[Json, ...] = clear(())


# Derived (the envelope names the sources), and work ----------------------------------------------------------------
@event("SummaryWritten")
@dataclass(frozen=True, slots=True)
class SummaryWritten(Event):
    """A session (kind rolling) in few words, from the raw events `first` to `last`.

    landmarks: each kind, event, speaker, text; open_items: each kind, event, text; input_hash: of what was read.
    """

    text: str
    kind: str = clear()
    first: int = clear()
    last: int = clear()
    maker: str = clear()
    maker_version: str = clear()
    input_hash: str = clear()
    landmarks: tuple[Json, ...] = ()
    open_items: tuple[Json, ...] = ()


@event("CandidatesExtracted")
@dataclass(frozen=True, slots=True)
class CandidatesExtracted(Event):
    """What an extractor found in one source, the envelope's only one, for one record, which is the stream.

    said: role of the source, its tool, and its length in characters; candidates: in the form of `gate.stored`.
    voice: an id or a keyed hash, equal for what counts as one origin; findings: each sort, start, end, rule, of it;
    signs: names of the rules by which it tells its reader what to do; injected: spans that memory itself put there.
    """

    candidates: tuple[Json, ...]
    said: Json
    extractor: str = clear()
    voice: str = clear()
    input_hash: str = clear()
    findings: tuple[Json, ...] = clear(())
    signs: tuple[str, ...] = clear(())
    injected: tuple[tuple[int, int], ...] = clear(())


@event("SensitiveFound")
@dataclass(frozen=True, slots=True)
class SensitiveFound(Event):
    """Where secrets and personal identifiers stand in one source, the envelope's only one. Never what they are.

    findings: each part (a passage of a large text, else -1), sort, start, end, rule, and a keyed fingerprint.
    """

    findings: tuple[Json, ...] = clear(())


@event("WorkingStateChanged")
@dataclass(frozen=True, slots=True)
class WorkingStateChanged(Event):
    """Keys of a task's state were set, or removed where their value is None. The stream is the session's task."""

    task: str
    values: Json


# Governance and reading: ids only, but for the sealed reasons ------------------------------------------------------
@event("ParkedEventReplayed")
@dataclass(frozen=True, slots=True)
class ParkedEventReplayed(Event):
    projection: str = clear()
    target: str = clear()
    position: int = clear()


@event("ParkedEventDismissed")
@dataclass(frozen=True, slots=True)
class ParkedEventDismissed(Event):
    projection: str = clear()
    target: str = clear()
    position: int = clear()
    reason: str | None = None


@event("ErasureRequested")
@dataclass(frozen=True, slots=True)
class ErasureRequested(Event):
    """what: event, record, session or subject; target: its id; events: how many are planned."""

    erasure: str = clear()
    what: str = clear()
    target: str = clear()
    events: int = clear(0)
    keep_evidence: bool = clear(False)
    reason: str | None = None


@event("SubjectErased")
@dataclass(frozen=True, slots=True)
class SubjectErased(Event):
    """The person's keys are gone. sessions: ids of the person's sessions, closed with them."""

    erasure: str = clear()
    subject: str = clear()
    sessions: tuple[str, ...] = clear(())


@event("ContentErased")
@dataclass(frozen=True, slots=True)
class ContentErased(Event):
    """The keys of these events are gone. Long lists come as several events of one erasure; `last` ends it."""

    erasure: str = clear()
    events: tuple[str, ...] = clear(())
    session: str | None = clear(None)
    last: bool = clear(True)


@event("ContextAssembled")
@dataclass(frozen=True, slots=True)
class ContextAssembled(Event):
    """The receipt of one context: ids only. Each entry: id, version, layer, tokens; each left out: id, reason.

    left_out lists the first ones, omitted counts all. incomplete: events of the owner were parked.
    """

    query: str = clear()
    budget: int = clear()
    tokens: int = clear()
    entries: tuple[Json, ...] = clear(())
    left_out: tuple[Json, ...] = clear(())
    position: int = clear(0)
    omitted: int = clear(0)
    incomplete: bool = clear(False)


@event("MemoryAccessed")
@dataclass(frozen=True, slots=True)
class MemoryAccessed(Event):
    """Reads of one principal in one scope, several at once. Each: action, ids, position, at; query: a keyed hash."""

    reads: tuple[Json, ...] = clear(())


@event("PolicyAdopted")
@dataclass(frozen=True, slots=True)
class PolicyAdopted(Event):
    """This policy decides from here on. policy, previous: hashes of the documents; document: the text as given."""

    document: str
    policy: str = clear()
    previous: str | None = clear(None)


@event("PartitionsChanged")
@dataclass(frozen=True, slots=True)
class PartitionsChanged(Event):
    """Between processes, events travel in so many partitions from here on; the first one holds for all before too."""

    epoch: int = clear()
    partitions: int = clear()


@event("ConsentGranted")
@dataclass(frozen=True, slots=True)
class ConsentGranted(Event):
    """The scope's user agrees that memory is kept about a topic of the policy, or (None) about them at all."""

    about: str | None = None
    reason: str | None = None


@event("ConsentWithdrawn")
@dataclass(frozen=True, slots=True)
class ConsentWithdrawn(Event):
    """The scope's user takes it back; what was kept is no longer read."""

    about: str | None = None
    reason: str | None = None


@event("AccessRefused")
@dataclass(frozen=True, slots=True)
class AccessRefused(Event):
    """A principal asked for what it may not have. reason: a closed sentence of `principal.refusal`."""

    action: str = clear()
    reason: str = clear()


def _turn_recorded_1_to_2(body: Json) -> Json:
    renamed = {("content" if name == "text" else name): value for name, value in body.items()}
    return {"author": None, **renamed}


UPCASTERS["TurnRecorded", 1] = _turn_recorded_1_to_2


def _unnamed_sensitivity_1_to_2(body: Json) -> Json:
    return {**body, "sensitivity": None} if body.get("sensitivity") == "normal" else body


def _memory_stated_1_to_2(body: Json) -> Json:
    kind = None if body.get("kind") == "fact" else body.get("kind")
    return {**_unnamed_sensitivity_1_to_2(body), "kind": kind}


UPCASTERS["MemoryStated", 1] = _memory_stated_1_to_2
for _topic in ("MemoryCorrected", "QuarantineReviewed"):
    UPCASTERS[_topic, 1] = _unnamed_sensitivity_1_to_2

HAPPENED: Final = frozenset(
    {"SessionOpened", "TurnRecorded", "UtteranceChunkRecorded", "ToolCalled", "ToolReturned", "SessionClosed"}
)
MEMORY: Final = frozenset(
    "MemoryStated MemoryCorrected MemoryConfirmed MemoryDisputed MemoryRetracted".split()
    + "ConflictResolved MergeReviewed QuarantineReviewed CandidatesExtracted".split()
)
"""The stream is the record."""
STATEMENTS: Final = frozenset({"MemoryStated", "CandidatesExtracted"})
"""Without one of them nothing is left of a record."""
CONSENT: Final = frozenset({"ConsentGranted", "ConsentWithdrawn"})
ERASURE: Final = frozenset({"SubjectErased", "ContentErased"})
"""Handled at once by every projection, also while their owner's events wait."""
PARKING: Final = frozenset({"ParkedEventReplayed", "ParkedEventDismissed"})
_STORE_WIDE: Final = frozenset({"ErasureRequested", "AccessRefused", "PolicyAdopted", "PartitionsChanged"})
GOVERNANCE: Final = ERASURE | PARKING | _STORE_WIDE
"""What concerns a whole tenant or store."""

CLEAR_FIELDS: Final = {
    topic: frozenset(f.name for f in fields(cls) if f.metadata.get("clear"))  # type: ignore[arg-type]
    for topic, cls in REGISTRY.items()
}
SEALED_FIELDS: Final = {
    topic: frozenset(f.name for f in fields(cls)) - CLEAR_FIELDS[topic]  # type: ignore[arg-type]
    for topic, cls in REGISTRY.items()
}


def restore(topic: str, schema: int, body: Mapping[str, Any]) -> Event:
    """The event of a stored body, lifted through the upcasters to the newest schema.

    Raises UnknownEventType for a topic or a schema that the registry does not know.
    """
    cls = REGISTRY.get(topic)
    if cls is None:
        raise UnknownEventType(
            f"topic {topic!r} is not in the registry: read it with the version that wrote it"
        )
    values = {name: tuple(value) if type(value) is list else value for name, value in body.items()}
    for stored in range(schema, cls.schema):
        lift = UPCASTERS.get((topic, stored))
        if lift is None:
            raise UnknownEventType(f"no upcaster for {topic} schema {stored}")
        values = lift(values)
    if schema > cls.schema:
        raise UnknownEventType(f"{topic} schema {schema} is newer than {cls.schema}: upgrade first")
    return cls(**values)

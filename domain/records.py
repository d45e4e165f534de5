"""Curated memory: `Record`, and the `Assertion`s (one per memory event) that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.normalise import normal_form, slot_key
from mnemolog.domain.principal import Tier
from mnemolog.domain.scope import ScopeIds

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(moment: datetime | str) -> int:
    """Microseconds since 1970 in UTC. Raises InvalidInput for what is no time, or has no zone."""
    try:
        when = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        return (when - _EPOCH) // _MICROSECOND
    except (ValueError, TypeError):
        raise InvalidInput(f"not an ISO 8601 time with a zone: {moment!r}") from None


def identity(belongs: ScopeIds, slot: tuple[str, str] | None, statement: str) -> bytes:
    """What makes a record this one, for a keyed hash: the same statement in the same scope and slot."""
    place = slot_key(*slot) if slot else ""
    return b"\0".join((belongs.encode(), place.encode(), normal_form(statement).encode()))


RECORD_KINDS: Final = ("fact", "preference", "episode", "procedure", "constraint", "reference")
SENSITIVITIES: Final = ("normal", "personal")


class Act(StrEnum):
    """What a memory event does to its record."""

    STATED = "stated"
    CORRECTED = "corrected"
    CONFIRMED = "confirmed"
    DISPUTED = "disputed"
    RETRACTED = "retracted"
    RESOLVED = "resolved"
    """A conflict was decided for this record."""
    APPROVED = "approved"
    REJECTED = "rejected"
    EDITED = "edited"
    FOUND = "found"
    """A candidate that may be admitted, as far as it alone decides."""
    ADMITTED = "admitted"
    """A candidate that states something; never stored, see `gate.weighing`."""
    PROPOSED = "proposed"
    """A candidate that waits until a person decides."""
    DROPPED = "dropped"
    """A candidate that is not kept."""
    MERGED = "merged"
    """A person found that it says what another record says."""
    PARTED = "kept apart"
    """A person found that it says something else than another record."""


GATED: Final = frozenset({Act.FOUND, Act.PROPOSED, Act.DROPPED})
"""Acts of what must pass the gate, as they are stored."""
STATING: Final = frozenset({Act.STATED, Act.ADMITTED, Act.CORRECTED, Act.EDITED})
"""Acts that carry content."""


class Status(StrEnum):
    """The first five do not depend on time and are stored; the others are judged at the reader's now."""

    ACTIVE = "active"
    DISPUTED = "disputed"
    RETRACTED = "retracted"
    FORGOTTEN = "forgotten"
    HELD = "held"
    """It waits for a person, a person rejected it, or its consent was taken back."""
    CURRENT = "current"
    CONTESTED = "needs confirmation"
    """Others of equal authority say something else of the same slot, and nothing decides: a person is asked."""
    SUPERSEDED = "superseded"
    OUTRANKED = "outranked"
    """Newer than what stands, but of lower authority."""
    DUPLICATE = "duplicate"
    NOT_YET_VALID = "not yet valid"
    EXPIRED = "expired"
    """Its valid time or its time to live is over."""


class Precedence(StrEnum):
    """Why one of two values stands before the other: the rules of revision by their names, the first that differs."""

    RETRACTED = "retracted"
    """What was taken back stands before nothing."""
    VALID_NOW = "valid now"
    """What holds at the time asked stands before what held, or will hold."""
    SAME = "same statement"
    """They say the same: the other one is evidence."""
    MERGED = "merged by a person"
    PERSON = "decided by a person"
    """A human correction, choice or approval, or a person's statement after it."""
    AUTHORITY = "higher authority"
    OPEN = "nothing decides"
    """Different voices of equal authority at about the same time: a person is asked."""
    CONFIRMED = "confirmed by a person"
    """It would be open, had nobody confirmed one of them."""
    RECENT = "more recent"
    LATER = "later in the log"
    FIRST = "first"
    """Nothing stood there before."""


READABLE: Final = frozenset({Status.CURRENT, Status.DISPUTED, Status.CONTESTED})
"""What a default read returns."""
UNREADABLE: Final = frozenset({Status.HELD, Status.FORGOTTEN})
"""What no read hands over as memory, whatever is asked for."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event, or characters [start, end) of its text, that a record rests on. tier: its origin where known."""

    event_id: str
    start: int | None = None
    end: int | None = None
    tier: Tier | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Evidence:
        """From the form that events carry. Raises InvalidInput without an event id."""
        if not values.get("event_id"):
            raise InvalidInput("evidence names no event_id")
        tier = values.get("tier")
        return cls(
            values["event_id"], values.get("start"), values.get("end"), None if tier is None else Tier(tier)
        )


@dataclass(frozen=True, slots=True)
class Assertion:
    """One memory event, as a row. A forgotten one keeps the first group of fields only.

    scope: the interned scope; tier: origin of the event; form: statement key of `content`;
    rejected: the record ids that a resolution decided against, or the one that a merge is about.
    voice: whose word it is, as far as that can be told: equal for what one person or one agent says.
    sensitivity: as it was named; None where nothing was said of it.
    """

    position: int
    event_id: str
    record: str
    version: int
    act: Act
    scope: int
    actor: str
    recorded_at: str
    forgotten: bool = False

    tier: Tier = Tier.IMPORT
    human: bool = False
    session: str | None = None
    subjects: tuple[str, ...] = ()
    occurred_at: str = ""
    occurred_us: int = 0
    content: str | None = None
    form: str | None = None
    kind: str | None = None
    entity: str | None = None
    attribute: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    expires_at: str | None = None
    sensitivity: str | None = None
    consent: str | None = None
    confidence: float | None = None
    reason: str | None = None
    evidence: tuple[Evidence, ...] = ()
    rejected: tuple[str, ...] = ()
    voice: str | None = None

    @property
    def trust(self) -> Tier:
        """The minimum over the event and everything it cites, also what was erased since."""
        return min((self.tier, *(e.tier for e in self.evidence if e.tier is not None)))

    @property
    def slot(self) -> tuple[str, str] | None:
        return None if self.entity is None or self.attribute is None else (self.entity, self.attribute)


@dataclass(frozen=True, slots=True)
class Record:
    """One curated memory. `settle` makes it from its assertions; `standing` judges it at a time.

    id: the stream; content: None where forgotten; group: what competes with it has the same scope and group
        (its slot, or its statement where it has none); form: statement key of the content.
    trust: minimum over the evidence of what is effective; ruled: a human correction or decision stands behind it,
        made at position `ruling` with `authority`; human: the effective content came from a person.
    order_us: the time by which it is newer or older than its peers, UTC microseconds.
    confidence: the writer's, times the share of its evidence that is left; lost: how much of it was erased.
    position: of the event that made it what it is; believed_to: when that ceased to be believed, None while it is.
    version: the highest of its stream, forgotten events included.
    voice: whose word it is; confirmed: position of a person's last confirmation, 0 for none.
    merged_into: the record that says the same, as a person decided; apart: those that do not. rivals: the other
        records that it needs confirmation against; unrivalled: its status if they were not.
    """

    id: str
    scope: int
    status: Status
    version: int
    position: int
    content: str | None = None
    kind: str = "fact"
    entity: str | None = None
    attribute: str | None = None
    group: str | None = None
    form: str | None = None
    trust: Tier = Tier.IMPORT
    authority: Tier = Tier.IMPORT
    ruled: bool = False
    ruling: int = 0
    human: bool = False
    order_us: int = 0
    valid_from: str | None = None
    valid_to: str | None = None
    expires_at: str | None = None
    from_us: int | None = None
    to_us: int | None = None
    expires_us: int | None = None
    confidence: float = 0.0
    sensitivity: str = "normal"
    consent: str | None = None
    reason: str | None = None
    actor: str = ""
    session: str | None = None
    occurred_at: str = ""
    recorded_at: str = ""
    last_verified: str | None = None
    believed_to: int | None = None
    lost: int = 0
    up: int = 0
    down: int = 0
    subjects: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    voice: str | None = None
    confirmed: int = 0
    merged_into: str | None = None
    apart: tuple[str, ...] = ()
    superseded_by: str | None = None
    supersedes: str | None = None
    rivals: tuple[str, ...] = ()
    unrivalled: Status | None = None

    @property
    def slot(self) -> tuple[str, str] | None:
        return None if self.entity is None or self.attribute is None else (self.entity, self.attribute)

    @property
    def believed_from(self) -> int:
        return self.position

    @property
    def event_ids(self) -> tuple[str, ...]:
        """The events it rests on, each once, in order."""
        return tuple(dict.fromkeys(e.event_id for e in self.evidence))

    @property
    def weakened(self) -> str | None:
        """Why its confidence is lower than its writer's; None where it is not."""
        total = self.lost + len(self.event_ids)
        return f"{self.lost} of {total} pieces of evidence were erased" if self.lost else None


@dataclass(frozen=True, slots=True)
class Side:
    """A record that a decision is about, and what it said then; None where that may not be told any more."""

    record: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One event in the history of a record. content is None where it had none, or where it is forgotten.

    effect: effective (what the record says now), replaced, outranked (lower authority), evidence (the same again),
        forgotten, or noted (an act without content).
    rule: why it has this effect, in the words of `Precedence`; other: the event that it was compared with.
    won: of a person's decision between records, the one that it is for (None where both stay, as kept apart);
    against: the others. sensitivity: of its words, as it is held now. session: in which it happened.
    """

    record: str
    event_id: str
    position: int
    version: int
    act: Act
    actor: str
    recorded_at: str
    effect: str
    occurred_at: str = ""
    content: str | None = None
    reason: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    tier: Tier = Tier.IMPORT
    rule: Precedence | None = None
    other: str | None = None
    won: Side | None = None
    against: tuple[Side, ...] = ()
    sensitivity: str = "normal"
    session: str | None = None

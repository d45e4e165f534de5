"""What stands around an event: envelope, draft and receipt, and what a destroyed body reads as."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final

from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import ScopeIds, owner

Json = dict[str, Any]


class Forgotten(Enum):
    """What a reader gets where content was destroyed; falsy, printable, comparable by identity."""

    FORGOTTEN = "FORGOTTEN"

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "FORGOTTEN"


FORGOTTEN: Final = Forgotten.FORGOTTEN


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A stored body that could not be read; `reason` names the error, never the text."""

    reason: str


def clear(default: Any = MISSING) -> Any:
    """A field that is stored readable in the envelope."""
    return field(default=default, metadata={"clear": True})


class Event:
    """Marker base of the catalogue: `topic` and `schema` of the stored form."""

    __slots__ = ()
    topic: ClassVar[str]
    schema: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Part:
    """One sealed part of a body: its leaf number, and the subjects whose keys close it."""

    leaf: int
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The readable side of a stored event: random ids, keyed hashes, numbers and closed words only."""

    id: str
    topic: str
    schema: int
    stream: str
    version: int
    occurred_at: str
    recorded_at: str
    scope: ScopeIds
    actor: str
    role: Role
    origin: Tier
    digest: str
    key: str | None
    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    clear: Json
    causation: str | None = None
    correlation: str | None = None

    @property
    def owner(self) -> str:
        return owner(self.scope)

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset(subject for part in self.parts for subject in part.subjects)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as read back: `event` is FORGOTTEN, Undecodable, or None when bodies were not asked for."""

    position: int
    envelope: Envelope
    event: Event | Forgotten | Undecodable | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A validated event on its way into the log.

    subjects: whose keys seal it (at least one id for an event with sealed fields).
    parts: optional split of the sealed fields, ((subjects, field names), ...); one part of all when empty.
    expected_version: the stream's version that the writer saw; None appends at the end.
    began_at: position that derived work started from; an erasure of its sources or subjects since then refuses it.
    """

    id: str
    event: Event
    scope: ScopeIds
    stream: str
    occurred_at: datetime
    actor: str
    role: Role
    origin: Tier
    digest: str
    subjects: tuple[str, ...] = ()
    parts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    key: str | None = None
    expected_version: int | None = None
    sources: tuple[str, ...] = ()
    causation: str | None = None
    correlation: str | None = None
    began_at: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an append returns. duplicate: the key was known, and this is the first receipt again."""

    event_id: str
    position: int
    stream: str
    version: int
    duplicate: bool = False

    @property
    def record_id(self) -> str:
        """For memory events: the record, which is the stream."""
        return self.stream

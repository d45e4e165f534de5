"""What extractors and scanners read of an event: its text, who said it, and where it belongs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from mnemolog.domain.events import (
    Event,
    Recorded,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.gate.candidates import Source, Span

READ: Final = 65_536
"""Characters of one text in which statements are looked for."""
SPOKEN: Final = frozenset({"TurnRecorded", "UtteranceChunkRecorded", "ToolCalled", "ToolReturned"})
_OURS: Final = re.compile(r"<memory>\n.*?(?:</memory>|\Z)", re.DOTALL)
"""A context as it was handed to the agent: what stands in it was remembered, not said."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A text of an event. who: the author or tool, where it has a name; states: whether it may state anything."""

    recorded: Recorded
    text: str
    role: str
    who: str | None
    states: bool

    @property
    def id(self) -> str:
        return self.recorded.envelope.id

    @property
    def home(self) -> str:
        """Whose keys its hashes are made with."""
        scope = self.recorded.envelope.scope
        return scope.user or scope.tenant

    @property
    def injected(self) -> tuple[Span, ...]:
        """Where it repeats a context that memory put in."""
        return tuple(found.span() for found in _OURS.finditer(self.text[:READ]))

    def source(self, zone: tzinfo | None, user: str | None) -> Source:
        """As an extractor takes it. user: the name of the scope's user, who is no other speaker."""
        envelope = self.recorded.envelope
        at = datetime.fromisoformat(envelope.occurred_at)
        spoken = self.role == "user" and self.who not in (None, user)
        own = zone or at.tzinfo
        assert own is not None
        speaker = self.who if spoken else None
        return Source(self.text[:READ], self.role, envelope.origin, at, own, speaker)


Zone = Callable[[Recorded], tzinfo | None]
"""The zone of the session that an event is of."""


def heard_of(recorded: Recorded) -> Heard | None:
    """None for what has no text, or has it no more."""
    event = recorded.event
    if not isinstance(event, Event):
        return None
    if isinstance(event, TurnRecorded):
        return _heard(recorded, event.content, event.role, event.author, states=event.role != "system")
    if isinstance(event, UtteranceChunkRecorded):
        return _heard(recorded, event.content, event.role, event.author, states=False)
    if isinstance(event, ToolReturned):
        return _heard(recorded, event.output, "tool", event.name, states=event.error is not True)
    if isinstance(event, ToolCalled):
        return _heard(recorded, event.arguments, "assistant", event.name, states=False)
    return None


def _heard(recorded: Recorded, text: object, role: object, who: object, *, states: bool) -> Heard | None:
    """Fields whose own sealed part was destroyed are absent, as if never given."""
    if not isinstance(text, str) or not text.strip() or not isinstance(role, str):
        return None
    return Heard(recorded, text, role, who if isinstance(who, str) else None, states)

"""What a batch of events is before it is folded: in order, each once, and which of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mnemolog.domain.events import ERASURE, PARKING, Recorded, Undecodable
from mnemolog.projections.ports import Page

UNREADABLE_TENANT: Final = "?"
"""The tenant of the envelope that stands for one that could not be read."""


def is_exhausted(error: BaseException | None) -> bool:
    """Whether whoever folds ran out of stack or memory, which is no fault of the event. SQLAlchemy may wrap it."""
    while error is not None:
        if isinstance(error, RecursionError | MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def fresh(page: Page, after: int) -> list[Recorded]:
    """The events of a page that are due: each once, in order, whatever was delivered twice or out of order."""
    events = page.events
    positions = [recorded.position for recorded in events]
    if all(a < b for a, b in zip([after, *positions], [*positions, page.position + 1], strict=True)):
        return list(events)
    due = {recorded.position: recorded for recorded in events if after < recorded.position <= page.position}
    return [due[position] for position in sorted(due)]


def runs(events: Sequence[Recorded]) -> Iterator[Sequence[Recorded]]:
    """Cut behind every event to which the runner itself reacts."""
    start = 0
    for end, recorded in enumerate(events, 1):
        if recorded.envelope.topic in ERASURE or recorded.envelope.topic in PARKING:
            yield events[start:end]
            start = end
    if start < len(events):
        yield events[start:]


def is_placeholder(recorded: Recorded) -> bool:
    return recorded.envelope.scope.tenant == UNREADABLE_TENANT


def unreadable(recorded: Recorded) -> bool:
    return isinstance(recorded.event, Undecodable) or is_placeholder(recorded)


def unreadable_reason(recorded: Recorded) -> str:
    return recorded.event.reason if isinstance(recorded.event, Undecodable) else "unreadable envelope"

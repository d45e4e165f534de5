"""Every error that Mnemolog raises on purpose. Each message says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = 5


class MnemologError(Exception):
    """Base of all errors of this package."""


class InvalidInput(MnemologError, ValueError):
    """A value that the caller can mend: wrong form, missing zone, too large, missing tenant."""


class NotKept(InvalidInput):
    """The policy keeps no such text, whoever says it: say it without what the message names."""


class VersionConflict(MnemologError):
    """The stream has moved on from the version that the writer expected. Read again, then retry."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(f"{stream} is at version {actual}, not {expected}: read it again, then retry")
        self.stream, self.expected, self.actual = stream, expected, actual


class IdempotencyConflict(MnemologError):
    """The idempotency key was used before with another body. Use a new key for new content."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"this key was used before with another body (event {event_id}): use a new key")
        self.event_id = event_id


class AccessDenied(MnemologError):
    """The principal may not do this in this scope. The refusal is recorded."""


class ErasedScope(MnemologError):
    """The write belongs to something that was erased (or began before the erasure). It is refused and counted."""


class NotFound(MnemologError, LookupError):
    """No such event, record or session in the caller's scope."""


class Erased(NotFound):
    """The event or record that the call names was erased: say it anew."""


class StoreInUse(MnemologError):
    """Another process is opening this data directory, is erasing in it, or leads it with another release."""


class StoreClosed(MnemologError):
    """The memory was closed, or this is a fork of the process that opened it: open it anew."""


class StoreUnavailable(MnemologError):
    """The store cannot do it just now: disk full, locked, interrupted. Retry with the same key."""


class KeysMissing(MnemologError):
    """The log has events but their keys (or the root key) are not there. Keys are never created silently."""


class AnotherLog(MnemologError):
    """The target of a move, or the topics of a prefix, belong to another log. Name others, or an empty target."""


class StoreMoved(MnemologError):
    """This memory was moved: go on where it is now. Or a move into it is not finished: run that again."""


class CorruptStore(MnemologError):
    """Stored bytes do not have the form or the hash that they were written with."""


class UnknownEventType(MnemologError):
    """A stored topic or schema version that this version of the registry does not know."""


class ProjectionParked(MnemologError):
    """A read needs events that are parked. `mnemolog projections parked` lists them."""


class RebuildRefused(MnemologError):
    """A view that was built anew lacks more events than the live one, which stays. events: (position, reason) each."""

    def __init__(self, view: str, events: Sequence[tuple[int, str]]) -> None:
        shown = "; ".join(f"{position} ({reason})" for position, reason in events[:_SHOWN])
        more = f" and {len(events) - _SHOWN} more" if len(events) > _SHOWN else ""
        super().__init__(
            f"{view} built anew lacks events that the live view has, so the live one stays; at positions {shown}"
            f"{more}: mend the cause, or switch all the same with force=True (`mnemolog projections rebuild {view} "
            f"--force`), after which `mnemolog projections parked {view}` lists them"
        )
        self.view, self.events = view, tuple(events)


class ProjectionStalled(MnemologError):
    """A view did not reach the position that the read asked for in time. `mnemolog projections lag` shows it."""

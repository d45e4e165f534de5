"""What an erasure reaches, and the account of what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

CHUNK: Final = 500
"""Event ids per `ContentErased`, so that no envelope grows without bound."""


class What(StrEnum):
    EVENT = "event"
    RECORD = "record"
    SESSION = "session"
    SUBJECT = "subject"


@dataclass(frozen=True, slots=True)
class Reach:
    """What an erasure would destroy: ids only. events: those with content, each once; counts: the same per topic.

    evidence_left: events that a record cites and that stay (`keep_evidence=True`). twins: the record to erase and
    those that say the same.
    """

    what: What
    target: str
    events: tuple[str, ...]
    records: tuple[str, ...]
    sessions: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    evidence_left: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreResult:
    """One store's part: found before, removed, still readable afterwards by the second look, and a remark.

    due: deleted, but its bytes may still be in a file until that is written anew.
    """

    store: str
    found: int
    removed: int
    readable: int
    remark: str = ""
    due: bool = False


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """The account of one erasure. complete is False whenever anything is still readable or could not be checked.

    events: as in the plan, with what came between plan and erasure. A store counts what it held of them itself.

    pending: something is left to do; it is done when the memory is opened next.
    """

    erasure_id: str
    what: What
    target: str
    position: int
    events: int
    stores: tuple[StoreResult, ...]
    evidence_left: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.evidence_left and not self.pending

    @property
    def pending(self) -> bool:
        return any(store.readable or store.due for store in self.stores)

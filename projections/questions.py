"""What is asked of the hybrid search, and what it answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from sqlalchemy import Connection

from mnemolog.domain.normalise import slot_key
from mnemolog.domain.records import READABLE, Record, Status, microseconds
from mnemolog.domain.retrieval import Facts, Ranked
from mnemolog.domain.scope import ScopeIds

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.dense import Cosines
    from mnemolog.projections.record_tables import Judged


class Nearness(Protocol):
    def cosines(self, question: str, scopes: Collection[ScopeIds], turns: int, limit: int) -> Cosines | None:
        """How near everything in these scopes is to the question; None where that cannot be said."""


@dataclass(frozen=True, slots=True)
class Places:
    """Read transactions on both views, and the scopes that the caller sees in each by their numbers there.

    The epochs are those of what is kept in memory when the transactions began.
    """

    turns: Connection
    turn_scopes: Mapping[int, ScopeIds]
    records: Connection
    record_scopes: Mapping[int, ScopeIds]
    turn_epoch: int
    record_epoch: int


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be an answer. since_us is included, until_us is not; author, tool, slot and kinds must be equal."""

    kinds: frozenset[str] | None = None
    author: str | None = None
    tool: str | None = None
    slot: tuple[str, str] | None = None
    status: frozenset[Status] | None = None
    since_us: int | None = None
    until_us: int | None = None
    history: bool = False

    @property
    def sees_history(self) -> bool:
        return self.history or (self.status is not None and not self.status <= READABLE)

    def turns(self) -> bool:
        """Whether a turn can be an answer at all."""
        return self.slot is None and self.status is None

    def records(self) -> bool:
        return self.author is None and self.tool is None

    @property
    def chooses_turns(self) -> bool:
        asked = (self.kinds, self.author, self.tool, self.since_us, self.until_us)
        return any(one is not None for one in asked)

    @property
    def bounds(self) -> Facts:
        """The times that are allowed."""
        return Facts(since_us=self.since_us, until_us=self.until_us)

    def allows_record(self, record: Record) -> bool:
        return (
            self.records()
            and (self.kinds is None or record.kind in self.kinds)
            and (self.status is None or record.status in self.status)
            and (self.slot is None or record.group == f"s{slot_key(*self.slot)}")
            and self.bounds.covers(microseconds(record.occurred_at))
        )


NO_FILTERS: Final = Filters()


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for. text: without its relative time words; facts: the time that it speaks of.

    times: the words of a date in the text, which lift its strict bounds for what has all of them.
    """

    text: str
    now: datetime
    k: int
    facts: Facts
    filters: Filters
    times: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best, best first. The key of a turn is its position, that of a record minus its number.

    passages: position → number of the passage that answers best, of turns that are large; None where none is.
    judged: the records of the scopes, as they stand.
    """

    ranked: Sequence[Ranked]
    passages: Mapping[int, int] | None
    judged: Judged


__all__ = ["NO_FILTERS", "Filters", "Nearness", "Places", "Question", "Ranking"]

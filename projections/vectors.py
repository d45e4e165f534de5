"""Vector rows: what is embedded, what a stored vector is made from, and the ports of rows and index.

A vector is named by (position, kind, part, space). The position is that of the event whose text stands in its middle;
events never change, so ids of events say what a vector was made from, and no hash of a text is kept. Only passages have
a part other than 0; where vectors are listed, a passage goes by its number, which is made of position and part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.events import Recorded
from mnemolog.domain.passages import RULE as PASSAGE_RULE
from mnemolog.domain.passages import number_of
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.embedding import Floats, QueryVector

RECIPE: Final = b"1"
"""Raise it when the same events would give another text to embed: vectors are then made anew."""

Positions = NDArray[np.int64]


class Kind(IntEnum):
    """TURN: a turn alone. WINDOW: with its neighbours in the session. RECORD: what a memory event states.

    PASSAGE: one passage of a large turn.
    """

    TURN = 0
    WINDOW = 1
    RECORD = 2
    PASSAGE = 3

    def listed(self, position: int, part: int) -> int:
        """What a vector of this kind goes by: its position, or the number of its passage."""
        return number_of(position, part) if self is Kind.PASSAGE else position


class Stage(StrEnum):
    """Turns, windows and records are embedded first, passages behind them; each stage has its own position."""

    TEXTS = "texts"
    PASSAGES = "passages"


@dataclass(frozen=True, slots=True)
class Place:
    """An event whose text can be embedded: its log position and its id."""

    position: int
    event_id: str


@dataclass(frozen=True, slots=True)
class Source:
    """An embedded event, without its text. scope: what a read must see; subjects: other than the scope's user.

    record: for a memory event, its record. occurred_us: UTC microseconds; origin: the tier of its content.
    """

    place: Place
    scope: ScopeIds
    session: str | None = None
    record: str | None = None
    origin: int = 0
    occurred_us: int = 0
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """A turn and its neighbours in the session, as far as there are any."""

    centre: Place
    before: Place | None = None
    after: Place | None = None

    @property
    def members(self) -> tuple[Place, ...]:
        return tuple(place for place in (self.before, self.centre, self.after) if place is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A new vector. window: every event whose text is in it; values: float32 (dimensions,), of length 1."""

    kind: Kind
    window: Window
    values: Floats
    part: int = 0

    @property
    def digest(self) -> bytes:
        return digest_of(self.kind, self.window, self.part)


@dataclass(frozen=True, slots=True)
class Batch:
    """One step of the worker, committed whole or not at all.

    after, position: from where to where in the log, of this stage; settled: due windows that were looked at.
    stages: those that the batch is all of; more than one where no text in it has passages.
    """

    space: str
    after: int
    position: int
    sources: Sequence[Source] = ()
    made: Sequence[Made] = ()
    settled: Sequence[int] = ()
    stages: Sequence[Stage] = (Stage.TEXTS,)


@dataclass(frozen=True, slots=True)
class Outcome:
    """committed: False where another worker was first; fenced: vectors refused, for an erasure came before them."""

    committed: bool
    fenced: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StoredVector:
    """A vector with the facts that an index may filter by. change: the number of the write that made it."""

    change: int
    kind: Kind
    place: Place
    scope: ScopeIds
    session: str | None
    record: str | None
    origin: int
    occurred_us: int
    values: Floats
    part: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """A vector that is not there any more."""

    change: int
    kind: Kind
    position: int
    scope: ScopeIds
    part: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to the rows of a space up to `change`."""

    dropped: Sequence[Dropped]
    stored: Sequence[StoredVector]
    change: int


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Rows of one scope and kind. vectors: float32 (n, dimensions); stamp: where they stand, for the next slice.

    positions: as `Kind.listed` names them.
    whole: these are all rows; else only those that are new since the stamp that was given.
    """

    positions: Positions
    vectors: Floats
    stamp: Stamp
    whole: bool


@dataclass(frozen=True, slots=True)
class Stamp:
    """Number of the last write and of the last removal."""

    written: int = -1
    removed: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Cosine of every vector of some scopes, in no order. cosines[i] belongs to the event at positions[i]."""

    positions: Positions
    cosines: Floats

    def mapping(self) -> dict[int, float]:
        """Log position → cosine."""
        return dict(zip(self.positions.tolist(), self.cosines.tolist(), strict=True))

    def over(self, wanted: Positions) -> NDArray[np.float64]:
        """The cosine at each of these positions, NaN where there is none."""
        found = np.full(len(wanted), np.nan)
        if len(self.positions) and len(wanted):
            order = np.argsort(self.positions, kind="stable")  # they come nearly in order
            at = np.searchsorted(self.positions, wanted, sorter=order)
            at[at == len(order)] = 0
            place = order[at]
            inside = self.positions[place] == wanted
            found[inside] = self.cosines[place[inside]]
        return found


ErasureReader = Callable[[int], tuple[Sequence[Recorded], int]]
"""Position → the erasure events behind it, and how far the log was read."""


class VectorRows(Protocol):
    """Where vectors are kept: one store, shared by all versions of all projections."""

    @property
    def identity(self) -> str:
        """A random name of this store, so that an index of another one is not taken for its own."""

    def open_space(self, space: str, dimensions: int) -> int:
        """Make the space known; how far in the log it is embedded. Raises SpaceMismatch for other dimensions."""

    def position(self, space: str, stage: Stage = Stage.TEXTS) -> int:
        """How far in the log this stage of the space is embedded."""

    def drop_space(self, space: str) -> int:
        """Remove every vector of the space; how many there were."""

    def tails(self, sessions: Collection[str], upto: int) -> Mapping[str, Sequence[Place]]:
        """The last two turns of each session up to a position, the older first."""

    def due(self, space: str, upto: int, limit: int) -> Sequence[Window]:
        """Windows that an erasure took and that are to be made anew from what is left up to a position."""

    def count_due(self, space: str) -> int:
        """How many windows wait to be made anew."""

    def commit(self, batch: Batch, erasures: ErasureReader) -> Outcome:
        """Store a batch and its position in one transaction, in which the log's erasures are looked at first.

        A vector with an erased text is refused; the windows of what is left become due.
        """

    def erase(self, erasures: ErasureReader) -> int:
        """Apply what was erased since the last look; how far the log was looked at."""

    def change(self) -> int:
        """The number of the last write or removal in any space."""

    def slice(self, space: str, scope: ScopeIds, kind: Kind, since: Stamp) -> Slice:
        """The rows of this scope that are new since a stamp, or all where something was removed since."""

    def changes(self, space: str, after: int, limit: int) -> Changes:
        """What was stored and removed behind a change number, at most `limit` stored vectors at a time."""

    def standing(
        self, space: str, scopes: Collection[ScopeIds], kind: Kind, positions: Sequence[int]
    ) -> set[int]:
        """Those of the positions (of passages: the numbers) that have a vector of this kind in one of these scopes."""

    def count(self, space: str, scopes: Collection[ScopeIds], kind: Kind) -> int:
        """How many vectors of this kind these scopes have."""

    def largest(self) -> int:
        """How many events, or passages, the scope has that has most."""

    def sample(self, space: str, scope: ScopeIds, kind: Kind, limit: int) -> Floats:
        """The first vectors of a scope, float32 (n, dimensions), to know their spread by."""

    def sample_mark(self, space: str, scope: ScopeIds, kind: Kind, limit: int) -> tuple[int, int]:
        """What `sample` is known by: another sample has another mark."""

    def holding(self, positions: Sequence[int]) -> int:
        """How many rows hold something of the events at these positions, as middle or as neighbour."""

    def purge(self) -> bool:
        """Rewrite the file so that no removed byte is left. False: a reader was in the way, so purge again later."""

    def close(self) -> None:
        """Let go of the file. Idempotent."""


class VectorIndex(Protocol):
    """A disposable index over the rows of one space. Every search names the scopes that the caller sees."""

    @property
    def space(self) -> str | None:
        """The space that it holds; None while it was never filled."""

    @property
    def identity(self) -> str | None:
        """The identity of the rows that it was filled from."""

    @property
    def flushed(self) -> int:
        """The change number up to which it is on disk."""

    def exclusively(self) -> AbstractContextManager[None]:
        """No other process changes it inside. Raises StoreInUse where another one does not get done."""

    def begin(self, space: str, dimensions: int, identity: str) -> None:
        """Start an empty index beside the present one; `apply` fills it, `activate` switches searches to it."""

    def apply(self, changes: Changes) -> None:
        """Remove and store, and flush. Repeating it changes nothing."""

    def activate(self) -> None:
        """Let searches see the index that was begun, at once, and drop the one before."""

    def compact(self, erased_to: int = 0) -> None:
        """Rewrite what has removed vectors in it, so that their bytes are gone."""

    def search(
        self, query: QueryVector, scopes: Collection[ScopeIds], k: int, kind: Kind
    ) -> list[tuple[int, float]]:
        """(log position, cosine) of the k nearest vectors of these scopes, best first; of passages, their numbers."""

    def holding(self, positions: Sequence[int]) -> int:
        """How many points it has of the events at these positions."""

    def close(self) -> None:
        """Let go of the folder. Idempotent."""


def digest_of(kind: Kind, window: Window, part: int = 0) -> bytes:
    """What a vector was made from: a hash over random event ids, which tells nothing of the text."""
    names = [place.event_id if place else "-" for place in (window.before, window.centre, window.after)]
    if kind is Kind.PASSAGE:
        names += [str(part), str(PASSAGE_RULE)]
    return blake2b(b"/".join([RECIPE, b"%d" % kind, *(n.encode() for n in names)]), digest_size=12).digest()

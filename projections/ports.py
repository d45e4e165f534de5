"""What projections, and the face above them, need from the outside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from sqlalchemy import Connection

from mnemolog.domain.events import Draft, Receipt, Recorded
from mnemolog.domain.passages import Passage
from mnemolog.projections.versions import ViewFile


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time, aware, UTC."""


class Ids(Protocol):
    def event_id(self) -> str:
        """A new UUIDv7 as 32 hex digits, increasing within a process."""


@dataclass(frozen=True, slots=True)
class Page:
    """Events after a position, and how far the reader has now looked (filtered events included)."""

    events: Sequence[Recorded]
    position: int


@dataclass(frozen=True, slots=True)
class SealedPage:
    """As `Page`, with what is stored: each event without its body, and its sealed state."""

    events: Sequence[tuple[Recorded, bytes]]
    position: int


class EventLog(Protocol):
    """The log. Positions start at 1, grow in commit order and are never used twice."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append all of `drafts` or none, durably; one receipt each, in order.

        A draft whose key is known with the same digest yields the first receipt again.
        Raises VersionConflict, IdempotencyConflict, ErasedScope; other appenders are not affected.
        """

    def read(
        self, after: int, limit: int, *, topics: Collection[str] | None = None, bodies: bool = True
    ) -> Page:
        """Up to `limit` events behind position `after`, of the given topics only, in order."""

    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]:
        """The events at these positions, in position order; unknown positions are left out."""

    def read_stream(self, stream: str, *, after_version: int = 0, bodies: bool = True) -> list[Recorded]:
        """The events of one stream, in version order."""

    def head(self) -> int:
        """The last position; 0 for an empty log."""

    def wait(self, after: int, timeout: float) -> int:
        """The head, as soon as it is beyond `after` or `timeout` seconds have passed."""

    def wake(self) -> None:
        """Let everybody who waits return now."""


class LargeTexts(Protocol):
    """Where the whole of a text is whose event keeps a preview only. What is there never changes."""

    def read(self, event_id: str, reference: dict[str, Any], start: int, end: int) -> str | None:
        """Characters [start, end), given the `blob` field of the event; None where it was destroyed.

        Raises CorruptStore where it is not what was written.
        """


class Hiding(Protocol):
    """Puts a word in place of what is not to be kept."""

    def text(self, text: str) -> str:
        """The text without it."""

    def pieces(self, whole: str, pieces: Sequence[Passage]) -> list[str]:
        """These pieces of a text without what of it stands in each."""


class Projection(Protocol):
    """A fold from the log into one view. Deterministic: same events, same rows, whatever the batches."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Changes whenever the same log would give other rows."""

    @property
    def topics(self) -> frozenset[str] | None:
        """What it cares about; None for everything."""

    @property
    def bodies(self) -> bool:
        """Whether it needs sealed bodies opened."""

    def create(self, conn: Connection) -> None:
        """Make the tables of an empty view."""

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        """Apply a batch inside the caller's transaction. May raise: the runner then finds the event and parks it."""

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        """The ordered logical content, free of row ids and file details, for comparing two views."""

    def purge(self, conn: Connection) -> None:
        """Make deleted text leave index segments (outside of folding; before the file is vacuumed)."""


@runtime_checkable
class ByOwner(Protocol):
    """A projection whose rows of one owner change by that owner's events alone, but for those for all owners."""

    by_owner: bool


@runtime_checkable
class Forgetful(Protocol):
    """A projection that keeps something of its rows in memory between batches, as interned scope numbers."""

    def forget_cache(self) -> None:
        """Called after a roll back, and before the same instance folds into another file."""


@runtime_checkable
class RemembersWords(Protocol):
    """A projection that remembers what words of texts and names turn into."""

    def forget_words(self) -> None:
        """Called after an erasure."""


@dataclass(frozen=True, slots=True)
class ViewSize:
    """Bytes of one view file with its write-ahead log."""

    file: ViewFile
    live: bool
    bytes: int


class ViewStore(Protocol):
    """Where views are kept: one file per projection version, and one pointer that names the live ones."""

    def live(self, name: str) -> ViewFile | None:
        """The file that readers of this projection see; None where there is none, or it is not there any more."""

    def refresh(self) -> object:
        """Look which are live now: another process may have switched them."""

    def create_shadow(self, name: str, version: str) -> ViewFile:
        """An empty file beside the live one, of a new generation."""

    def begin(
        self, file: ViewFile, partitions: Collection[int] | None = None
    ) -> AbstractContextManager[Connection]:
        """A write transaction: commits at the end, rolls back on an error. One writer at a time per file.

        partitions: where that is all it writes, a store for many processes lets those of others write too.
        """

    def connect(self, name: str) -> AbstractContextManager[Connection]:
        """A read transaction on the live file; it stays on that file, also while another is activated."""

    def connect_to(self, file: ViewFile) -> AbstractContextManager[Connection]:
        """A read transaction on this file."""

    def activate(self, file: ViewFile) -> None:
        """Make this file the live one, durably and at once for every new reader, and drop the one before."""

    def drop(self, file: ViewFile) -> None:
        """Remove the file as soon as its last reader has finished."""

    def purge(self, file: ViewFile, rewrite: Callable[[Connection], None]) -> bool:
        """Run `rewrite` in a transaction, then rewrite the file so that no deleted byte is left in it.

        False where a reader kept the write-ahead log from being truncated: purge again later.
        """

    def files(self) -> list[ViewSize]:
        """What is there and how large, the live ones and those being built."""

    def is_unavailable(self, error: Exception) -> bool:
        """Whether an error of a fold lies with the store (disk full, locked, damaged), not with the event."""

    def close(self) -> None:
        """Close every connection; afterwards the files can be copied or removed."""

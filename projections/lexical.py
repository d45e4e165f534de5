"""The port of a lexical index whose scores come from the asked scopes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import Connection

from mnemolog.domain.lexical import Matches, Term

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.postings import Postings


class LexicalDocument(NamedTuple):
    """One text to index: its number (unique in the index), its interned scope, its tokens."""

    doc: int
    scope: int
    tokens: Sequence[str]


class LexicalIndex(Protocol):
    """Every call works inside the caller's transaction; two implementations give the same scores."""

    def create(self, conn: Connection) -> None:
        """Make the tables where they are absent."""

    def drop(self, conn: Connection) -> None:
        """Remove the tables."""

    def add(self, conn: Connection, docs: Iterable[LexicalDocument]) -> None:
        """Index new documents. To change one, remove it first. To make them must not need the connection."""

    def remove(self, conn: Connection, docs: Sequence[LexicalDocument]) -> int:
        """Remove documents, given with the tokens they were added with; absent ones are passed over.

        Raises `CorruptStore`, before anything is changed, where scope or tokens are not the ones stored.
        """

    def matches(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Matches:
        """Postings of the terms and the statistics of exactly these scopes."""

    def postings(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Postings:
        """The same as arrays, by the places of the terms, each of which is named once; without lengths."""

    def both(
        self, other: LexicalIndex, conn: Connection, scopes: Sequence[int], terms: Sequence[str]
    ) -> tuple[Postings, Postings]:
        """`postings` of this index and of another one of the same kind in the same view, in one look."""

    def lengths(self, conn: Connection, docs: Sequence[int]) -> Mapping[int, int]:
        """How many tokens each of these documents has; absent ones are left out."""

    def search(
        self,
        conn: Connection,
        scopes: Sequence[int],
        query: Sequence[Term],
        newness: Callable[[int], int] = ...,
        limit: int | None = None,
    ) -> list[tuple[int, float]]:
        """All documents of these scopes with a term of the query and their BM25, best first."""

    def optimize(self, conn: Connection) -> None:
        """Merge everything, so that no trace of a removed document is left in live pages."""

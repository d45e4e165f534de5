"""The turns of a scope, kept in memory between questions: ids, times and names, never a text.

What is kept is checked in every read against the documents and tokens that the scope has now: new turns are added,
and where one has gone, or something in one was hidden, everything is read anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from mnemolog.domain.scope import ScopeIds
from mnemolog.projections import turns_view
from mnemolog.projections.kept import Kept
from mnemolog.projections.lexical import LexicalIndex

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.postings import Postings
    from mnemolog.projections.turn_arrays import TurnTable

KEPT_TURNS: Final = 1_000_000
"""Of all scopes together; some 70 bytes each."""
_REMEMBERED: Final = 1_000


class TurnTables:
    """The tables of the scopes that were asked for last. Thread-safe."""

    def __init__(self, index: LexicalIndex, kept: int = KEPT_TURNS) -> None:
        self._index, self._most = index, kept // 2
        self._tables = Kept[frozenset[ScopeIds], "TurnTable"](kept)
        self._asked = Kept[frozenset[ScopeIds], bool](_REMEMBERED)

    def of(self, conn: Connection, scopes: Mapping[int, ScopeIds], found: Postings, epoch: int) -> TurnTable:
        """Every turn of these scopes, as this read transaction sees them. found: what their index has in all."""
        from mnemolog.projections.turn_arrays import TurnTable

        name = frozenset(scopes.values())
        known = self._tables.get(name) or TurnTable()
        if (len(known), known.tokens) == (found.docs, found.tokens):
            return known  # what an erasure took was forgotten with it
        table = self._with_more(conn, scopes, known)
        if (len(table), table.tokens) != (found.docs, found.tokens):
            table = self._with_more(conn, scopes, TurnTable())
        if table is not known:
            self._tables.put(name, table, len(table), epoch)
        return table

    def of_large(
        self, conn: Connection, scopes: Mapping[int, ScopeIds], found: Postings, epoch: int
    ) -> TurnTable | None:
        """The same for scopes that are worth it: asked for again, and small enough to be kept."""
        name = frozenset(scopes.values())
        again = self._asked.get(name) or self._tables.get(name) is not None
        self._asked.put(name, True, 1, epoch)
        return self.of(conn, scopes, found, epoch) if again and found.docs <= self._most else None

    @property
    def epoch(self) -> int:
        """As of `Kept`."""
        return self._tables.epoch

    def forget(self) -> None:
        """Drop everything, as after an erasure, also what reads that are under way have seen."""
        self._tables.forget()
        self._asked.forget()

    def _with_more(self, conn: Connection, scopes: Mapping[int, ScopeIds], known: TurnTable) -> TurnTable:
        rows = turns_view.sketches(conn, scopes, after=known.end)
        if not rows:
            return known
        return known.with_more(rows, self._index.lengths(conn, [row.position for row in rows]))

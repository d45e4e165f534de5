"""The turns of a scope, kept in memory between questions: ids, times and names, never a text.

What is kept is checked in every read against the number of documents that the scope has now: new turns are added,
and where one has gone everything is read anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from mnemolog.domain.scope import ScopeIds
from mnemolog.projections import turns_view
from mnemolog.projections.lexical import LexicalIndex

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.turn_arrays import TurnTable

KEPT_TURNS: Final = 1_000_000
"""Of all scopes together; some 70 bytes each."""
_REMEMBERED: Final = 1_000


class TurnTables:
    """The tables of the scopes that were asked for last. Thread-safe.

    epoch: how often everything was dropped. A read names the epoch in which its transaction began: what it saw before
    an erasure is not kept after it.
    """

    def __init__(self, index: LexicalIndex, kept: int = KEPT_TURNS) -> None:
        self._index, self._kept = index, kept
        self._lock = Lock()
        self._tables: OrderedDict[frozenset[ScopeIds], TurnTable] = OrderedDict()
        self._asked: OrderedDict[frozenset[ScopeIds], None] = OrderedDict()
        self._size = 0
        self.epoch = 0

    def of(self, conn: Connection, scopes: Mapping[int, ScopeIds], documents: int, epoch: int) -> TurnTable:
        """Every turn of these scopes, as this read transaction sees them. documents: how many they have."""
        from mnemolog.projections.turn_arrays import TurnTable

        name = frozenset(scopes.values())
        with self._lock:
            known = self._tables.get(name, TurnTable())
        if len(known) == documents == 0:
            return known
        table = self._with_more(conn, scopes, known)
        if len(table) != documents:
            table = self._with_more(conn, scopes, TurnTable())
        if table is not known:
            self._keep(name, table, epoch)
        return table

    def of_large(
        self, conn: Connection, scopes: Mapping[int, ScopeIds], documents: int, epoch: int
    ) -> TurnTable | None:
        """The same for scopes that are worth it: asked for again, and small enough to be kept."""
        name = frozenset(scopes.values())
        with self._lock:
            again = name in self._asked or name in self._tables
            self._asked[name] = None
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
        return self.of(conn, scopes, documents, epoch) if again and documents <= self._kept // 2 else None

    def forget(self) -> None:
        """Drop everything, as after an erasure, also what reads that are under way have seen."""
        with self._lock:
            self.epoch += 1
            self._tables.clear()
            self._asked.clear()
            self._size = 0

    def _with_more(self, conn: Connection, scopes: Mapping[int, ScopeIds], known: TurnTable) -> TurnTable:
        rows = turns_view.sketches(conn, scopes, after=known.end)
        if not rows:
            return known
        return known.with_more(rows, self._index.lengths(conn, [row.position for row in rows]))

    def _keep(self, name: frozenset[ScopeIds], table: TurnTable, epoch: int) -> None:
        with self._lock:
            if epoch != self.epoch:
                return
            old = self._tables.pop(name, None)
            self._tables[name] = table
            self._size += len(table) - (0 if old is None else len(old))
            while self._size > self._kept and self._tables:
                self._size -= len(self._tables.popitem(last=False)[1])

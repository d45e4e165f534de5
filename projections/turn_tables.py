"""The turns of a scope as candidates, kept in memory between questions: ids, times and names, never a text.

What is kept is checked in every read against the number of documents that the scope has now: new turns are added,
and where one has gone everything is read anew.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from sqlalchemy import Connection

from mnemolog.domain.retrieval import Candidate
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections import turns_view
from mnemolog.projections.lexical import LexicalIndex
from mnemolog.projections.turns_view import Sketch

KEPT_TURNS: Final = 300_000
"""Of all scopes together; some 300 bytes each."""
ROLES: Final = frozenset({"user", "assistant", "system", "tool"})


@dataclass(frozen=True, slots=True)
class TurnTable:
    """The turns of some scopes in log order. sessions: a number for each; totals: its tokens, by number."""

    rows: Sequence[Sketch] = ()
    candidates: Sequence[Candidate] = ()
    session_of: Mapping[int, int] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[int, int] = field(default_factory=dict)
    places: Mapping[int, int] = field(default_factory=dict)
    authors: frozenset[str] = frozenset()

    @property
    def last(self) -> int:
        return self.rows[-1].position if self.rows else 0

    def with_more(self, rows: Sequence[Sketch], lengths: Mapping[int, int]) -> TurnTable:
        """The same with the turns that came behind."""
        sessions, session_of, places = dict(self.sessions), dict(self.session_of), Counter(self.places)
        totals, candidates = Counter(self.totals), list(self.candidates)
        for row in rows:
            number, place, length = None, 0, lengths.get(row.position, 0)
            if row.session is not None:
                number = session_of[row.position] = sessions.setdefault(row.session, len(sessions))
                place = places[number]
                places[number] += 1
                totals[number] += length
            candidates.append(turn_candidate(row, number, place, length))
        authors = self.authors | {one.author for one in candidates[len(self.rows) :] if one.author}
        return TurnTable(
            [*self.rows, *rows], candidates, session_of, sessions, totals, places, frozenset(authors)
        )


class TurnTables:
    """The tables of the scopes that were asked for last. Thread-safe."""

    def __init__(self, index: LexicalIndex, kept: int = KEPT_TURNS) -> None:
        self._index, self._kept = index, kept
        self._lock = Lock()
        self._tables: OrderedDict[frozenset[ScopeIds], TurnTable] = OrderedDict()
        self._size = 0

    def of(self, conn: Connection, scopes: Mapping[int, ScopeIds], documents: int) -> TurnTable:
        """Every turn of these scopes, as this read transaction sees them. documents: how many they have."""
        name = frozenset(scopes.values())
        with self._lock:
            known = self._tables.get(name, TurnTable())
        if len(known.rows) == documents == 0:
            return known
        table = self._with_more(conn, scopes, known)
        if len(table.rows) != documents:
            table = self._with_more(conn, scopes, TurnTable())
        if table is not known:
            self._keep(name, table)
        return table

    def forget(self) -> None:
        """Drop everything, as after an erasure."""
        with self._lock:
            self._tables.clear()
            self._size = 0

    def _with_more(self, conn: Connection, scopes: Mapping[int, ScopeIds], known: TurnTable) -> TurnTable:
        rows = turns_view.sketches(conn, scopes, after=known.last)
        if not rows:
            return known
        return known.with_more(rows, self._index.lengths(conn, [row.position for row in rows]))

    def _keep(self, name: frozenset[ScopeIds], table: TurnTable) -> None:
        with self._lock:
            old = self._tables.pop(name, TurnTable())
            self._tables[name] = table
            self._size += len(table.rows) - len(old.rows)
            while self._size > self._kept and self._tables:
                self._size -= len(self._tables.popitem(last=False)[1].rows)


def turn_candidate(row: Sketch, session: int | None, place: int, length: int) -> Candidate:
    """Without a session a turn has no neighbours; any place tells it from a record."""
    author = None if row.author is None or row.author in ROLES else row.author
    return Candidate(row.position, row.occurred_us, session, place, author, length, row.kind)

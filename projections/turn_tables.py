"""The turns of a scope as candidates, kept in memory between questions: ids, times and names, never a text.

What is kept is checked in every read against the number of documents that the scope has now: new turns are added,
and where one has gone everything is read anew.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
_REMEMBERED: Final = 1_000
_FAR: Final = 3
"""Places between turns that are no neighbours."""
ROLES: Final = frozenset({"user", "assistant", "system", "tool"})


@dataclass(frozen=True, slots=True)
class TurnTable:
    """The turns of some scopes in log order.

    index: position → place in `rows`; sessions: a number for each; members: by number, the places in `rows` of a
    session's turns; totals: its tokens.
    """

    rows: Sequence[Sketch] = ()
    candidates: Sequence[Candidate] = ()
    index: Mapping[int, int] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    members: Sequence[Sequence[int]] = ()
    totals: Mapping[int, int] = field(default_factory=dict)
    authors: frozenset[str] = frozenset()

    @property
    def last(self) -> int:
        return self.rows[-1].position if self.rows else 0

    def with_more(self, rows: Sequence[Sketch], lengths: Mapping[int, int]) -> TurnTable:
        """The same with the turns that came behind."""
        sessions, index, totals = dict(self.sessions), dict(self.index), Counter(self.totals)
        candidates, grown = list(self.candidates), dict[int, list[int]]()
        for at, row in enumerate(rows, len(self.rows)):
            number, place, length = None, 0, lengths.get(row.position, 0)
            if row.session is not None:
                number = sessions.setdefault(row.session, len(sessions))
                if number not in grown:
                    grown[number] = list(self.members[number]) if number < len(self.members) else []
                place = len(grown[number])
                grown[number].append(at)
                totals[number] += length
            index[row.position] = at
            candidates.append(turn_candidate(row, number, place, length))
        members = [grown.get(number) or self.members[number] for number in range(len(sessions))]
        authors = self.authors | {one.author for one in candidates[len(self.rows) :] if one.author}
        return TurnTable(
            [*self.rows, *rows], candidates, index, sessions, members, totals, frozenset(authors)
        )

    def sessions_of(self, positions: Iterable[int]) -> dict[int, int]:
        """Position → number of its session, for those that have one."""
        candidates, index = self.candidates, self.index
        found = ((each, candidates[index[each]].session) for each in positions if each in index)
        return {position: number for position, number in found if number is not None}

    def around(self, positions: Iterable[int]) -> tuple[list[Sketch], list[Candidate]]:
        """These turns, and up to two before and behind each in its session, in log order.

        As candidates, only turns that lie side by side around one of the positions have places side by side.
        """
        wanted: set[int] = set()
        linked: set[int] = set()
        for position in positions:
            if (at := self.index.get(position)) is None:
                continue
            one = self.candidates[at]
            if one.session is None or one.place is None:
                wanted.add(at)
                continue
            run = self.members[one.session][max(0, one.place - 2) : one.place + 3]
            wanted.update(run)
            linked.update(run[1:])
        order = sorted(wanted)
        return [self.rows[at] for at in order], list(self._apart(order, linked))

    def _apart(self, order: Sequence[int], linked: Collection[int]) -> Iterator[Candidate]:
        """The turn before in the session lies side by side, or so far away that neither passes anything on."""
        before: dict[int, tuple[int, int]] = {}
        for one, joins in ((self.candidates[at], at in linked) for at in order):
            if one.session is None or one.place is None:
                yield one
                continue
            place, shift = before.get(one.session, (-_FAR, 0))
            if not joins and one.place - place < _FAR:
                shift += _FAR
            before[one.session] = one.place, shift
            yield _at(one, one.place + shift) if shift else one


class TurnTables:
    """The tables of the scopes that were asked for last. Thread-safe."""

    def __init__(self, index: LexicalIndex, kept: int = KEPT_TURNS) -> None:
        self._index, self._kept = index, kept
        self._lock = Lock()
        self._tables: OrderedDict[frozenset[ScopeIds], TurnTable] = OrderedDict()
        self._asked: OrderedDict[frozenset[ScopeIds], None] = OrderedDict()
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

    def of_large(self, conn: Connection, scopes: Mapping[int, ScopeIds], documents: int) -> TurnTable | None:
        """The same for scopes that are worth it: asked for again, and small enough to be kept."""
        name = frozenset(scopes.values())
        with self._lock:
            again = name in self._asked or name in self._tables
            self._asked[name] = None
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
        return self.of(conn, scopes, documents) if again and documents <= self._kept // 2 else None

    def forget(self) -> None:
        """Drop everything, as after an erasure."""
        with self._lock:
            self._tables.clear()
            self._asked.clear()
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


def _at(one: Candidate, place: int) -> Candidate:
    return Candidate(one.key, one.occurred_us, one.session, place, one.author, one.length, one.kind)

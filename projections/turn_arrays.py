"""The turns of some scopes as arrays: ids, times, lengths and numbers for names, never a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mnemolog.projections.postings import Ints, distinct, places
from mnemolog.projections.turns_view import Sketch

ROLES: Final = frozenset({"user", "assistant", "system", "tool"})
Mask = NDArray[np.bool_]
Codes = Mapping[str, int]


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TurnTable:
    """Turns in log order. session, author, tool: a number for each name, -1 for none.

    before, after: place in this table of the turn that lies there in its session, -1 where none does;
    totals: tokens of each session; last: the last turn of each.
    """

    positions: Ints = field(default_factory=_none)
    occurred: Ints = field(default_factory=_none)
    session: Ints = field(default_factory=_none)
    author: Ints = field(default_factory=_none)
    tool: Ints = field(default_factory=_none)
    kind: Ints = field(default_factory=_none)
    lengths: Ints = field(default_factory=_none)
    before: Ints = field(default_factory=_none)
    after: Ints = field(default_factory=_none)
    totals: Ints = field(default_factory=_none)
    last: Ints = field(default_factory=_none)
    sessions: Codes = field(default_factory=dict)
    authors: Codes = field(default_factory=dict)
    tools: Codes = field(default_factory=dict)
    kinds: Codes = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def end(self) -> int:
        """The position of the last turn."""
        return int(self.positions[-1]) if len(self) else 0

    @property
    def tokens(self) -> int:
        """Of all turns together."""
        return int(self.lengths.sum())

    def with_more(self, rows: Sequence[Sketch], lengths: Mapping[int, int]) -> TurnTable:
        """The same with the turns that came behind."""
        if not rows:
            return self
        positions, occurred, sessions, authors, tools, kinds = zip(*rows, strict=True)
        names, session = _coded(self.sessions, sessions)
        made: dict[str, Any] = {"sessions": names}
        for column, values, known in (
            ("author", authors, self.authors),
            ("tool", tools, self.tools),
            ("kind", kinds, self.kinds),
        ):
            made[f"{column}s"], codes = _coded(known, values)
            made[column] = np.concatenate([getattr(self, column), codes])
        tokens = np.array([lengths.get(position, 0) for position in positions], np.int64)
        last = np.concatenate([self.last, np.full(len(names) - len(self.last), -1)])
        before = _links(session, last, len(self))
        totals = np.concatenate([self.totals, np.zeros(len(names) - len(self.totals), np.int64)])
        np.add.at(totals, session[session >= 0], tokens[session >= 0])
        more = {"positions": positions, "occurred": occurred, "session": session, "lengths": tokens}
        for column, added in {**more, "before": before}.items():
            made[column] = np.concatenate([getattr(self, column), np.asarray(added, np.int64)])
        made["after"] = np.append(self.after, np.full(len(rows), -1))
        linked = np.flatnonzero(made["before"][len(self) :] >= 0) + len(self)
        made["after"][made["before"][linked]] = linked
        return TurnTable(**made, totals=totals, last=last)

    def sessions_at(self, positions: Ints) -> Ints:
        """The session of each, -1 where it has none or is not here."""
        found = np.full(len(positions), -1)
        at, inside = places(self.positions, positions)
        found[inside] = self.session[at]
        return found

    def around(self, positions: Ints) -> TurnTable:
        """These turns, and up to two before and behind each in its session.

        Only turns that lie side by side around one of the positions lie side by side in what is returned.
        """
        seeds, _ = places(self.positions, positions)
        ahead, behind = _step(self.before, seeds), _step(self.after, seeds)
        linked = distinct(np.concatenate([seeds, ahead, behind, _step(self.after, behind)]))
        wanted = distinct(np.concatenate([linked, _step(self.before, ahead)]))
        return self._part(wanted, np.where(places(linked, wanted)[1], self.before[wanted], -1))

    def linked_by(self, pairs: Collection[tuple[int, int]]) -> TurnTable:
        """The same turns, of which only these pairs of positions lie side by side."""
        ahead = {behind: before for before, behind in pairs}
        wanted = np.array([ahead.get(position, -1) for position in self.positions.tolist()], np.int64)
        at, inside = places(self.positions, wanted)
        before = np.full(len(self), -1)
        before[inside] = at
        return replace(self, before=before, after=_none())

    def named(self) -> list[str]:
        """The authors of these turns that have a name, not only a role."""
        present = set(np.unique(self.author).tolist())
        return [name for name, code in self.authors.items() if code in present and is_name(name)]

    def said_by(self, names: Collection[str]) -> Mask:
        """Which turns have one of these authors."""
        return np.isin(self.author, [code for name, code in self.authors.items() if name in names])

    def _part(self, wanted: Ints, before: Ints) -> TurnTable:
        at, inside = places(wanted, before)
        links = np.full(len(wanted), -1)
        links[inside] = at
        some = {name: getattr(self, name)[wanted] for name in _COLUMNS if name != "before"}
        return replace(self, **some, before=links, after=_none())


_COLUMNS: Final = ("positions", "occurred", "session", "author", "tool", "kind", "lengths", "before")


def is_name(author: str) -> bool:
    """Whether it names somebody, and is not a mere role."""
    return bool(author) and author not in ROLES


def _step(links: Ints, at: Ints) -> Ints:
    """Where these lead to, for those that lead anywhere."""
    found = links[at]
    return found[found >= 0]


def _coded(known: Codes, names: Sequence[str | None]) -> tuple[Codes, Ints]:
    codes = dict(known)
    numbers = [-1 if name is None else codes.setdefault(name, len(codes)) for name in names]
    return codes, np.array(numbers, np.int64)


def _links(session: Ints, last: Ints, start: int) -> list[int]:
    """For turns from place `start` on, the place of the one before; `last` is moved along."""
    found = []
    for at, number in enumerate(session.tolist(), start):
        found.append(-1 if number < 0 else int(last[number]))
        if number >= 0:
            last[number] = at
    return found


__all__ = ["Mask", "TurnTable", "is_name"]

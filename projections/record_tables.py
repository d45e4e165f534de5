"""The records of a scope as they are judged, kept in memory between questions: ids, times and kinds, never a text.

What is kept is checked in every read against what the view says of the scope's last change. What a record is depends on
the reader's now, but only from one bound in time to the next, so between two of them nothing is judged again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, bindparam, select

from mnemolog.domain.blueprint import Aspect, aspect_of
from mnemolog.domain.contests import after_merges
from mnemolog.domain.policy import GatePolicy
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import READABLE, Record, Status, microseconds
from mnemolog.domain.scope import ScopeIds
from mnemolog.domain.standing import standing, standing_alone
from mnemolog.projections.curated import Curated
from mnemolog.projections.kept import Kept

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.ranking import RecordTable

KEPT_RECORDS: Final = 30_000
"""Of all scopes together; some 2,000 bytes each."""
KIND_ORDER: Final = ("constraint", "preference", "procedure", "fact", "reference", "episode")
"""The order in which kinds enter a context; others follow."""

_SKETCHED: Final = (
    "id", "scope", "status", "version", "position", "kind", "group", "form", "trust", "authority", "ruled", "ruling",
    "human", "order_us", "from_us", "to_us", "expires_us", "session", "occurred_at", "sensitivity", "voice",
    "confirmed", "merged_into",
)  # fmt: skip
"""What `domain.revision.standing` judges by, what ranks, and what a context says of a record."""
_BOUNDS: Final = ("from_us", "to_us", "expires_us")
_Values = dict[str, Any]
_Changes = tuple[tuple[int, int], ...]
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Judged:
    """Every record of some scopes by its number in the view, without its content and what it rests on.

    It holds from `since` to before `until`, in UTC microseconds. table: the same for ranking. twins: the numbers of
    those that say the same as a record that stands, by its id.
    """

    records: Mapping[int, Record]
    table: RecordTable
    twins: Mapping[str, Sequence[int]]
    since: float = -_NEVER
    until: float = _NEVER
    within_us: int = 0
    """How far apart in time voices contradict each other, by the policy that it was judged under."""

    def holds(self, now_us: int, within_us: int) -> bool:
        return self.since <= now_us < self.until and self.within_us == within_us

    def current(self) -> list[tuple[int, Record]]:
        """What a context may carry: readable records by kind, then authority, then the newest first."""
        readable = [(number, record) for number, record in self.records.items() if record.status in READABLE]
        readable.sort(key=lambda each: _place(each[1]))
        return readable


@dataclass(slots=True)
class _Table:
    changes: _Changes
    groups: Sequence[Sequence[tuple[int, _Values]]]
    lengths: Mapping[int, int]
    bounds: Sequence[int]
    judged: Judged | None = None

    @property
    def size(self) -> int:
        return sum(map(len, self.groups))

    def at(self, now_us: int, within_us: int) -> Judged:
        judged = self.judged
        if judged is None or not judged.holds(now_us, within_us):
            place = bisect_right(self.bounds, now_us)
            edges = [-_NEVER, *self.bounds, _NEVER]
            each = [pair for peers in self.groups for pair in _standing(peers, now_us, within_us)]
            made = _judged(dict(after_merges(each)), self.lengths, edges[place], edges[place + 1])
            judged = self.judged = replace(made, within_us=within_us)
        return judged


class RecordTables:
    """The records of the scopes that were asked for last. Thread-safe."""

    def __init__(
        self, curated: Curated, policy: Callable[[], GatePolicy] | None = None, kept: int = KEPT_RECORDS
    ) -> None:
        """policy: the one that decides when a read begins; that of the projection where not given."""
        self._policy = policy or (lambda: curated.policy)
        self._tables = Kept[frozenset[ScopeIds], _Table](kept)
        self._aspects = Kept[tuple[str, int], tuple[Aspect | None]](kept)
        self._lexical = curated.lexical
        records, changes = curated.tables.records.c, curated.tables.changes.c
        inside: Any = bindparam("scopes", expanding=True)
        sketched = select(records.number, *(records[name] for name in _SKETCHED))
        self._sketched = sketched.where(
            records.scope.in_(inside),
            records.status.not_in([Status.FORGOTTEN.value, Status.HELD.value]),
        ).order_by(records.number)
        self._changes = (
            select(changes.scope, changes.change).where(changes.scope.in_(inside)).order_by(changes.scope)
        )
        self._texts = select(records.number, records.content).where(records.scope.in_(inside))

    def of(self, conn: Connection, scopes: Mapping[int, ScopeIds], now: datetime, epoch: int) -> Judged:
        """Every record of these scopes, judged, as this read transaction sees them. epoch: in which it began."""
        if not scopes:
            return _judged({}, {}, -_NEVER, _NEVER)
        name, numbers = frozenset(scopes.values()), {"scopes": list(scopes)}
        changes: _Changes = tuple((scope, change) for scope, change in conn.execute(self._changes, numbers))
        table = self._tables.get(name)
        if table is None or table.changes != changes:
            rows = conn.execute(self._sketched, numbers).fetchall()
            table = _table(changes, rows, self._lexical.lengths(conn, [row[0] for row in rows]))
            self._tables.put(name, table, table.size, epoch)
        return table.at(microseconds(now), self._policy().contested_us)

    def texts(self, conn: Connection, scopes: Collection[int]) -> dict[int, str]:
        """What the records of these scopes say, by number. Nothing of it is kept."""
        rows = conn.execute(self._texts, {"scopes": list(scopes)}).fetchall()
        return {number: text for number, text in rows if text is not None}

    def aspect(self, record: Record, text: str, epoch: int) -> Aspect | None:
        """What a record tells of its project. What it says is not kept, only what it was taken for."""
        name = record.id, record.version
        known = self._aspects.get(name)
        if known is None:
            known = (aspect_of(record.kind, text),)
            self._aspects.put(name, known, 1, epoch)
        return known[0]

    @property
    def epoch(self) -> int:
        """As of `Kept`."""
        return self._tables.epoch

    def forget(self) -> None:
        """Drop everything, as after an erasure, also what reads that are under way have seen."""
        self._tables.forget()
        self._aspects.forget()


def _judged(records: Mapping[int, Record], lengths: Mapping[int, int], since: float, until: float) -> Judged:
    from mnemolog.projections.ranking import RecordTable

    twins: dict[str, list[int]] = {}
    for number, record in records.items():
        if record.status is Status.DUPLICATE and record.superseded_by is not None:
            twins.setdefault(record.superseded_by, []).append(number)
    return Judged(records, RecordTable.of(records, lengths), twins, since, until)


def _table(changes: _Changes, rows: Sequence[Row[Any]], lengths: Mapping[int, int]) -> _Table:
    groups: dict[tuple[int, str | None], list[tuple[int, _Values]]] = {}
    bounds: set[int] = set()
    for row in rows:
        number = row[0]
        values: _Values = dict(zip(_SKETCHED, row[1:], strict=True))
        values["status"] = Status(values["status"])
        values["trust"], values["authority"] = Tier(values["trust"]), Tier(values["authority"])
        bounds.update(at for name in _BOUNDS if (at := values[name]) is not None)
        groups.setdefault((values["scope"], values["group"]), []).append((number, values))
    return _Table(changes, list(groups.values()), lengths, sorted(bounds))


def _standing(peers: Sequence[tuple[int, _Values]], now_us: int, within_us: int) -> list[tuple[int, Record]]:
    """Most records have no peers, and need no comparing."""
    if len(peers) > 1:
        numbers = {values["id"]: number for number, values in peers}
        judged = standing([Record(**values) for _, values in peers], now_us, within_us)
        return [(numbers[record.id], record) for record in judged]
    ((number, values),) = peers
    times = values["from_us"], values["to_us"], values["expires_us"]
    status = standing_alone(values["status"], *times, now_us)
    return [(number, Record(**{**values, "status": status}))]


def _place(record: Record) -> tuple[int, int, int, int]:
    kind = KIND_ORDER.index(record.kind) if record.kind in KIND_ORDER else len(KIND_ORDER)
    return kind, -record.trust, -record.order_us, -record.position

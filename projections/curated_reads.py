"""Reading the curated view: records judged at the reader's now, their history, search, and what was believed before.

Every call is given the numbers of the scopes that the caller sees (`ScopeTable.visible`) and looks nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ColumnElement, Connection, Row, bindparam, or_, select

from mnemolog.domain.contests import after_merges
from mnemolog.domain.policy import GatePolicy
from mnemolog.domain.records import (
    READABLE,
    Assertion,
    Record,
    Status,
    Step,
    microseconds,
)
from mnemolog.domain.revision import chronicle, settle
from mnemolog.domain.standing import standing, stood
from mnemolog.projections.curated import Curated, held
from mnemolog.projections.curated_rows import assertion_from, chunks, record_from
from mnemolog.projections.lexical import LexicalIndex

if TYPE_CHECKING:
    from mnemolog.projections.record_tables import Judged

_Group = tuple[int, str]


class CuratedView:
    """Reads of one connection's view. All answers hold what `scopes` may see, and nothing hints at the rest."""

    def __init__(self, curated: Curated, policy: Callable[[], GatePolicy] | None = None) -> None:
        """policy: the one that decides when a read begins; that of the projection where not given."""
        self._curated, self._tables = curated, curated.tables
        self._policy = policy or (lambda: curated.policy)
        # Built once: composing a statement costs more than running it.
        records = select(curated.tables.records)
        c = curated.tables.records.c
        self._numbers = records.where(_among(c.number, "numbers"), _among(c.scope, "scopes"))
        self._ids = records.where(_among(c.id, "ids"), _among(c.scope, "scopes"))
        self._peers = records.where(c.scope == bindparam("scope"), _among(c.group, "groups"))
        self._merged = records.where(_among(c.merged_into, "ids"), _among(c.scope, "scopes"))

    def get(
        self,
        conn: Connection,
        record_id: str,
        scopes: Collection[int],
        now: datetime,
        *,
        believed_at: int | None = None,
    ) -> Record | None:
        """The record, judged at `now`; None where it is not, or is not the caller's to see."""
        if believed_at is not None:
            judged = self._believed(conn, scopes, now, believed_at)
            return next((record for record in judged if record.id == record_id), None)
        return self.by_ids(conn, [record_id], scopes, now).get(record_id)

    def by_ids(
        self, conn: Connection, record_ids: Sequence[str], scopes: Collection[int], now: datetime
    ) -> dict[str, Record]:
        """Those of the records that are the caller's to see, judged at `now`, by id."""
        found = [
            record_from(row)
            for chunk in chunks(record_ids)
            for row in conn.execute(self._ids, {"ids": chunk, "scopes": list(scopes)})
        ]
        wanted = {record.id for record in found}
        judged = self._judged(conn, found, microseconds(now))
        return {record.id: record for record in judged if record.id in wanted}

    def records(
        self,
        conn: Connection,
        scopes: Collection[int],
        now: datetime,
        *,
        kinds: Collection[str] | None = None,
        statuses: Collection[Status] | None = None,
        include_history: bool = False,
        believed_at: int | None = None,
    ) -> list[Record]:
        """Records in the order of their positions: the readable ones, or those of `statuses`, or all."""
        if believed_at is None:
            c = self._tables.records.c
            query = select(self._tables.records).where(c.scope.in_(scopes))
            judged = self._judge(self._read(conn, query), microseconds(now))
        else:
            judged = self._believed(conn, scopes, now, believed_at)
        wanted = _wanted(kinds, statuses, include_history)
        return sorted(filter(wanted, judged), key=lambda record: record.position)

    @property
    def lexical(self) -> LexicalIndex:
        """The index of the records by their numbers."""
        return self._curated.lexical

    def whole(
        self, conn: Connection, numbers: Sequence[int], scopes: Collection[int], judged: Judged
    ) -> dict[int, Record]:
        """These records with what they say and rest on, standing as they were judged."""
        twins = {number: judged.twins.get(judged.records[number].id, ()) for number in numbers}
        found = self._numbered(conn, [*numbers, *(one for each in twins.values() for one in each)], scopes)
        return {
            number: stood(found[number], judged.records[number], [found[one] for one in twins[number]])
            for number in numbers
            if number in found
        }

    def peers(
        self,
        conn: Connection,
        record_id: str,
        scopes: Collection[int],
        now: datetime,
        *,
        believed_at: int | None = None,
    ) -> list[Record]:
        """Everything that competes with the record, itself included: the chain of its slot, what stands first."""
        record = self.get(conn, record_id, scopes, now, believed_at=believed_at)
        if record is None:
            return []
        if believed_at is not None:
            judged = self._believed(conn, scopes, now, believed_at)
            return [r for r in judged if (r.scope, r.group) == (record.scope, record.group)]
        return self._judged(conn, [record], microseconds(now))

    def same_said(self, conn: Connection, record_id: str, scopes: Collection[int]) -> list[str]:
        """Other records of these scopes that say what this one says, in whatever slot, or were merged into it.

        And all that says what these say, or was merged into them.
        """
        c, found, new = self._tables.records.c, {record_id}, {record_id}
        while new:
            forms = select(c.form).where(c.id.in_(new), c.form.is_not(None))
            words = select(c.content).where(c.id.in_(new), c.content.is_not(None))
            alike = or_(c.form.in_(forms), c.content.in_(words), c.merged_into.in_(new))
            new = set(conn.execute(select(c.id).where(alike, c.scope.in_(scopes))).scalars()) - found
            found |= new
        return sorted(found - {record_id})

    def merged_into(
        self, conn: Connection, record_ids: Sequence[str], scopes: Collection[int]
    ) -> list[Record]:
        """The records that a person merged into these, not judged."""
        rows = conn.execute(self._merged, {"ids": list(record_ids), "scopes": list(scopes)})
        return [record_from(row) for row in rows]

    def history(self, conn: Connection, record_id: str, scopes: Collection[int]) -> list[Step]:
        """Every event of the record: who said what when, with which effect; forgotten ones without content."""
        rows = self._assertions(conn, [record_id], scopes)
        return chronicle(self._curated.gatekeeper.weighed(conn, {record_id: rows})[record_id]) if rows else []

    # ----------------------------------------------------------------------------------------------------------------

    def _read(self, conn: Connection, query: Any) -> list[Record]:
        return [record_from(row) for row in conn.execute(query)]

    def _numbered(
        self, conn: Connection, numbers: Sequence[int], scopes: Collection[int]
    ) -> dict[int, Record]:
        rows: Iterable[Row[Any]] = (
            row
            for chunk in chunks(numbers)
            for row in conn.execute(self._numbers, {"numbers": chunk, "scopes": list(scopes)})
        )
        return {row.number: record_from(row) for row in rows}

    def _judged(self, conn: Connection, records: Sequence[Record], now_us: int) -> list[Record]:
        """These records, what they were merged into, and all their peers, judged beside what was merged into them."""
        known = self._with_peers(conn, records)
        while missing := _unread(known):
            found = [record for scope, ids in missing.items() for record in self._by_id(conn, scope, ids)]
            ids = {one.id for one in known}
            known += [one for one in self._with_peers(conn, found) if one.id not in ids]
            if not found:
                break
        ids = {one.id for one in known}
        judged = self._judge([*known, *self._below(conn, known)], now_us)
        return [record for record in judged if record.id in ids]

    def _below(self, conn: Connection, known: Sequence[Record]) -> list[Record]:
        """What was merged into these, and into that, with their peers; none of these."""
        seen, new, below = {one.id for one in known}, list(known), list[Record]()
        while new:
            found = self.merged_into(conn, [one.id for one in new], {one.scope for one in new})
            peers = self._with_peers(conn, [one for one in found if one.id not in seen])
            new = list({one.id: one for one in peers if one.id not in seen}.values())
            seen |= {one.id for one in new}
            below += new
        return below

    def _by_id(self, conn: Connection, scope: int, ids: Sequence[str]) -> list[Record]:
        rows = conn.execute(self._ids, {"ids": list(ids), "scopes": [scope]})
        return [record_from(row) for row in rows]

    def _with_peers(self, conn: Connection, records: Sequence[Record]) -> list[Record]:
        groups: dict[int, set[str]] = {}
        for record in records:
            if record.group is not None:
                groups.setdefault(record.scope, set()).add(record.group)
        peers = [record for record in records if record.group is None]
        for scope, named in groups.items():
            for chunk in chunks(sorted(named)):
                rows = conn.execute(self._peers, {"scope": scope, "groups": chunk})
                peers += map(record_from, rows)
        return peers

    def _judge(self, records: Sequence[Record], now_us: int) -> list[Record]:
        within = self._policy().contested_us
        groups: dict[_Group, list[Record]] = {}
        loose = []
        for record in records:
            if record.group is None:
                loose.append(record)
            else:
                groups.setdefault((record.scope, record.group), []).append(record)
        judged = [each for peers in groups.values() for each in standing(peers, now_us, within)]
        return [record for _, record in after_merges([(one.id, one) for one in (*loose, *judged)])]

    def _believed(
        self, conn: Connection, scopes: Collection[int], now: datetime, position: int
    ) -> list[Record]:
        """All records as the log up to `position` makes them, but for what `settled_at` names."""
        settled = self._settled(conn, self._tables.records.c.scope.in_(scopes), scopes, position)
        return self._judge(settled, microseconds(now))

    def settled_at(
        self, conn: Connection, record_ids: Sequence[str], scopes: Collection[int], position: int
    ) -> dict[str, Record]:
        """These records, not judged, as the log up to `position` makes them.

        What was erased since stays forgotten, and what is held now was told then but is not any more.
        """
        r = self._tables.records.c
        wanted = r.id.in_(record_ids) & r.scope.in_(scopes)
        return {one.id: one for one in self._settled(conn, wanted, scopes, position)}

    def _settled(
        self, conn: Connection, wanted: ColumnElement[bool], scopes: Collection[int], position: int
    ) -> list[Record]:
        r, a = self._tables.records.c, self._tables.assertions
        query = select(a).where(a.c.record.in_(select(r.id).where(wanted)), a.c.position <= position)
        rows: dict[str, list[Assertion]] = {}
        for row in map(assertion_from, conn.execute(query)):
            rows.setdefault(row.record, []).append(row)
        erased = self._curated.erased_among(conn, [row for each in rows.values() for row in each])
        withdrawn = self._curated.gatekeeper.withdrawn(conn, scopes)
        settled = [settle(each, erased) for each in self._curated.gatekeeper.weighed(conn, rows).values()]
        now_held = set(conn.execute(select(r.id).where(wanted, r.status == Status.HELD.value)).scalars())
        settled = [held(record) if record.scope in withdrawn else record for record in settled]
        return [
            replace(one, status=Status.HELD)
            if one.id in now_held and one.status is not Status.FORGOTTEN
            else one
            for one in settled
        ]

    def _assertions(
        self, conn: Connection, records: Sequence[str], scopes: Collection[int]
    ) -> list[Assertion]:
        r, a = self._tables.records.c, self._tables.assertions
        visible = select(r.id).where(r.id.in_(records), r.scope.in_(scopes))
        return [assertion_from(row) for row in conn.execute(select(a).where(a.c.record.in_(visible)))]


def _among(column: Column[Any], name: str) -> ColumnElement[bool]:
    return column.in_(bindparam(name, expanding=True))


def _unread(known: Sequence[Record]) -> dict[int, list[str]]:
    """By scope, what of these was merged into and is not among them."""
    ids = {record.id for record in known}
    missing: dict[int, list[str]] = {}
    for record in known:
        if record.merged_into is not None and record.merged_into not in ids:
            missing.setdefault(record.scope, []).append(record.merged_into)
    return missing


def _wanted(kinds: Collection[str] | None, statuses: Collection[Status] | None, include_history: bool) -> Any:
    if statuses is None:
        statuses = frozenset(Status) - {Status.HELD} if include_history else READABLE
    return lambda record: record.status in statuses and (kinds is None or record.kind in kinds)

"""`curated`: what people and agents stated, corrected, disputed and retracted, folded into records.

A record is a function of the set of its assertions (`domain.revision.settle`), so whatever touches one, an event or
an erasure, computes it anew; the order and the size of batches cannot matter. What is current in a slot depends on the
reader's now and is judged when reading (`projections.curated_reads`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from secrets import randbits
from typing import Any, Final

from sqlalchemy import Connection, MetaData, Row, Select, bindparam, delete, func, or_, select, update

from mnemolog.domain.events import (
    CONSENT,
    ERASURE,
    MEMORY,
    CandidatesExtracted,
    ContentErased,
    FeedbackGiven,
    Recorded,
    SubjectErased,
)
from mnemolog.domain.gate.admission import Reason
from mnemolog.domain.gate.judging import Gate
from mnemolog.domain.lexical import ANALYZER_VERSION, Analyzer, date_tokens
from mnemolog.domain.policy import DEFAULT, GatePolicy
from mnemolog.domain.records import Assertion, Record, Status
from mnemolog.domain.revision import settle
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.curated_rows import (
    Tables,
    assertion_from,
    assertion_of,
    assertion_row,
    chunks,
    frame_of,
    insert_new,
    record_row,
    tombstone_values,
)
from mnemolog.projections.dialects import insert
from mnemolog.projections.gating import Gatekeeper
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex
from mnemolog.projections.scopes import ScopeTable, record_scope
from mnemolog.projections.versions import version_of

Rows = dict[str, list[Assertion]]
"""Record id → its assertions."""

GATE: Final = DEFAULT.gate
_INDEXED: Final = frozenset({Status.ACTIVE, Status.DISPUTED})


class Curated:
    """The projection. `lexical` holds the searched text of the records; `analyzer` makes its tokens."""

    name: Final = "curated"
    topics: Final = MEMORY | ERASURE | CONSENT | {FeedbackGiven.topic}
    bodies: Final = True

    def __init__(self, lexical: LexicalIndex, analyzer: Analyzer, policy: GatePolicy = GATE) -> None:
        self.version = version_of("10", str(ANALYZER_VERSION), policy.hash[:10])
        self.policy = policy
        self.metadata = MetaData()
        self.scopes = ScopeTable(self.metadata)
        self.tables = Tables(self.metadata)
        self.gatekeeper = Gatekeeper(self.metadata, Gate(policy), self.scopes.table, self.tables.assertions)
        self.lexical, self.analyzer = lexical, analyzer
        records = self.tables.records
        self._names = ["at", *(column.name for column in records.c if column.name != "number")]
        self._change = (
            update(records)
            .where(records.c.number == bindparam("at"))
            .values({name: bindparam(name) for name in self._names[1:]})
        )

    def under(self, policy: GatePolicy) -> Curated:
        """The same projection under another policy: it is another version, and folds into a file of its own."""
        return self if policy.hash == self.policy.hash else Curated(self.lexical, self.analyzer, policy)

    def create(self, conn: Connection) -> None:
        """Make the tables of an empty view."""
        self.metadata.create_all(conn, checkfirst=False)
        self.lexical.create(conn)

    def forget_cache(self) -> None:
        """After a roll back: interned scope numbers of the lost transaction do not exist."""
        self.scopes.forget_cache()

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        """Apply a batch inside the caller's transaction. An event that is folded twice counts once."""
        if self.policy.mode == "window":
            return
        said = self._new_assertions(conn, batch)
        rows = self._assertions(conn, {row.record for row in said})
        users = {recorded.envelope.id: recorded.envelope.scope.user for recorded in batch}
        self._insert(conn, _add_unseen(rows, said), users)
        touched = (self._judge(conn, batch) | self._consented(conn, batch)) - set(rows)
        if erasures := [recorded for recorded in batch if recorded.envelope.topic in ERASURE]:
            touched |= self._erase(conn, erasures) | set(rows)
        rows.update(self._assertions(conn, touched))
        self._write(conn, list(self._settled(conn, rows)))

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        """Assertions, records, feedback and erased ids, ordered; scopes by name."""
        scopes = {row.number: tuple(row)[1:] for row in conn.execute(select(self.scopes.table))}
        t = self.tables
        for table, key in (
            (t.assertions, t.assertions.c.position),
            (t.records, t.records.c.id),
            (t.feedback, t.feedback.c.position),
            (t.erased, t.erased.c.event_id),
            *self.gatekeeper.dump(),
        ):
            columns = [column for column in table.c if column.name != "number"]
            for row in conn.execute(select(*columns).order_by(key)).mappings():
                yield table.name, *(scopes[v] if name == "scope" else v for name, v in row.items())

    def purge(self, conn: Connection) -> None:
        """Make deleted words leave the index segments."""
        self.lexical.optimize(conn)
        self.analyzer.forget()

    # Assertions -----------------------------------------------------------------------------------------------------

    def _new_assertions(self, conn: Connection, batch: Sequence[Recorded]) -> list[Assertion]:
        numbers: dict[ScopeIds, int] = {}
        said = []
        for recorded in batch:
            scope = recorded.envelope.scope
            if recorded.envelope.topic in MEMORY:
                if scope not in numbers:
                    numbers[scope] = self.scopes.number(conn, record_scope(scope))
                said.append(self._assertion(conn, recorded, numbers[scope]))
        return said

    def _assertion(self, conn: Connection, recorded: Recorded, scope: int) -> Assertion:
        if recorded.envelope.topic == CandidatesExtracted.topic:
            return self.gatekeeper.judge_found(conn, recorded, frame_of(recorded, scope))
        return self.gatekeeper.judge(conn, recorded, assertion_of(recorded, scope))

    def _consented(self, conn: Connection, batch: Sequence[Recorded]) -> set[str]:
        """Keep what persons agreed to; the records that this is about."""
        touched: set[str] = set()
        for recorded in batch:
            if recorded.envelope.topic in CONSENT:
                self.gatekeeper.consent(conn, recorded)
                table = self.tables.assertions
                touched |= self._records_of(
                    conn, select(table.c.record).where(table.c.scope.in_(self._of_user(recorded)))
                )
        return touched

    def _of_user(self, recorded: Recorded) -> Select[int]:
        """The scopes of the person whose event it is."""
        s, scope = self.scopes.table, recorded.envelope.scope
        return select(s.c.number).where(s.c.tenant == scope.tenant, s.c.user == scope.user)

    def _assertions(self, conn: Connection, records: Collection[str]) -> Rows:
        rows: Rows = {}
        table = self.tables.assertions
        for chunk in chunks(sorted(records)):
            for row in conn.execute(select(table).where(table.c.record.in_(chunk))):
                assertion = assertion_from(row)
                rows.setdefault(assertion.record, []).append(assertion)
        return rows

    def _insert(self, conn: Connection, new: Sequence[Assertion], users: Mapping[str, str | None]) -> None:
        """Keep new assertions, and what they name: cited events, and subjects other than the scope's own user."""
        t = self.tables
        cited = [(e.event_id, row.event_id) for row in new for e in row.evidence]
        about = [(s, row.event_id) for row in new for s in row.subjects if s != users[row.event_id]]
        insert_rows(conn, t.assertions, [assertion_row(row) for row in new])
        insert_rows(conn, t.citations, list(dict.fromkeys(cited)))
        insert_rows(conn, t.subjects, list(dict.fromkeys(about)))

    def _judge(self, conn: Connection, batch: Sequence[Recorded]) -> set[str]:
        """Keep the judgements of the batch; the ids they are about (of records, or of other things)."""
        rows, about = [], list[tuple[str, str]]()
        for recorded in batch:
            event, envelope = recorded.event, recorded.envelope
            if isinstance(event, FeedbackGiven):
                scope = self.scopes.number(conn, record_scope(envelope.scope))
                rows.append((envelope.id, recorded.position, event.target, event.rating, scope))
                about += [(s, envelope.id) for s in envelope.subjects if s != envelope.scope.user]
        insert_new(conn, self.tables.feedback, rows)
        insert_new(conn, self.tables.subjects, about)
        return {target for _, _, target, _, _ in rows}

    # Erasure --------------------------------------------------------------------------------------------------------

    def _erase(self, conn: Connection, erasures: Iterable[Recorded]) -> set[str]:
        """Make tombstones of what was erased; the records that this touches."""
        touched: set[str] = set()
        for recorded in erasures:
            event = recorded.event
            if isinstance(event, ContentErased):
                touched |= self._erase_events(conn, recorded.position, event.events)
            elif isinstance(event, SubjectErased):
                touched |= self._erase_subject(conn, recorded, event.subject)
        return touched

    def _erase_events(self, conn: Connection, position: int, events: Sequence[str]) -> set[str]:
        t = self.tables
        insert_new(conn, t.erased, [(event, position) for event in events])
        touched: set[str] = set()
        for chunk in chunks(list(events)):
            citing = select(t.citations.c.event_id).where(t.citations.c.cited.in_(chunk))
            touched |= self._records_of(
                conn, select(t.assertions.c.record).where(t.assertions.c.event_id.in_(citing))
            )
            touched |= self._forget(conn, chunk)
        return touched

    def _erase_subject(self, conn: Connection, recorded: Recorded, subject: str) -> set[str]:
        """Everything about the person, or said in the person's scope, in the tenant of the erasure."""
        t, s = self.tables, self.scopes.table
        tenant = recorded.envelope.scope.tenant
        own = select(s.c.number).where(s.c.tenant == tenant, s.c.user == subject)
        tenants = select(s.c.number).where(s.c.tenant == tenant)
        named = select(t.subjects.c.event_id).where(t.subjects.c.subject == subject)
        events = self.gatekeeper.of_person(conn, subject, recorded.position)
        for table in (t.assertions, t.feedback):
            about = or_(table.c.scope.in_(own), table.c.event_id.in_(named) & table.c.scope.in_(tenants))
            found = select(table.c.event_id).where(table.c.position < recorded.position, about)
            events |= set(conn.execute(found).scalars())
        touched: set[str] = set()
        for chunk in chunks(sorted(events)):
            touched |= self._forget(conn, chunk)
        return touched

    def _forget(self, conn: Connection, events: Sequence[str]) -> set[str]:
        t = self.tables
        rows, judged = t.assertions, t.feedback
        touched = self._records_of(conn, select(rows.c.record).where(rows.c.event_id.in_(events)))
        touched |= self._records_of(conn, select(judged.c.target).where(judged.c.event_id.in_(events)))
        touched |= self.gatekeeper.forget(conn, events)
        conn.execute(update(rows).where(rows.c.event_id.in_(events)).values(tombstone_values()))
        for table in (t.citations, t.subjects, judged):
            conn.execute(delete(table).where(table.c.event_id.in_(events)))
        return touched

    def _records_of(self, conn: Connection, query: Select[str]) -> set[str]:
        return set(conn.execute(query).scalars())

    # Records --------------------------------------------------------------------------------------------------------

    def _settled(self, conn: Connection, rows: Rows) -> Iterator[Record]:
        """Fold every touched record anew from all its assertions."""
        erased = self.erased_among(conn, [row for each in rows.values() for row in each])
        counts = self._counts(conn, list(rows))
        withdrawn = self.gatekeeper.withdrawn(conn, {each[0].scope for each in rows.values()})
        for record, each in self.gatekeeper.settle(conn, rows).items():
            votes = counts.get(record, {})
            settled = settle(each, erased, votes.get("up", 0), votes.get("down", 0))
            yield held(settled) if settled.scope in withdrawn else settled

    def erased_among(self, conn: Connection, rows: Sequence[Assertion]) -> dict[str, int]:
        """Forgotten events and erased citations of these rows → position of the erasure."""
        ids = {e.event_id for row in rows for e in row.evidence} | {
            row.event_id for row in rows if row.forgotten
        }
        table = self.tables.erased
        return {
            row.event_id: row.position
            for chunk in chunks(sorted(ids))
            for row in conn.execute(select(table).where(table.c.event_id.in_(chunk)))
        }

    def _counts(self, conn: Connection, records: Sequence[str]) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        c = self.tables.feedback.c
        for chunk in chunks(records):
            query = (
                select(c.target, c.rating, func.count())
                .where(c.target.in_(chunk))
                .group_by(c.target, c.rating)
            )
            for target, rating, count in conn.execute(query):
                counts.setdefault(target, {})[rating] = count
        return counts

    def _write(self, conn: Connection, records: Sequence[Record]) -> None:
        table = self.tables.records
        known = self._written(conn, [record.id for record in records])
        number = conn.execute(select(func.coalesce(func.max(table.c.number), 0))).scalar_one()
        numbers = {record.id: place for place, record in enumerate(_unknown(records, known), number + 1)}
        numbers |= {record: row.number for record, row in known.items()}
        rows = [(record.id in known, record_row(record, numbers[record.id])) for record in records]
        insert_rows(conn, table, [row for old, row in rows if not old])
        if changed := [dict(zip(self._names, row, strict=True)) for old, row in rows if old]:
            conn.execute(self._change, changed)
        self._index(conn, records, known, numbers)
        self._note_change(conn, {record.scope for record in records})

    def _note_change(self, conn: Connection, scopes: Collection[int]) -> None:
        """So that whoever keeps records in memory sees that they changed. It begins anywhere: files differ."""
        table = self.tables.changes
        counted = insert(conn, table).values(scope=bindparam("scope"), change=bindparam("change"))
        later = counted.on_conflict_do_update(
            index_elements=[table.c.scope], set_={"change": table.c.change + 1}
        )
        if scopes:
            conn.execute(later, [{"scope": one, "change": randbits(62)} for one in sorted(scopes)])

    def _written(self, conn: Connection, records: Sequence[str]) -> dict[str, Row[*tuple[Any, ...]]]:
        """What the rows of these records said before, as far as the lexical index needs it."""
        c = self.tables.records.c
        query = select(c.id, c.number, c.scope, c.status, c.entity, c.attribute, c.content, c.occurred_at)
        return {
            row.id: row for chunk in chunks(records) for row in conn.execute(query.where(c.id.in_(chunk)))
        }

    def _index(
        self,
        conn: Connection,
        records: Sequence[Record],
        known: Mapping[str, Row[Any]],
        numbers: Mapping[str, int],
    ) -> None:
        before = {record: (row.scope, searched_text(row)) for record, row in known.items()}
        after = {record.id: (record.scope, searched_text(record)) for record in records}
        changed = [record for record in after if before.get(record) != after[record]]
        self.lexical.remove(conn, self._documents({r: before[r] for r in changed if r in before}, numbers))
        self.lexical.add(conn, self._documents({r: after[r] for r in changed}, numbers))

    def _documents(
        self, texts: Mapping[str, tuple[int, str | None]], numbers: Mapping[str, int]
    ) -> list[LexicalDocument]:
        return [
            LexicalDocument(numbers[record], scope, self.analyzer.document(text))
            for record, (scope, text) in texts.items()
            if text is not None
        ]


def held(record: Record) -> Record:
    """A record whose person has taken back that anything is kept of them."""
    if record.status not in (Status.ACTIVE, Status.DISPUTED):
        return record
    return replace(record, status=Status.HELD, reason=Reason.WITHDRAWN.value)


def searched_text(record: Record | Row[Any]) -> str | None:
    """What a record is found by: its slot, its content, its date. None where it is not to be found."""
    if record.status not in _INDEXED or record.content is None:
        return None
    slot = f"{record.entity} {record.attribute} " if record.entity is not None else ""
    return f"{slot}{record.content} {date_tokens(datetime.fromisoformat(record.occurred_at))}"


def _add_unseen(rows: Rows, said: Sequence[Assertion]) -> list[Assertion]:
    """Add to `rows` what is not in it, and return just that."""
    seen = {row.event_id for each in rows.values() for row in each}
    new = list({row.event_id: row for row in said if row.event_id not in seen}.values())
    for row in new:
        rows.setdefault(row.record, []).append(row)
    return new


def _unknown(records: Sequence[Record], known: Mapping[str, Any]) -> Iterator[Record]:
    return (record for record in records if record.id not in known)

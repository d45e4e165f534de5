"""Projection `access`: which contexts a record or an event entered, and who read it. Ids and numbers only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, Connection, Index, MetaData, Table, func, select

from mnemolog.domain.events import ContextAssembled, MemoryAccessed, Recorded
from mnemolog.domain.scope import LEVELS, ScopeIds
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String
from mnemolog.projections.scope_numbers import ScopeNumbers
from mnemolog.projections.scopes import ScopeTable
from mnemolog.projections.versions import version_of

_ASSEMBLED: Final = ContextAssembled.topic
_CONTEXT: Final = "context"

METADATA: Final = MetaData()
SCOPES: Final = ScopeTable(METADATA).table
CONTEXTS: Final = Table(
    "contexts",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("scope", Integer, nullable=False),
    Column("session", String),
    Column("actor", String, nullable=False),
    Column("at", String, nullable=False),
    Column("query", String, nullable=False),
    Column("budget", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("read_position", Integer, nullable=False),
)
READS: Final = Table(
    "reads",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("event_id", String, nullable=False),
    Column("scope", Integer, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("at", String, nullable=False),
    Column("query", String),
    Column("read_position", Integer, nullable=False),
    sqlite_with_rowid=False,
)
ITEMS: Final = Table(
    "items",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("id", String, nullable=False),
    Column("version", Integer),
    Column("layer", String),
    Column("tokens", Integer),
    Column("reference", Integer),
    Column("left_out", String),
    sqlite_with_rowid=False,
)
"""What a context (number -1) held or left out, or a read handed over. left_out: the reason; None: it was in."""
Index("items_by_id", ITEMS.c.id, ITEMS.c.position)
_IN_CONTEXT: Final = -1


@dataclass(frozen=True, slots=True)
class Held:
    """A place in a context. left_out: why it is not in it; None where it is."""

    id: str
    version: int | None
    layer: str | None
    tokens: int | None
    reference: bool
    left_out: str | None


@dataclass(frozen=True, slots=True)
class Assembled:
    """One context as its receipt tells it. actor and the levels of scope are ids of the directory."""

    event_id: str
    position: int
    scope: ScopeIds
    session: str | None
    actor: str
    at: str
    query: str
    budget: int
    tokens: int
    read_position: int
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """One time that a record or an event was handed over, or was left out of a context.

    event_id: of the receipt or of the note of reads; action: context, recall, get, ...
    """

    event_id: str
    position: int
    scope: ScopeIds
    actor: str
    at: str
    action: str
    held: Held


class Accessed:
    """The projection. It takes no part in erasures: nothing in it says anything."""

    name = "access"
    by_owner = True
    version = version_of("1")
    topics: frozenset[str] | None = frozenset({_ASSEMBLED, MemoryAccessed.topic})
    bodies = False

    def __init__(self) -> None:
        self._scopes = ScopeNumbers(_sessionless)

    def forget_cache(self) -> None:
        """Scope numbers belong to one file."""
        self._scopes.forget()

    def create(self, conn: Connection) -> None:
        METADATA.create_all(conn, checkfirst=False)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        rows: dict[Table, list[tuple[Any, ...]]] = {CONTEXTS: [], READS: [], ITEMS: []}
        for recorded in batch:
            scope = self._scopes.number(conn, recorded.envelope.scope)
            if recorded.envelope.topic == _ASSEMBLED:
                _take_context(rows, recorded, scope)
            else:
                _take_reads(rows, recorded, scope)
        for table, values in rows.items():
            insert_rows(conn, table, values)

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        levels = [SCOPES.c[level] for level in LEVELS[:-1]]
        for table in (CONTEXTS, READS):
            columns = [column for column in table.c if column.name != "scope"]
            query = select(*columns, *levels).join(SCOPES, SCOPES.c.number == table.c.scope)
            for row in conn.execute(query.order_by(*table.primary_key)):
                yield (table.name, *row)
        for row in conn.execute(select(ITEMS).order_by(*ITEMS.primary_key)):
            yield (ITEMS.name, *row)

    def purge(self, conn: Connection) -> None:
        """Nothing to do: there is no text here."""


def _take_context(rows: Mapping[Table, list[tuple[Any, ...]]], recorded: Recorded, scope: int) -> None:
    envelope, clear = recorded.envelope, recorded.envelope.clear
    numbers = clear["query"], clear["budget"], clear["tokens"], clear["position"]
    rows[CONTEXTS].append(
        (
            recorded.position,
            envelope.id,
            scope,
            envelope.scope.session,
            envelope.actor,
            envelope.occurred_at,
            *numbers,
        )
    )
    at = recorded.position, _IN_CONTEXT
    for place, one in enumerate(clear["entries"]):
        of = one["id"], one["version"], one["layer"], one["tokens"], int(one.get("reference", False)), None
        rows[ITEMS].append((*at, place, *of))
    for place, one in enumerate(clear["left_out"], len(clear["entries"])):
        rows[ITEMS].append((*at, place, one["id"], None, None, None, 0, one["reason"]))


def _take_reads(rows: Mapping[Table, list[tuple[Any, ...]]], recorded: Recorded, scope: int) -> None:
    envelope = recorded.envelope
    for number, read in enumerate(envelope.clear["reads"]):
        who = envelope.id, scope, envelope.actor
        what = read["action"], read["at"], read.get("query"), read["position"]
        rows[READS].append((recorded.position, number, *who, *what))
        rows[ITEMS] += [
            (recorded.position, number, place, one, None, None, None, 0, None)
            for place, one in enumerate(read["ids"])
        ]


def _sessionless(scope: ScopeIds) -> ScopeIds:
    return ScopeIds(scope.at(LEVELS[:-1]))


def count_by_action(conn: Connection) -> dict[str, int]:
    """How many contexts and reads of each kind were recorded."""
    query = select(READS.c.action, func.count().label("times")).group_by(READS.c.action)
    counts = {row.action: row.times for row in conn.execute(query)}
    contexts = conn.execute(select(func.count()).select_from(CONTEXTS)).scalar_one()
    return {**counts, _CONTEXT: contexts} if contexts else counts


# Look-ups for those who may inspect; the caller filters by scope. ------------------------------------------------


def context(conn: Connection, event_id: str) -> Assembled | None:
    """The context with this receipt, and what it held and left out, in order."""
    row = conn.execute(select(CONTEXTS).where(CONTEXTS.c.event_id == event_id)).first()
    if row is None:
        return None
    mine = (ITEMS.c.position == row.position) & (ITEMS.c.number == _IN_CONTEXT)
    held = tuple(_held(each) for each in conn.execute(select(ITEMS).where(mine).order_by(ITEMS.c.place)))
    values = {**row._mapping, "scope": _scope(conn, row.scope)}
    return Assembled(**values, held=held)


def of_id(conn: Connection, ids: Collection[str]) -> list[Access]:
    """Every context and every read that one of these ids was part of, oldest first."""
    found: list[tuple[tuple[int, int, int], Access]] = []
    for table, number in ((CONTEXTS, None), (READS, READS.c.number)):
        join = ITEMS.c.position == table.c.position
        join &= ITEMS.c.number == (_IN_CONTEXT if number is None else number)
        columns = [c for c in table.c if c.name not in ("position", "number")]
        query = select(ITEMS, *columns).join(table, join).where(ITEMS.c.id.in_(sorted(ids)))
        for row in conn.execute(query):
            action = _CONTEXT if number is None else row.action
            who = row.event_id, row.position, _scope(conn, row.scope), row.actor, row.at
            found.append(((row.position, row.number, row.place), Access(*who, action, _held(row))))
    return [access for _, access in sorted(found, key=lambda each: each[0])]


def _held(row: Any) -> Held:
    return Held(row.id, row.version, row.layer, row.tokens, bool(row.reference), row.left_out)


def _scope(conn: Connection, number: int) -> ScopeIds:
    return ScopeTable(MetaData()).scope(conn, number)

"""Scopes as small numbers inside one view, so that indexes and joins stay cheap and scope comes first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    Select,
    Table,
    UniqueConstraint,
    bindparam,
    or_,
    select,
)

from mnemolog.domain.scope import ANY, LEVELS, RECORD_LEVELS, Scope, ScopeIds
from mnemolog.projections.dialects import Integer, String, insert

_STORED: Final = LEVELS[:-1]


class ScopeTable:
    """Interned scopes of one view. Sessions are provenance and never part of an interned scope.

    Numbers are per view file and mean nothing outside it.
    """

    def __init__(self, metadata: MetaData) -> None:
        self.table = Table(
            "scopes",
            metadata,
            Column("number", Integer, primary_key=True),
            *(Column(level, String, nullable=False, server_default="") for level in _STORED),
            UniqueConstraint(*_STORED),
        )
        equal = (self.table.c[level] == bindparam(level, type_=String) for level in _STORED)
        self._found = select(self.table.c.number).where(*equal)
        self._numbers: dict[ScopeIds, int] = {}
        self._statements: dict[tuple[frozenset[str], frozenset[str]], Select[Any]] = {}

    def forget_cache(self) -> None:
        """After a rolled back transaction: numbers handed out inside it may not exist."""
        self._numbers.clear()

    def number(self, conn: Connection, scope: ScopeIds) -> int:
        """The number of the scope without its session, made if it is new."""
        known = self._numbers.get(scope)
        if known is not None:
            return known
        values = {level: getattr(scope, level) or "" for level in _STORED}
        made = insert(conn, self.table).on_conflict_do_nothing().returning(self.table.c.number)
        number = conn.execute(made, values).scalar_one_or_none()
        if number is None:
            number = conn.execute(self._found, values).scalar_one()
        self._numbers[scope] = int(number)
        return self._numbers[scope]

    def scope(self, conn: Connection, number: int) -> ScopeIds:
        """The scope behind a number."""
        row = conn.execute(select(self.table).where(self.table.c.number == number)).mappings().one()
        return ScopeIds(Scope.of({level: row[level] for level in _STORED}))

    def visible(
        self,
        conn: Connection,
        caller: ScopeIds,
        *,
        exact: Collection[str] = (),
        allowed: Callable[[ScopeIds], bool] | None = None,
    ) -> dict[int, ScopeIds]:
        """Numbers of every stored scope that `caller` sees (`domain.scope.sees`), each with its scope.

        allowed: a further condition, for callers that ask for `ANY`.
        """
        asked = {level: getattr(caller, level) or "" for level in _STORED}
        anything = frozenset(level for level, value in asked.items() if value == ANY)
        query = self._visible(anything, frozenset(exact) | {"tenant"})
        found = {}
        for number, *levels in conn.execute(query, asked):
            scope = ScopeIds(Scope.of(dict(zip(_STORED, levels, strict=True))))
            if allowed is None or allowed(scope):
                found[number] = scope
        return found

    def _visible(self, anything: frozenset[str], exact: frozenset[str]) -> Select[Any]:
        """The statement of a shape of question; its parameters are the levels."""
        query = self._statements.get((anything, exact))
        if query is None:
            query = select(self.table)
            for level in _STORED:
                column, value = self.table.c[level], bindparam(level, type_=String)
                if level not in anything:
                    query = query.where(
                        column == value if level in exact else or_(column == "", column == value)
                    )
            self._statements[anything, exact] = query
        return query


def record_scope(scope: ScopeIds) -> ScopeIds:
    """What a turn or a record belongs to by default: the scope without agent and session."""
    return ScopeIds(scope.at(RECORD_LEVELS))

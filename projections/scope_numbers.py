"""The numbers of scopes that come with many sessions: each session costs one look in memory, not two statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, MetaData

from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.scopes import ScopeTable

_REMEMBERED: Final = 16_384


class ScopeNumbers:
    """Numbers of `reduce(scope)` in the view's table of scopes. What is remembered belongs to one file."""

    def __init__(self, reduce: Callable[[ScopeIds], ScopeIds]) -> None:
        self._scopes, self._reduce = ScopeTable(MetaData()), reduce
        self._numbers: dict[ScopeIds, int] = {}

    def forget(self) -> None:
        self._numbers.clear()
        self._scopes.forget_cache()

    def number(self, conn: Connection, scope: ScopeIds) -> int:
        """The number of the reduced scope, made if it is new."""
        number = self._numbers.get(scope)
        if number is None:
            if len(self._numbers) >= _REMEMBERED:
                self._numbers.clear()
            number = self._numbers[scope] = self._scopes.number(conn, self._reduce(scope))
        return number

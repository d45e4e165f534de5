"""The records that hold now, scope by scope: of the scopes that changed since whoever passes them on last looked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from mnemolog.domain.policy import GatePolicy
from mnemolog.domain.records import Record
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.curated import Curated
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.ports import Clock, ViewStore
from mnemolog.projections.versions import ViewFile

_SCOPES: Final = 200


@dataclass(frozen=True, slots=True)
class ScopeRecords:
    """What a default read of exactly this scope's own records gives."""

    scope: ScopeIds
    records: tuple[Record, ...]


class CurrentRecords:
    """Remembers what it has seen of one view; another view in its place is seen as new from the start.

    advance: brings the view up to the log before each look, where nobody else does.
    """

    def __init__(
        self,
        views: ViewStore,
        curated: Curated,
        clock: Clock,
        policy: Callable[[], GatePolicy] | None = None,
        *,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self._views, self._curated, self._clock, self._advance = views, curated, clock, advance
        self._view = CuratedView(curated, policy)
        self._file: ViewFile | None = None
        self._seen: dict[int, int] = {}
        self._noted: dict[int, int] = {}
        self._numbers: dict[ScopeIds, int] = {}

    def look(self, again: Collection[ScopeIds] = ()) -> tuple[bool, Iterator[ScopeRecords]]:
        """Whether this is all there is, and the scopes with changes, or asked for again.

        What was given counts as seen after `noted`.
        """
        for scope in again:
            self._seen.pop(self._numbers.get(scope, 0), None)
        self._advance()
        self._views.refresh()
        file = self._views.live(self._curated.name)
        if file is None:
            return False, iter(())
        anew = file != self._file
        if anew:
            self._file, self._seen, self._numbers = file, {}, {}
        self._noted = {}
        return anew, self._changed(file)

    def noted(self) -> None:
        """All that the last look gave was dealt with."""
        self._seen.update(self._noted)

    def _changed(self, file: ViewFile) -> Iterator[ScopeRecords]:
        with self._views.connect_to(file) as conn:
            table = self._curated.tables.changes
            rows = conn.execute(select(table.c.scope, table.c.change)).fetchall()
            changed = {scope: change for scope, change in rows if self._seen.get(scope) != change}
            scopes = sorted(changed)
            for start in range(0, len(scopes), _SCOPES):
                some = scopes[start : start + _SCOPES]
                yield from self._of(conn, some)
                self._noted |= {scope: changed[scope] for scope in some}

    def _of(self, conn: Connection, scopes: list[int]) -> Iterator[ScopeRecords]:
        found: dict[int, list[Record]] = {scope: [] for scope in scopes}
        for record in self._view.records(conn, scopes, self._clock.now()):
            found[record.scope].append(record)
        for number, records in found.items():
            scope = self._curated.scopes.scope(conn, number)
            self._numbers[scope] = number
            yield ScopeRecords(scope, tuple(records))

"""The views that one call reads, all as they are at one position, and of each what its caller sees."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import Connection

from mnemolog._guard import Guard
from mnemolog.domain.scope import ANY, Scope, ScopeIds, owner
from mnemolog.projections.confining import confine
from mnemolog.projections.parking import Parking
from mnemolog.projections.scopes import ScopeTable


@dataclass(frozen=True, slots=True)
class View:
    """A read transaction on one view: what of it the caller sees. caller: the scope that asks; near: see `Reader`."""

    conn: Connection
    scopes: Mapping[int, ScopeIds]
    caller: ScopeIds | None = None
    near: dict[tuple[ScopeIds, str | None], bool] = field(default_factory=dict)


class Views:
    """The views as they are at one position: each is opened when it is first asked for, and read as it was then.

    at_least: the position; None for the head of the log.
    """

    def __init__(self, guard: Guard, scopes: ScopeTable, at_least: int | None) -> None:
        self._guard, self._scopes, self._at_least = guard, scopes, at_least
        # Taken before anything is read, so that what was read before an erasure is not kept after it.
        self.turn_epoch, self.record_epoch = guard.store.tables.epoch, guard.store.records.epoch
        self._scanned, self._settled = guard.store.gate.scanning.settled
        self.hidden = 0
        """Up to which position the view of turns, once it is open, hides what was found in them."""
        self._stack = ExitStack()
        self._conns: dict[str, Connection] = {}
        self._tenants: dict[str, str | None] = {}
        """Whose rows each view shows: those of one tenant, or None for all."""
        self._seen: dict[tuple[str, Scope, frozenset[str]], View] = {}

    def __enter__(self) -> Views:
        self._stack.enter_context(self._guard.store.foreground)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def of(self, name: str, scope: Scope, exact: frozenset[str] = frozenset()) -> View:
        """A view, caught up, with the numbers of the scopes that the caller sees in it."""
        view = self._seen.get((name, scope, exact))
        if view is None:
            conn, ids = self._opened(name), self._guard.reading_ids(scope)
            self._confine(name, conn, ids)
            allowed = self._guard.allowed(scope)
            seen = {} if ids is None else self._scopes.visible(conn, ids, exact=exact, allowed=allowed)
            view = self._seen[name, scope, exact] = View(conn, seen, ids)
        return view

    @property
    def opened(self) -> tuple[str, ...]:
        """The views that were asked for so far."""
        return tuple(self._conns)

    def is_parked(self, name: str, ids: ScopeIds) -> bool:
        """Whether events of the scope's owner are set aside, so that the view lacks them."""
        conn, store = self._opened(name), self._guard.store
        if not store.settings.workers and not store.runner.has_parked(name):
            return False
        confine(conn, None)
        parked = Parking(name).is_parked(conn, owner(ids))
        confine(conn, self._tenants.get(name))
        return parked

    def _confine(self, name: str, conn: Connection, ids: ScopeIds | None) -> None:
        """Behind the scope check stands the database's own: it shows one tenant's rows, if one is all we need."""
        if ids is None:
            return
        before = self._tenants.get(name, ids.tenant)
        tenant = ids.tenant if ids.tenant == before != ANY else None
        if name not in self._tenants or tenant != before:
            confine(conn, tenant)
        self._tenants[name] = tenant

    def _opened(self, name: str) -> Connection:
        conn = self._conns.get(name)
        if conn is None:
            store = self._guard.store
            # What was erased or found to be hidden by then is so in the view, whatever position was asked for.
            at_least = None if self._at_least is None else max(self._at_least, store.erased, self._settled)
            read = store.runner.read(name, at_least)
            conn = self._conns[name] = self._stack.enter_context(read)
            if name == "turns" and not store.settings.workers and not store.runner.has_parked(name):
                self.hidden = self._scanned
        return conn

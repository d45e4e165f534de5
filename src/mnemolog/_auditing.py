"""Audits: which contexts and reads something entered, and what a context held. Ids, and the names behind them."""

from __future__ import annotations

from dataclasses import dataclass

from mnemolog._guard import Guard
from mnemolog.domain import ingress
from mnemolog.domain.context import LeftOut, told_once
from mnemolog.domain.errors import NotFound
from mnemolog.domain.principal import Action
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.projections import access, catalog
from mnemolog.projections.access import Held


@dataclass(frozen=True, slots=True)
class Exposure:
    """One time that a record or an event was handed over to somebody, or was left out of a context.

    event_id: of the context's receipt or of the note of reads; by: the principal's name; action: context, recall,
    get, records, history, read_output; layer, version, tokens: in a context; left_out: why it was not in it.
    """

    event_id: str
    position: int
    at: str
    by: str
    action: str
    scope: Scope
    id: str
    layer: str | None = None
    version: int | None = None
    tokens: int | None = None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class ContextAudit:
    """What one context held, in the order in which it was read, and what was left out."""

    event_id: str
    position: int
    at: str
    by: str
    scope: Scope
    session: str | None
    budget: int
    tokens: int
    read_position: int
    held: tuple[Held, ...]
    left_out: tuple[LeftOut, ...]


class Auditor:
    """Answers the audits of one principal that may inspect; it hears nothing of scopes that it may not see."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self._store = guard, guard.store

    def record(self, id: str) -> list[Exposure]:
        """Every context and read that the record or event was part of, oldest first. Raises NotFound."""
        self._guard.enter_log()
        id = ingress.known_id(id)
        self._store.accesses.flush()
        with self._store.runner.read("catalog") as conn:
            row = catalog.find(conn, id) or next(iter(catalog.by_stream(conn, id)), None)
        stored = None if row is None else self._scope_at(row.position)
        if stored is None or not self._guard.sees(stored):
            self._missed(stored)
            raise NotFound(f"no event or record {id} in what the principal may see")
        with self._store.runner.read("access") as conn:
            found = access.of_id(conn, [id])
        return [self._exposure(each) for each in found if self._guard.sees(each.scope)]

    def context(self, event_id: str) -> ContextAudit:
        """What the context with this receipt held. Raises NotFound."""
        self._guard.enter_log()
        event_id = ingress.known_id(event_id)
        with self._store.runner.read("access") as conn:
            found = access.context(conn, event_id)
        if found is None or not self._guard.sees(found.scope):
            self._missed(None if found is None else found.scope)
            raise NotFound(f"no context {event_id} in what the principal may see")
        session = None if found.session is None else self._name(found.session)
        return ContextAudit(
            found.event_id,
            found.position,
            found.at,
            self._by(found.actor),
            self._store.vault.names(found.scope),
            session,
            found.budget,
            found.tokens,
            found.read_position,
            tuple(each for each in found.held if each.left_out is None),
            told_once(LeftOut(each.id, each.left_out) for each in found.held if each.left_out is not None),
        )

    def _scope_at(self, position: int) -> ScopeIds:
        return self._store.log.read_at([position], bodies=False)[0].envelope.scope

    def _missed(self, stored: ScopeIds | None) -> None:
        if stored is not None:
            self._guard.missed(Action.INSPECT, stored)

    def _exposure(self, one: access.Access) -> Exposure:
        held = one.held
        return Exposure(
            one.event_id,
            one.position,
            one.at,
            self._by(one.actor),
            one.action,
            self._store.vault.names(one.scope),
            held.id,
            held.layer,
            held.version,
            held.tokens,
            held.left_out,
        )

    def _by(self, actor: str) -> str:
        return self._name(actor).removeprefix("@")

    def _name(self, rid: str) -> str:
        return self._store.vault.name(rid) or rid

"""The one place that every method passes: is the store open, is the scope allowed, who is asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mnemolog.domain.errors import AccessDenied, InvalidInput
from mnemolog.domain.events import AccessRefused, Draft, Event
from mnemolog.domain.principal import ALLOWED, Action, Principal, Role, Tier, may_see, refusal
from mnemolog.domain.scope import ANY, LEVELS, SESSION_LEVELS, Scope, ScopeIds, a_scope
from mnemolog.infra.compose import Store

_UNKNOWN: Final = "?"
"""Stands for a level value that the directory does not know: it equals no stored id."""


class Guard:
    """Checks a principal's calls on a store, and turns names into ids."""

    def __init__(self, store: Store, principal: Principal) -> None:
        if not isinstance(principal, Principal):
            raise InvalidInput(f"principal must be a mnemolog.Principal, not {type(principal).__name__}")
        self.store, self.principal = store, principal
        self._actors: dict[str, str] = {}
        self._as_person: dict[str, Scope] = {}

    def enter(self, action: Action, scope: Scope) -> None:
        """Raise unless the store is open and the principal may do `action` (in `scope`). Refusals are recorded."""
        self.store.enter()
        self.check(action, scope)

    @property
    def reviews(self) -> bool:
        """Whether the principal's role may decide about what waits."""
        return Action.REVIEW in ALLOWED[self.principal.role]

    def check(self, action: Action, scope: Scope) -> None:
        """As `enter`, for one of many that were entered together."""
        if a_scope(scope).has_any and action not in (Action.READ, Action.INSPECT):
            raise InvalidInput("a write needs one value per level: ANY is for reads")
        self._settle(action, refusal(self.principal, action, scope), scope)

    def enter_store(self, action: Action) -> None:
        """As `enter`, for what concerns the whole store: it tells of every scope, so it needs all of them."""
        self.store.enter()
        reason = refusal(self.principal, action, Scope(ANY))
        if reason is not None and action in ALLOWED[self.principal.role]:
            reason = "this concerns the whole store: it needs a principal of all scopes"
        self._settle(action, reason, None)

    def enter_log(self) -> None:
        """As `enter`, for the log: what is read from it is filtered by `may_see`."""
        self.store.enter()
        role = self.principal.role
        reason = None if Action.INSPECT in ALLOWED[role] else f"role {role.value} may not inspect"
        self._settle(Action.INSPECT, reason, None)

    @property
    def sees_all(self) -> bool:
        """Whether the principal may touch every scope there is."""
        patterns = self.principal.scopes
        return not patterns or any(
            all(getattr(pattern, level) in (None, ANY) for level in LEVELS) for pattern in patterns
        )

    def sees(self, ids: ScopeIds, only: Scope | None = None) -> bool:
        """Whether something recorded in this scope is the principal's to see, and has the levels of `only`."""
        if self.sees_all and only is None:
            return True
        names = self.store.vault.names(ids)
        if only is not None and any(getattr(names, level) != value for level, value in only.present()):
            return False
        return self.sees_all or may_see(self.principal, without_session(names))

    def may(self, action: Action, ids: ScopeIds) -> bool:
        """Whether the principal may do `action` in a stored scope; asking is no refusal."""
        return refusal(self.principal, action, self.store.vault.names(ids)) is None

    @property
    def sees_tenants(self) -> bool:
        """Whether what concerns a whole tenant (erasures, refusals, decisions) is the principal's to see."""
        return not self.principal.scopes or any(one == one.at(()) for one in self.principal.scopes)

    def _settle(self, action: Action, reason: str | None, scope: Scope | None) -> None:
        if reason is not None:
            self.refuse(action, reason, scope)
            raise AccessDenied(f"{self.principal.role.value} {self.principal.id!r}: {reason}")

    def refuse(self, action: Action, reason: str, scope: Scope | None) -> None:
        """Append the refusal in the principal's own tenant, and in the one that was asked for, if there is one.

        The principal's own log looks the same whether the other tenant exists or not.
        """
        own = next((one.tenant for one in self.principal.scopes if one.tenant != ANY), None)
        asked = None if scope is None or scope.tenant == ANY else scope.tenant
        vault = self.store.vault
        found = {
            tenant
            for name in (own, asked)
            if name is not None and (tenant := vault.resolve(Scope(name), create=name == own)) is not None
        }
        refused = AccessRefused(action.value, reason)
        if found:
            self.store.log.append([self.note(refused, tenant) for tenant in sorted(found, key=Scope.encode)])

    def missed(self, action: Action, stored: ScopeIds, scope: Scope | None = None) -> None:
        """An id that a call named is not in its scope: a refusal where the principal may not see it, else a slip.

        The caller is told the same as of an id that nothing has.
        """
        if not self.sees(stored):
            self.refuse(action, "the id is not in the caller's scope", scope)

    def note(self, event: Event, of: ScopeIds) -> Draft:
        """A draft of a governance event, in its tenant's own stream and under the tenant's own key."""
        tenant = ScopeIds(of.at(()))
        return Draft(
            id=self.store.ids.event_id(),
            event=event,
            scope=tenant,
            stream=self.store.vault.keyed_hash(tenant.tenant, b"stream", b"governance").hex(),
            occurred_at=self.store.clock.now(),
            actor=self.actor(tenant.tenant),
            role=self.principal.role,
            origin=Tier.OPERATOR,
            digest="",
            subjects=(tenant.tenant,),
        )

    def actor(self, tenant: str) -> str:
        """The random id under which the tenant's directory knows this principal.

        A user acts under the id of the person, so that it goes when the person is erased.
        """
        if self.principal.role is Role.USER:
            return self._person(tenant)
        known = self._actors.get(tenant)
        if known is None:
            name = self.store.vault.name(tenant) or tenant
            ids = self.store.vault.resolve(Scope(name, agent=f"@{self.principal.id}"), create=True)
            assert ids is not None
            assert ids.agent is not None
            known = self._actors[tenant] = ids.agent
        return known

    def _person(self, tenant: str) -> str:
        """Not remembered here: the vault forgets the id when the person is erased."""
        scope = self._as_person.get(tenant)
        if scope is None:
            name = self.store.vault.name(tenant) or tenant
            scope = self._as_person[tenant] = Scope(name, user=self.principal.id)
        ids = self.store.vault.resolve(scope, create=True)
        assert ids is not None
        assert ids.user is not None
        return ids.user

    def reading_ids(self, scope: Scope) -> ScopeIds | None:
        """Ids for a read; None when the tenant is unknown. Levels that nobody used yet match nothing."""
        vault = self.store.vault
        known = vault.resolve(scope, create=False)
        if known is not None:
            return known
        tenant = vault.resolve(Scope(scope.tenant), create=False)
        if tenant is None:
            return None
        levels: dict[str, str | None] = {"tenant": tenant.tenant}
        for level, value in scope.present():
            if level == "tenant":
                continue
            alone = scope.at(SESSION_LEVELS) if level == "session" else scope.at((level,))
            one = ScopeIds(scope) if value == ANY else vault.resolve(alone, create=False)
            levels[level] = getattr(one, level) if one else _UNKNOWN
        return ScopeIds(Scope.of(levels))

    def noting_ids(self, scope: Scope) -> ScopeIds:
        """Ids for what a read leaves behind. A read makes no names: levels that nobody used yet are left out."""
        known = self.reading_ids(scope) or self.store.vault.resolve(Scope(scope.tenant), create=True)
        assert known is not None
        return ScopeIds(known.at([level for level, rid in known.present() if rid not in (ANY, _UNKNOWN)]))

    def allowed(self, scope: Scope) -> Callable[[ScopeIds], bool] | None:
        """A filter over stored scopes, needed where the caller asks for `ANY`."""
        return None if self.sees_all or not scope.has_any else self.sees


def without_session(scope: Scope) -> Scope:
    return scope.at(LEVELS[:-1])

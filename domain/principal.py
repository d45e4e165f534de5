"""Who calls, what they may do, and how far what they bring can be trusted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final

from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.scope import ANY, LEVELS, Scope


class Tier(IntEnum):
    """Where content comes from; a higher tier has more authority. Stored as its number."""

    IMPORT = 0
    UNTRUSTED_TOOL = 1
    TRUSTED_TOOL = 2
    AGENT = 3
    USER_INFERRED = 4
    USER_STATED = 5
    OPERATOR = 6
    SYSTEM_OF_RECORD = 7


class Role(StrEnum):
    AGENT = "agent"
    USER = "user"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    SERVICE = "service"


class Action(StrEnum):
    RECORD = "record"
    """Append turns, tool calls and results, sessions, feedback."""
    STATE = "state"
    """Remember, correct, confirm, dispute, retract."""
    READ = "read"
    """Recall, context, records, history, outputs."""
    REVIEW = "review"
    """See what waits for a person, and decide; agree that memory is kept, or take it back."""
    ERASE = "erase"
    OPERATE = "operate"
    """Rebuild, parked events, keys."""
    INSPECT = "inspect"
    """Read the log and the receipts of others."""


ALLOWED: Final[dict[Role, frozenset[Action]]] = {
    Role.AGENT: frozenset({Action.RECORD, Action.STATE, Action.READ}),
    Role.USER: frozenset({Action.RECORD, Action.STATE, Action.READ, Action.REVIEW, Action.ERASE}),
    Role.OPERATOR: frozenset(Action),
    Role.AUDITOR: frozenset({Action.READ, Action.INSPECT}),
    Role.SERVICE: frozenset({Action.RECORD, Action.STATE, Action.READ}),
}

TOP_TIER: Final[dict[Role, Tier]] = {
    Role.AGENT: Tier.USER_STATED,
    Role.USER: Tier.USER_STATED,
    Role.OPERATOR: Tier.OPERATOR,
    Role.AUDITOR: Tier.IMPORT,
    Role.SERVICE: Tier.SYSTEM_OF_RECORD,
}

STATED_BY: Final[dict[Role, Tier]] = {
    Role.AGENT: Tier.AGENT,
    Role.USER: Tier.USER_STATED,
    Role.OPERATOR: Tier.OPERATOR,
    Role.AUDITOR: Tier.IMPORT,
    Role.SERVICE: Tier.SYSTEM_OF_RECORD,
}

SAID_BY: Final = {"user": Tier.USER_STATED, "assistant": Tier.AGENT, "system": Tier.OPERATOR}
"""What a turn can claim by who spoke."""

HUMAN: Final = frozenset({Role.USER, Role.OPERATOR})
"""Roles whose explicit corrections outrank machines."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller.

    scopes: where it may act. A level that is `None` or `ANY` in a pattern allows every value of that level;
        an empty collection allows everything, which is right only for the local operator.
    trusted_tools: tools whose results are `TRUSTED_TOOL` instead of `UNTRUSTED_TOOL`.
    highest_tier: nothing that it brings ranks above this; the role's own top when not given.
    """

    id: str
    role: Role
    scopes: tuple[Scope, ...] = ()
    trusted_tools: frozenset[str] = field(default_factory=frozenset)
    highest_tier: Tier | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise InvalidInput("a principal needs an id")
        if self.role not in list(Role):
            raise InvalidInput(f"a principal's role must be one of {', '.join(Role)}, not {self.role!r}")
        object.__setattr__(self, "role", Role(self.role))
        object.__setattr__(self, "scopes", ingress.several(self.scopes, "scopes", "mnemolog.Scope"))
        object.__setattr__(self, "trusted_tools", ingress.names(self.trusted_tools, "trusted_tools"))
        if not all(isinstance(scope, Scope) for scope in self.scopes):
            raise InvalidInput("scopes must hold mnemolog.Scope only")
        if not self.scopes and self.role is not Role.OPERATOR:
            raise InvalidInput(f"a principal with role {self.role.value} needs scopes=(Scope(...), ...)")

    @property
    def ceiling(self) -> Tier:
        top = TOP_TIER[self.role]
        return top if self.highest_tier is None else min(top, self.highest_tier)


LOCAL_OPERATOR: Final = Principal("local", Role.OPERATOR)
"""The default of the embedded mode: whoever can read the data directory."""


def refusal(principal: Principal, action: Action, scope: Scope) -> str | None:
    """Why `principal` may not do `action` in `scope`; None when it may. The text names no other scope."""
    if action not in ALLOWED[principal.role]:
        return f"role {principal.role.value} may not {action.value}"
    reading = action in (Action.READ, Action.INSPECT)
    if principal.scopes and not any(_covers(pattern, scope, reading) for pattern in principal.scopes):
        return f"principal may not {action.value} in this scope"
    return None


def _covers(pattern: Scope, scope: Scope, any_asked: bool) -> bool:
    """Whether the pattern allows the scope. A read may ask for `ANY`: what it finds is filtered by `may_see`."""
    for level in LEVELS:
        allowed, asked = getattr(pattern, level), getattr(scope, level)
        if allowed in (None, ANY) or asked == allowed or (any_asked and asked == ANY and level != "tenant"):
            continue
        return False
    return True


def may_see(principal: Principal, record_scope: Scope) -> bool:
    """Whether something that belongs to `record_scope` is within what the principal may touch at all.

    Used when a read asks for `ANY`: a level that the record lacks is shared by all, so it does not exclude.
    """
    if not principal.scopes:
        return True
    return any(
        all(
            getattr(pattern, level) in (None, ANY, getattr(record_scope, level))
            or (level != "tenant" and getattr(record_scope, level) is None)
            for level in LEVELS
        )
        for pattern in principal.scopes
    )


def turn_tier(principal: Principal, role: str) -> Tier:
    """Origin of a turn: the lower of the principal's ceiling and what the turn's role can claim."""
    return min(principal.ceiling, SAID_BY.get(role, Tier.UNTRUSTED_TOOL))


def tool_tier(principal: Principal, tool: str | None) -> Tier:
    """Origin of a tool result: untrusted, unless this principal trusts that tool."""
    trusted = tool is not None and tool in principal.trusted_tools
    return min(principal.ceiling, Tier.TRUSTED_TOOL if trusted else Tier.UNTRUSTED_TOOL)


def statement_tier(principal: Principal) -> Tier:
    """Origin of an explicit memory act (`remember`, `correct`, ...)."""
    return min(principal.ceiling, STATED_BY[principal.role])


def levels_asked(scope: Scope, exact: bool | Collection[str]) -> frozenset[str]:
    """The `exact` argument of reads as a set of level names."""
    if exact is True:
        return frozenset(LEVELS[:-1])
    names = frozenset() if exact is False else ingress.names(exact, "exact")
    if unknown := names - set(LEVELS):
        raise InvalidInput(f"exact names levels that do not exist: {', '.join(sorted(unknown))}")
    return names

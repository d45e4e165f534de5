"""Where a thing belongs and who sees it: `Scope`, its levels, its owner, and the visibility rule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, NewType

from mnemolog.domain.errors import InvalidInput

ANY: Final = "\x00any"
"""Asks a read for every value of a level that the principal may see."""

MAX_LEVEL_LENGTH: Final = 256


@dataclass(frozen=True, slots=True)
class Scope:
    """Tenant, and optionally organization, user, project, agent and session; all opaque strings.

    The tenant is required: there is no shared default. A read may set a level to `ANY`; a write may not.
    """

    tenant: str
    user: str | None = None
    project: str | None = None
    session: str | None = None
    organization: str | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        for level, value in self.present():
            if not isinstance(value, str):
                raise InvalidInput(
                    f"scope level {level!r} must be a string or None, not {type(value).__name__}"
                )
            if not value.strip():
                raise InvalidInput(f"scope level {level!r} must be a non-empty string or None, not {value!r}")
            if len(value) > MAX_LEVEL_LENGTH:
                raise InvalidInput(f"scope level {level!r} is longer than {MAX_LEVEL_LENGTH} characters")
        if self.tenant is None:
            raise InvalidInput("a scope needs a tenant: there is no shared default")

    @classmethod
    def of(cls, levels: Mapping[str, str | None]) -> Scope:
        """A scope from level names and values; an empty value is an absent level."""
        if not isinstance(levels, Mapping):
            raise InvalidInput(
                f"a scope's levels must be a mapping of names to ids, not {type(levels).__name__}"
            )
        if not levels.get("tenant"):
            raise InvalidInput("a scope needs a tenant: there is no shared default")
        if unknown := set(levels) - set(LEVELS):
            raise InvalidInput(
                f"no such scope level: {', '.join(sorted(unknown))}; levels are {', '.join(LEVELS)}"
            )
        return cls(**{level: value or None for level, value in levels.items()})  # type: ignore[arg-type]

    def present(self) -> Iterator[tuple[str, str]]:
        """The levels that are set, in the order of `LEVELS`."""
        for level in LEVELS:
            value = getattr(self, level)
            if value is not None:
                yield level, value

    def at(self, levels: Collection[str]) -> Scope:
        """This scope with only the named levels kept (the tenant always stays)."""
        return Scope.of(
            {level: getattr(self, level) for level in LEVELS if level == "tenant" or level in levels}
        )

    @property
    def has_any(self) -> bool:
        return ANY in (self.tenant, self.organization, self.user, self.project, self.agent, self.session)

    def encode(self) -> bytes:
        """Length-prefixed and unambiguous: equal bytes mean equal scopes."""
        parts = [getattr(self, level) for level in LEVELS]
        return b"".join(
            b"-" if part is None else b"%d:%b" % (len(raw := part.encode("utf-8", "surrogatepass")), raw)
            for part in parts
        )


ScopeIds = NewType("ScopeIds", Scope)
"""A scope whose levels are the random ids of the directory: what log and views hold."""

LEVELS: Final = ("tenant", "organization", "user", "project", "agent", "session")
RECORD_LEVELS: Final = ("tenant", "organization", "user", "project")
"""What a record belongs to by default; agent and session are provenance."""
SESSION_LEVELS: Final = (*RECORD_LEVELS, "session")
"""What makes a session one session: several agents may take part in it."""

assert {f.name for f in fields(Scope)} == set(LEVELS)


def a_scope(value: object, what: str = "scope") -> Scope:
    """The value, which must be a scope. Raises InvalidInput."""
    if not isinstance(value, Scope):
        raise InvalidInput(f"{what} must be a mnemolog.Scope, not {type(value).__name__}")
    return value


def owner(scope: Scope) -> str:
    """The unit of ordering and partitioning: the scope's user, else its project, else its tenant."""
    return scope.user or scope.project or scope.tenant


def sees(caller: Scope, record: Scope, exact: Collection[str] = ()) -> bool:
    """Whether a read in `caller` may see something that belongs to `record`.

    Every level that the record has must equal the caller's; a level that the record lacks does not matter,
    unless it is named in `exact`. `ANY` in the caller matches every value, and absence.
    """
    for level in LEVELS:
        theirs, mine = getattr(record, level), getattr(caller, level)
        if mine == ANY:
            continue
        if theirs is None and level not in exact:
            continue
        if theirs != mine:
            return False
    return True

"""The policy: what people decide about memory, contexts and summaries. Every field acts, and a test shows how."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, Literal

from mnemolog.domain.gate.admission import DEFAULT_ADMISSION, AdmissionPolicy
from mnemolog.domain.gate.findings import IDENTIFIERS, Sort
from mnemolog.domain.principal import SAID_BY, Role, Tier
from mnemolog.domain.records import RECORD_KINDS
from mnemolog.domain.summaries import WindowRule


@dataclass(frozen=True, slots=True)
class Shares:
    """Percent of the model's window. What the model is asked now (`input`) and writes (`reserve`) is not ours.

    boot: constraints and the project's blueprint; tools: working state and references; memory: records and what
    a search found; session: summary, landmarks, open items and raw turns.
    """

    boot: float = 7.5
    tools: float = 5.0
    memory: float = 10.0
    session: float = 40.0
    input: float = 20.0
    reserve: float = 17.5

    @property
    def ours(self) -> dict[str, float]:
        """The shares of what a context holds."""
        return {"boot": self.boot, "tools": self.tools, "memory": self.memory, "session": self.session}


@dataclass(frozen=True, slots=True)
class Floors:
    """Percent of a context's budget that stays free for a layer until its first entries are in."""

    boot: float = 10.0
    tools: float = 5.0
    memory: float = 20.0
    session: float = 20.0


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    shares: Shares = field(default_factory=Shares)
    floors: Floors = field(default_factory=Floors)

    def budget(self, window: int) -> int:
        """How many tokens of a model's window a context may have."""
        return int(window * sum(self.shares.ours.values()) / 100)


@dataclass(frozen=True, slots=True)
class SystemOfRecord:
    """A system that owns attributes: memory keeps where to look them up, never their values.

    attributes: of slots, as "attribute" or "entity/attribute"; verify: where the value stands, for who reads it.
    """

    attributes: tuple[str, ...]
    verify: str

    def owns(self, entity: str, attribute: str) -> bool:
        named = (attribute.casefold(), f"{entity}/{attribute}".casefold())
        return any(each.casefold() in named for each in self.attributes)


_CEILINGS: Final = MappingProxyType(
    {"user": SAID_BY["user"], "assistant": SAID_BY["assistant"], "tool": Tier.TRUSTED_TOOL}
)
_READERS: Final = MappingProxyType({role.value: frozenset(RECORD_KINDS) for role in Role})


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What gets into curated memory.

    mode: full, or window: the log and the window of raw turns, and nothing that is derived from them. ceilings: the
    highest trust of what a role says; tools: the trust of named tools' outputs, instead of what their events say.
    expiry: days after which a kind is no longer read, unless it says so itself. systems: by name.
    contested_within: minutes; said apart by no more, values of one slot from voices of equal authority are asked about.
    """

    mode: Literal["full", "window"] = "full"
    admission: AdmissionPolicy = DEFAULT_ADMISSION
    ceilings: Mapping[str, Tier] = field(default_factory=lambda: _CEILINGS)
    tools: Mapping[str, Tier] = field(default_factory=lambda: MappingProxyType({}))
    expiry: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    systems: Mapping[str, SystemOfRecord] = field(default_factory=lambda: MappingProxyType({}))
    contested_within: float = 10.0

    @property
    def contested_us(self) -> int:
        """As microseconds."""
        return round(self.contested_within * 60_000_000)

    @property
    def hash(self) -> str:
        """Names the rows of a curated view that was folded under it."""
        return _hash(self)

    @property
    def masked(self) -> frozenset[Sort]:
        """What is hidden wherever a turn is found or shown."""
        handling = self.admission.identifiers
        return frozenset({Sort.SECRET, *(s for s in IDENTIFIERS if handling.get(s, "redact") != "keep")})

    def owner_of(self, slot: tuple[str, str] | None) -> SystemOfRecord | None:
        """The system that owns what the slot holds."""
        found = (one for one in self.systems.values() if slot is not None and one.owns(*slot))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """Who reads what of curated memory. kinds: by role of the principal; personal: roles that read personal records."""

    kinds: Mapping[str, frozenset[str]] = field(default_factory=lambda: _READERS)
    personal: frozenset[str] = frozenset(role.value for role in Role)

    def may_read(self, role: str, kind: str, sensitivity: str) -> bool:
        """Whether a principal of this role reads records of this kind."""
        return kind in self.kinds.get(role, frozenset()) and (
            sensitivity != "personal" or role in self.personal
        )

    def is_open_to(self, role: str) -> bool:
        """Whether the role reads everything, so that nothing has to be looked at."""
        return role in self.personal and set(RECORD_KINDS) <= self.kinds.get(role, frozenset())


@dataclass(frozen=True, slots=True)
class Policy:
    """One adopted document. summaries: how many raw turns always stay, and when the next summary is due.

    on_withdrawal: what becomes of records whose consent is taken back: stop reading them, or also erase them.
    """

    gate: GatePolicy = field(default_factory=GatePolicy)
    reading: ReadingPolicy = field(default_factory=ReadingPolicy)
    on_withdrawal: Literal["stop", "erase"] = "stop"
    context: ContextPolicy = field(default_factory=ContextPolicy)
    summaries: WindowRule = field(default_factory=WindowRule)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, as hex: equal for documents that decide the same."""
        return _hash(self)


def plain(value: Any) -> Any:
    """As JSON and YAML know it: 10 and 10.0 alike, sets in order, enumerations by name."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, frozenset):
        return sorted(plain(each) for each in value)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _hash(policy: Any) -> str:
    spelled = json.dumps(plain(policy), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(spelled.encode()).hexdigest()


DEFAULT = Policy()

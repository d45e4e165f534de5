"""The policy: what people decide about contexts and summaries. Every field acts, and a test shows how."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
class Policy:
    """One adopted document. summaries: how many raw turns always stay, and when the next summary is due."""

    context: ContextPolicy = field(default_factory=ContextPolicy)
    summaries: WindowRule = field(default_factory=WindowRule)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, as hex: equal for documents that decide the same."""
        return hashlib.sha256(canonical(asdict(self)).encode()).hexdigest()


def canonical(values: Mapping[str, Any]) -> str:
    """One spelling for equal policies: sorted keys, no spaces, 10 and 10.0 alike."""
    return json.dumps(_plain(values), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


DEFAULT = Policy()

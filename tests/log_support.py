"""A sealer whose keys can be destroyed by hand, one that does not seal, and drafts in one line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Any

from mnemolog.domain.errors import CorruptStore, ErasedScope
from mnemolog.domain.events import Draft, Event, TurnRecorded
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.clock import SeededIds

WHEN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ALICE = ScopeIds(Scope(tenant="t1", user="alice", session="s1"))
IDS = SeededIds()


class PlainSealer:
    """Stores bodies as they are: the unsealed side of benchmarks."""

    def __init__(self) -> None:
        self._leaves = count(1)

    def next_leaf(self, subject: str) -> int:
        return next(self._leaves)

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
        return plaintext

    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None:
        return ciphertext


class FakeSealer(PlainSealer):
    """Scrambles, binds to the envelope, and forgets what is in `destroyed` (subjects or leaf numbers)."""

    def __init__(self) -> None:
        super().__init__()
        self.destroyed: set[str | int] = set()

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
        if self.destroyed.intersection(subjects):
            raise ErasedScope("a subject of this text was erased")
        return _tag(subjects, leaf, plaintext, aad) + bytes(b ^ 0x5A for b in plaintext)

    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None:
        if self.destroyed.intersection((*subjects, leaf)):
            return None
        plaintext = bytes(b ^ 0x5A for b in ciphertext[16:])
        if ciphertext[:16] != _tag(subjects, leaf, plaintext, aad):
            raise CorruptStore("a sealed text does not have the bytes that were written")
        return plaintext


def _tag(subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
    return sha256(repr((sorted(subjects), leaf)).encode() + plaintext + aad).digest()[:16]


def turn(text: str = "hello") -> TurnRecorded:
    return TurnRecorded("user", text)


def draft(event: Event | str = "hello", **changes: Any) -> Draft:
    """A draft of Alice's; a string is a turn's content."""
    values: dict[str, Any] = {
        "id": IDS.event_id(),
        "event": turn(event) if isinstance(event, str) else event,
        "scope": ALICE,
        "stream": "s1",
        "occurred_at": WHEN,
        "actor": "agent-1",
        "role": Role.USER,
        "origin": Tier.USER_STATED,
        "digest": "d",
        "subjects": ("alice",),
    }
    return Draft(**{**values, **changes})

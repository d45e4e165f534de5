"""The trail of reads: what was read, by whom, when. Collected in memory, appended together with something else.

A read is not worth an fsync of its own: its note rides along with the next append, or goes when there are many, or
at the close. A killed process loses the notes of its last moments and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol

from mnemolog.domain.events import Draft, MemoryAccessed, Receipt
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.ports import Clock, Ids

IDS_AT_ONCE: Final = 2_000
"""Ids of one event, and how many may wait."""


class Appending(Protocol):
    """What the trail needs of the log."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]: ...


class KeyedHashes(Protocol):
    def keyed_hash(self, subject: str, purpose: bytes, data: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """Who read, and in which scope (ids, without the session). actor: the directory's id of the principal."""

    scope: ScopeIds
    actor: str
    role: Role


class Accesses:
    """Notes of reads on their way into the log. Thread-safe."""

    def __init__(self, log: Appending, hashes: KeyedHashes, ids: Ids, clock: Clock) -> None:
        self._log, self._hashes, self._ids, self._clock = log, hashes, ids, clock
        self._lock = Lock()
        self._waiting: dict[Reader, list[dict[str, Any]]] = {}
        self._size = 0

    def note(
        self, reader: Reader, action: str, ids: Sequence[str], position: int, query: str | None = None
    ) -> None:
        """Remember that these records and events were handed over. query: a keyed hash, never text."""
        read: dict[str, Any] = {"action": action, "at": self._clock.now().isoformat(), "position": position}
        if query is not None:
            read["query"] = query
        parts = [ids[at : at + IDS_AT_ONCE] for at in range(0, len(ids), IDS_AT_ONCE)] or [()]
        with self._lock:
            self._waiting.setdefault(reader, []).extend({**read, "ids": list(part)} for part in parts)
            self._size += len(ids) + 1
            full = self._size >= IDS_AT_ONCE
        if full:
            self.flush()

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append the notes that wait and then these, in one commit; the receipts are those of `drafts`."""
        taken = self._take()
        try:
            notes = self._drafts(taken)
            return self._log.append([*notes, *drafts])[len(notes) :]
        except BaseException:
            self._put_back(taken)
            raise

    def flush(self) -> None:
        """Append what waits now."""
        self.append([])

    def _take(self) -> dict[Reader, list[dict[str, Any]]]:
        if not self._waiting:
            return {}
        with self._lock:
            taken, self._waiting, self._size = self._waiting, {}, 0
        return taken

    def _put_back(self, taken: dict[Reader, list[dict[str, Any]]]) -> None:
        with self._lock:
            for reader, reads in taken.items():
                self._waiting[reader] = reads + self._waiting.get(reader, [])
                self._size += sum(len(read["ids"]) + 1 for read in reads)

    def _drafts(self, taken: dict[Reader, list[dict[str, Any]]]) -> list[Draft]:
        return [
            self._draft(reader, tuple(some)) for reader, reads in taken.items() for some in _portions(reads)
        ]

    def _draft(self, reader: Reader, reads: tuple[dict[str, Any], ...]) -> Draft:
        """Nothing of it is sealed, and it belongs to no session: an erasure neither reaches nor refuses it."""
        scope = reader.scope
        stream = self._hashes.keyed_hash(scope.tenant, b"reads", scope.encode() + reader.actor.encode())
        return Draft(
            id=self._ids.event_id(),
            event=MemoryAccessed(reads),
            scope=scope,
            stream=stream.hex(),
            occurred_at=self._clock.now(),
            actor=reader.actor,
            role=reader.role,
            origin=Tier.OPERATOR,
            digest="",
            subjects=(scope.tenant,),
        )


def _portions(reads: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Each with about `IDS_AT_ONCE` ids."""
    portions: list[list[dict[str, Any]]] = [[]]
    size = 0
    for read in reads:
        size += len(read["ids"]) + 1
        if size > IDS_AT_ONCE and portions[-1]:
            portions.append([])
            size = len(read["ids"]) + 1
        portions[-1].append(read)
    return portions

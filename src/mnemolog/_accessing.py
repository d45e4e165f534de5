"""The trail of one principal's reads: ids only, batched, never a reason for a read to fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from mnemolog._guard import Guard, without_session
from mnemolog.consumers.accesses import Reader
from mnemolog.domain.errors import ErasedScope
from mnemolog.domain.events import FORGOTTEN, Forgotten
from mnemolog.domain.records import Step
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.results import Hit, MemoryRecord, OutputRange

One = TypeVar("One", bound=MemoryRecord | Hit | OutputRange | Forgotten)
Some = TypeVar("Some", bound=Sequence[MemoryRecord] | Sequence[Hit] | Sequence[Step])


class Trail:
    """Notes what reads hand over, and hands it on."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self._store = guard, guard.store

    def some(self, action: str, scope: Scope, found: Some, query: str | None = None) -> Some:
        """Of a read that finds any number of things."""
        if found or query is not None:
            self._note(action, scope, [_id_of(each) for each in found], query)
        return found

    def one(self, action: str, scope: Scope, id: str, found: One) -> One:
        """Of a read by id. What was forgotten was not handed over."""
        if found is not FORGOTTEN:
            self._note(action, scope, [id])
        return found

    def _note(self, action: str, scope: Scope, ids: Iterable[str], query: str | None = None) -> None:
        if self._guard.reading_ids(scope) is None:
            return
        where = ScopeIds(without_session(self._guard.noting_ids(scope)))
        hashed = None
        if query is not None:
            home, text = where.user or where.tenant, query.encode("utf-8", "surrogatepass")
            with suppress(ErasedScope):  # meanwhile
                hashed = self._store.vault.keyed_hash(home, b"query", text).hex()
        reader = Reader(where, self._guard.actor(where.tenant), self._guard.principal.role)
        unique = list(dict.fromkeys(ids))
        self._store.accesses.note(reader, action, unique, self._store.position, hashed)


def _id_of(found: MemoryRecord | Hit | Step) -> str:
    if isinstance(found, Hit):
        return found.record_id or found.event_ids[0]
    return found.record_id if isinstance(found, MemoryRecord) else found.record

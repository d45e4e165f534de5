"""Kafka for runtimes: sending events, and a local copy of the current records. `pip install 'mnemolog[kafka]'`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from mnemolog.consumers.messages import Topics
from mnemolog.consumers.records import CachedRecord, RecordsCache
from mnemolog.domain.events import Forgotten
from mnemolog.domain.principal import Action
from mnemolog.domain.records import microseconds
from mnemolog.domain.scope import Scope, ScopeIds, sees
from mnemolog.infra.kafka.connecting import connection
from mnemolog.infra.kafka.records import Following
from mnemolog.infra.kafka.sealing import IngestKey
from mnemolog.infra.kafka.sending import IngestProducer
from mnemolog.memory import Memory


class CurrentRecords:
    """The records topic as the principal of an open memory may see it: reads that ask no view and no database.

    What it holds is as old as the last `refresh`, and sealed as it came: a record opens only while its key is there, so
    an erasure is seen in the next read. Not thread-safe. servers, prefix: those of the memory's settings if left out.
    """

    def __init__(self, memory: Memory, servers: str | None = None, *, prefix: str | None = None) -> None:
        self._guard, store = memory._guard, memory._store
        settings = store.settings
        if servers is not None:
            settings = settings.having(kafka=servers)
        topic = Topics(prefix or settings.kafka_prefix).records
        self._clock = store.clock
        self._following = Following(connection(settings), topic)
        self._cache = RecordsCache(self._following, store.vault)

    def refresh(self, wait: float = 0.0) -> int:
        """Take in what came, waiting so many seconds for a first message; how many messages that were.

        Raises StoreUnavailable; what was taken in stays.
        """
        return self._cache.refresh(wait)

    def get(self, scope: Scope, record_id: str) -> CachedRecord | Forgotten | None:
        """The record, if this scope sees it. None: there is none (any more); FORGOTTEN: its key was destroyed."""
        return self._cache.get(record_id, self._seen_from(scope))

    def records(self, scope: Scope) -> list[CachedRecord]:
        """What the scope sees and what holds now, in the order of their positions."""
        now = microseconds(self._clock.now())
        return [one for one in self._cache.records(self._seen_from(scope)) if one.holds(now)]

    def close(self) -> None:
        """Let go of the connection; what was taken in can still be read."""
        self._following.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _seen_from(self, scope: Scope) -> Callable[[ScopeIds], bool]:
        self._guard.enter(Action.READ, scope)
        caller, allowed = self._guard.reading_ids(scope), self._guard.allowed(scope)
        return lambda one: caller is not None and sees(caller, one) and (allowed is None or allowed(one))


__all__ = ["CachedRecord", "CurrentRecords", "IngestKey", "IngestProducer"]

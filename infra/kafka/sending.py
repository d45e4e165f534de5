"""`IngestProducer`: how a runtime sends what happens to the ingest topic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import orjson

from mnemolog.consumers.messages import MAX_STATE, Topics
from mnemolog.consumers.partitions import partition_of
from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.scope import Scope, owner
from mnemolog.infra.kafka.connecting import connection
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.sealing import IngestKey
from mnemolog.infra.settings import Settings

GATHERED: Final = 500


class IngestProducer:
    """Sends events as the event file has them, one message each, and waits for the brokers (acks=all).

    key: the ingest's public key, as `mnemolog topics key` prints it; the topic then holds no text that anybody else can
    read. Without it messages are plain JSON. Events of one owner (the user, else the project, else the tenant of the
    scope) stay in order. Not thread-safe: one per thread. servers, prefix: as the environment has them if left out.

        with IngestProducer("127.0.0.1:9092", key=KEY) as producer:
            producer.send("turn", scope, key="s-1/1", occurred_at=now, role="user", content="...")

    `send` gathers; `flush`, and the end of the block, return when everything is acknowledged. A crash in between loses
    what was not flushed, so whoever may crash keeps it until then, and sends it again with the same `key`.
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        key: str | IngestKey | None = None,
        prefix: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        given = settings or Settings.load()
        if servers is not None:
            given = given.having(kafka=servers)
        self._topic = Topics(prefix or given.kafka_prefix).ingest
        self._producing = Producing(connection(given))
        self._key = IngestKey.of(key) if isinstance(key, str) else key
        self._waiting: list[Outgoing] = []

    def send(
        self, type: str, scope: Scope | Mapping[str, str], *, key: str, occurred_at: datetime, **fields: Any
    ) -> None:
        """One event. key: unique in its session, so that sending it again adds nothing; occurred_at: with a zone.

        fields: as docs/import-format.md names them for this type. Raises InvalidInput for what cannot be sent at all,
        StoreUnavailable when the brokers do not take it: what was gathered is kept, and `flush` tries again.
        """
        levels = dict(scope.present()) if isinstance(scope, Scope) else dict(scope)
        if occurred_at.utcoffset() is None:
            raise InvalidInput("occurred_at needs a time zone: pass an aware datetime")
        event = {"type": type, "scope": levels, "key": key, "occurred_at": occurred_at.isoformat(), **fields}
        try:
            raw = orjson.dumps(event)
        except TypeError as error:
            raise InvalidInput(f"the event cannot be written as UTF-8 JSON: {error}") from None
        if len(raw) > MAX_STATE:
            raise InvalidInput(
                f"an event has at most {MAX_STATE} bytes here: send large outputs by HTTP, or in parts"
            )
        value = raw if self._key is None else self._key.seal(raw)
        self._waiting.append(Outgoing(self._partition(Scope.of(levels)), None, value))
        if len(self._waiting) >= GATHERED:
            self.flush()

    def flush(self) -> None:
        """Everything that was sent is acknowledged when this returns. Raises StoreUnavailable: call it again."""
        if self._waiting:
            self._producing.send(self._topic, self._waiting)
            self._waiting.clear()

    def close(self) -> None:
        """Flush, and let go of the connection."""
        try:
            self.flush()
        finally:
            self._producing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._producing.close()

    def _partition(self, scope: Scope) -> int:
        """By the owner, who is not named in the topic."""
        return partition_of(f"{scope.tenant}\0{owner(scope)}", self._producing.partitions(self._topic))

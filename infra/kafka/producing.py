"""A producer that is thrown away as soon as anything about it is in doubt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.kafka.connecting import check_reachable, unavailable

if TYPE_CHECKING:
    from kafka import KafkaProducer

DELIVERY_SECONDS: Final = 20.0
LARGEST: Final = 1_048_576
"""Bytes of a message; never more than what the topic takes, for a broker's refusal wedges the producer as well."""
_GRACE: Final = 5.0


class Producing:
    """Sends to any topic and waits for acknowledgement (acks=all, idempotent). One thread at a time.

    A batch that could not be delivered in time leaves the client's idempotent producer wedged for good: later
    messages never resolve, and closing hangs. So on any error the producer is discarded, and the next call builds
    another one. rebuilds: how often.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        *,
        delivery_seconds: float = DELIVERY_SECONDS,
        largest: int = LARGEST,
    ) -> None:
        self._connection, self._delivery, self._largest = dict(connection), delivery_seconds, largest
        self._producer: KafkaProducer | None = None
        self.rebuilds = 0

    def send(self, topic: str, messages: Iterable[Outgoing]) -> None:
        """All of them, in order within each partition; acknowledged when this returns.

        Raises StoreUnavailable where that is not sure: send all of them again.
        """
        with self._doubting(topic):
            producer = self._opened()
            futures = [
                producer.send(topic, value=one.value, key=one.key, partition=one.partition)
                for one in messages
            ]
            deadline = time.monotonic() + self._delivery + _GRACE
            producer.flush(self._delivery + _GRACE)
            for future in futures:
                future.get(max(0.1, deadline - time.monotonic()))

    def partitions(self, topic: str) -> int:
        """How many the topic has. Raises StoreUnavailable."""
        with self._doubting(topic):
            return len(self._opened().partitions_for(topic))

    @contextmanager
    def _doubting(self, topic: str) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable:  # there is no producer yet
            raise
        except BaseException as error:
            self.discard()
            if isinstance(error, Exception):
                raise unavailable(f"{topic} cannot be written to", error) from error
            raise

    def discard(self) -> None:
        """Let go of the producer without waiting for anything it still holds."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        self.rebuilds += 1
        _abandon(producer)

    def close(self) -> None:
        """Nothing is in flight between two calls, so there is nothing to wait for."""
        producer, self._producer = self._producer, None
        if producer is not None:
            _abandon(producer)

    def _opened(self) -> KafkaProducer:
        if self._producer is None:
            check_reachable(self._connection)
            from kafka import KafkaProducer

            milliseconds = int(self._delivery * 1000)
            self._producer = KafkaProducer(
                **self._connection,
                acks="all",
                enable_idempotence=True,
                delivery_timeout_ms=milliseconds,
                request_timeout_ms=max(1000, milliseconds // 2),
                max_block_ms=milliseconds,
                batch_size=262_144,
                max_request_size=self._largest,
            )
        return self._producer


def _abandon(producer: Any) -> None:
    producer._sender.force_close()
    producer._sender.join(_GRACE)
    # Its own `close` would first wait for what never resolves.
    producer._unregister_cleanup()
    producer._closed = True
    if producer._metrics:
        producer._metrics.close()


class TopicPublisher:
    """Implements `consumers.relay.Publisher`: one topic, and how it is widened."""

    def __init__(self, producing: Producing, topic: str, widen: Callable[[str, int], bool]) -> None:
        self._producing, self._topic, self._widen = producing, topic, widen

    @property
    def rebuilds(self) -> int:
        return self._producing.rebuilds

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """As the port says."""
        self._producing.send(self._topic, messages)

    def widen(self, partitions: int) -> None:
        """As the port says."""
        if self._widen(self._topic, partitions):
            self._producing.close()  # it does not know of the new ones yet

"""The records topic, for the publisher and for caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from mnemolog.consumers.records import Message
from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.kafka.connecting import check_reachable, unavailable
from mnemolog.infra.kafka.consuming import ALONE, to_the_end
from mnemolog.infra.kafka.producing import Producing

if TYPE_CHECKING:
    from kafka import KafkaConsumer


class KafkaRecords:
    """Implements `consumers.records.RecordsTopic`."""

    def __init__(self, connection: Mapping[str, Any], topic: str, producing: Producing) -> None:
        self._topic, self._producing = topic, producing
        self._following = Following(connection, topic)

    @property
    def rebuilds(self) -> int:
        return self._producing.rebuilds

    def stored(self) -> Iterator[Message]:
        """As the port says."""
        self._following.restart()
        return self._following.to_the_end()

    def news(self) -> Iterator[Message]:
        """As the port says."""
        return self._following(0.0)

    def partitions(self) -> int:
        """As the port says."""
        return self._producing.partitions(self._topic)

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """As the port says."""
        self._producing.send(self._topic, messages)

    def close(self) -> None:
        self._following.close()


class Following:
    """All partitions of a topic from the beginning, and then what comes: what a `RecordsCache` reads.

    Raises StoreUnavailable while Kafka is away; the next call goes on where it was.
    """

    def __init__(self, connection: Mapping[str, Any], topic: str) -> None:
        self._connection, self._topic = dict(connection), topic
        self._consumer: KafkaConsumer | None = None
        self._next: dict[int, int] = {}

    def __call__(self, wait: float) -> Iterator[Message]:
        """What came, until for a moment nothing more does."""
        with self._typed():
            patience = wait
            while found := self._opened().poll(timeout_ms=int(patience * 1000)):
                yield from self._taken(found)
                patience = 0.1 if wait else 0.0

    def to_the_end(self) -> Iterator[Message]:
        """Everything that is there when it is called."""
        with self._typed():
            for found in to_the_end(self._opened(), self._topic):
                yield from self._taken(found)

    def restart(self) -> None:
        """From the beginning again."""
        self.close()
        self._next.clear()

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _taken(self, found: Mapping[Any, Any]) -> Iterator[Message]:
        for part, messages in found.items():
            for message in messages:
                yield part.partition, message.key or b"", message.value
                self._next[part.partition] = message.offset + 1

    @contextmanager
    def _typed(self) -> Iterator[None]:
        from kafka.errors import KafkaError

        try:
            yield
        except KafkaError as error:
            self.close()
            raise unavailable(f"{self._topic} cannot be read", error) from error

    def _opened(self) -> KafkaConsumer:
        if self._consumer is None:
            check_reachable(self._connection)
            from kafka import KafkaConsumer, TopicPartition

            consumer = self._consumer = KafkaConsumer(**self._connection, **ALONE)
            numbers = consumer.partitions_for_topic(self._topic)
            if not numbers:
                self.close()
                raise StoreUnavailable(f"there is no topic {self._topic}: run `mnemolog topics create`")
            parts = {number: TopicPartition(self._topic, number) for number in sorted(numbers)}
            consumer.assign(list(parts.values()))
            consumer.seek_to_beginning(*parts.values())
            for number, offset in self._next.items():
                consumer.seek(parts[number], offset)
        return self._consumer

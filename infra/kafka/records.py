"""The records topic, for the publisher and for caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.kafka.connecting import check_reachable, unavailable
from mnemolog.infra.kafka.consuming import read_all
from mnemolog.infra.kafka.producing import Producing

if TYPE_CHECKING:
    from kafka import KafkaConsumer


class KafkaRecords:
    """Implements `consumers.records.RecordsTopic`."""

    def __init__(self, connection: Mapping[str, Any], topic: str, producing: Producing) -> None:
        self._connection, self._topic, self._producing = connection, topic, producing

    @property
    def rebuilds(self) -> int:
        return self._producing.rebuilds

    def stored(self) -> Iterator[tuple[int, bytes, bytes | None]]:
        """As the port says."""
        for message in read_all(self._connection, self._topic):
            if message.key is not None:
                yield message.partition, message.key, message.value

    def partitions(self) -> int:
        """As the port says."""
        return self._producing.partitions(self._topic)

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """As the port says."""
        self._producing.send(self._topic, messages)


class Following:
    """All partitions of a topic from the beginning, and then what comes: what a `RecordsCache` reads.

    Raises StoreUnavailable while Kafka is away; the next call goes on where it was.
    """

    def __init__(self, connection: Mapping[str, Any], topic: str) -> None:
        self._connection, self._topic = dict(connection), topic
        self._consumer: KafkaConsumer | None = None
        self._next: dict[int, int] = {}

    def __call__(self, wait: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Key and value of what came, until for a moment nothing more does."""
        from kafka.errors import KafkaError

        try:
            consumer, patience = self._opened(), wait
            while found := consumer.poll(timeout_ms=int(patience * 1000)):
                for part, messages in found.items():
                    for message in messages:
                        yield message.key or b"", message.value
                        self._next[part.partition] = message.offset + 1
                patience = 0.1
        except KafkaError as error:
            self.close()
            raise unavailable(f"{self._topic} cannot be read", error) from error

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> KafkaConsumer:
        if self._consumer is None:
            check_reachable(self._connection)
            from kafka import KafkaConsumer, TopicPartition

            consumer = self._consumer = KafkaConsumer(**self._connection, group_id=None)
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

"""Reading topics: as a member of a group, and once over from the beginning."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mnemolog.consumers.ingest import Incoming
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.kafka.connecting import check_reachable, unavailable

if TYPE_CHECKING:
    from kafka import KafkaConsumer

SESSION_SECONDS: Final = 10.0
"""After so long another member takes over the partitions of one that was killed."""
_CALL_MS: Final = 10_000
_GATHERED_BYTES: Final = 65_536
_GATHER_MS: Final = 150
READ_SECONDS: Final = 30.0
"""How long a topic that is read over may give nothing."""
ALONE: Final = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "group_id": None}
"""The options of a consumer that is in no group."""


class GroupSource:
    """Implements `consumers.ingest.Source`. After an error the consumer is made anew.

    lag: messages of its partitions that were not read yet; rebalances: how often partitions were dealt out.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        topic: str,
        group: str,
        *,
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        self._connection, self._topic, self._group = dict(connection), topic, group
        self._session_ms = int(session_seconds * 1000)
        self._consumer: KafkaConsumer | None = None
        self._next: dict[int, int] = {}
        self.rebalances = self.lag = 0

    @property
    def is_member(self) -> bool:
        """Whether it has joined; it may still have no partition."""
        return self._consumer is not None

    def poll(self, wait: float, limit: int) -> Sequence[Incoming]:
        """As the port says."""
        with self._typed("cannot be read"):
            found = self._opened().poll(timeout_ms=int(wait * 1000), max_records=limit)
        messages = [
            Incoming(one.topic, one.partition, one.offset, one.timestamp, one.value or b"")
            for each in found.values()
            for one in each
        ]
        self._measure(messages)
        return messages

    def _measure(self, messages: Sequence[Incoming]) -> None:
        """As the client knows it from the last answers; what was never read of a partition is not counted."""
        consumer = self._consumer
        assert consumer is not None
        self._next |= {message.partition: message.offset + 1 for message in messages}
        ends = {part.partition: consumer.highwater(part) for part in consumer.assignment()}
        self._next = {part: at for part, at in self._next.items() if part in ends}
        self.lag = sum(max(0, (ends[part] or 0) - at) for part, at in self._next.items())

    def commit(self, done: Mapping[int, int]) -> None:
        """As the port says."""
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        offsets = {
            TopicPartition(self._topic, part): OffsetAndMetadata(at, "", -1) for part, at in done.items()
        }
        with self._typed("offsets cannot be committed"):
            self._opened().commit(offsets, timeout_ms=_CALL_MS)

    def close(self) -> None:
        """Leave the group, so that others need not wait for the session to end."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(Exception):
                consumer.close(autocommit=False, timeout_ms=_CALL_MS)

    def _opened(self) -> KafkaConsumer:
        if self._consumer is None:
            check_reachable(self._connection)
            from kafka import KafkaConsumer

            consumer = self._consumer = KafkaConsumer(
                **self._connection,
                group_id=self._group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=self._session_ms,
                heartbeat_interval_ms=self._session_ms // 3,
                # The broker gathers, so that few messages a second are not as many small batches.
                fetch_min_bytes=_GATHERED_BYTES,
                fetch_max_wait_ms=_GATHER_MS,
                # How soon partitions that were added are seen.
                metadata_max_age_ms=30_000,
            )
            # One that joins before it knows of the topic is given no partition.
            if not consumer.partitions_for_topic(self._topic):
                self.close()
                raise StoreUnavailable(f"there is no topic {self._topic}: run `mnemolog topics create`")
            consumer.subscribe([self._topic], listener=_listener(self))
        return self._consumer

    @contextmanager
    def _typed(self, what: str) -> Iterator[None]:
        from kafka.errors import KafkaError

        try:
            yield
        except KafkaError as error:
            self.close()
            raise unavailable(f"{self._topic} {what}", error) from error


def _listener(source: GroupSource) -> Any:
    from kafka import ConsumerRebalanceListener

    class Counting(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> None:
            source.rebalances += 1

    return Counting()


def to_the_end(consumer: KafkaConsumer, topic: str) -> Iterator[Mapping[Any, Sequence[Any]]]:
    """What its partitions hold now, as it comes. Raises StoreUnavailable where for long nothing does."""
    ends = consumer.end_offsets(list(consumer.assignment()))
    deadline = time.monotonic() + READ_SECONDS
    while any(consumer.position(part) < end for part, end in ends.items()):
        found = consumer.poll(timeout_ms=200)
        if found:
            deadline = time.monotonic() + READ_SECONDS
        elif time.monotonic() > deadline:
            raise unavailable(f"{topic} cannot be read", TimeoutError())
        yield found


def read_all(connection: Mapping[str, Any], topic: str) -> Iterator[Any]:
    """Every message that the topic holds now, partition by partition in order, as kafka-python gives it.

    Raises StoreUnavailable.
    """
    check_reachable(connection)
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError

    try:
        with KafkaConsumer(**connection, **ALONE) as consumer:
            parts = [TopicPartition(topic, one) for one in sorted(consumer.partitions_for_topic(topic) or ())]
            consumer.assign(parts)
            for found in to_the_end(consumer, topic):
                for messages in found.values():
                    yield from messages
    except KafkaError as error:
        raise unavailable(f"{topic} cannot be read", error) from error

"""The topics of a memory: made, widened, and looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mnemolog.consumers.messages import Topics
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.kafka.connecting import check_reachable, unavailable
from mnemolog.infra.kafka.consuming import ALONE

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_DAY: Final = 24 * 3600 * 1000
_TIMEOUT_MS: Final = 15_000

CONFIGS: Final[Mapping[str, Mapping[str, str]]] = {
    "events": {"retention.ms": str(7 * _DAY)},
    # Segments end early, as what was replaced stays on disk while its segment is written to.
    "records": {
        "cleanup.policy": "compact",
        "segment.ms": "60000",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "120000",
        "delete.retention.ms": str(_DAY),
    },
    # Only closed segments are deleted, and what is in them may be plain.
    "ingest": {"retention.ms": str(_DAY), "segment.ms": str(_DAY // 24)},
    "dead_letters": {
        "cleanup.policy": "compact,delete",
        "retention.ms": str(30 * _DAY),
        "segment.ms": "600000",
        # A letter is larger than its message.
        "max.message.bytes": str(2 * 1024 * 1024),
    },
    "log": {"cleanup.policy": "compact"},
}
"""What each topic is made with. Change it on the broker as you like: it is not set again."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """One topic as the broker has it; no partitions where it is not there. messages: about how many it holds."""

    name: str
    partitions: int
    messages: int = 0


class TopicAdmin:
    """Makes and looks at topics. A connection is opened per call: it is rarely needed."""

    def __init__(self, connection: Mapping[str, Any], topics: Topics, *, replication: int = -1) -> None:
        self._connection, self.topics, self._replication = dict(connection), topics, replication

    def create(
        self, partitions: int, ingest_partitions: int, configs: Mapping[str, Mapping[str, str]] = CONFIGS
    ) -> list[str]:
        """Make the topics that are not there, and widen those of the events; which were made.

        Raises StoreUnavailable where Kafka is away or refuses.
        """
        counts = {"events": partitions, "records": partitions, "ingest": ingest_partitions}
        counts |= {"dead_letters": 1, "log": 1}
        with self._admin() as admin:
            there = self._counts(admin)
            wanted = {
                getattr(self.topics, name): {
                    "num_partitions": count,
                    "replication_factor": self._replication,
                    "configs": dict(configs[name]),
                }
                for name, count in counts.items()
                if getattr(self.topics, name) not in there
            }
            if wanted:
                self._make(admin, wanted)
            if there.get(self.topics.events, partitions) < partitions:
                self._grow(admin, self.topics.events, partitions)
        return list(wanted)

    def widen(self, topic: str, partitions: int) -> bool:
        """Let a topic have at least so many partitions; whether it had fewer. Raises StoreUnavailable."""
        with self._admin() as admin:
            there = self._counts(admin).get(topic)
            if there is None:
                raise StoreUnavailable(f"there is no topic {topic}: run `mnemolog topics create`")
            if there < partitions:
                self._grow(admin, topic, partitions)
            return there < partitions

    def segment_seconds(self, topic: str) -> float:
        """How long the topic keeps a segment open, as the broker has it. Raises StoreUnavailable."""
        from kafka.admin import ConfigResource, ConfigResourceType

        with self._admin() as admin:
            asked = ConfigResource(ConfigResourceType.TOPIC, topic)
            found = admin.describe_configs([asked], config_filter="all")["topic"][topic]
        return int(found["segment.ms"]["value"]) / 1000

    def status(self) -> list[TopicState]:
        """The topics of this memory as they are. Raises StoreUnavailable."""
        with self._admin() as admin:
            counts = self._counts(admin)
        sizes = self._sizes([name for name in self.names if name in counts])
        return [TopicState(name, counts.get(name, 0), sizes.get(name, 0)) for name in self.names]

    @property
    def names(self) -> Sequence[str]:
        topics = self.topics
        return (topics.ingest, topics.dead_letters, topics.events, topics.records, topics.log)

    def _counts(self, admin: KafkaAdminClient) -> dict[str, int]:
        known = set(admin.list_topics()) & set(self.names)
        if not known:
            return {}
        return {found["name"]: len(found["partitions"]) for found in admin.describe_topics(sorted(known))}

    def _make(self, admin: KafkaAdminClient, wanted: Mapping[str, Any]) -> None:
        from kafka.errors import TopicAlreadyExistsError

        for name, options in wanted.items():
            try:
                admin.create_topics({name: options}, timeout_ms=_TIMEOUT_MS)
            except TopicAlreadyExistsError:  # another process was quicker
                continue
        admin.wait_for_topics(list(wanted), timeout_ms=_TIMEOUT_MS)

    def _grow(self, admin: KafkaAdminClient, topic: str, partitions: int) -> None:
        from kafka.errors import InvalidPartitionsError

        try:
            admin.create_partitions({topic: partitions}, timeout_ms=_TIMEOUT_MS)
        except InvalidPartitionsError:  # another process was quicker
            if self._counts(admin)[topic] < partitions:
                raise
        admin.wait_for_topics([topic], timeout_ms=_TIMEOUT_MS)

    def _sizes(self, names: Sequence[str]) -> dict[str, int]:
        from kafka import KafkaConsumer, TopicPartition

        with _typed(), KafkaConsumer(**self._connection, **ALONE) as consumer:
            sizes = {}
            for name in names:
                parts = [TopicPartition(name, one) for one in consumer.partitions_for_topic(name) or ()]
                first, last = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
                sizes[name] = sum(last[part] - first[part] for part in parts)
            return sizes

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        check_reachable(self._connection)
        from kafka import KafkaAdminClient

        with _typed():
            admin = KafkaAdminClient(**self._connection)
            try:
                yield admin
            finally:
                admin.close()


@contextmanager
def _typed() -> Iterator[None]:
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as error:
        raise unavailable("topics cannot be looked at or made", error) from error

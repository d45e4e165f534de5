"""The role `ingest`: takes what runtimes send into the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event

from mnemolog.consumers.importing import Entry
from mnemolog.consumers.ingest import Incoming, Ingest, LogNames
from mnemolog.domain.principal import Principal, Role
from mnemolog.domain.scope import ANY, Scope
from mnemolog.infra.importers.topic import read_message
from mnemolog.infra.kafka.consuming import GroupSource
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.roles import metrics
from mnemolog.infra.roles.kafka import OnKafka, ingest_keys, writing_memory
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings


class IngestRole:
    """Implements `infra.serving.Role`. Several may run: they share the partitions."""

    name = "ingest"

    def __init__(self, ingest: Ingest, source: GroupSource) -> None:
        self._ingest, self._source = ingest, source

    def run(self, stop: Event) -> None:
        self._ingest.run(stop)

    def ready(self) -> bool:
        return self.trouble() is None and self._source.is_member

    def trouble(self) -> str | None:
        return self._ingest.supervisor.now

    def metrics(self) -> Iterator[Metric]:
        counters = self._ingest.counters
        yield Metric("mnemolog_ingest_lag", "Messages of its partitions not read yet.", self._source.lag)
        rows = (
            ("messages", "Messages that were read and dealt with.", counters.messages),
            ("appended", "Events that were new.", counters.appended),
            ("redelivered", "Messages whose event was in the log already.", counters.redelivered),
            ("dead_letters", "Messages that could not be taken.", counters.dead),
            ("erased", "Messages dropped since what they belong to was erased.", counters.erased),
            ("retries", "Batches that were tried again.", counters.retries),
            ("rebalances", "How often partitions were shared out anew.", self._source.rebalances),
        )
        yield from metrics.counters("mnemolog_ingest", rows)


@contextmanager
def opened(settings: Settings) -> Iterator[IngestRole]:
    """Open the memory of the settings, and make the topics that are not there."""
    with writing_memory(settings, writer(settings)) as memory:
        kafka = OnKafka.of(memory)
        kafka.create_topics()
        source = GroupSource(kafka.connection, kafka.topics.ingest, kafka.topics.ingest)
        with kafka.letters() as letters, closing(source):
            understand = understanding(ingest_keys(settings))
            ingest = Ingest(source, understand, memory, letters, names=lambda: LogNames(memory._writer))
            yield IngestRole(ingest, source)


def writer(settings: Settings) -> Principal:
    """As whom it writes. Kafka says who may send; the role says how far that is trusted."""
    return Principal("ingest", Role(settings.ingest_role), scopes=(Scope(ANY),))


def understanding(keys: IngestKeys) -> Callable[[Incoming, int], Entry]:
    """Opens and reads a message. One without a key is known by its place, its time and its content."""

    def understand(message: Incoming, number: int) -> Entry:
        return read_message(keys.open(message.value), number, f"{message.id}/{message.at}")

    return understand

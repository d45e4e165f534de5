"""The role `records`: keeps the records topic as the curated view is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import TYPE_CHECKING

from mnemolog.consumers.records import RecordsPublisher
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.records import KafkaRecords
from mnemolog.infra.roles import metrics
from mnemolog.infra.roles.kafka import OnKafka, writing_memory
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings
from mnemolog.projections.current import CurrentRecords

if TYPE_CHECKING:
    from mnemolog.infra.compose import Store

MARGIN_SECONDS = 1.0
"""A segment is closed by the first message after its time, so the filler comes a little later."""


class RecordsRole:
    """Implements `infra.serving.Role`. Another one may run: they set each other right."""

    name = "records"

    def __init__(self, publisher: RecordsPublisher, producing: Producing) -> None:
        self._publisher, self._producing = publisher, producing

    def run(self, stop: Event) -> None:
        self._publisher.run(stop)

    def ready(self) -> bool:
        return self.trouble() is None

    def trouble(self) -> str | None:
        return self._publisher.supervisor.now

    def metrics(self) -> Iterator[Metric]:
        publisher = self._publisher
        rows = (
            ("sent", "Records that are new, or were changed.", publisher.sent),
            ("tombstones", "Records that are no more.", publisher.tombstones),
            ("fillers", "Messages that let the cleaner run.", publisher.fillers),
        )
        yield from metrics.counters("mnemolog_records", rows)
        yield metrics.rebuilds(self._producing.rebuilds)


@contextmanager
def opened(settings: Settings) -> Iterator[RecordsRole]:
    """Open the memory of the settings, and make the topics that are not there."""
    with writing_memory(settings) as memory:
        kafka = OnKafka.of(memory)
        kafka.create_topics()
        segment = kafka.admin.segment_seconds(kafka.topics.records)
        producing = Producing(kafka.connection)
        topic = KafkaRecords(kafka.connection, kafka.topics.records, producing)
        with closing(producing), closing(topic):
            yield RecordsRole(publisher(memory._store, topic, segment), producing)


def publisher(store: Store, topic: KafkaRecords, segment_seconds: float) -> RecordsPublisher:
    """What keeps the topic as the store's view is."""
    view = CurrentRecords(
        store.views, store.curated, store.clock, lambda: store.policy.gate, advance=lambda: advance(store)
    )
    segment = segment_seconds + MARGIN_SECONDS
    return RecordsPublisher(view, store.log, store.vault, topic, segment_seconds=segment)


def advance(store: Store) -> None:
    """Where no workers fold, the view may have nobody else."""
    if not store.settings.workers:
        store.look_around()
        store.runner.catch_up(store.curated.name)

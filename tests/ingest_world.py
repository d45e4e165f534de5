"""A memory on a broker, and an ingest of its topic that is stepped by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from face_world import U1, open_memory
from kafka_world import Kafka
from mnemolog import Memory, Scope
from mnemolog.consumers.ingest import Ingest, LogNames
from mnemolog.infra.kafka.consuming import GroupSource
from mnemolog.infra.kafka.letters import Letters
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.roles.ingest import understanding, writer
from mnemolog.kafka import IngestProducer

WHEN = datetime(2026, 3, 9, 9, 14, tzinfo=UTC)


class World:
    """A memory, and an ingest that is stepped by hand."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka = kafka
        self.memory = open_memory(folder / "data")
        kafka.admin().create(2, 2)
        self.keys = IngestKeys.load(folder / "ingest.key", create=True)
        self.producing = Producing(kafka.connection, largest=1_500_000)
        self.letters = Letters(
            kafka.connection,
            kafka.topics,
            self.producing,
            self.memory._store.vault,
            self.keys,
            lambda: WHEN,
        )
        self.sources: list[GroupSource] = []

    def source(self, group: str = "g") -> GroupSource:
        self.sources.append(
            GroupSource(self.kafka.connection, self.kafka.topics.ingest, self.kafka.prefix + group)
        )
        return self.sources[-1]

    def ingest(self, source: Any, sink: Any = None) -> Ingest:
        memory = self.memory.acting_as(writer(self.kafka.settings()))
        names = partial(LogNames, memory._writer)
        return Ingest(source, understanding(self.keys), sink or memory, self.letters, names=names)

    def take_in(self, group: str = "g", batch: int = 500) -> Ingest:
        """Everything that the topic holds for this group."""
        source = self.source(group)
        ingest = self.ingest(source)
        while messages := source.poll(5 if not ingest.counters.messages else 0.5, batch):
            ingest.take(messages)
        source.close()
        return ingest

    def producer(self, **options: Any) -> IngestProducer:
        return IngestProducer(
            self.kafka.connection["bootstrap_servers"][0], prefix=self.kafka.prefix, **options
        )

    def send(self, *events: Mapping[str, Any] | bytes) -> None:
        raw = [event if isinstance(event, bytes) else orjson.dumps(event) for event in events]
        self.kafka.send(self.kafka.topics.ingest, raw, partition=0)

    def dead_bytes(self) -> bytes:
        """What the broker has on disk of the dead letters."""
        return self.kafka.segments(self.kafka.topics.dead_letters)

    def close(self) -> None:
        for source in self.sources:
            source.close()
        self.producing.close()
        self.memory.close()


def turn(text: str, key: str | None = None, scope: Scope = U1, **fields: Any) -> dict[str, Any]:
    return {
        "type": "turn",
        "scope": dict(scope.present()),
        "role": "user",
        "content": text,
        "occurred_at": WHEN.isoformat(),
        "key": key,
        **fields,
    }


def said(memory: Memory) -> list[str]:
    return [event.event.content for event in memory.log() if event.envelope.topic == "TurnRecorded"]  # type: ignore[union-attr]


def stated(kind: str, key: str, **fields: Any) -> dict[str, Any]:
    """A message about memory."""
    levels = dict(U1.present())
    return {"type": kind, "scope": levels, "key": key, "occurred_at": WHEN.isoformat(), **fields}

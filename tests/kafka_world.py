"""One Kafka broker for the whole run, and topics of its own for each test."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any

from mnemolog.consumers.messages import Topics
from mnemolog.infra.kafka.cluster import HOW_TO_INSTALL, Broker, is_installed
from mnemolog.infra.kafka.connecting import connection
from mnemolog.infra.kafka.consuming import read_all
from mnemolog.infra.kafka.topics import TopicAdmin
from mnemolog.infra.settings import Settings
from support import require, require_module

_NUMBERS = count(1)


@contextmanager
def running_broker() -> Iterator[Broker]:
    """A broker that is stopped and removed at the end; skips, or fails, where none can run."""
    require("Kafka", HOW_TO_INSTALL, present=is_installed())
    require_module("kafka", "pip install 'mnemolog[kafka]'")
    with tempfile.TemporaryDirectory(prefix="mnemolog-") as folder:
        broker = Broker(Path(folder) / "broker")
        broker.up()
        try:
            yield broker
        finally:
            broker.remove()


@dataclass
class Kafka:
    """What a test has of the broker: an address, and a prefix that no other test uses."""

    broker: Broker
    prefix: str

    @classmethod
    def of(cls, broker: Broker) -> Kafka:
        return cls(broker, f"t{next(_NUMBERS)}-{token_hex(3)}")

    @property
    def environment(self) -> dict[str, str]:
        """For processes, and for `Settings.load`."""
        address = self.broker.up().address
        assert address is not None
        return {"MNEMOLOG_KAFKA": address, "MNEMOLOG_KAFKA_PREFIX": self.prefix}

    def settings(self, **values: Any) -> Settings:
        address = self.broker.up().address
        return Settings.load(**{"kafka": address, "kafka_prefix": self.prefix, "durability": "os", **values})

    @property
    def topics(self) -> Topics:
        return Topics(self.prefix)

    @property
    def connection(self) -> dict[str, Any]:
        return connection(self.settings())

    def admin(self) -> TopicAdmin:
        return TopicAdmin(self.connection, self.topics)

    def delete(self, topic: str) -> None:
        """And wait until it is gone."""
        from kafka import KafkaAdminClient

        admin = KafkaAdminClient(**self.connection)
        try:
            admin.delete_topics([topic])
            until(lambda: topic not in admin.list_topics(), f"{topic} is gone")
        finally:
            admin.close()

    def read(self, topic: str) -> dict[int, list[Any]]:
        """Every message of a topic, by partition, in order."""
        states = {state.name: state for state in self.admin().status()}
        found: dict[int, list[Any]] = {one: [] for one in range(states[topic].partitions)}
        for message in read_all(self.connection, topic):
            found[message.partition].append(message)
        return found

    def segments(self, topic: str) -> bytes:
        """What the broker has on disk of a topic."""
        folders = self.broker.data.glob(f"{topic}-*")
        return b"".join(file.read_bytes() for folder in folders for file in folder.glob("*.log"))

    def send(self, topic: str, values: Sequence[bytes], **options: Any) -> None:
        """As any client would."""
        from kafka import KafkaProducer

        producer = KafkaProducer(**self.connection)
        try:
            for future in [producer.send(topic, value, **options) for value in values]:
                future.get(20)
        finally:
            producer.close(timeout=5)


def until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        time.sleep(0.02)

"""The role `relay`: sends every event of the log to the events topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from mnemolog.consumers.relay import Relay
from mnemolog.infra.kafka.producing import Producing, TopicPublisher
from mnemolog.infra.places import opened_places
from mnemolog.infra.roles import metrics
from mnemolog.infra.roles.kafka import OnKafka, on_kafka
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings

SAVE_SECONDS: Final = 0.1
"""Workers follow the place over what is not for them, so it is kept often."""


class RelayRole:
    """Implements `infra.serving.Role`. Another one may run: it stands by."""

    name = "relay"

    def __init__(self, kafka: OnKafka, relay: Relay, producing: Producing) -> None:
        self._kafka, self._relay, self._producing = kafka, relay, producing

    def run(self, stop: Event) -> None:
        self._relay.run(stop)

    def ready(self) -> bool:
        return self.trouble() is None

    def trouble(self) -> str | None:
        return self._relay.supervisor.now

    def metrics(self) -> Iterator[Metric]:
        relay = self._relay
        yield Metric("mnemolog_relay_position", "How far the log is in the topic.", relay.position)
        yield Metric("mnemolog_relay_sent", "Messages sent.", relay.sent, kind="counter")
        yield Metric("mnemolog_relay_standing_by", "1 while another relay works.", relay.stands_by)
        yield metrics.rebuilds(self._producing.rebuilds)
        head = self._kafka.log.head()
        yield metrics.log_head(head)
        yield Metric("mnemolog_relay_lag", "Events that are not in the topic yet.", head - relay.position)


@contextmanager
def opened(settings: Settings) -> Iterator[RelayRole]:
    """Open the log of the settings, and make the topics that are not there."""
    with on_kafka(settings) as kafka, opened_places(settings) as places:
        kafka.create_topics()
        producing = Producing(kafka.connection)
        publisher = TopicPublisher(producing, kafka.topics.events, kafka.admin.widen)
        try:
            relay = Relay(kafka.log, publisher, places, save_seconds=SAVE_SECONDS)
            yield RelayRole(kafka, relay, producing)
        finally:
            producing.close()

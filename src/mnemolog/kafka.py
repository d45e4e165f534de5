"""What a runtime needs to send events by Kafka. `pip install 'mnemolog[kafka]'`."""

from mnemolog.infra.kafka.sealing import IngestKey
from mnemolog.infra.kafka.sending import IngestProducer

__all__ = ["IngestKey", "IngestProducer"]

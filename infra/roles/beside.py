"""What roles keep beside a log: how far its readers are, and the keys of sealed messages. Needs no Kafka."""

from __future__ import annotations

from pathlib import Path

from mnemolog.infra.kafka.sealing import FILE as KEY_FILE
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.places import FILE as PLACES_FILE
from mnemolog.infra.places import opened_places
from mnemolog.infra.settings import Settings


def ingest_key_file(settings: Settings) -> Path:
    return settings.ingest_key_file or settings.data / KEY_FILE


def carry(source: Settings, target: Settings) -> None:
    """Take all of it to another store, whatever is there. Raises StoreUnavailable, KeysMissing."""
    keys, copy = ingest_key_file(source), ingest_key_file(target)
    if keys.exists() and keys.resolve() != copy.resolve():
        IngestKeys.load(keys).saved(copy)
    if source.database_url is None and not (source.data / PLACES_FILE).exists():
        return
    with opened_places(source) as given, opened_places(target) as taken:
        for name, place in given.all().items():
            taken.save(name, taken.load(name), place)

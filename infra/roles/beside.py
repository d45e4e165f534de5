"""What roles keep beside a log: how far its readers are, and the keys of sealed messages. Needs no Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mnemolog.infra.kafka.sealing import FILE as KEY_FILE
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.places import FILE as PLACES_FILE
from mnemolog.infra.places import DatabasePlaces
from mnemolog.infra.settings import Settings


def ingest_key_file(settings: Settings) -> Path:
    return settings.ingest_key_file or settings.data / KEY_FILE


@contextmanager
def opened_places(settings: Settings) -> Iterator[DatabasePlaces]:
    """Where readers of the log keep how far they are: beside the log."""
    url = settings.database_url
    if url is None:
        places = DatabasePlaces(settings.data / PLACES_FILE)
    else:
        connect = _connecting(url.get_secret_value())
        places = DatabasePlaces(connect=connect, schema=settings.database_schema)
    try:
        yield places
    finally:
        places.close()


def _connecting(url: str) -> Callable[[], Any]:
    import psycopg

    from mnemolog.infra.postgres.connecting import parameters

    options = parameters(url)
    return lambda: psycopg.connect(**options)


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

"""A message of the ingest topic: one object of the event file."""

from __future__ import annotations

from mnemolog.consumers.importing import Entry
from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.importers.jsonl import entry_of
from mnemolog.infra.importers.sources import parse


def read_message(raw: bytes, number: int, apart: str) -> Entry:
    """What it says; `apart` makes a key for one without a key. Raises InvalidInput for what is no JSON in UTF-8."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the message is not UTF-8") from None
    try:
        value = parse(text)
    except InvalidInput:
        raise InvalidInput("the message is not JSON, or nested too deeply") from None
    return entry_of(value, number, apart)

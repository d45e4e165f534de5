"""What a message of the events topic holds. docs/kafka.md has it for other languages.

A message is 24 bytes, big-endian, and the event as the log stores it: "MNE1", the epoch (4 bytes), the event's
position (8) and the position of the message before it in this partition (8; 0 for the first). A state that no message
can hold is left out: whoever needs it reads it from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from mnemolog.domain.errors import CorruptStore

MAX_STATE: Final = 900_000
"""Bytes of a stored event up to which a message holds it; brokers take about a megabyte."""

_HEADER: Final = struct.Struct(">4sIQQ")
_MAGIC: Final = b"MNE1"


def framed(magic: bytes, head: Mapping[str, Any], body: bytes) -> bytes:
    """The mark, the length of the head (4 bytes, big-endian), the head as JSON, the body."""
    raw = orjson.dumps(head)
    return b"".join((magic, len(raw).to_bytes(4, "big"), raw, body))


def unframed(magic: bytes, value: bytes) -> tuple[Mapping[str, Any], bytes]:
    """Head and body. Raises CorruptStore for what is no such message."""
    start = len(magic) + 4
    end = start + int.from_bytes(value[len(magic) : start], "big")
    try:
        if value.startswith(magic) and isinstance(head := orjson.loads(value[start:end]), dict):
            return head, value[end:]
    except ValueError:
        pass
    raise CorruptStore("not a message of this topic: something else writes to it")


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of the topics of one memory."""

    prefix: str = "mnemolog"

    @property
    def events(self) -> str:
        """Every event as the log stores it, keyed by owner; the relay alone writes it."""
        return f"{self.prefix}.events"

    @property
    def ingest(self) -> str:
        """What runtimes send."""
        return f"{self.prefix}.ingest"

    @property
    def dead_letters(self) -> str:
        """What ingest could not take."""
        return f"{self.prefix}.ingest.dlq"

    @property
    def log(self) -> str:
        """Which log they belong to: its first message says so."""
        return f"{self.prefix}.log"

    @property
    def records(self) -> str:
        """The current record per id, compacted."""
        return f"{self.prefix}.records"


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One event in one partition. previous: the position before it there, 0 for none.

    epoch: number of the `Epoch` that chose the partition; state: as stored, None where it was too large.
    A reader whose checkpoint is c folds it when previous <= c < position, skips it when position <= c, and otherwise
    has missed something, which it reads from the log.
    """

    epoch: int
    position: int
    previous: int
    state: bytes | None

    def encode(self) -> bytes:
        return _HEADER.pack(_MAGIC, self.epoch, self.position, self.previous) + (self.state or b"")

    @classmethod
    def decode(cls, value: bytes) -> EventMessage:
        """Raises CorruptStore for what is no such message."""
        if len(value) < _HEADER.size or not value.startswith(_MAGIC):
            raise CorruptStore("not a message of the events topic: something else writes to it")
        _, epoch, position, previous = _HEADER.unpack_from(value)
        return cls(epoch, position, previous, value[_HEADER.size :] or None)

"""Large texts, sealed, one per event, in chunks of characters so that a range costs only its chunks.

A blob belongs to one event and is never shared: equal references would tell that two contents are equal, and
erasing would have to count references.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Protocol

from mnemolog.domain.errors import CorruptStore, InvalidInput, NotFound

CHUNK_CHARS: Final = 65_536
_MAGIC: Final = b"MNB1"
_NAME: Final = re.compile(r"[0-9a-f]{32}")
_FIRST_READ: Final = 4096
"""Bytes that hold the header of a text of up to 67 million characters."""
_LARGEST_CHUNK: Final = 8 * CHUNK_CHARS
"""Bytes that no sealed chunk exceeds, by far."""


class ChunkSealer(Protocol):
    """What a blob needs of the vault."""

    def next_leaf(self) -> int: ...

    def seal_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, data: bytes, aad: bytes
    ) -> bytes: ...

    def open_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, ciphertext: bytes, aad: bytes
    ) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """What is in a blob store: bytes, and seconds since it was written."""

    name: str
    size: int
    age: float


class BlobStore(Protocol):
    """Where blobs are: bytes by name, written once, whole. Every method may raise StoreUnavailable."""

    def put(self, name: str, parts: Sequence[bytes]) -> None:
        """Keep the parts as one blob; durable when it returns."""

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """`length` bytes (default: all) from `start` on, as far as the blob goes. Raises NotFound."""

    def delete(self, name: str) -> bool:
        """Remove it, with every older version that the store keeps; True when there was one."""

    def exists(self, name: str) -> bool: ...

    def stored(self) -> Iterator[Stored]:
        """Everything that is there, what was half written too."""


class SealedBlobs:
    """Texts in a store, sealed, by the id of their event. Written durably before the event that refers to them.

    spared_seconds: what was written so lately is no orphan yet, where others write into the store, too.
    """

    def __init__(self, store: BlobStore, sealer: ChunkSealer, *, spared_seconds: float = 0) -> None:
        self._store, self._sealer, self._spared_seconds = store, sealer, spared_seconds
        self.shared = spared_seconds > 0
        """Whether others write into the store, too; it may be large then."""

    def write(self, event_id: str, subjects: Sequence[str], text: str) -> dict[str, Any]:
        """Seal and store a text; returns the reference for the event's clear `blob` field (numbers and ids)."""
        leaf = self._sealer.next_leaf()
        pieces = [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]
        sealed = [
            self._sealer.seal_chunk(subjects, leaf, index, len(pieces), piece.encode(), event_id.encode())
            for index, piece in enumerate(pieces)
        ]
        header = _MAGIC + struct.pack(f">I{len(sealed)}I", len(sealed), *map(len, sealed))
        self._store.put(_name(event_id), [header, *sealed])
        return {"leaf": leaf, "subjects": sorted(subjects), "chars": len(text), "chunks": len(pieces)}

    def read(self, event_id: str, reference: dict[str, Any], start: int, end: int) -> str | None:
        """Characters [start, end) of a text; None when its keys or its blob were destroyed.

        Raises CorruptStore when the blob is not what was written.
        """
        first, last = start // CHUNK_CHARS, max(start, end - 1) // CHUNK_CHARS
        try:
            sealed = self._chunks(event_id, reference["chunks"], first, last)
        except NotFound:
            return None
        opened = []
        for index, chunk in enumerate(sealed, first):
            data = self._sealer.open_chunk(
                reference["subjects"], reference["leaf"], index, reference["chunks"], chunk, event_id.encode()
            )
            if data is None:
                return None
            opened.append(data.decode())
        return "".join(opened)[start - first * CHUNK_CHARS : end - first * CHUNK_CHARS]

    def sealed(self, event_id: str) -> bytes:
        """A text as it is stored. Raises NotFound."""
        return self._store.read(_name(event_id))

    def carry(self, event_id: str, sealed: bytes) -> None:
        """Store what `sealed` of another store gave, durably."""
        self._store.put(_name(event_id), [sealed])

    def delete(self, event_id: str) -> bool:
        """Remove a text; True when there was one."""
        return self._store.delete(_name(event_id))

    def exists(self, event_id: str) -> bool:
        return self._store.exists(_name(event_id))

    def names(self) -> Iterator[str]:
        """Event ids of all stored texts; half-written files are not among them."""
        return (one.name for one in self._store.stored() if _NAME.fullmatch(one.name))

    def size(self) -> int:
        """Bytes of all stored texts."""
        return sum(one.size for one in self._store.stored())

    def sweep(self, keep: set[str]) -> int:
        """Remove half-written files and texts whose event is not in `keep`; returns how many."""
        gone = [
            one.name
            for one in self._store.stored()
            if one.name not in keep and one.age >= self._spared_seconds
        ]
        return sum(self._store.delete(name) for name in gone)

    def _chunks(self, event_id: str, count: int, first: int, last: int) -> list[bytes]:
        """Chunks first to last, where there are `count` of them."""
        name, begin = _name(event_id), 8 + 4 * count
        head = self._store.read(name, 0, max(begin, _FIRST_READ))
        if len(head) < begin or head[:8] != _MAGIC + struct.pack(">I", count):
            raise CorruptStore(f"the blob of event {event_id} has no valid header")
        lengths = struct.unpack_from(f">{count}I", head, 8)
        if max(lengths, default=0) > _LARGEST_CHUNK:
            raise CorruptStore(f"the blob of event {event_id} has no valid header")
        wanted = lengths[first : last + 1]
        data = self._store.read(name, begin + sum(lengths[:first]), sum(wanted))
        ends = accumulate(wanted)
        return [data[end - size : end] for end, size in zip(ends, wanted, strict=True)]


def _name(event_id: str) -> str:
    if not _NAME.fullmatch(event_id):
        raise InvalidInput("an event id is 32 hex digits")
    return event_id

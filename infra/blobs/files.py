"""Large texts as sealed files, one per event, in chunks of characters so that a range costs only its chunks.

A blob belongs to one event and is never shared: equal references would tell that two contents are equal, and
erasing would have to count references.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from mnemolog.domain.errors import CorruptStore, InvalidInput, NotFound

CHUNK_CHARS: Final = 65_536
_MAGIC: Final = b"MNB1"
_NAME: Final = re.compile(r"[0-9a-f]{32}")


class ChunkSealer(Protocol):
    """What a blob needs of the vault."""

    def next_leaf(self) -> int: ...

    def seal_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, data: bytes, aad: bytes
    ) -> bytes: ...

    def open_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, ciphertext: bytes, aad: bytes
    ) -> bytes | None: ...


class FileBlobs:
    """A folder of sealed texts, named by event id. Written durably before the event that refers to them."""

    def __init__(self, folder: Path, sealer: ChunkSealer) -> None:
        self._folder, self._sealer = folder, sealer
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, event_id: str, subjects: Sequence[str], text: str) -> dict[str, Any]:
        """Seal and store a text; returns the reference for the event's clear `blob` field (numbers and ids)."""
        leaf = self._sealer.next_leaf()
        pieces = [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]
        sealed = [
            self._sealer.seal_chunk(subjects, leaf, index, len(pieces), piece.encode(), event_id.encode())
            for index, piece in enumerate(pieces)
        ]
        self._store(event_id, sealed)
        return {"leaf": leaf, "subjects": sorted(subjects), "chars": len(text), "chunks": len(pieces)}

    def read(self, event_id: str, reference: dict[str, Any], start: int, end: int) -> str | None:
        """Characters [start, end) of a text; None when its keys or its file were destroyed.

        Raises CorruptStore when the file is not what was written.
        """
        first, last = start // CHUNK_CHARS, max(start, end - 1) // CHUNK_CHARS
        try:
            sealed = list(self._chunks(event_id, first, min(last, reference["chunks"] - 1)))
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
        try:
            return self._path(event_id).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"no blob for event {event_id}") from None

    def carry(self, event_id: str, sealed: bytes) -> None:
        """Store what `sealed` of another store gave, durably."""
        self._write(event_id, [sealed])

    def delete(self, event_id: str) -> bool:
        """Unlink a text; True when there was one."""
        path = self._path(event_id)
        if not path.exists():
            return False
        path.unlink()
        self._sync_folder()
        return True

    def exists(self, event_id: str) -> bool:
        return self._path(event_id).exists()

    def names(self) -> Iterator[str]:
        """Event ids of all stored texts; half-written files are not among them."""
        return (path.name for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def size(self) -> int:
        """Bytes of all stored texts."""
        return sum(path.stat().st_size for path in self._folder.iterdir())

    def sweep(self, keep: set[str]) -> int:
        """Unlink half-written files and texts whose event is not in `keep`; returns how many."""
        gone = [path for path in self._folder.iterdir() if path.name not in keep]
        for path in gone:
            path.unlink()
        return len(gone)

    def _path(self, event_id: str) -> Path:
        if not _NAME.fullmatch(event_id):
            raise InvalidInput("an event id is 32 hex digits")
        return self._folder / event_id

    def _store(self, event_id: str, sealed: list[bytes]) -> None:
        head = _MAGIC + struct.pack(f">I{len(sealed)}I", len(sealed), *map(len, sealed))
        self._write(event_id, [head, *sealed])

    def _write(self, event_id: str, parts: list[bytes]) -> None:
        path = self._path(event_id)
        half = path.with_suffix(".half")
        with half.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        half.rename(path)
        self._sync_folder()

    def _chunks(self, event_id: str, first: int, last: int) -> Iterator[bytes]:
        try:
            file = self._path(event_id).open("rb")
        except FileNotFoundError:
            raise NotFound(f"no blob for event {event_id}") from None
        with file:
            head = file.read(8)
            if len(head) < 8 or head[:4] != _MAGIC:
                raise CorruptStore(f"the blob of event {event_id} has no valid header")
            (count,) = struct.unpack(">I", head[4:])
            lengths = struct.unpack(f">{count}I", file.read(4 * count))
            file.seek(sum(lengths[:first]), os.SEEK_CUR)
            for index in range(first, last + 1):
                yield file.read(lengths[index])

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

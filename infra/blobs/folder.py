"""Blobs as files of one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mnemolog.domain.errors import NotFound, StoreUnavailable
from mnemolog.infra.blobs.sealed import Stored
from mnemolog.projections.private import private


class FolderStore:
    """Implements `BlobStore`: a file appears whole, or not at all. The folder is made if missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"{folder} cannot be used for blobs: {error.strerror}; choose a folder of yours"
            ) from error

    def put(self, name: str, parts: Sequence[bytes]) -> None:
        path = self._folder / name
        half = path.with_suffix(".half")
        with open(half, "wb", opener=private) as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        half.rename(path)
        self._sync_folder()

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        try:
            with (self._folder / name).open("rb") as file:
                file.seek(start)
                return file.read(length)
        except FileNotFoundError:
            raise NotFound(f"no blob for event {name}") from None

    def delete(self, name: str) -> bool:
        try:
            (self._folder / name).unlink()
        except FileNotFoundError:
            return False
        self._sync_folder()
        return True

    def exists(self, name: str) -> bool:
        return (self._folder / name).exists()

    def stored(self) -> Iterator[Stored]:
        now = time.time()
        with os.scandir(self._folder) as entries:
            for entry in entries:
                found = entry.stat()
                yield Stored(entry.name, found.st_size, now - found.st_mtime)

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""Where the vectors of a memory are: in files of its data directory, or in PostgreSQL and a Qdrant server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final

from mnemolog.infra.settings import Settings

if TYPE_CHECKING:  # they bring numpy along, which an empty store has no use for
    from mnemolog.infra.vectors import StoredVectors
    from mnemolog.projections.vectors import VectorIndex

VECTORS_FILE: Final = "vectors.db"
INDEX_FOLDER: Final = "index"


@dataclass(frozen=True, slots=True)
class VectorFolder:
    """The vectors and the index: in files of a data directory, or in servers. Neither is made before it is needed.

    leads: whether this process leads the directory.
    """

    path: Path
    settings: Settings
    leads: Callable[[], bool]

    def rows(self, *, make: bool) -> StoredVectors | None:
        file, database = self.path / VECTORS_FILE, self.settings.database
        if database is not None:
            return _database_rows(*database, file, make=make)
        if not make and not file.exists():
            return None
        from mnemolog.infra.vectors import sqlite_vectors

        return sqlite_vectors(file)

    def index(self, *, make: bool) -> VectorIndex | None:
        if self.settings.qdrant_url is not None:
            return _server_index(self.settings, make=make)
        folder = self.path / INDEX_FOLDER
        if not self._has_folder or not self.leads():
            return None
        if not make and not folder.exists():
            return None
        from mnemolog.infra.index import EdgeIndex

        return EdgeIndex(folder)

    def tidy(self) -> None:
        """Remove an index folder that is in use no more: nobody would erase in it."""
        if not self._has_folder and self.leads():
            rmtree(self.path / INDEX_FOLDER, ignore_errors=True)

    @property
    def _has_folder(self) -> bool:
        settings = self.settings
        return settings.index != "none" and settings.qdrant_url is None and not settings.workers

    def erased_elsewhere(self) -> int | None:
        folder = self.path / INDEX_FOLDER
        if self.settings.qdrant_url is not None or self.leads() or not folder.exists():
            return None
        from mnemolog.infra.index import erased_to

        return erased_to(folder)


def _database_rows(url: str, schema: str, file: Path, *, make: bool) -> StoredVectors | None:
    """The rows beside the log. file: where a release that knew no such rows kept vectors that nobody would erase."""
    from mnemolog.infra.postgres.vectors import has_vectors, postgres_vectors

    for one in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
        one.unlink(missing_ok=True)
    schema = f"{schema}_vectors"
    return postgres_vectors(url, schema) if make or has_vectors(url, schema) else None


def _server_index(settings: Settings, *, make: bool) -> VectorIndex | None:
    from mnemolog.infra.index.server import ServerIndex, connect
    from mnemolog.infra.postgres.connecting import turn

    assert settings.qdrant_url is not None
    assert settings.database is not None
    key = None if settings.qdrant_key is None else settings.qdrant_key.get_secret_value()
    url, name = settings.database[0], f"{settings.database[1]}_vectors"
    index = ServerIndex(connect(settings.qdrant_url, key), name, lambda: turn(url, f"{name}/index"))
    if make or index.space is not None:
        return index
    index.close()
    return None

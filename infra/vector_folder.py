"""Where the vectors of a memory are: in files of its data directory, or in PostgreSQL and a Qdrant server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import TYPE_CHECKING, Final

from mnemolog.domain.errors import StoreClosed
from mnemolog.infra.settings import Settings

if TYPE_CHECKING:  # they bring numpy along, which an empty store has no use for
    from mnemolog.infra.index.server import ServerIndex
    from mnemolog.infra.vectors import StoredVectors
    from mnemolog.projections.vectors import VectorIndex

LOG_FILE: Final = "log.db"
VECTORS_FILE: Final = "vectors.db"
INDEX_FOLDER: Final = "index"


class VectorFolder:
    """The vectors and the index: in files of a data directory, or in servers. Neither is made before it is needed.

    leads: whether this process leads the directory.
    """

    def __init__(self, path: Path, settings: Settings, leads: Callable[[], bool]) -> None:
        self.path, self.settings, self.leads = path, settings, leads
        self._lock, self._closed = Lock(), False
        self._server: ServerIndex | None = None

    def rows(self, *, make: bool) -> StoredVectors | None:
        file, database = self.path / VECTORS_FILE, self.settings.database
        if database is not None:
            return _database_rows(*database, make=make)
        if not make and not file.exists():
            return None
        from mnemolog.infra.vectors import sqlite_vectors

        return sqlite_vectors(file)

    @property
    def far(self) -> bool:
        """Whether to look for the rows takes a connection."""
        return self.settings.database is not None

    def index(self, *, make: bool) -> VectorIndex | None:
        if self.settings.qdrant_url is not None:
            return self._server_index(make=make)
        folder = self.path / INDEX_FOLDER
        if not self._has_folder or not self.leads():
            return None
        if not make and not folder.exists():
            return None
        from mnemolog.infra.index import EdgeIndex

        return EdgeIndex(folder)

    def tidy(self) -> None:
        """Remove files of this memory that are in use no more: nobody would erase in them.

        Where the log is in a database, but the directory has one too, the vectors are of the latter: another memory,
        which is open as that another time. They stay.
        """
        if not self.leads():
            return
        if not self._has_folder:
            rmtree(self.path / INDEX_FOLDER, ignore_errors=True)
        others = self.settings.database_url is not None and (self.path / LOG_FILE).exists()
        if self.settings.database is not None and not others:
            for end in ("", "-wal", "-shm"):
                (self.path / f"{VECTORS_FILE}{end}").unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the vector server. Idempotent."""
        with self._lock:
            self._closed = True
            if self._server is not None:
                self._server.close()

    def _server_index(self, *, make: bool) -> VectorIndex | None:
        """One for as long as this is open: a client costs much to make. It is given out only when it can be used."""
        with self._lock:
            if self._closed:
                raise StoreClosed("the vector index was closed: open the memory anew")
            index = self._server = self._server or _server_index(self.settings)
        return index if make or index.is_begun() else None

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


def _database_rows(url: str, schema: str, *, make: bool) -> StoredVectors | None:
    from mnemolog.infra.postgres.vectors import has_vectors, postgres_vectors

    schema = f"{schema}_vectors"
    return postgres_vectors(url, schema) if make or has_vectors(url, schema) else None


def _server_index(settings: Settings) -> ServerIndex:
    from mnemolog.infra.index.server import ServerIndex, connect
    from mnemolog.infra.postgres.connecting import turn

    assert settings.qdrant_url is not None
    assert settings.database is not None
    key = None if settings.qdrant_key is None else settings.qdrant_key.get_secret_value()
    url, name = settings.database[0], f"{settings.database[1]}_vectors"
    return ServerIndex(connect(settings.qdrant_url, key), name, lambda: turn(url, f"{name}/index"))

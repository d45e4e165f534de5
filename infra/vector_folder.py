"""The vectors and the index of a data directory, made when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mnemolog.infra.leadership import Leadership

if TYPE_CHECKING:  # they bring numpy along, which an empty store has no use for
    from mnemolog.infra.index import EdgeIndex
    from mnemolog.infra.vectors import SqliteVectors

VECTORS_FILE: Final = "vectors.db"
INDEX_FOLDER: Final = "index"


@dataclass(frozen=True, slots=True)
class VectorFolder:
    """The vectors and the index of a data directory. Neither is made before it is needed."""

    path: Path
    leadership: Leadership
    kind: str

    def rows(self, *, make: bool) -> SqliteVectors | None:
        file = self.path / VECTORS_FILE
        if not make and not file.exists():
            return None
        from mnemolog.infra.vectors import SqliteVectors

        return SqliteVectors(file)

    def index(self, *, make: bool) -> EdgeIndex | None:
        folder = self.path / INDEX_FOLDER
        if self.kind == "none" or not self.leadership.leads:
            return None
        if not make and not folder.exists():
            return None
        from mnemolog.infra.index import EdgeIndex

        return EdgeIndex(folder)

    def erased_elsewhere(self) -> int | None:
        folder = self.path / INDEX_FOLDER
        if self.leadership.leads or not folder.exists():
            return None
        from mnemolog.infra.index import erased_to

        return erased_to(folder)

"""A log in memory, and stores of vectors in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from embedding_fakes import WordHashes
from mnemolog.consumers.embedding import EmbeddingWorker
from mnemolog.consumers.indexing import IndexFiller
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.index import EdgeIndex
from mnemolog.infra.vectors import sqlite_vectors
from mnemolog.projections.dense import DenseScan
from mnemolog.projections.vectors import Kind
from support import ROOT, files_below

sys.path.append(str(ROOT / "tests" / "projections"))

from projection_fakes import FakeLog


class World:
    """A log with its worker, rows, index and scan, over one folder."""

    def __init__(
        self, folder: Path, log: FakeLog | None = None, embedder: WordHashes | None = None, batch: int = 8
    ):
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, log or FakeLog()
        self.embedder = embedder or WordHashes()
        self.rows = sqlite_vectors(folder / "vectors.db")
        self.worker = EmbeddingWorker(self.log, self.rows, self.embedder, batch_size=batch)
        self.index = EdgeIndex(folder / "index")
        self.filler = IndexFiller(self.rows, self.index, self.embedder.space, self.embedder.dimensions, 50)
        self.scan = DenseScan(self.rows, self.embedder.space)

    def talk(self, *texts: str, user: str = "u1", session: str = "s1") -> None:
        for text in texts:
            self.log.turn(text, user, session=session)

    def dump(self) -> list[tuple[object, ...]]:
        return self.rows.dump(self.embedder.space)

    def indexed(self) -> set[tuple[int, ...]]:
        return {named(position, kind, part) for position, kind, part in self.index.points()}

    def stored(self) -> set[tuple[int, ...]]:
        return {named(row[0], row[1], row[6]) for row in self.dump()}  # type: ignore[misc]

    def close(self) -> None:
        self.index.close()
        self.rows.close()


def named(position: int, kind: int, part: int) -> tuple[int, ...]:
    """A vector as tests call it: with its part where it is of a passage."""
    return (position, int(kind), part) if kind == Kind.PASSAGE else (position, int(kind))


def of_user(user: str = "u1") -> ScopeIds:
    return ScopeIds(Scope("t1", user=user))


def bytes_of(folder: Path) -> list[bytes]:
    """The content of every file under the folder."""
    return [content for _, content in files_below(folder)]

"""A log in memory, a small deterministic embedder that counts, and stores of vectors in a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from mnemolog.consumers.embedding import EmbeddingWorker
from mnemolog.consumers.indexing import IndexFiller
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.index import EdgeIndex
from mnemolog.infra.vectors import SqliteVectors
from mnemolog.projections.dense import DenseScan
from mnemolog.projections.embedding import Floats, unit
from support import ROOT

sys.path.append(str(ROOT / "tests" / "projections"))

from projection_fakes import FakeLog


class WordHashes:
    """A bag of hashed words as 64 numbers. `before` is called with the texts of each batch."""

    def __init__(
        self, space: str = "words@1/64/l2", before: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        self.space, self.dimensions = space, 64
        self.texts: list[str] = []
        self.before = before or (lambda texts: None)

    def embed(self, texts: Sequence[str]) -> Floats:
        self.before(texts)
        self.texts += texts
        return unit(np.stack([self._one(text) for text in texts]), self.dimensions)

    def _one(self, text: str) -> Floats:
        rows = [self._word(word) for word in text.lower().split()]
        return np.sum(rows, axis=0, dtype=np.float32)

    def _word(self, word: str) -> Floats:
        raw = blake2b(f"{self.space}/{word}".encode(), digest_size=64).digest()
        return np.frombuffer(raw, np.uint8).astype(np.float32) - 127.5


class World:
    """A log with its worker, rows, index and scan, over one folder."""

    def __init__(
        self, folder: Path, log: FakeLog | None = None, embedder: WordHashes | None = None, batch: int = 8
    ):
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, log or FakeLog()
        self.embedder = embedder or WordHashes()
        self.rows = SqliteVectors(folder / "vectors.db")
        self.worker = EmbeddingWorker(self.log, self.rows, self.embedder, batch_size=batch)
        self.index = EdgeIndex(folder / "index")
        self.filler = IndexFiller(self.rows, self.index, self.embedder.space, self.embedder.dimensions, 50)
        self.scan = DenseScan(self.rows, self.embedder.space)

    def talk(self, *texts: str, user: str = "u1", session: str = "s1") -> None:
        for text in texts:
            self.log.turn(text, user, session=session)

    def dump(self) -> list[tuple[object, ...]]:
        return self.rows.dump(self.embedder.space)

    def indexed(self) -> set[tuple[int, int]]:
        return {(position, int(kind)) for position, kind in self.index.points()}

    def stored(self) -> set[tuple[int, int]]:
        return {(row[0], row[1]) for row in self.dump()}  # type: ignore[misc]

    def close(self) -> None:
        self.index.close()
        self.rows.close()


def of_user(user: str = "u1") -> ScopeIds:
    return ScopeIds(Scope("t1", user=user))


def bytes_of(folder: Path) -> list[bytes]:
    """The content of every file under the folder."""
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]

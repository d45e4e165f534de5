"""A small deterministic embedder that counts, and memories whose vectors are always up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from face_world import open_memory
from mnemolog import Memory
from mnemolog.projections.embedding import Floats, unit


class WordHashes:
    """A bag of hashed words. `before` is called with the texts of each batch."""

    def __init__(
        self,
        space: str = "words@1/64/l2",
        before: Callable[[Sequence[str]], None] | None = None,
        dimensions: int = 64,
    ) -> None:
        self.space, self.dimensions = space, dimensions
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
        name = f"{self.space}/{word}"
        parts = [blake2b(f"{name}{at or ''}".encode(), digest_size=64) for at in range(self.dimensions // 64)]
        raw = b"".join(part.digest() for part in parts)
        return np.frombuffer(raw, np.uint8).astype(np.float32) - 127.5


class Bigrams(WordHashes):
    """The same of pairs of letters, so that an inflected word is near to its stem."""

    def __init__(self) -> None:
        super().__init__("bigrams@1/256/l2", dimensions=256)

    def _one(self, text: str) -> Floats:
        letters = f" {text.lower()} "
        return super()._one(
            " ".join(f"_{letters[at : at + 2]}_".replace(" ", "_") for at in range(len(letters) - 1))
        )


def embedding_memory(path: Path, embedder: WordHashes | None = None, **options: Any) -> Memory:
    """A memory that embeds, in the reader's thread, before anybody asks."""
    memory = open_memory(path, embedder=embedder or Bigrams(), **options)
    vectors = memory._store.vectors
    cosines = vectors.cosines

    def up_to_date(*asked: Any) -> Any:
        vectors.catch_up()
        return cosines(*asked)

    vectors.cosines = up_to_date  # type: ignore[method-assign]
    return memory

"""Texts as vectors: the embedder port, and the rule that vectors of two spaces never meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnemolog.domain.errors import MnemologError, StoreUnavailable

Floats = NDArray[np.float32]


class SpaceMismatch(MnemologError):
    """Vectors of two embedding spaces were to be compared. Embed with the model that the store was filled with."""

    def __init__(self, ours: str, theirs: str) -> None:
        super().__init__(
            f"vectors of {theirs} cannot be compared with those of {ours}: use one embedder for both"
        )
        self.ours, self.theirs = ours, theirs


class EmbedderFailed(StoreUnavailable):
    """The embedder gave no vectors, or wrong ones. `retryable`: the same call may work later."""

    def __init__(self, reason: str, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.retryable = retryable


class Embedder(Protocol):
    """Any thread may call it. Nothing is loaded before the first `embed`."""

    @property
    def space(self) -> str:
        """Names model, version, dimensions and normalisation: equal only where vectors may be compared."""

    @property
    def dimensions(self) -> int:
        """Length of each vector."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of length 1 per text, as float32 (n, dimensions). Raises EmbedderFailed."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryVector:
    """A query in its space. values: float32 (dimensions,), of length 1."""

    space: str
    values: Floats

    def require(self, space: str) -> None:
        """Raises SpaceMismatch unless this is the query's own space."""
        if space != self.space:
            raise SpaceMismatch(space, self.space)


def embed_query(embedder: Embedder, text: str) -> QueryVector:
    """The vector of one query."""
    return QueryVector(embedder.space, embedder.embed([text])[0])


def unit(vectors: Floats, dimensions: int) -> Floats:
    """The rows at length 1; a row of zeros stays. Raises EmbedderFailed for another shape or what is no number."""
    found = np.array(vectors, dtype=np.float32)
    if found.ndim != 2 or found.shape[1] != dimensions:
        raise EmbedderFailed(
            f"the embedder gave an array of shape {found.shape}, not of {dimensions} dimensions"
        )
    if not np.isfinite(found).all():
        raise EmbedderFailed("the embedder gave a vector with something that is no number")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    found /= np.where(lengths > 0, lengths, 1)
    return found

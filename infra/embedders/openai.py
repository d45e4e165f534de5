"""Any endpoint that speaks OpenAI's `/embeddings`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemolog.infra.endpoint import Endpoint, EndpointFailed
from mnemolog.projections.embedding import EmbedderFailed, Floats, unit


@dataclass(slots=True)
class OpenAIEmbedder:
    """url: the API's base, as `https://api.example.com/v1`. The key is in no message and no representation.

    dimensions: length of the vectors, asked for where `ask_dimensions`.
    name: the space's name for the model, where one model is served in several places; default: host and model.
    timeout, retries, backoff: as of `Endpoint`.
    """

    url: str
    model: str
    dimensions: int
    key: str | None = None
    name: str | None = None
    ask_dimensions: bool = False
    batch_size: int = 128
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5

    def __post_init__(self) -> None:
        self._endpoint()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.space!r})"

    def _endpoint(self) -> Endpoint:
        return Endpoint("the embedder", self.url, self.key, self.timeout, self.retries, self.backoff)

    @property
    def space(self) -> str:
        """Names model, dimensions and normalisation; two hosts are two spaces unless `name` says otherwise."""
        model = self.name or f"{self._endpoint().host}:{self.model}"
        return f"openai:{model}/{self.dimensions}/l2"

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of length 1 per text. Raises EmbedderFailed, which shows neither text nor key."""
        parts = [
            self._batch(list(texts[at : at + self.batch_size]))
            for at in range(0, len(texts), self.batch_size)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.dimensions), np.float32)

    def _batch(self, texts: list[str]) -> Floats:
        # An empty text is refused by many endpoints; a space means as little.
        body: dict[str, Any] = {"model": self.model, "input": [text or " " for text in texts]}
        if self.ask_dimensions:
            body["dimensions"] = self.dimensions
        try:
            answer = self._endpoint().post("/embeddings", body)
        except EndpointFailed as failure:
            what_to_do = "see that it runs, with MNEMOLOG_EMBEDDER and its model and key right"
            raise EmbedderFailed(f"{failure}: {what_to_do}", retryable=failure.retryable) from None
        return unit(_vectors(answer, len(texts)), self.dimensions)


def _vectors(answer: Any, count: int) -> Floats:
    """The vectors in the order of the texts: the answer says which is which."""
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(count)):
            raise EmbedderFailed(f"the embedder gave {len(rows)} vectors for {count} texts")
        return np.array([row["embedding"] for row in rows], dtype=np.float32)
    except (KeyError, TypeError, ValueError):
        raise EmbedderFailed("the embedder's answer has not the form of OpenAI's") from None

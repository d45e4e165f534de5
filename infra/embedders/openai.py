"""Any endpoint that speaks OpenAI's `/embeddings`, over the standard library's HTTP client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import orjson

from mnemolog.domain.errors import InvalidInput
from mnemolog.projections.embedding import EmbedderFailed, Floats, unit

_RETRIED: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_WAIT: Final = 30.0


class _NoRedirect(HTTPRedirectHandler):
    """The key and the texts go to the endpoint that was named, and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(slots=True)
class OpenAIEmbedder:
    """url: the API's base, as `https://api.example.com/v1`. The key is in no message and no representation.

    dimensions: length of the vectors, asked for where `ask_dimensions`.
    name: the space's name for the model, where one model is served in several places; default: host and model.
    timeout: seconds for one request; retries: of a request that failed for a reason that may pass, after
    `backoff` seconds, doubled each time, or as long as the endpoint asks for.
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
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("the embedder's url must begin with http:// or https://")

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.space!r})"

    @property
    def space(self) -> str:
        """Names model, dimensions and normalisation; two hosts are two spaces unless `name` says otherwise."""
        model = self.name or f"{urlsplit(self.url).netloc.rpartition('@')[2]}:{self.model}"
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
        return unit(_vectors(self._post(orjson.dumps(body)), len(texts)), self.dimensions)

    def _post(self, body: bytes) -> Any:
        for attempt in range(self.retries + 1):
            try:
                return self._post_once(body)
            except _Failed as failure:
                if not failure.retryable or attempt == self.retries:
                    raise EmbedderFailed(str(failure), retryable=failure.retryable) from None
                time.sleep(min(_MAX_WAIT, failure.wait or self.backoff * 2**attempt))
        raise AssertionError("unreachable")

    def _post_once(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = Request(f"{self.url.rstrip('/')}/embeddings", body, headers)
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as answer:
                return orjson.loads(answer.read())
        except HTTPError as error:
            with error:
                wait = _seconds(error.headers.get("Retry-After"))
                raise _Failed(f"the embedder answered {error.code}", error.code in _RETRIED, wait) from None
        except orjson.JSONDecodeError:
            raise _Failed("the embedder's answer is no JSON", False) from None
        except (URLError, OSError, HTTPException) as error:
            reason = type(getattr(error, "reason", error)).__name__
            raise _Failed(f"the embedder cannot be reached ({reason})", True) from None


class _Failed(Exception):
    def __init__(self, reason: str, retryable: bool, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.retryable, self.wait = retryable, wait


def _vectors(answer: Any, count: int) -> Floats:
    """The vectors in the order of the texts: the answer says which is which."""
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(count)):
            raise EmbedderFailed(f"the embedder gave {len(rows)} vectors for {count} texts")
        return np.array([row["embedding"] for row in rows], dtype=np.float32)
    except (KeyError, TypeError, ValueError):
        raise EmbedderFailed("the embedder's answer has not the form of OpenAI's") from None


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0

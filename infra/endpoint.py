"""JSON to an OpenAI-compatible endpoint and back, over the standard library's HTTP client."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from mnemolog.domain.errors import InvalidInput

_RETRIED: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_WAIT: Final = 30.0
_PIECE: Final = 65_536

Kind = Literal["slow", "unreachable", "busy", "refused", "no JSON"]


class EndpointFailed(Exception):
    """Neither texts nor keys are in its message. status: of the answer, where there was one."""

    def __init__(self, kind: Kind, reason: str, status: int | None = None, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.kind, self.status, self.wait = kind, status, wait

    @property
    def retryable(self) -> bool:
        """Whether the same call may work later."""
        return self.kind in ("slow", "unreachable", "busy")


class _NoRedirect(HTTPRedirectHandler):
    """The key and the texts go to the endpoint that was named, and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """what: its name in messages ("the embedder"). url: the API's base, as `https://api.example.com/v1`.

    timeout: seconds until an answer begins, and again until it has ended; retries: of a request that failed for a
    reason that may pass, after `backoff` seconds, doubled each time, or as long as the endpoint asks for.
    largest: bytes of an answer. before: called before each try; what it raises ends the call.
    """

    what: str
    url: str
    key: str | None = None
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    largest: int = 64 * 1024 * 1024
    before: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{self.what}'s url must begin with http:// or https://")

    def __repr__(self) -> str:
        return f"Endpoint({self.host!r})"

    @property
    def host(self) -> str:
        """Host and port, without a user or password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def post(self, path: str, body: Any) -> Any:
        """The answer to a JSON body. Raises EndpointFailed."""
        raw = orjson.dumps(body)
        for attempt in range(self.retries + 1):
            self.before()
            try:
                return self._post_once(path, raw)
            except EndpointFailed as failure:
                if not failure.retryable or attempt == self.retries:
                    raise
                time.sleep(min(_MAX_WAIT, failure.wait or self.backoff * 2**attempt))
        raise AssertionError("unreachable")

    def _post_once(self, path: str, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = Request(f"{self.url.rstrip('/')}{path}", body, headers)
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as answer:
                return orjson.loads(self._read(answer))
        except HTTPError as error:
            with error:
                kind: Kind = "busy" if error.code in _RETRIED else "refused"
                wait = _seconds(error.headers.get("Retry-After"))
                raise EndpointFailed(kind, f"{self.what} answered {error.code}", error.code, wait) from None
        except orjson.JSONDecodeError:
            raise EndpointFailed("no JSON", f"{self.what}'s answer is no JSON") from None
        except (URLError, OSError, HTTPException) as error:
            cause = getattr(error, "reason", error)
            kind = "slow" if isinstance(cause, TimeoutError) else "unreachable"
            reason = f"{self.what} cannot be reached ({type(cause).__name__})"
            raise EndpointFailed(kind, reason) from None

    def _read(self, answer: HTTPResponse) -> bytes:
        """All of it: each piece may be in time, and the whole still never end."""
        ends, pieces, size = time.monotonic() + self.timeout, list[bytes](), 0
        while piece := answer.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self.largest:
                raise EndpointFailed("no JSON", f"{self.what}'s answer is longer than {self.largest} bytes")
            if time.monotonic() > ends:
                raise EndpointFailed("slow", f"{self.what} cannot be reached (its answer does not end)")
        if answer.length:
            raise EndpointFailed("unreachable", f"{self.what}'s answer breaks off")
        return b"".join(pieces)


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0

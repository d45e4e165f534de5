"""A local server that speaks OpenAI's chat API by a script, in time or not, whole or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mnemolog.infra.models import ModelExtractor

Answer = Callable[[dict[str, Any]], tuple[int, Any]]
"""The request's body → status, and bytes or JSON; None as the content never ends the answer."""


class ChatServer:
    """Answers as scripted; the last answer is repeated."""

    def __init__(self) -> None:
        self.script: list[Answer] = [memories()]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.released = threading.Event()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                chat.requests.append({"path": self.path, **body})
                chat.headers.append(dict(self.headers))
                answer = chat.script.pop(0) if len(chat.script) > 1 else chat.script[0]
                status, content = answer(body)
                with suppress(OSError):  # the client had no more patience
                    self._send(status, content)

            def _send(self, status: int, content: Any) -> None:
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", "1000000" if content is None else str(len(raw)))
                self.end_headers()
                while content is None and not chat.released.wait(0.02):
                    self.wfile.write(b" ")
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    def extractor(self, **options: Any) -> ModelExtractor:
        values = {"backoff": 0.001, "timeout": 5.0, "retries": 0, "key": "k-1", **options}
        return ModelExtractor(self.url, "small", **values)

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def claim(quote: str, value: str, n: int = 1, **given: Any) -> dict[str, Any]:
    """A memory as a model gives it."""
    plain = {"kind": "fact", "entity": "user", "attribute": None, "relation": None, "negated": False}
    more = {"replaces": None, "time": None, "asked": False, "confidence": 0.9}
    return {"n": n, "quote": quote, "value": value, **plain, **more, **given}


def said_by_model(content: str | None, ended: str = "stop", **usage: int) -> Answer:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": ended}
    return lambda body: (200, {"choices": [choice], **({"usage": usage} if usage else {})})


def memories(*claims: dict[str, Any], **usage: int) -> Answer:
    return said_by_model(json.dumps({"memories": claims}), **usage)


def lines(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that a request asks about."""
    asked = body["messages"][1]["content"].split("\n")
    assert (asked[0], asked[-1]) == ("<data>", "</data>")
    return [json.loads(line) for line in asked[1:-1]]


def keeping(word: str) -> Answer:
    """A model that keeps this word wherever it stands."""

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        found = [claim(word, word, n=each["n"]) for each in lines(body) if word in each["text"]]
        return memories(*found)(body)

    return answer


def failing_on(word: str, status: int = 500) -> Answer:
    """As `keeping`, but a request with the word in it fails."""

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        if any(word in each["text"] for each in lines(body)):
            return status, b"{}"
        return keeping("tea")(body)

    return answer


def always(status: int, content: Any = b"{}") -> Answer:
    return lambda body: (status, content)

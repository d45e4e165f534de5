"""The adapters: the built-in model, a folder, and an endpoint that may fail in every way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.embedders import FolderEmbedder, OpenAIEmbedder, SentenceEmbedder
from mnemolog.projections.embedding import EmbedderFailed, embed_query, unit
from tiny_models import WORDS, write_embedder

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


def vectors(request: dict[str, Any]) -> tuple[int, Any]:
    """What a proper endpoint answers, in an order of its own."""
    rows = [
        {"index": at, "embedding": [float(len(text)), 1.0, 0.0]} for at, text in enumerate(request["input"])
    ]
    return 200, {"data": rows[::-1], "model": request["model"]}


class Endpoint:
    """A local server that answers as scripted; the last answer is repeated."""

    def __init__(self) -> None:
        self.script: list[Answer] = [vectors]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append({"path": self.path, **body})
                endpoint.headers.append(dict(self.headers))
                answer = endpoint.script.pop(0) if len(endpoint.script) > 1 else endpoint.script[0]
                status, content = answer(body)
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                with suppress(BrokenPipeError):  # the client had no more patience
                    self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        url = f"http://127.0.0.1:{self.server.server_port}/v1"
        return OpenAIEmbedder(url, "small", 3, **{"backoff": 0.01, "timeout": 5.0, **options})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint on this machine."""
    made = Endpoint()
    yield made
    made.close()


def always(status: int, content: Any = b"{}") -> Answer:
    return lambda request: (status, content)


def test_texts_go_out_in_batches_and_come_back_in_order(endpoint: Endpoint) -> None:
    """Batches are bounded, vectors belong to their texts whatever the order of the answer, and have length 1."""
    found = endpoint.embedder(batch_size=2, key="k-1").embed(["a", "bb", "ccc"])
    assert [len(request["input"]) for request in endpoint.requests] == [2, 1]
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.allclose(found[:, 0] / found[:, 1], [1, 2, 3], atol=1e-5)
    assert endpoint.requests[0]["path"] == "/v1/embeddings"
    assert endpoint.headers[0]["Authorization"] == "Bearer k-1"
    assert endpoint.embedder().embed([]).shape == (0, 3)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(endpoint: Endpoint, status: int) -> None:
    """A busy endpoint gets the same batch again."""
    endpoint.script = [always(status), always(status), vectors]
    assert endpoint.embedder().embed(["a"]).shape == (1, 3)
    assert len(endpoint.requests) == 3


def test_retries_end(endpoint: Endpoint) -> None:
    """An endpoint that stays broken is an error that says so, and that a later call may work."""
    endpoint.script = [always(503, b"the secret text")]
    with pytest.raises(EmbedderFailed, match="503") as failure:
        endpoint.embedder(retries=2, key="k-1").embed(["a text"])
    assert failure.value.retryable and len(endpoint.requests) == 3
    assert "secret" not in str(failure.value) and "a text" not in str(failure.value)


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (always(401), "401"),
        (always(302), "302"),
        (always(200, b"<html>"), "no JSON"),
        (always(200, {"data": "?"}), "form"),
        (always(200, {"data": []}), "0 vectors for 1"),
        (always(200, {"data": [{"index": 0, "embedding": [1.0]}]}), "3 dimensions"),
        (always(200, {"data": [{"index": 0, "embedding": [1.0, float("nan"), 1.0]}]}), "no JSON|no number"),
    ],
)
def test_wrong_answers_are_refused_at_once(endpoint: Endpoint, answer: Answer, match: str) -> None:
    """What is no vector of the right length is never stored, and is not asked for again."""
    endpoint.script = [answer]
    with pytest.raises(EmbedderFailed, match=match) as failure:
        endpoint.embedder().embed(["a"])
    assert not failure.value.retryable and len(endpoint.requests) == 1


def test_a_silent_endpoint_times_out(endpoint: Endpoint) -> None:
    """A request has a time limit."""
    waiting = threading.Event()
    endpoint.script = [lambda request: (waiting.wait(5), vectors(request))[1]]
    with pytest.raises(EmbedderFailed, match="reached"):
        endpoint.embedder(timeout=0.1, retries=0).embed(["a"])
    waiting.set()


def test_an_endpoint_that_is_not_there() -> None:
    """A refused connection is an error that may pass."""
    with pytest.raises(EmbedderFailed) as failure:
        OpenAIEmbedder("http://127.0.0.1:9/v1", "small", 3, retries=0).embed(["a"])
    assert failure.value.retryable


def test_spaces_name_host_model_and_dimensions() -> None:
    """Two hosts or two lengths are two spaces; the key and the password of the url are in no name."""
    one = OpenAIEmbedder("https://me:pw@a.example/v1", "small", 3, key="k-1")
    other = OpenAIEmbedder("https://b.example/v1", "small", 3)
    named = OpenAIEmbedder("https://b.example/v1", "small", 3, name="small@7")
    assert len({one.space, other.space, named.space}) == 3
    assert "pw" not in one.space and "k-1" not in repr(one)
    with pytest.raises(InvalidInput):
        OpenAIEmbedder("file:///etc", "small", 3)


def test_the_built_in_model_speaks_korean_and_english() -> None:
    """The default embedder finds what means the same, across languages, with one BLAS thread."""
    embedder = SentenceEmbedder()
    assert embedder._model is None
    found = embedder.embed(["예산은 4800만 원입니다", "the budget is 48 million won", "the cat sleeps"])
    assert found.shape == (3, embedder.dimensions) and found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2
    query = embed_query(embedder, "the budget is 48 million won")
    assert query.space == embedder.space and np.allclose(query.values, found[1], atol=1e-4)


def test_the_thread_limit_is_given_back() -> None:
    """Embedding from several threads leaves the process's BLAS threads as they were."""
    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    embedder, before = SentenceEmbedder(), threads()
    workers = [threading.Thread(target=lambda: embedder.embed(["one", "two"] * 8)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads() == before


def test_a_folder_is_named_by_its_model(tmp_path: Path) -> None:
    """The space of a model folder follows from the bytes of the model, so another model is another space."""
    (tmp_path / "model.onnx").write_bytes(b"one")
    first = FolderEmbedder(tmp_path, 384).space
    assert FolderEmbedder(tmp_path, 384).space == first
    (tmp_path / "model.onnx").write_bytes(b"two")
    assert FolderEmbedder(tmp_path, 384).space != first
    with pytest.raises(InvalidInput, match="no model file"):
        _ = FolderEmbedder(tmp_path / "absent", 384).space


def test_a_folder_embeds(tmp_path: Path) -> None:
    """A model in a folder gives a vector of length 1 per text, in English and Korean, without a network."""
    write_embedder(tmp_path / "model")
    found = FolderEmbedder(tmp_path / "model", len(WORDS)).embed(["walrus walrus tea", "tea", "바다"])
    assert found.shape == (3, len(WORDS))
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert found[0] @ found[1] == pytest.approx(5**-0.5)
    assert found[2, WORDS.index("바다")] == pytest.approx(1)


def test_vectors_without_length_stay_zero() -> None:
    """A text without meaning is near to nothing, and breaks nothing."""
    found = unit(np.array([[0.0, 0.0], [3.0, 4.0]], np.float32), 2)
    assert found.tolist() == [[0, 0], pytest.approx([0.6, 0.8])]

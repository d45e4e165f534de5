"""The example of the README: an agent with a memory, against a server that answers by a script."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from face_world import open_memory
from mnemolog import Memory, Scope
from support import ROOT

EXAMPLE = ROOT / "examples" / "agent_loop.py"


class Scripted(HTTPServer):
    """Speaks OpenAI's chat API: gives its answers in order, and keeps what it was sent."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.sent = answers, list[list[dict[str, Any]]]()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/chat/completions"
        self.server.sent.append(body["messages"])
        said = {"role": "assistant", "content": None} | self.server.answers.pop(0)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": said}]}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


def called(name: str, **arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call-{name}", "type": "function", "function": function}]}


@pytest.fixture
def server() -> Iterator[Scripted]:
    made = Scripted([])
    thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def example() -> Any:
    spec = importlib.util.spec_from_file_location("agent_loop", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def topics(memory: Memory) -> list[str]:
    return [each.envelope.topic for each in memory.log(limit=100)]


def test_an_agent_remembers_across_sessions(server: Scripted, tmp_path: Path) -> None:
    """What one session stated is in what the model is sent in the next; tools and their errors are recorded."""
    module = example()
    with open_memory(tmp_path / "data") as memory:
        one = Scope("local", user="me", session="1")
        agent = module.Agent(memory, one, module.server(server.url, "scripted"))
        server.answers += [
            called("remember", text="Reports go out as PDF", kind="preference"),
            called("nothing"),
            {"content": "I will remember that."},
        ]
        assert agent.answer("Reports go out as PDF, please") == "I will remember that."
        assert topics(memory) == [
            "ContextAssembled", "TurnRecorded", "ToolCalled", "MemoryStated", "ToolReturned", "ToolCalled",
            "ToolReturned", "TurnRecorded",
        ]  # fmt: skip
        assert "KeyError" in server.sent[2][-1]["content"]
        memory.set_state(Scope("local", user="me", session="2"), "report", {"step": "draft"})
        two = module.Agent(memory, Scope("local", user="me", session="2"), agent.ask)
        server.answers.append({"content": "As PDF."})
        assert two.answer("Which format?") == "As PDF."
        sent = server.sent[-1]
        assert [one["role"] for one in sent] == ["system", "user", "user", "user"]
        assert "Reports go out as PDF" in sent[1]["content"] and sent[1]["content"].startswith("<memory>")
        assert sent[2]["content"] == "Which format?"
        assert sent[3]["content"].startswith("<memory now>") and "step: draft" in sent[3]["content"]


@pytest.mark.embedded
def test_the_example_runs_as_a_program(server: Scripted, tmp_path: Path) -> None:
    """Questions come on stdin, answers go to stdout, and the directory holds the session afterwards."""
    server.answers += [{"content": "Hello."}, {"content": "You said hi."}]
    arguments = [sys.executable, str(EXAMPLE), str(tmp_path / "data"), server.url, "scripted"]
    done = subprocess.run(
        arguments, input="hi\nwhat did I say?\n", check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "Hello.\nYou said hi.\n"
    assert "user: hi\nassistant: Hello.\n" in server.sent[1][1]["content"]
    with open_memory(tmp_path / "data") as memory:
        assert topics(memory).count("TurnRecorded") == 4
        assert "SessionClosed" in topics(memory)


@pytest.mark.embedded
def test_the_program_says_what_it_lacks(tmp_path: Path) -> None:
    """Without arguments it shows how it is called; a server that is away is one line; neither is a traceback."""
    bare = subprocess.run(
        [sys.executable, str(EXAMPLE)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (bare.returncode, "usage:" in bare.stderr, "Traceback" in bare.stderr) == (2, True, False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    away = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path / "data"), url, "scripted"],
        check=False, input="hi\n", capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (away.returncode, away.stderr.count("\n"), "refused" in away.stderr) == (1, 1, True)


def test_the_model_hears_what_became_of_a_statement(tmp_path: Path) -> None:
    """Its tool says that a secret was dropped and why, and that a fact is remembered."""
    with open_memory(tmp_path / "data") as memory:
        agent = example().Agent(memory, Scope("local", user="me", session="1"), lambda messages: {})
        assert agent.remember("Reports go out as PDF") == "remembered"
        assert agent.remember("내 비밀번호는 hunter2xyzQ9 입니다") == "dropped: holds a secret"

"""Starts, asks and kills other processes on a data directory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PEER = Path(__file__).with_name("peer.py")


class Peer:
    """A process that has the memory open. leads: whether it led when it had opened it."""

    def __init__(self, path: Path, *, background: bool = True) -> None:
        command = [sys.executable, str(PEER), str(path), "background" if background else "alone"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.leads: bool | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> Peer:
        self.leads = self._read()
        return self

    def ask(self, expression: str) -> Any:
        """What the expression gives there. Raises RuntimeError with the name of the error there."""
        self.begin(expression)
        return self.answer()

    def begin(self, expression: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        answer = self._read()
        if "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer['text']}")
        return answer["value"]

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def close(self) -> None:
        """As a program ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._end()

    def _end(self) -> None:
        self._process.wait(60)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("the other process has ended")
        return json.loads(line)


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until it holds; fail where it does not within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)

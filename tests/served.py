"""Starts `mnemolog serve` as an operator does, and asks its page."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

COMMAND = (sys.executable, "-c", "from mnemolog.infra.cli import main; main()", "serve")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """One role in a process of its own."""

    def __init__(self, role: str, data: Path, **environment: str) -> None:
        self.port = free_port()
        self._output = data.parent / f"served-{self.port}.log"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*COMMAND, role, "--data", str(data), "--health-port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
            )

    @property
    def said(self) -> str:
        return self._output.read_text()

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page; (0, "") while there is none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """The value of a sample such as `mnemolog_projection_lag{projection="turns"}`; nan where there is none."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        return float("nan")

    def ready(self) -> Served:
        self.until(lambda: self.get("/readyz")[0] == 200)
        return self

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds, for a minute; fail where it does not, or where the process ends before."""
        deadline = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, f"it did not come to be: {self.said}"
            time.sleep(0.02)

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to drain; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

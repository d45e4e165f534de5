"""The demo runs, and so do the commands that it tells the viewer to try."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT


@pytest.mark.slow
def test_the_demo_ends_with_commands_that_work(tmp_path: Path) -> None:
    """Exactly what is printed behind "try:" is run, beside the data that the demo left."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shown = run(sys.executable, str(ROOT / "examples" / "demo.py"))
    commands = [line.strip() for line in shown.partition("; try:\n")[2].splitlines()]
    assert len(commands) == 2
    status, recall = (run(*shlex.split(command)) for command in commands)
    assert "TurnRecorded" in status
    assert "배포" in recall
    assert "0 of them not its own" in shown
    assert "0 ()" not in shown

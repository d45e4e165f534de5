"""An imported week, and a way to run commands on it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_world import SAMPLE, Run, invoke


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sample week in it; tests get a copy."""
    data = tmp_path_factory.mktemp("week") / "data"
    assert invoke(data, "init").exit_code == 0
    result = invoke(data, "import", str(SAMPLE))
    assert result.exit_code == 0, result.output
    return data


@pytest.fixture
def data(imported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(imported, tmp_path / "data"))


@pytest.fixture
def run(data: Path) -> Run:
    """Runs a command that must end with `code`; its stdout, parsed when JSON was asked for."""

    def running(*arguments: str, code: int = 0, text: str | None = None) -> Any:
        result = invoke(data, *arguments, text=text)
        assert result.exit_code == code, result.output
        if "--json" not in arguments:
            return result.stdout
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    return running

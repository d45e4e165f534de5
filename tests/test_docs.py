"""Every example of the README and the docs runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language, in order."""
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


def having(language: str) -> list[Path]:
    """Pages that have such a block."""
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", having("python"), ids=lambda page: page.name)
def test_python_examples_run_in_order(page: Path, tmp_path: Path) -> None:
    """All Python blocks of a page are one program."""
    program = tmp_path / "example.py"
    program.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", having("console"), ids=lambda page: page.name)
def test_console_examples_run_in_order(page: Path, tmp_path: Path) -> None:
    """All commands of a page run one after the other, beside the project's examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "NO_COLOR": "1"}
    commands = [
        line.removeprefix("$ ")
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    for command in commands:
        done = subprocess.run(
            shlex.split(command),
            check=False,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_links_between_pages_lead_somewhere() -> None:
    """A relative link names a file that is there."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"

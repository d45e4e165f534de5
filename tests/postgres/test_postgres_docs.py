"""The examples of the operations page, run against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mnemolog.infra.postgres.cluster import bin_folder
from support import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def blocks(section: str) -> list[str]:
    """The shell examples of a section, in order."""
    (text,) = re.findall(rf"^### {section}\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def run(folder: Path, url: str, *scripts: str) -> str:
    """Run the scripts in one shell, as the administrator of this server; what they print."""
    port = re.search(r":(\d+)/", url)
    assert port is not None
    script = (
        "\n".join(scripts).replace("admin@", "postgres@").replace("@127.0.0.1/", f"@127.0.0.1:{port[1]}/")
    )
    folders = [str(bin_folder()), str(Path(sys.executable).parent), os.environ["PATH"]]
    server = {
        "PGHOST": "127.0.0.1",
        "PGPORT": port[1],
        "PGUSER": "postgres",
        "PATH": os.pathsep.join(folders),
    }
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=folder,
        env={**os.environ, **server},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.postgres
def test_from_nothing_through_upgrade_and_backup_to_a_restored_log(tmp_path: Path, postgres_url: str) -> None:
    """One shell runs the sections in order; log and keys are in no file, and the restored log is whole."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    sections = ("From nothing to a running deployment", "Upgrade", "Backup and restore")
    scripts = [block for section in sections for block in blocks(section)]
    numbers = "psql -At -c 'SELECT last_value FROM mnemolog.stored_events_positions' restored"
    said = run(
        tmp_path,
        postgres_url,
        *scripts,
        numbers,
        "mnemolog remember after --tenant t",
        scripts[-1].split("\n")[-2],
    )
    assert "PDF" in said
    (before, last, after) = re.findall(r"^(\d+)(?= events have the form|$)", said, re.MULTILINE)[-3:]
    assert (int(before) > 100, int(last), int(after)) == (True, 0, int(before) + 1)
    assert not {"log.db", "keys.db", "views"} & {one.name for one in (tmp_path / "data").iterdir()}


@pytest.mark.postgres
def test_the_example_of_a_move_goes_there_and_back(tmp_path: Path, postgres_url: str) -> None:
    """Into PostgreSQL by a file of settings, and into a directory."""
    said = run(tmp_path, postgres_url, *blocks("Moving"))
    assert said.count("moved:") == 2
    assert (tmp_path / "back" / "log.db").exists()


@pytest.mark.postgres
def test_every_shell_example_is_run() -> None:
    """No block of the page is left out by the tests above."""
    every = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    sections = ("From nothing to a running deployment", "Upgrade", "Backup and restore", "Moving")
    assert [block for section in sections for block in blocks(section)] == every

"""Servers of one's own, started and stopped by commands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_world import invoke

from mnemolog import Memory, Scope
from mnemolog.infra.cli.exits import Exit
from postgres_world import require_postgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def folder() -> Iterator[str]:
    """A place that user postgres may enter, with nothing running in it afterwards."""
    require_postgres()
    with tempfile.TemporaryDirectory(prefix="mnemolog-") as name:
        Path(name).chmod(0o755)
        yield name
        invoke(Path(name), "cluster", "down", "--folder", name)


def test_a_server_comes_up_and_goes_down(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up prints the settings of a server that works, twice the same; down stops it; the next up is the same server."""

    def run(*arguments: str) -> str:
        done = invoke(tmp_path, "cluster", *arguments, "--folder", folder)
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    settings = run("up", "postgres")
    assert run("up", "postgres") == settings
    for line in settings.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value)
    with Memory.open(tmp_path / "data", background=False) as memory:
        memory.remember(Scope("acme"), "kept by the server")
    assert "up" in run("status", "postgres")
    run("down", "postgres")
    assert "up" not in run("status", "postgres")
    assert run("up", "postgres") == settings
    with Memory.open(tmp_path / "data", background=False) as memory:
        assert [record.content for record in memory.records(Scope("acme"))] == ["kept by the server"]


def test_an_unknown_server_is_refused(tmp_path: Path) -> None:
    """The error names the servers that there are."""
    done = invoke(tmp_path, "cluster", "up", "mysql")
    assert (done.exit_code, "postgres" in done.stderr) == (Exit.USAGE, True)

"""Names of targets: what is mistyped moves nothing, and what is refused makes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import invoke

from mnemolog.errors import InvalidInput, StoreMoved
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.moving import target_of
from mnemolog.moving import move


def test_a_file_of_settings_that_is_not_there_is_no_directory(data: Path, tmp_path: Path) -> None:
    """A mistyped name ends before anything is moved; a directory of such a name is told by its slash."""
    for name in ("nofile.env", "my.settings"):
        moved = invoke(data, "move", str(data), "--to", str(tmp_path / name))
        assert moved.exit_code == Exit.USAGE
        assert not (tmp_path / name).exists()
    with pytest.raises(InvalidInput, match="slash"):
        target_of("v1.2")
    assert target_of("v1.2/")[0] == Path("v1.2")
    assert invoke(data, "status").exit_code == Exit.OK


def test_a_move_that_is_refused_makes_nothing(data: Path, tmp_path: Path) -> None:
    """What was moved already leaves no empty memory at the next target."""
    move(data, tmp_path / "there")
    with pytest.raises(StoreMoved):
        move(data, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()

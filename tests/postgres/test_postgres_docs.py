"""The example of the operations page, run against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mnemolog.infra.postgres.cluster import bin_folder
from support import ROOT


def test_the_example_leads_from_nothing_to_a_memory(tmp_path: Path, postgres_url: str) -> None:
    """Two databases, two settings, and `init`, which can be repeated; nothing of log and keys is in the directory."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    port = re.search(r":(\d+)/", postgres_url)
    assert port is not None
    script = re.sub(r"\w+@127\.0\.0\.1", f"postgres@127.0.0.1:{port[1]}", block)
    folders = [str(bin_folder()), str(Path(sys.executable).parent), os.environ["PATH"]]
    server = {
        "PGHOST": "127.0.0.1",
        "PGPORT": port[1],
        "PGUSER": "postgres",
        "PATH": os.pathsep.join(folders),
    }
    done = subprocess.run(
        ["sh", "-ec", f"{script}\nmnemolog init ./data"],
        cwd=tmp_path,
        env={**os.environ, **server},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Already there: " in done.stdout
    assert not {"log.db", "keys.db", "views"} & {one.name for one in (tmp_path / "data").iterdir()}

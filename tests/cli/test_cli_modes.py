"""Whatever the umask, what holds data is for its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cli_world import SAMPLE, invoke

from embedding_fakes import WordHashes
from face_world import U1, open_memory
from mnemolog.infra.settings import Settings


def open_to_others(folder: Path) -> list[str]:
    """What others may read, write or enter below a folder; what lies in the index, which is closed, is the library."""
    paths = [path for path in folder.rglob("*") if "index" not in path.relative_to(folder).parts[:-1]]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    return [f"{mode:o} {path.relative_to(folder)}" for path, mode in modes.items() if mode & 0o077]


def test_all_that_holds_data_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Log, keys, views, vectors, index, blobs, imports, notes of erasures, what workers keep; in any folder."""
    data, before = tmp_path / "data", os.umask(0o022)
    try:
        data.mkdir()
        invoke(data, "init")
        invoke(data, "import", str(SAMPLE))
        settings = Settings.load(blob_threshold=1024, exact_up_to=1)
        with open_memory(data, embedder=WordHashes(), settings=settings) as memory:
            memory.record_tool_result(U1, name="cat", output="line\n" * 2000)
            memory.operations.run_workers()
            assert {"index", "blobs", "imports", "vectors.db"} <= {path.name for path in data.iterdir()}
            assert open_to_others(data) == []
        invoke(data, "erase", "--subject", "dana", "--tenant", "hanul", "--yes")
        assert (data / "places.db").is_file()
        assert open_to_others(data) == []
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o755, (
            "a folder that was there stays as it was"
        )
        invoke(tmp_path / "made", "init")
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
    finally:
        os.umask(before)

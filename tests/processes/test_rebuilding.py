"""Views rebuilt in processes of their own equal those that one process rebuilds, while others read and write."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Thread

import pytest

from face_world import U1, U2, VIEWS, contents, dump_hashes, open_memory, rebuilt_hashes
from mnemolog import Memory, operations
from mnemolog.errors import InvalidInput, RebuildRefused, StoreUnavailable
from mnemolog.infra import rebuilding
from mnemolog.infra.settings import Settings


def filled(path: Path, **options: object) -> Memory:
    memory = open_memory(path, **options)
    for n in range(40):
        memory.record_turn(U1, role="user", content=f"note {n} 메모")
        memory.remember(U2, f"value {n}", slot=("report", f"format {n % 5}"))
    return memory


@pytest.mark.parametrize("processes", [None, 0, 2])
def test_all_views_are_rebuilt(tmp_path: Path, processes: int | None) -> None:
    """Every view gets a new file with the same content, and all of the work is told of."""
    with filled(tmp_path / "data") as memory:
        before = dump_hashes(memory)
        old = {view.file.filename for view in memory._store.views.files()}
        told: list[tuple[int, int]] = []
        memory.operations.rebuild_all(processes=processes, progress=lambda at, of: told.append((at, of)))
        assert dump_hashes(memory) == before
        assert not old & {view.file.filename for view in memory._store.views.files()}
        head = memory.operations.status().head
        assert told[-1] == (head * len(VIEWS), head * len(VIEWS))
        assert [at for at, _ in told] == sorted(at for at, _ in told)


def test_this_process_takes_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log that is neither short nor long, the largest view is rebuilt here, and the others beside it."""
    monkeypatch.setattr(operations, "_WORTH_A_PROCESS", 1)
    with filled(tmp_path / "data") as memory:
        before, rebuild = dump_hashes(memory), memory._store.runner.rebuild
        here: list[str] = []
        monkeypatch.setattr(
            memory._store.runner,
            "rebuild",
            lambda name, *rest, **more: here.append(name) or rebuild(name, *rest, **more),
        )
        files = list(memory._store.views.files())
        old, largest = {view.file.filename for view in files}, max(files, key=lambda one: one.bytes).file.name
        memory.operations.rebuild_all()
        assert here[0] == largest
        assert dump_hashes(memory) == before
        assert not old & {view.file.filename for view in memory._store.views.files()}


def test_reads_and_writes_go_on_meanwhile(tmp_path: Path) -> None:
    """Nothing that is written while other processes rebuild is missing in the new views."""
    with filled(tmp_path / "data") as memory:
        work = Thread(target=lambda: memory.operations.rebuild_all(["curated", "turns"], processes=2))
        work.start()
        written = 0
        while work.is_alive():
            memory.remember(U1, f"meanwhile {written}")
            written += 1
            assert len(contents(memory, U1)) == written
        work.join()
        assert len(contents(memory, U1)) == written
        live = dump_hashes(memory)
        memory.operations.rebuild_all(processes=0)
        assert dump_hashes(memory) == live


def test_a_root_key_that_only_this_process_knows_reaches_the_others(tmp_path: Path) -> None:
    """Settings given in code, secrets among them, hold in the other processes, too."""
    settings = Settings.load(root_key="QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=", durability="os")
    with filled(tmp_path / "data", settings=settings) as memory:
        before = dump_hashes(memory)
        memory.operations.rebuild_all(["turns"], processes=1)
        assert dump_hashes(memory) == before


def test_what_cannot_be_rebuilt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is ended leaves the live view as it was; an unknown name is refused before anything begins."""
    with filled(tmp_path / "data") as memory:
        with pytest.raises(InvalidInput, match="nosuch"):
            memory.operations.rebuild_all(["nosuch"])
        before = dump_hashes(memory)
        monkeypatch.setattr(rebuilding, "_COMMAND", ("true",))
        with pytest.raises(StoreUnavailable, match="turns"):
            memory.operations.rebuild_all(["turns"], processes=1)
        assert dump_hashes(memory) == before


FAILING = """
from mnemolog.projections.curated import Curated

def fold(self, conn, batch):
    raise ValueError("no")

Curated.fold = fold
from mnemolog.infra.rebuilding import serve

serve()
"""


def test_a_worse_view_of_another_process_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process could not fold is told by position and reason; the live view stays unless forced."""
    with filled(tmp_path / "data") as memory:
        before = dump_hashes(memory)
        monkeypatch.setattr(rebuilding, "_COMMAND", (sys.executable, "-c", FAILING))
        with pytest.raises(RebuildRefused, match="ValueError") as refused:
            memory.operations.rebuild_all(["curated"], processes=1)
        assert dump_hashes(memory) == before
        memory.operations.rebuild_all(["curated"], processes=1, force=True)
        parked = [(one.position, one.state) for one in memory.operations.parked("curated")]
        assert len(parked) == len(refused.value.events) > 0


def test_a_view_that_another_process_has_switched_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process had open is gone by then; it compares with what is live."""
    monkeypatch.setattr(operations, "_WORTH_A_PROCESS", 1)
    with open_memory(tmp_path / "data", background=False) as memory:
        memory.remember(U1, "I like tea")
        for _ in range(2):
            for name in VIEWS:
                memory.operations.rebuild(name)
            memory.operations.rebuild_all()
        assert dump_hashes(memory) == rebuilt_hashes(memory)

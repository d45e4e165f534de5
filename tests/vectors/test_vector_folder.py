"""Where vectors and index are: what is opened once, what is looked for, and which files are removed."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pytest
from vector_fakes import World, of_user

from mnemolog.consumers import vectorising
from mnemolog.consumers.vectorising import Vectorising
from mnemolog.domain.errors import StoreClosed
from mnemolog.infra.index import server
from mnemolog.infra.settings import Settings
from mnemolog.infra.vector_folder import VectorFolder
from support import require_module

NOWHERE = "postgresql://nobody@127.0.0.1:9/none"


def test_a_vector_server_gets_one_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is looked at; given out once it can be used, and never after it was closed."""
    require_module("qdrant_client", "pip install 'mnemolog[qdrant]'")
    from qdrant_client import QdrantClient

    made: list[Any] = []
    monkeypatch.setattr(server, "connect", lambda *_: made.append(QdrantClient(":memory:")) or made[-1])
    settings = Settings.load(database_url=NOWHERE, qdrant_url="http://127.0.0.1:9")
    folder = VectorFolder(tmp_path, settings, lambda: True)
    assert folder.index(make=False) is None
    index = folder.index(make=True)
    assert index is not None
    assert folder.index(make=False) is None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        index.begin("words@1", 64, "a")
        index.activate()
    assert folder.index(make=False) is index
    assert len(made) == 1
    folder.close()
    for make in (False, True):
        with pytest.raises(StoreClosed):
            folder.index(make=make)
    with pytest.raises(StoreClosed):
        index.points()


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("kept", ["log", "views"])
def test_vectors_that_nobody_would_erase_in_are_removed(tmp_path: Path, kept: str, leads: bool) -> None:
    """Those of this memory, by who leads; not those of another one, whose log is in the directory as well."""
    moved = {"log": {"database_url": NOWHERE}, "views": {"views_url": NOWHERE}}[kept]
    folder = VectorFolder(tmp_path, Settings.load(**moved), lambda: leads)
    names = ("vectors.db", "vectors.db-wal", "vectors.db-shm", "log.db")
    for name in names:
        (tmp_path / name).touch()
    folder.tidy()
    mine = leads and kept == "views"
    assert [(tmp_path / name).exists() for name in names] == [not mine] * 3 + [True]
    (tmp_path / "log.db").unlink()
    folder.tidy()
    assert [(tmp_path / name).exists() for name in names] == [not leads] * 3 + [False]


def test_readers_do_not_look_for_vectors_all_the_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many questions before the first vector are one look; an erasure and its second look always look."""
    monkeypatch.setattr(vectorising, "_TRUSTED", math.inf)
    looks: list[bool] = []

    class Nothing(VectorFolder):
        def rows(self, *, make: bool) -> None:
            looks.append(make)

    folder = Nothing(world.folder, Settings.load(index="none", database_url=NOWHERE), lambda: True)
    vectors = Vectorising(world.log, folder, lambda: world.embedder)
    assert [vectors.cosines("when", [of_user()], 9, 5) for _ in range(3)] == [None] * 3
    assert looks == [False]
    vectors.erase()
    assert vectors.holding([1]) == {}
    assert looks == [False] * 3
    vectors.close()

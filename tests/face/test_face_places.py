"""Where a memory is opened: in a folder, at a url, by settings; and what is said of no such place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from face_world import U1, contents
from mnemolog import AsyncMemory, Memory, Settings
from mnemolog.errors import InvalidInput, KeysMissing, NotFound, StoreUnavailable
from postgres_world import new_schema

QUIET = {"background": False}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody named goes into a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEMOLOG_DURABILITY", "os")


@pytest.fixture
def in_a_database(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A url, with a place of the test's own in the server, and the keys there too."""
    monkeypatch.setenv("MNEMOLOG_DATABASE_SCHEMA", new_schema())
    monkeypatch.setenv("MNEMOLOG_KEYS_URL", postgres_url)
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY", "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0ISEhISE=")
    return postgres_url


def test_settings_say_it_all(tmp_path: Path) -> None:
    """By settings, the data directory is theirs; a folder as text or path is the same memory."""
    with Memory.open(Settings.load(data=tmp_path / "here"), **QUIET) as memory:
        memory.remember(U1, "kept")
    for where in (tmp_path / "here", "here"):
        with Memory.open(where, **QUIET) as memory:
            assert contents(memory, U1) == ["kept"]


async def test_the_awaited_memory_opens_at_the_same_places(tmp_path: Path) -> None:
    """AsyncMemory takes what Memory takes."""
    async with await AsyncMemory.open(Settings.load(data=tmp_path / "here"), **QUIET) as memory:
        assert memory.path == tmp_path / "here"


def test_a_url_is_all_that_two_machines_share(in_a_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log, views and keys are in the database: from another data directory the same memory is there."""
    with Memory.open(in_a_database, **QUIET) as memory:
        memory.remember(U1, "kept")
        assert memory.path == Path("data")
    monkeypatch.setenv("MNEMOLOG_DATA", "another")
    with Memory.open(in_a_database, create=False, **QUIET) as memory:
        assert contents(memory, U1) == ["kept"]
        assert memory.path == Path("another")
    assert {one.name for one in Path("another").iterdir()} & {"log.db", "keys.db", "views"} == set()


def test_views_can_be_files_beside_a_log_in_a_database(
    in_a_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine may have views of its own: what one wrote is in the other's."""
    monkeypatch.setenv("MNEMOLOG_VIEWS_URL", "files")
    with Memory.open(in_a_database, **QUIET) as memory:
        memory.remember(U1, "kept")
        assert contents(memory, U1) == ["kept"]
    assert Path("data", "views", "live.json").exists()


def test_a_database_without_its_keys(in_a_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine that was not told where the keys are is told to say it; none are made."""
    with Memory.open(in_a_database, **QUIET) as memory:
        memory.remember(U1, "kept")
    monkeypatch.delenv("MNEMOLOG_KEYS_URL")
    monkeypatch.setenv("MNEMOLOG_DATA", "another")
    with pytest.raises(KeysMissing, match="MNEMOLOG_KEYS_URL"):
        Memory.open(in_a_database, **QUIET)
    assert not Path("another", "keys.db").exists()


def test_an_empty_database_is_no_memory(in_a_database: str) -> None:
    """With create=False a database without events is none."""
    with pytest.raises(NotFound):
        Memory.open(in_a_database, create=False, **QUIET)


@pytest.mark.parametrize(
    "where",
    ["mysql://me:hunter2@host/name", "postgresql:me:hunter2@host", "s3://hunter2", 17, None],
)
def test_no_such_place(where: Any) -> None:
    """What is neither folder nor database url nor settings is refused, without being repeated."""
    with pytest.raises(InvalidInput) as raised:
        Memory.open(where, **QUIET)
    assert "hunter2" not in str(raised.value)


def test_settings_twice() -> None:
    """Two settings for one memory are one too many."""
    with pytest.raises(InvalidInput, match="twice"):
        Memory.open(Settings.load(), settings=Settings.load())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:9/name?connect_timeout=1",
        "postgresql://me:hunter2%zz@127.0.0.1/name",
        "postgresql://me:hunter2@127.0.0.1:port/name",
        "postgresql://me:hunter2@127.0.0.1/name?no_such_option=1",
    ],
)
def test_a_password_is_in_no_error(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Unreachable or malformed: the error is typed, and neither it, its cause nor any log shows the password."""
    caplog.set_level("DEBUG")
    pytest.importorskip("psycopg_pool")
    with pytest.raises((InvalidInput, StoreUnavailable)) as raised:
        Memory.open(url, **QUIET)
    assert "hunter2" not in caplog.text
    chain: BaseException | None = raised.value
    while chain is not None:
        assert "hunter2" not in f"{chain!r}"
        chain = (
            None
            if chain.__suppress_context__ and chain.__cause__ is None
            else chain.__cause__ or chain.__context__
        )

"""A whole memory with its log and views in PostgreSQL, by the settings alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from face_world import U1, U2, contents, dump_hashes, open_memory, rebuilt_hashes, texts
from mnemolog import Memory
from mnemolog.errors import InvalidInput, KeysMissing, NotFound, StoreUnavailable
from mnemolog.infra.settings import Settings
from postgres_world import new_schema


@pytest.fixture
def kept(postgres_url: str) -> Settings:
    """Settings with a place of the test's own in the server."""
    return Settings.load(database_url=postgres_url, database_schema=new_schema(), durability="os")


@pytest.fixture
def with_keys(kept: Settings, postgres_url: str) -> Settings:
    """The keys there, too."""
    return kept.model_copy(update={"keys_url": SecretStr(postgres_url)})


def opened(path: Path, settings: Settings, **options: Any) -> Memory:
    return open_memory(path, settings=settings, **options)


@pytest.mark.parametrize("where", ["kept", "with_keys"])
def test_a_memory_works_and_is_there_again(
    tmp_path: Path, request: pytest.FixtureRequest, where: str
) -> None:
    """Record, correct, recall, context, erase and rebuild; nothing of log and views is in the directory."""
    path, kept = tmp_path / "data", request.getfixturevalue(where)
    with opened(path, kept) as memory:
        memory.record_turn(U1, role="user", content="The budget is due on Friday 예산")
        memory.record_turn(U2, role="user", content="sparrows in the garden 참새")
        note = memory.remember(U1, "Reports go out as Excel", slot=("report", "format"))
        memory.correct(U1, note.record_id, "Reports go out as PDF", reason="asked", expected_version=1)
        assert contents(memory, U1) == ["Reports go out as PDF"]
        assert "The budget is due on Friday 예산" in texts(memory, U1, "budget 예산")
        assert "Reports go out as PDF" in memory.context(U1, "draft the report", budget=500).text
        receipt = memory.erase(U2.at(("tenant",)), subject="u-2", reason="asked").apply()
        assert [store.store for store in receipt.stores if store.due] == ["keys"] * (where == "with_keys")
        assert texts(memory, U2, "sparrows") == []
        live = dump_hashes(memory)
        assert rebuilt_hashes(memory) == live
    gone = {"log.db", "views"} if where == "kept" else {"log.db", "views", "keys.db"}
    assert not gone & {one.name for one in path.iterdir()}
    with opened(path, kept, create=False) as memory:
        assert dump_hashes(memory) == live
        assert memory.operations.verify_log() == memory.operations.status().head


def test_two_openings_share_it(tmp_path: Path, kept: Settings) -> None:
    """What one writes is in the other's next read; a rebuild by one switches both."""
    with opened(tmp_path / "data", kept) as one, opened(tmp_path / "data", kept) as other:
        assert [each.operations.status().leads for each in (one, other)] == [True, False]
        for n in range(3):
            one.remember(U1, f"one says {n}")
            other.remember(U1, f"다른 쪽 {n}")
            assert contents(one, U1) == contents(other, U1)
            other.operations.rebuild("curated")
        assert len(contents(one, U1)) == 6
        one.operations.rebuild_all(processes=2)
        assert len(contents(other, U1)) == 6


def test_what_is_not_there_is_said(tmp_path: Path, kept: Settings) -> None:
    """A directory without a memory, keys that are lost, a server that is away: each has its own error."""
    with pytest.raises(NotFound):
        opened(tmp_path / "data", kept, create=False)
    with opened(tmp_path / "data", kept) as memory:
        memory.remember(U1, "kept")
    for lost in (tmp_path / "data").glob("keys.db*"):
        lost.unlink()
    with pytest.raises(KeysMissing):
        opened(tmp_path / "data", kept)
    away = Settings.load(database_url="postgresql://nobody:hunter2@127.0.0.1:9/none?connect_timeout=1")
    with pytest.raises(StoreUnavailable) as raised:
        opened(tmp_path / "elsewhere", away)
    assert "hunter2" not in f"{raised.value!r}{away!r}"
    with pytest.raises(InvalidInput, match="DATABASE_SCHEMA"):
        Settings.load(database_schema="drop table")

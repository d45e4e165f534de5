"""A memory that has something of everything, the two places that it moves between, and what must be the same."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from embedding_fakes import Bigrams, embedding_memory
from face_world import U1, U2, VIEWS, open_memory
from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings
from mnemolog.moving import MoveReceipt, move
from postgres_world import new_schema

SECRET = "zyxwombatqk"
GONE = Scope("acme", user="u-3", project="billing", session="s-3")
NOW = datetime(2026, 6, 1, tzinfo=UTC)
QUERIES = ("budget friday", "예산 금요일", "large output")
FILES = Settings.load(durability="os")


def in_postgres(url: str, root: Path) -> Settings:
    """Log, views and keys in schemas of their own, under a root key in another folder."""
    return Settings.load(
        database_url=url,
        keys_url=url,
        database_schema=new_schema(),
        root_key_file=root,
        durability="os",
    )


def fill(memory: Memory) -> None:
    """Turns, records, corrections, a large output, receipts of reads; an event and a person are erased."""
    for number, scope in enumerate((U1, U2) * 12):
        memory.record_turn(
            scope, role="user", content=f"budget {number} friday 예산 금요일\x00", key=f"k-{number}"
        )
    memory.record_tool_result(U1, output="large output\n" * 12_000, key="large")
    note = memory.remember(U1, "Reports go out as Excel", slot=("report", "format"))
    memory.correct(U1, note.record_id, "Reports go out as PDF", reason="asked")
    memory.operations.adopt_policy(
        "version: 1\nmemory: {kinds: [fact, preference]}\npersonal: {email: keep}\n"
    )
    memory.remember(U2, "a step that is not kept", kind="procedure")
    memory.record_turn(U2, role="user", content="write to min@example.com")
    memory.set_state(U2, "task", {"step": 3, "β": "é"})
    memory.context(U1, "budget", budget=400)
    spoken = memory.record_turn(U1, role="user", content=f"{SECRET} is my password")
    memory.record_turn(GONE, role="user", content=f"{SECRET} 3", key="gone")
    memory.record_tool_result(GONE, output=f"{SECRET} " * 20_000)
    memory.operations.catch_up()
    assert not memory.erase(U1, event=spoken.event_id).apply().pending
    assert not memory.erase(Scope("acme"), subject="u-3").apply().pending


def made(path: Path) -> dict[str, Any]:
    """A memory in files, and what is to be the same wherever it is."""
    with embedding_memory(path, Bigrams(), settings=FILES) as memory:
        fill(memory)
        memory.operations.embed()
        return seen(memory)


def seen(memory: Memory) -> dict[str, Any]:
    """Every stored row with its position, every view, and what recall finds with words and vectors."""
    memory._store.accesses.flush()
    memory.operations.catch_up()
    return {
        "rows": memory._store.log.stored.rows(0, 100_000),
        "leaves": memory._store.log.leaves(0, 100_000),
        "views": {name: memory._store.runner.dump(name) for name in VIEWS},
        "hits": [found(memory, scope) for scope in (U1, U2, GONE)],
    }


def found(memory: Memory, scope: Scope) -> list[Sequence[Any]]:
    """Texts and scores of recall; past the face, which leaves a trail: looking must not change what is looked at."""
    hits = [memory._reader.recall(scope, query, 20, now=NOW) for query in QUERIES]
    return [[(hit.text, hit.score.hex()) for hit in some] for some in hits]


def opened(path: Path, settings: Settings, **options: Any) -> Memory:
    return open_memory(path, settings=settings, **options)


class Crash(BaseException):
    """The process ends here."""


def crash() -> None:
    raise Crash


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A memory in files, made once, and what is in it."""
    path = tmp_path_factory.mktemp("prepared") / "files"
    return path, made(path)


@pytest.fixture
def files(tmp_path: Path, prepared: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    """A copy for this test, as `tmp_path / "files"`, and what is in it."""
    shutil.copytree(prepared[0], tmp_path / "files")
    return prepared[1]


@pytest.fixture
def server(tmp_path: Path, postgres_url: str) -> Settings:
    return in_postgres(postgres_url, tmp_path / "secure" / "root.key")


def there(tmp_path: Path, server: Settings, **options: Any) -> MoveReceipt:
    return move(tmp_path / "files", tmp_path / "server", settings=FILES, to_settings=server, **options)


def back(tmp_path: Path, server: Settings, to: str, **options: Any) -> MoveReceipt:
    return move(tmp_path / "server", tmp_path / to, settings=server, to_settings=FILES, **options)

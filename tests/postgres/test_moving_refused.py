"""What may not be moved, or not now: it is refused with what to do, and neither end is harmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from moving_world import FILES, Crash, back, crash, opened, there

from face_world import U1, agent, everything, open_memory
from mnemolog import Memory
from mnemolog.errors import (
    AccessDenied,
    AnotherLog,
    InvalidInput,
    KeysMissing,
    NotFound,
    StoreInUse,
    StoreMoved,
    StoreUnavailable,
)
from mnemolog.infra.compose import open_store
from mnemolog.infra.locks import exclusively
from mnemolog.infra.settings import Settings
from mnemolog.moving import move
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.infra.postgres.log import PostgresEventLog  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


def test_a_target_with_something_else_is_refused_and_left_alone(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """Another log, one that has gone further, keys of another store; each stays as it was, and usable."""
    with opened(tmp_path / "server", server) as memory:
        memory.remember(U1, "another one's")
    with pytest.raises(AnotherLog, match="another log"):
        there(tmp_path, server)
    with opened(tmp_path / "server", server) as memory:
        assert [one.content for one in memory.records(U1)] == ["another one's"]
    keys_only = server.model_copy(update={"database_url": None})
    with pytest.raises(AnotherLog, match="keys of another log"):
        move(tmp_path / "files", tmp_path / "new", settings=FILES, to_settings=keys_only)
    with opened(tmp_path / "server", server) as memory:
        assert [one.content for one in memory.records(U1)] == ["another one's"]


def test_the_stale_end_does_not_overwrite_the_other(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """Whoever takes the mark off the source still cannot move it over a target that has gone on."""
    there(tmp_path, server)
    with opened(tmp_path / "server", server) as memory:
        memory.remember(U1, "newer")
    with pytest.raises(StoreMoved):
        there(tmp_path, server)
    with open_store(tmp_path / "files", FILES, moving=True) as store:
        store.log.put_mark(None)
        store.close()
    with pytest.raises(AnotherLog, match="the other way"):
        there(tmp_path, server)


def test_both_ends_must_be_free_and_different(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """Open elsewhere, the same directory, the same schema, no memory: nothing is begun."""
    with opened(tmp_path / "files", FILES), pytest.raises(StoreInUse, match=r"has .*files open"):
        there(tmp_path, server)
    with opened(tmp_path / "server", server), pytest.raises(StoreInUse, match="has postgresql"):
        there(tmp_path, server)
    with pytest.raises(InvalidInput, match="same"):
        move(tmp_path / "files", tmp_path / "files", settings=FILES, to_settings=server)
    there(tmp_path, server)
    with pytest.raises(InvalidInput, match="same"):
        move(tmp_path / "server", tmp_path / "other", settings=server, to_settings=server)
    keys_only = server.model_copy(update={"database_url": None})
    with pytest.raises(InvalidInput, match="same key store"):
        move(tmp_path / "server", tmp_path / "other", settings=server, to_settings=keys_only)
    with pytest.raises(NotFound):
        move(tmp_path / "nothing", tmp_path / "other", settings=FILES)


def test_only_an_operator_of_everything_may(tmp_path: Path, server: Settings, files: dict[str, Any]) -> None:
    """An agent's try is refused, and recorded."""
    with pytest.raises(AccessDenied):
        there(tmp_path, server, principal=agent())
    with open_memory(tmp_path / "files") as memory:
        assert memory.log(topics={"AccessRefused"})


def test_an_erasure_that_is_not_finished_comes_first(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """A note that opening cannot finish keeps the memory where it is."""
    with open_memory(tmp_path / "files") as memory:
        turn = memory.record_turn(U1, role="user", content="to go")
        plan = memory.erase(U1, event=turn.event_id)
        with pytest.raises(Crash):
            plan.apply(lambda step: crash())
    with (
        exclusively(tmp_path / "files" / "erasing.lock", 1, "erasing"),
        pytest.raises(StoreInUse, match="erase --resume"),
    ):
        there(tmp_path, server)
    there(tmp_path, server)
    with opened(tmp_path / "server", server) as memory:
        assert "to go" not in everything(memory, U1, "go")


def test_who_has_the_server_open_from_elsewhere_is_locked_out(
    tmp_path: Path, server: Settings, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine, with a directory of its own: its append waits while the move runs, and is refused after."""
    there(tmp_path, server)
    tries: list[type[Exception] | None] = []
    with opened(tmp_path / "elsewhere", server) as other:
        monkeypatch.setattr(other._store.log._storage, "_session", {"lock_timeout": "50ms"})

        def attempt(step: str, done: int, of: int) -> None:
            if step == "comparison":
                tries.append(outcome(other))

        receipt = back(tmp_path, server, "back", progress=attempt)
        tries.append(outcome(other))
        assert tries == [StoreUnavailable, StoreUnavailable, StoreMoved]
        assert len(other.log(limit=1000)) == receipt.events


@pytest.mark.parametrize("what", ["append", "destroy"])
def test_what_slipped_in_is_noticed_before_the_target_opens(
    tmp_path: Path, server: Settings, files: dict[str, Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of the server was lost with its connection: an event or an erasure came after the comparison."""
    there(tmp_path, server)
    close = PostgresEventLog.put_mark
    assert server.database_url is not None
    url = server.database_url.get_secret_value()
    with opened(tmp_path / "elsewhere", server) as other:
        vault = other._store.vault
        ids = vault.resolve(U1, create=False)
        assert ids is not None

        def late(log: PostgresEventLog, mark: str | None, *, closed: bool = False) -> None:
            if closed:
                monkeypatch.setattr(PostgresEventLog, "put_mark", close)
                # As after a restart of the server: nobody holds the lock any more.
                with psycopg.connect(url, autocommit=True) as sql:
                    sql.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE query LIKE 'SELECT pg_advisory_lock(%' AND pid <> pg_backend_pid()"
                    )
                if what == "append":
                    other.record_turn(U1, role="user", content="slipped in")
                else:
                    vault.destroy_leaves({ids.tenant: [0]})
            close(log, mark, closed=closed)

        monkeypatch.setattr(PostgresEventLog, "put_mark", late)
        with pytest.raises(StoreInUse, match="run it again"):
            back(tmp_path, server, "back")
        with pytest.raises(StoreMoved, match="interrupted"):
            opened(tmp_path / "back", FILES)
    receipt = back(tmp_path, server, "back")
    assert receipt.carried == (what == "append")
    assert receipt.events == len(files["rows"]) + receipt.carried


def outcome(memory: Memory) -> type[Exception] | None:
    try:
        memory.record_turn(U1, role="user", content="from elsewhere")
    except Exception as error:
        return type(error)
    return None


def test_a_root_key_is_needed_on_the_other_side(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """A target whose root key is not the one of its key store is not touched."""
    there(tmp_path, server)
    wrong = server.model_copy(update={"root_key_file": tmp_path / "files" / "root.key"})
    with pytest.raises(KeysMissing):
        move(tmp_path / "server", tmp_path / "back", settings=wrong, to_settings=FILES)

"""A memory moves from files to PostgreSQL and back: nothing is lost, nothing is changed, erased stays erased."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from moving_world import FILES, GONE, SECRET, fill, in_postgres, made, opened, seen

from embedding_fakes import Bigrams, embedding_memory
from face_world import ACME, U1, U2, agent, dump_hashes, everything, files_with, open_memory
from mnemolog import FORGOTTEN, ErasureReceipt, Memory
from mnemolog.errors import (
    AccessDenied,
    AnotherLog,
    ErasedScope,
    InvalidInput,
    KeysMissing,
    NotFound,
    StoreInUse,
    StoreMoved,
    StoreUnavailable,
)
from mnemolog.infra import compose, moving
from mnemolog.infra.compose import open_store
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.locks import exclusively
from mnemolog.infra.roles.beside import ingest_key_file, opened_places
from mnemolog.infra.settings import Settings
from mnemolog.moving import MoveReceipt, move
from postgres_world import new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402
from moving_child import Steps, count  # noqa: E402

from mnemolog.infra.postgres.log import PostgresEventLog  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


@pytest.fixture(scope="module")
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


def looked_at(path: Path, settings: Settings) -> dict[str, Any]:
    """What is there, by an embedder that may only be asked for queries."""
    asked = Bigrams()
    with embedding_memory(path, asked, settings=settings) as memory:
        found = seen(memory)
    assert len(asked.texts) <= 9
    return found


def test_there_and_back_everything_is_the_same(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """Rows, leaves, views, scores and vectors; what was left is closed, and the receipt says what came."""
    before = files
    receipt = there(tmp_path, server)
    assert (receipt.events, receipt.carried) == (len(before["rows"]), len(before["rows"]))
    assert receipt.blobs == 1
    assert receipt.vectors > 40
    assert looked_at(tmp_path / "server", server) == before
    with pytest.raises(StoreMoved, match="moved to postgresql://127"):
        opened(tmp_path / "files", FILES)
    again = back(tmp_path, server, "back")
    assert (again.root, again.views) == (receipt.root, receipt.views)
    assert looked_at(tmp_path / "back", FILES) == before
    with pytest.raises(StoreMoved, match="moved to"):
        opened(tmp_path / "server", server)


def test_the_keys_are_under_the_root_key_of_the_target(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """What opens the source does not open the target; names, hash keys, fences and leaf numbers came along."""
    with opened(tmp_path / "files", FILES) as memory:
        before, refused = memory.operations.status().keys, memory.operations.status().refused_late
    there(tmp_path, server)
    other = server.model_copy(update={"root_key_file": tmp_path / "files" / "root.key"})
    with pytest.raises(KeysMissing):
        opened(tmp_path / "server", other)
    with opened(tmp_path / "server", server) as memory:
        status = memory.operations.status()
        assert before == {**status.keys, "next_leaf": before["next_leaf"]}
        assert status.keys["next_leaf"] >= before["next_leaf"]
        assert memory.record_turn(
            U1, role="user", content="budget 0 friday 예산 금요일\x00", key="k-0"
        ).duplicate
        with pytest.raises(ErasedScope):
            memory.record_turn(GONE, role="user", content="late", occurred_at="2020-01-01T00:00:00Z")
        assert memory.operations.status().refused_late == refused + 1


def test_it_goes_on_there_and_comes_back_into_the_old_place(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """The old files take what came since; what was erased meanwhile is in none of them, keys and views included."""
    there(tmp_path, server)
    assert files_with(tmp_path / "files", "Reports go out as PDF")
    with opened(tmp_path / "server", server) as memory:
        note = memory.remember(U1, f"{SECRET} again")
        large = memory.record_tool_result(U1, output="large and new " * 9_000)
        for gone in (memory.records(U1)[0].record_id, note.record_id):
            assert due(memory.erase(U1, record=gone).apply()) == ["keys"]
        kept = memory.read_output(U1, large.event_id, start=0, end=9).text
        assert due(memory.erase(ACME, subject="u-2").apply()) == ["keys"]
    with pytest.raises(StoreInUse, match="keys rotate"):
        back(tmp_path, server, "files")
    with opened(tmp_path / "server", server) as memory:
        memory.operations.rotate_root_key()
        hashes = dump_hashes(memory)
    receipt = back(tmp_path, server, "files")
    assert 0 < receipt.carried < receipt.events
    with opened(tmp_path / "files", FILES) as memory:
        assert dump_hashes(memory) == hashes
        assert memory.read_output(U1, large.event_id, start=0, end=9).text == kept
        assert SECRET not in everything(memory, U1, SECRET)
        with pytest.raises(ErasedScope):
            memory.record_turn(U2, role="user", content="late", occurred_at="2020-01-01T00:00:00Z")
        forgotten = [each for each in memory.log(limit=1000) if each.event is FORGOTTEN]
        assert len(forgotten) > 12
    assert files_with(tmp_path / "files", SECRET, "Reports go out as PDF") == set()


def test_what_roles_keep_beside_the_log_comes_along(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """How far readers have passed it on, in a file and in the database, and the keys of sealed messages."""
    ends = [
        settings.model_copy(update={"data": tmp_path / name})
        for name, settings in (("files", FILES), ("server", server))
    ]
    with opened_places(ends[0]) as places:
        places.save("relay", None, b"17")
    places_of_keys = [ingest_key_file(end) for end in ends]
    sealed = IngestKeys.load(places_of_keys[0], create=True).current.seal(b"sent before")
    there(tmp_path, server)
    with opened_places(ends[1]) as places:
        assert places.all() == {"relay": b"17"}
        places.save("relay", b"17", b"19")
    assert places_of_keys[1].read_bytes() == places_of_keys[0].read_bytes()
    assert places_of_keys[1].stat().st_mode & 0o777 == 0o600
    rotated = IngestKeys.load(places_of_keys[1]).rotated(places_of_keys[1])
    back(tmp_path, server, "files")
    with opened_places(ends[0]) as places:
        assert places.all() == {"relay": b"19"}
    here = IngestKeys.load(places_of_keys[0])
    assert here.private == rotated.private
    assert [here.open(each) for each in (sealed, rotated.current.seal(b"sent there"))] == [
        b"sent before",
        b"sent there",
    ]
    assert files


def test_vectors_that_the_target_held_before_are_out_of_its_bytes(
    tmp_path: Path, server: Settings, files: dict[str, Any], postgres_url: str
) -> None:
    """Where somebody reads there, so that they would stay, the move stops and says so; it is run again."""
    from mnemolog.infra.postgres.vectors import postgres_vectors

    schema = f"{server.database_schema}_vectors"
    postgres_vectors(postgres_url, schema).close()
    with psycopg.connect(postgres_url) as reader:
        reader.execute(f"SELECT * FROM {schema}.meta").fetchall()
        with pytest.raises(StoreInUse, match="reads the vectors"):
            there(tmp_path, server)
    there(tmp_path, server)
    assert looked_at(tmp_path / "server", server) == files


def test_it_moves_between_places_that_workers_fold(
    tmp_path: Path, server: Settings, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else may be there, so nobody is waited for; workers of the target go on from what is folded."""
    monkeypatch.setattr(moving, "_HOURS", 20.0)
    monkeypatch.setattr(compose, "_REFOLD_SECONDS", 20.0)
    first = server.model_copy(update={"workers": True})
    second = first.model_copy(update={"database_schema": new_schema(), "keys_url": None})
    there(tmp_path, first)
    receipt = move(tmp_path / "server", tmp_path / "second", settings=first, to_settings=second)
    assert receipt.events == len(files["rows"])
    assert looked_at(tmp_path / "second", second.model_copy(update={"workers": False})) == files


def due(receipt: ErasureReceipt) -> list[str]:
    """The stores in which something of an erasure is left."""
    return [store.store for store in receipt.stores if store.due or store.readable]


# Cut off -------------------------------------------------------------------------------------------------------------

LAST = 34
"""Steps of a whole move of this memory; each is a point at which it is cut off."""


class Crash(BaseException):
    """The process ends here."""


def crash() -> None:
    raise Crash


def points(every: int, first: int = 1) -> list[Any]:
    """All steps; most are left to the long run."""
    some = set(range(first, LAST + 1, every))
    return [pytest.param(at, marks=() if at in some else pytest.mark.slow) for at in range(1, LAST + 1)]


@pytest.mark.parametrize("at", points(every=11))
def test_cut_off_anywhere_it_is_run_again_and_finishes(
    tmp_path: Path, server: Settings, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Until then nobody gets into the target, and never are both ends open; in the end all is the same."""
    before = files
    with monkeypatch.context() as patched:
        steps = Steps(at, crash)
        count(steps, patched.setattr)
        with pytest.raises(Crash):
            there(tmp_path, server, progress=steps.step)
    assert sum(opens(tmp_path / name, kept) for name, kept in (("files", FILES), ("server", server))) <= 1
    if at < LAST:
        there(tmp_path, server)
    assert looked_at(tmp_path / "server", server) == before


def opens(path: Path, settings: Settings) -> bool:
    """Whether a memory with something in it can be opened."""
    try:
        with opened(path, settings, create=False) as memory:
            return memory.operations.status().head > 0
    except (StoreMoved, NotFound):
        return False


def test_the_steps_are_as_many_as_are_cut_off(
    tmp_path: Path, server: Settings, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points above are all that there are."""
    steps = Steps(0, crash)
    count(steps, monkeypatch.setattr)
    there(tmp_path, server, progress=steps.step)
    assert steps.done == LAST


@pytest.mark.parametrize("at", points(every=40, first=20))
def test_killed_anywhere_it_is_run_again_and_finishes(
    tmp_path: Path, server: Settings, files: dict[str, Any], at: int
) -> None:
    """The same with kill -9, and on the way back; the one who comes after is in neither's way."""
    before = files
    ends = ("files", FILES, "server", server), ("server", server, "back", FILES)
    for source, given, target, taken in ends:
        order = [str(tmp_path / source), plain(given), str(tmp_path / target), plain(taken)]
        run = [sys.executable, Path(__file__).with_name("moving_child.py"), *order]
        path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
        environment = {**os.environ, "PYTHONPATH": path}
        killed = subprocess.run([*run, str(at)], env=environment, check=False, capture_output=True)
        assert killed.returncode == -9, killed.stderr.decode()
        if at < LAST:
            move(tmp_path / source, tmp_path / target, settings=given, to_settings=taken)
        assert looked_at(tmp_path / target, taken) == before


def plain(settings: Settings) -> str:
    """Settings as JSON, secrets readable."""
    urls = {name: getattr(settings, name) for name in ("database_url", "keys_url")}
    values = {name: url.get_secret_value() for name, url in urls.items() if url is not None}
    if settings.root_key_file is not None:
        values["root_key_file"] = str(settings.root_key_file)
    return json.dumps({**values, "database_schema": settings.database_schema, "durability": "os"})


def test_what_was_erased_between_two_runs_is_not_brought(
    tmp_path: Path, server: Settings, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move that was cut off had the text in the target's views and large outputs; the next run takes it away."""
    with open_memory(tmp_path / "files") as memory:
        large = memory.record_tool_result(U1, output=f"{SECRET} " * 20_000)
        memory.operations.catch_up()
    steps = Steps(LAST - 3, crash)
    with monkeypatch.context() as patched:
        count(steps, patched.setattr)
        with pytest.raises(Crash):
            there(tmp_path, server, progress=steps.step)
    assert (tmp_path / "server" / "blobs" / large.event_id).exists()
    with open_memory(tmp_path / "files") as memory:
        assert not memory.erase(U1, event=large.event_id).apply().pending
    there(tmp_path, server)
    assert not (tmp_path / "server" / "blobs" / large.event_id).exists()
    with opened(tmp_path / "server", server) as memory:
        assert SECRET not in everything(memory, U1, SECRET)


# Refused -------------------------------------------------------------------------------------------------------------


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


# The long one --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fifty_thousand_events_there_and_back(
    tmp_path: Path, server: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Identical leaf hashes and dumps, also when it is cut off in the middle of the log and of the views."""
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
        for start in range(0, 50_000, 1000):
            items = [
                {
                    "type": "turn",
                    "scope": (U1, U2)[n % 2],
                    "role": "user",
                    "content": f"budget {n} 예산 friday {n % 97}",
                    "key": f"n-{n}",
                }
                for n in range(start, start + 1000)
            ]
            memory.record_batch(items)
        memory.operations.catch_up(timeout=600)
        hashes, events = dump_hashes(memory), memory.operations.status().head
    for move_on, at in ((there, 60), (back, 250)):
        steps = Steps(at, crash)
        options: dict[str, Any] = {} if move_on is there else {"to": "back"}
        with pytest.raises(Crash):
            move_on(tmp_path, server, progress=steps.step, **options)
        receipt = move_on(tmp_path, server, **options)
        assert receipt.events == events > 50_000
        assert receipt.views == hashes
    with open_memory(tmp_path / "back") as memory:
        assert memory.operations.verify_log() == events
        assert memory.recall(U1, SECRET) == memory.recall(GONE, SECRET) == []


def test_a_root_key_is_needed_on_the_other_side(
    tmp_path: Path, server: Settings, files: dict[str, Any]
) -> None:
    """A target whose root key is not the one of its key store is not touched."""
    there(tmp_path, server)
    wrong = server.model_copy(update={"root_key_file": tmp_path / "files" / "root.key"})
    with pytest.raises(KeysMissing):
        move(tmp_path / "server", tmp_path / "back", settings=wrong, to_settings=FILES)

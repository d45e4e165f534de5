"""A memory moves from files to PostgreSQL and back: nothing is lost, nothing is changed, erased stays erased."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from moving_world import FILES, GONE, SECRET, Crash, back, crash, fill, opened, seen, there

from embedding_fakes import Bigrams, embedding_memory
from face_world import ACME, U1, U2, dump_hashes, everything, files_with, open_memory
from mnemolog import FORGOTTEN, ErasureReceipt
from mnemolog.errors import (
    ErasedScope,
    KeysMissing,
    NotFound,
    StoreInUse,
    StoreMoved,
)
from mnemolog.infra import compose, moving
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.places import opened_places
from mnemolog.infra.roles.beside import ingest_key_file
from mnemolog.infra.settings import Settings
from mnemolog.moving import move
from postgres_world import new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402
from moving_child import Steps, count  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


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


def points(every: int, first: int = 1) -> list[Any]:
    """All steps; most are left to the long run."""
    some = set(range(first, LAST + 1, every))
    return [pytest.param(at, marks=() if at in some else pytest.mark.slow) for at in range(1, LAST + 1)]


@pytest.mark.parametrize("at", points(every=30))
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

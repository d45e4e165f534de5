"""A memory whose large outputs are elsewhere: in a bucket, or in a folder that machines share."""

from __future__ import annotations

from pathlib import Path

import pytest

from face_world import U1, open_memory
from mnemolog import FORGOTTEN, Settings

OUTPUT = "the needle lies here 바늘은 여기 있다\n" + "hay " * 20_000


@pytest.fixture(params=["folder", "bucket"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = str(tmp_path / "shared") if request.param == "folder" else request.getfixturevalue("bucket_url")
    return Settings.load(blobs_url=url, durability="os")


def test_a_large_output_is_kept_read_found_and_erased(tmp_path: Path, settings: Settings) -> None:
    """It is read in ranges, found by its words, and gone after its erasure; the directory never had it."""
    with open_memory(tmp_path / "data", settings=settings) as memory:
        event = memory.record_tool_result(U1, name="cat", output=OUTPUT).event_id
        blobs = memory._store.blobs
        assert list(blobs.names()) == [event]
        found = memory.read_output(U1, event, 4, 10)
        assert found.text == "needle"
        assert [hit.event_ids for hit in memory.recall(U1, "needle 바늘")] == [(event,)]
        receipt = memory.erase(U1, event=event).apply()
        assert receipt.complete
        assert {store.store: store.removed for store in receipt.stores}["blobs"] == 1
        assert memory.read_output(U1, event) is FORGOTTEN
        assert list(blobs.names()) == []
    assert not (tmp_path / "data" / "blobs").exists()


def test_another_directory_reads_it(tmp_path: Path, settings: Settings) -> None:
    """Blobs are written by one opening and read by the next; what has an event is never swept, nor what is new."""
    with open_memory(tmp_path / "data", settings=settings) as memory:
        event = memory.record_tool_result(U1, name="cat", output=OUTPUT).event_id
    with open_memory(tmp_path / "data", settings=settings) as memory:
        lost = memory._store.blobs
        lost.carry("f" * 32, b"what a crash left a moment ago, or another machine is about to append")
        assert memory.operations.finish_erasures() == []
        assert memory.read_output(U1, event, 0, 3).text == "the"
        assert set(lost.names()) == {event, "f" * 32}

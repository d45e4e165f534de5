"""Background work lets a read finish first, and not for long."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

from face_world import U1, open_memory
from mnemolog.projections.readers import Readers


def test_whoever_reads_is_waited_for() -> None:
    """With nobody reading there is no wait; while two read, the end of one is not enough; and patience ends."""
    readers, passed = Readers(), Event()
    assert readers.let_pass(0)
    with readers.reading():
        with readers.reading():
            assert not readers.let_pass(0)
        assert not readers.let_pass(0)
        waiting = Thread(target=lambda: readers.let_pass(30) and passed.set())
        waiting.start()
        assert not passed.is_set()
    waiting.join(10)
    assert passed.is_set()


def test_a_read_that_fails_is_not_waited_for(tmp_path: Path) -> None:
    """A read counts from its first view to its end, whether that is an answer or an error."""
    with open_memory(tmp_path / "data") as memory:
        readers = memory._store.runner.readers
        try:
            with memory._reader.views(None) as views:
                views.of("curated", U1)
                assert not readers.let_pass(0)
                raise LookupError
        except LookupError:
            assert readers.let_pass(0)

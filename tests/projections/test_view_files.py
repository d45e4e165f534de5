"""View files: one pointer names the live ones, readers never see a half-built view, deleted bytes are gone."""

from __future__ import annotations

import errno
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from mnemolog.domain.errors import InvalidInput, NotFound, StoreClosed, StoreUnavailable
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections.versions import ViewFile, version_of

MARK = "the text that has to go"


@pytest.fixture
def views(tmp_path: Path) -> Iterator[SqliteViews]:
    store = SqliteViews(tmp_path / "views", busy_timeout=0.2)
    yield store
    store.close()


def built(views: SqliteViews, words: str, version: str = "1") -> ViewFile:
    """A live view with one row."""
    file = views.create_shadow("notes", version)
    with views.begin(file) as conn:
        conn.execute(text("CREATE TABLE words (word)"))
        conn.execute(text("INSERT INTO words VALUES (:words)"), {"words": words})
    views.activate(file)
    return file


def words_in(views: SqliteViews) -> str:
    with views.connect("notes") as conn:
        return str(conn.execute(text("SELECT word FROM words")).scalar_one())


def test_a_file_name_tells_projection_version_and_generation() -> None:
    """Names round-trip, and what is not such a name is not taken for one."""
    file = ViewFile("turns", version_of("1", "a2"), 3)
    assert file.filename == "turns-1.a2-3.db"
    assert ViewFile.parse(file.filename) == file
    assert [ViewFile.parse(name) for name in ("turns.db", "turns-1-0.db", "../x-1-1.db", "")] == [None] * 4
    with pytest.raises(InvalidInput):
        ViewFile("turns", "a-b", 1)


def test_the_pointer_names_the_live_file_for_this_process_and_the_next(views: SqliteViews) -> None:
    """A shadow is not seen before it is activated, and afterwards also by who opens the folder later."""
    first = built(views, "old")
    second = views.create_shadow("notes", "2")
    assert views.live("notes") == first
    with views.begin(second) as conn:
        conn.execute(text("CREATE TABLE words (word)"))
        conn.execute(text("INSERT INTO words VALUES ('new')"))
    assert words_in(views) == "old"
    assert [(size.file, size.live) for size in views.files()] == [(first, True), (second, False)]
    views.activate(second)
    assert words_in(views) == "new"
    assert json.loads((views.folder / "live.json").read_text()) == {"notes": "notes-2-2.db"}
    again = SqliteViews(views.folder)
    assert (again.live("notes"), words_in(again)) == (second, "new")
    again.close()


@pytest.mark.parametrize("what", ["read_bytes", "stat"])
def test_a_pointer_that_cannot_be_read_just_now_drops_no_view(
    views: SqliteViews, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """An error of the disk is no missing pointer: it is told, and the views are there when it is over."""
    first = built(views, "old")
    pointer, given = views.folder / "live.json", getattr(Path, what)
    pointer.write_bytes(pointer.read_bytes())

    def failing(path: Path, **options: object) -> object:
        if path == pointer:
            raise OSError(errno.EIO, "Input/output error")
        return given(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, what, failing)
        with pytest.raises(StoreUnavailable, match=r"live\.json cannot be read") as raised:
            views.refresh()
        assert views.is_unavailable(raised.value)
    assert views.live("notes") == first
    assert words_in(views) == "old"


def test_a_reader_finishes_on_the_file_it_began_with(views: SqliteViews) -> None:
    """The file before is removed, side files and all, when its last reader has finished."""
    first = built(views, "old")
    with views.connect("notes") as conn:
        second = built(views, "new", "2")
        assert conn.execute(text("SELECT word FROM words")).scalar_one() == "old"
        assert words_in(views) == "new"
        assert (views.folder / first.filename).exists()
    assert [path.name for path in views.folder.glob("notes-1-*")] == []
    assert second.generation == 2


def test_what_the_pointer_does_not_name_is_removed_at_opening(views: SqliteViews) -> None:
    """A shadow whose building was cut off leaves nothing behind."""
    live = built(views, "live")
    views.create_shadow("notes", "2")
    views.close()
    again = SqliteViews(views.folder)
    assert [size.file for size in again.files()] == [live]
    again.close()


def test_files_are_for_their_owner_only(views: SqliteViews) -> None:
    """Views hold text: nobody else may read them."""
    file = built(views, "text")
    assert stat.S_IMODE(views.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((views.folder / file.filename).stat().st_mode) == 0o600


def test_a_reader_cannot_write_and_a_failed_write_leaves_nothing(views: SqliteViews) -> None:
    """Reads are read-only; a transaction that raises is rolled back."""
    file = built(views, "text")
    with views.connect("notes") as conn, pytest.raises(OperationalError, match="readonly"):
        conn.execute(text("DELETE FROM words"))
    with pytest.raises(OperationalError), views.begin(file) as conn:
        [conn.execute(text(statement)) for statement in ("DELETE FROM words", "SELECT nonsense")]
    assert words_in(views) == "text"


def test_writers_take_turns_and_a_locked_file_is_the_stores_fault(views: SqliteViews) -> None:
    """A second writer waits for the first for a bounded time; its error is not taken for the event's."""
    file = built(views, "text")
    with views.begin(file), pytest.raises(OperationalError) as caught, views.begin(file):
        pass
    assert views.is_unavailable(caught.value)
    with pytest.raises(OperationalError) as caught, views.begin(file) as conn:
        conn.execute(text("SELECT nonsense"))
    assert not views.is_unavailable(caught.value)
    assert not views.is_unavailable(ValueError())


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_promise_8_a_purged_file_holds_no_deleted_byte(views: SqliteViews) -> None:
    """Neither the file nor its write-ahead log; and a reader in the way is reported, not ignored."""
    file = built(views, MARK)
    assert MARK.encode() in bytes_of(views.folder)
    with views.begin(file) as conn:
        conn.execute(text("DELETE FROM words"))
    with views.connect("notes") as conn:
        conn.execute(text("SELECT * FROM words"))
        assert views.purge(file, lambda _: None) is False
    assert views.purge(file, lambda _: None) is True
    assert MARK.encode() not in bytes_of(views.folder)


def test_absent_views_and_closed_stores_are_typed_errors(views: SqliteViews) -> None:
    """The message says what builds a view."""
    with pytest.raises(NotFound, match="rebuild other"), views.connect("other"):
        pass
    file = built(views, "text")
    views.close()
    with pytest.raises(StoreClosed), views.begin(file):
        pass

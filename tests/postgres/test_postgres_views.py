"""Views in PostgreSQL: one table names the live ones, readers never see a half-built view, deleted bytes are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from postgres_world import new_schema, running_cluster
from support import files_below, require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.domain.errors import (  # noqa: E402
    InvalidInput,
    NotFound,
    StoreClosed,
    StoreUnavailable,
)
from mnemolog.infra.postgres.cluster import Cluster  # noqa: E402
from mnemolog.infra.postgres.views import PostgresViews  # noqa: E402
from mnemolog.projections.ports import ViewStore  # noqa: E402
from mnemolog.projections.versions import ViewFile  # noqa: E402

pytestmark = pytest.mark.postgres

MARK = "the text that has to go"
Opener = Callable[..., PostgresViews]


@pytest.fixture
def opener(postgres_url: str) -> Iterator[Opener]:
    """Opens the same store each time, as another process would."""
    schema, opened = new_schema(), list[PostgresViews]()

    def open_views(**options: Any) -> PostgresViews:
        opened.append(PostgresViews(postgres_url, schema=schema, **{"lock_timeout": 0.3, **options}))
        return opened[-1]

    yield open_views
    for views in opened:
        views.close()


@pytest.fixture
def views(opener: Opener) -> PostgresViews:
    return opener()


def filled(views: PostgresViews, words: str, version: str = "1") -> ViewFile:
    """A shadow with one row."""
    file = views.create_shadow("notes", version)
    with views.begin(file) as conn:
        conn.execute(text("CREATE TABLE words (word text)"))
        conn.execute(text("INSERT INTO words VALUES (:words)"), {"words": words})
    return file


def built(views: PostgresViews, words: str, version: str = "1") -> ViewFile:
    """A live view with one row."""
    file = filled(views, words, version)
    views.activate(file)
    return file


def words_in(views: PostgresViews) -> str:
    with views.connect("notes") as conn:
        return str(conn.execute(text("SELECT word FROM words")).scalar_one())


def test_the_table_names_the_live_view_for_this_process_and_the_others(opener: Opener) -> None:
    """A shadow is not seen before it is activated, and at once afterwards, also by a process that knew the old one."""
    port: ViewStore = opener()
    views, other = opener(), opener()
    assert port.live("notes") is None
    first = built(views, "old")
    third = opener()
    assert third.live("notes") == first
    assert words_in(third) == "old"
    second = filled(views, "new", "2")
    assert words_in(views) == words_in(third) == "old"
    assert [(size.file, size.live) for size in views.files()] == [(first, True), (second, False)]
    views.activate(second)
    assert words_in(views) == words_in(third) == "new"
    assert third.live("notes") == second
    assert second.generation == 2
    with pytest.raises(NotFound, match="rebuild other"), other.connect("other"):
        pass


def test_a_reader_finishes_on_the_view_it_began_with(opener: Opener) -> None:
    """In whatever process it reads: the view before is removed when its last reader has finished."""
    views, other = opener(), opener()
    first = built(views, "old")
    other.close()
    other = opener()
    with other.connect("notes") as conn:
        second = built(views, "new", "2")
        assert conn.execute(text("SELECT word FROM words")).scalar_one() == "old"
        assert words_in(views) == "new"
        assert [size.file for size in views.files()] == [first, second]
    assert [size.file for size in views.files()] == [second]
    with pytest.raises(NotFound), views.connect_to(first):
        pass


def test_a_writer_learns_that_its_view_was_replaced(opener: Opener) -> None:
    """What another process has activated is the live view here too, as soon as the old one is touched."""
    views, other = opener(), opener()
    first = built(views, "old")
    other.close()
    other = opener()
    second = built(views, "new", "2")
    with pytest.raises(NotFound), other.begin(first):
        pass
    assert other.live("notes") == second


def test_a_schema_that_is_gone_is_a_typed_error(views: PostgresViews, postgres_url: str) -> None:
    """Somebody dropped it by hand: readers are told, not kept waiting."""
    file = built(views, "old")
    with psycopg.connect(postgres_url) as conn:
        conn.execute(f"DROP SCHEMA {views._schema_of(file)} CASCADE")
    with pytest.raises(StoreUnavailable, match="rebuild it"):
        words_in(views)
    built(views, "new", "2")
    assert words_in(views) == "new"


def test_a_reader_sees_one_moment(views: PostgresViews) -> None:
    """What is committed while it reads does not show between two of its statements."""
    file = built(views, "old")
    with views.connect("notes") as conn:
        assert conn.execute(text("SELECT count(*) FROM words")).scalar_one() == 1
        with views.begin(file) as writer:
            writer.execute(text("INSERT INTO words VALUES ('more')"))
        assert conn.execute(text("SELECT count(*) FROM words")).scalar_one() == 1


def test_what_nobody_builds_any_more_is_removed(opener: Opener) -> None:
    """The shadow of a process that died goes; one that somebody builds stays, whoever opens the store."""
    views, dying = opener(), opener()
    live, shadow = built(views, "live"), filled(views, "half", "2")
    filled(dying, "cut off", "3")
    assert len(opener().files()) == 3
    dying.close()
    assert [size.file for size in opener().files()] == [live, shadow]
    views.activate(shadow)
    assert words_in(opener()) == "half"


def test_a_sweep_that_saw_a_shadow_leaves_the_view_that_it_became(opener: Opener) -> None:
    """Between a sweep's look and its removal another process may have made the shadow live: it stays."""
    views, other = opener(), opener()
    shadow = filled(views, "new")
    (seen,) = [row for row in other.files() if row.file == shadow]
    number = other._id(shadow)
    other._ids.clear()
    views.activate(shadow)
    other._remove(number, seen.file, "shadow")
    other.refresh()
    assert words_in(other) == words_in(views) == "new"


def test_a_dropped_shadow_is_gone(views: PostgresViews) -> None:
    """As when its building failed; the live one cannot be dropped by mistake."""
    live, shadow = built(views, "live"), filled(views, "half", "2")
    views.drop(shadow)
    views.drop(live)
    assert [size.file for size in views.files()] == [live]
    assert views.files()[0].bytes > 0


def test_a_reader_cannot_write_and_a_failed_write_leaves_nothing(views: PostgresViews) -> None:
    """Reads are read-only; a transaction that raises is rolled back."""
    file = built(views, "text")
    with pytest.raises(SQLAlchemyError, match="read-only"), views.connect("notes") as conn:
        conn.execute(text("DELETE FROM words"))
    with pytest.raises(SQLAlchemyError), views.begin(file) as conn:
        [conn.execute(text(statement)) for statement in ("DELETE FROM words", "SELECT nonsense")]
    assert words_in(views) == "text"


def test_writers_take_turns_and_a_locked_view_is_the_stores_fault(opener: Opener) -> None:
    """A second writer, of another process too, waits for a bounded time; its error is not taken for the event's."""
    views = opener()
    file = built(views, "text")
    other = opener()
    with views.begin(file), pytest.raises(StoreUnavailable) as caught, other.begin(file):
        pass
    assert other.is_unavailable(caught.value)
    with pytest.raises(DBAPIError) as caught, views.begin(file) as conn:
        conn.execute(text("SELECT nonsense"))
    assert not views.is_unavailable(caught.value)
    assert not views.is_unavailable(ValueError())


def test_texts_with_nul_and_large_numbers_are_kept(views: PostgresViews) -> None:
    """A view holds whatever a body may hold."""
    file = built(views, "a\x00b\ue000c")
    assert words_in(views) == "a\x00b\ue000c"
    with views.begin(file) as conn:
        conn.execute(text("CREATE TABLE numbers (number bigint)"))
        conn.execute(text("INSERT INTO numbers VALUES (:n)"), {"n": 1 << 40})
        assert conn.execute(text("SELECT number FROM numbers")).scalar_one() == 1 << 40


def test_a_broken_connection_is_replaced(views: PostgresViews, postgres_url: str) -> None:
    """One call fails at most, and that is the store's fault; the next works."""
    file = built(views, "text")
    with psycopg.connect(postgres_url) as conn:
        conn.execute(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = 'mnemolog'"
        )
    with suppress(StoreUnavailable):
        words_in(views)
    assert words_in(views) == "text"
    with views.begin(file) as writer:
        writer.execute(text("DELETE FROM words"))
    assert [size.file for size in views.files()] == [file]


def test_closed_stores_and_bad_names_are_typed_errors(views: PostgresViews, postgres_url: str) -> None:
    """Closing twice is fine."""
    file = built(views, "text")
    views.close()
    views.close()
    with pytest.raises(StoreClosed), views.begin(file):
        pass
    with pytest.raises(StoreClosed):
        views.files()
    with pytest.raises(InvalidInput):
        PostgresViews(postgres_url, schema="No; DROP")


# Bytes and crashes -------------------------------------------------------------------------------------------------


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def bytes_of(cluster: Cluster) -> bytes:
    """Everything the server has on disk when it has written all it had in memory."""
    cluster.down()
    found = b"".join(content for _, content in files_below(cluster.folder / "data"))
    cluster.up()
    return found


def test_promise_8_a_purged_view_holds_no_deleted_byte(own_cluster: Cluster) -> None:
    """Neither its tables nor the server's WAL; and a reader in the way is reported, not ignored."""
    views = PostgresViews(own_cluster.status().url or "")
    file = built(views, MARK)
    assert MARK.encode() in bytes_of(own_cluster)
    views.close()
    views = PostgresViews(own_cluster.status().url or "")
    assert words_in(views) == MARK
    with views.begin(file) as conn:
        conn.execute(text("DELETE FROM words"))
    with views.connect("notes") as conn:
        conn.execute(text("SELECT * FROM words"))
        assert views.purge(file, lambda _: None) is False
    assert views.purge(file, lambda _: None) is True
    assert MARK.encode() not in bytes_of(own_cluster)
    views.close()


def test_a_view_that_a_crash_emptied_is_never_read_as_empty(own_cluster: Cluster) -> None:
    """Readers and writers get a typed error, then the store says that it is not there; a new one takes its place."""
    views = PostgresViews(own_cluster.status().url or "")
    file = built(views, "text")
    own_cluster.kill()
    own_cluster.up()
    errors: list[Exception] = []
    while views.live("notes") is not None:
        with pytest.raises(StoreUnavailable) as caught:
            words_in(views)
        errors.append(caught.value)
        assert views.is_unavailable(caught.value)
    assert isinstance(errors[-1], StoreUnavailable)
    with pytest.raises(StoreUnavailable), views.begin(file):
        pass
    built(views, "again", "1")
    assert words_in(views) == "again"
    views.close()


def test_two_processes_that_open_a_new_store_at_once_agree(opener: Opener) -> None:
    """One makes the table of views, all find it."""
    opened: list[PostgresViews] = []
    threads = [Thread(target=lambda: opened.append(opener())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [views.files() for views in opened] == [[]] * 6

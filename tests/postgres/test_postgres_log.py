"""What only a server can do to the log: connections that break, writers that pause, and a bell that falls silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

from log_support import PlainSealer, draft
from postgres_world import new_database, new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.domain.errors import InvalidInput, StoreUnavailable, VersionConflict  # noqa: E402
from mnemolog.domain.events import TurnRecorded  # noqa: E402
from mnemolog.infra.clock import SystemClock  # noqa: E402
from mnemolog.infra.postgres.log import PostgresEventLog  # noqa: E402
from mnemolog.infra.postgres.privileges import privileges  # noqa: E402

pytestmark = pytest.mark.postgres

Opener = Callable[..., PostgresEventLog]


@pytest.fixture
def schema() -> str:
    return new_schema()


@pytest.fixture
def opener(postgres_url: str, schema: str) -> Iterator[Opener]:
    """Opens the same log each time, as another process would."""
    opened: list[PostgresEventLog] = []

    def open_log(**options: Any) -> PostgresEventLog:
        log = PostgresEventLog(postgres_url, PlainSealer(), SystemClock(), schema=schema, **options)
        opened.append(log)
        return log

    yield open_log
    for log in opened:
        log.close()


@pytest.fixture
def sql(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        yield conn


def end_connections(sql: psycopg.Connection[Any], like: str = "%") -> int:
    """Break every other connection of ours whose last statement is like this; how many."""
    return len(
        sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'mnemolog' AND query LIKE %s",
            (like,),
        ).fetchall()
    )


# Opening --------------------------------------------------------------------------------------------------------


def test_a_bad_url_is_refused_without_repeating_it() -> None:
    """It may hold a password."""
    with pytest.raises(InvalidInput) as refused:
        PostgresEventLog("postgresql://u:secret@h/d?no=such", PlainSealer(), SystemClock())
    assert "secret" not in str(refused.value)
    with pytest.raises(InvalidInput, match="schema"):
        PostgresEventLog("postgresql://h/d", PlainSealer(), SystemClock(), schema="x; DROP")


def test_an_absent_server_is_a_typed_error() -> None:
    """And nothing is left open."""
    with pytest.raises(StoreUnavailable):
        PostgresEventLog(
            "postgresql://nobody@127.0.0.1:9/none?connect_timeout=2",
            PlainSealer(),
            SystemClock(),
            pool_timeout=1.0,
        )


def test_many_processes_may_open_a_new_log_at_once(opener: Opener) -> None:
    """One makes the tables, all find them."""
    with ThreadPoolExecutor(8) as pool:
        logs = list(pool.map(lambda _: opener(), range(8)))
    assert [log.head() for log in logs] == [0] * 8


def test_a_role_needs_no_more_than_to_insert_and_select(postgres_url: str, schema: str) -> None:
    """The tables belong to somebody else; the writer can neither change nor delete."""
    url = new_database(postgres_url)
    with PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema) as log:
        log.append([draft("a")])
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute(privileges(schema))
    writer = url.replace("postgres@", f"{schema}_writer@")
    with PostgresEventLog(writer, PlainSealer(), SystemClock(), schema=schema) as log:
        assert log.append([draft("b")])[0].position == 2
        assert log.verify() == 2


def test_stored_events_can_be_neither_changed_nor_deleted(opener: Opener, schema: str, sql: Any) -> None:
    """The server itself refuses, whoever asks."""
    opener().append([draft("a")])
    for statement in ("UPDATE {} SET topic = 'x'", "DELETE FROM {}", "TRUNCATE {}"):
        with pytest.raises(psycopg.Error, match="only grows"):
            sql.execute(statement.format(f"{schema}.stored_events"))


def test_texts_with_nul_are_stored(opener: Opener) -> None:
    """In keys and streams as well, though PostgreSQL has no NUL; and what stands for it is itself kept."""
    log = opener()
    for text in ("a\x00b", "\ue000", "\ue0000", "\x00\ue000\x001"):
        log.append([draft(text, stream=text, key=text)])
        (found,) = log.read_stream(text)
        assert (found.event, found.envelope.key) == (TurnRecorded("user", text), text)
        assert log.append([draft(text, stream=text, key=text)])[0].duplicate
    assert log.verify() == 4


def test_many_at_once_are_stored_as_one_by_one(opener: Opener) -> None:
    """Whatever is in their texts, with a key or without; by a writer that is alone, and by one that is not."""
    log, other = opener(), opener()
    texts = ["a\x00b", "\ue000", "\x00\ue000\x001", "집에 🦊", "plain", ""]
    for turn in range(3):
        keys = [f"{turn}/{text}" if number % 2 else None for number, text in enumerate(texts)]
        drafts = [draft(text, stream=f"s{text}", key=key) for text, key in zip(texts, keys, strict=True)]
        log.append(drafts)
        for text, key in zip(texts, keys, strict=True):
            found = log.read_stream(f"s{text}", after_version=turn)
            assert [(each.event, each.envelope.key) for each in found] == [(TurnRecorded("user", text), key)]
        again = log.append([each for each in drafts if each.key is not None])
        assert [receipt.duplicate for receipt in again] == [True] * 3
        if turn:
            other.append([draft("another")])
    assert log.verify() == 20


# Connections that break --------------------------------------------------------------------------------------------


def test_a_writer_comes_back_when_its_idle_connection_was_ended(opener: Opener, sql: Any) -> None:
    """Nothing can have happened on it, so nobody is bothered."""
    log = opener()
    log.append([draft("a")])
    assert end_connections(sql) > 0
    assert log.append([draft("b")])[0].position == 2


def test_a_reader_comes_back_after_one_failure_at_most(opener: Opener, sql: Any) -> None:
    """The first look finds all dead connections of the pool."""
    log = opener()
    log.append([draft("a")])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: log.head(), range(40)))
    end_connections(sql)
    for _ in range(3):
        try:
            assert log.head() == 1
        except StoreUnavailable:
            assert log.head() == 1


def cut(
    log: PostgresEventLog, sql: Any, *, after: bool, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """End the writer's connection once, before or after the server has committed, so that the answer is lost.

    meanwhile: happens before the writer looks what became of it.
    """
    recorder = log._recorder

    def cut_one(name: str) -> None:
        whole = getattr(recorder, name)

        def interrupted(c: Any, *rest: Any) -> Any:
            del recorder.commit, recorder.append
            if after:
                whole(c, *rest)
            sql.execute("SELECT pg_terminate_backend(%s, 5000)", (c.connection.info.backend_pid,))
            meanwhile()
            return whole(c, *rest)

        setattr(recorder, name, interrupted)

    cut_one("commit")
    cut_one("append")


@pytest.fixture(params=["alone", "among others"])
def begun(request: pytest.FixtureRequest, opener: Opener) -> PostgresEventLog:
    """A log with two events, whose next append is one statement, or takes the lock beforehand."""
    log = opener()
    for text in "ab":
        log.append([draft(text)])
    log._storage._alone = request.param == "alone"
    return log


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("after", [True, False])
def test_a_commit_whose_answer_was_lost_is_read_back(
    begun: PostgresEventLog, sql: Any, after: bool, count: int
) -> None:
    """It happened, or is made to happen: the appender gets its receipts, nothing is lost, nothing doubled."""
    cut(begun, sql, after=after)
    receipts = begun.append([draft("c", expected_version=2), draft("d")][:count])
    assert [receipt.position for receipt in receipts] == [3, 4][:count]
    assert begun.append([draft("e", expected_version=2 + count)])[0].position == 3 + count
    assert begun.verify() == 3 + count
    assert begun.stats()["failed_groups"] == 0


def test_a_commit_that_was_overtaken_is_planned_anew_or_refused(
    begun: PostgresEventLog, opener: Opener, sql: Any
) -> None:
    """Its positions are another's: where it held the lock it is an error that says so, else it comes behind."""
    alone, other = begun._storage._alone, opener()
    cut(begun, sql, after=False, meanwhile=lambda: other.append([draft("x")]))
    if alone:
        assert begun.append([draft("c")])[0].position == 4
    else:
        with pytest.raises(StoreUnavailable, match="nothing of this append is stored"):
            begun.append([draft("c")])
    assert begun.append([draft("d")])[0].version == (5 if alone else 4)
    assert begun.verify() == begun.head()


def test_who_was_overtaken_decides_by_what_there_is(opener: Opener) -> None:
    """A writer that believed to be alone refuses, repeats and appends by what another has written meanwhile."""
    one, other = opener(), opener()

    def overtake(**options: Any) -> int:
        for text in "ab":
            one.append([draft(text)])
        assert one._storage._alone
        return other.append([draft("x", **options)])[0].version

    version = overtake()
    with pytest.raises(VersionConflict, match=f"at version {version}"):
        one.append([draft("c", expected_version=version - 1)])
    version = overtake()
    assert one.append([draft("c", expected_version=version)])[0].version == version + 1
    overtake(key="k")
    again = one.append([draft("x", key="k")])[0]
    assert again.duplicate
    overtake(key="l")
    both = one.append([draft("x", key="l"), draft("y", key="m")])
    assert [receipt.duplicate for receipt in both] == [True, False]
    head = one.head()
    assert one.verify() == other.head() == head


# Slow and late writers ---------------------------------------------------------------------------------------------


def foreign(log: PostgresEventLog, sql: Any) -> int:
    """Begin what another process would: take the lock. The head that it found."""
    with sql.cursor() as cursor:
        return log._recorder.lock(cursor, "BEGIN; ")


def test_a_slow_transaction_holds_up_writers_not_readers(opener: Opener, sql: Any) -> None:
    """The writer gives up in time with a typed error; a reader sees the head all the while."""
    log = opener(lock_timeout=1)
    log.append([draft("a")])
    foreign(log, sql)
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        log.append([draft("b")])
    assert log.read(0, 9).position == 1
    sql.execute("ROLLBACK")
    assert log.append([draft("b")])[0].position == 2


def test_a_writer_that_stops_in_its_transaction_loses_it(opener: Opener) -> None:
    """A paused process keeps nobody waiting for ever, and does not overwrite anybody when it wakes up."""
    slow, quick = opener(idle_seconds=0.2), opener()
    slow.append([draft("a")])
    with slow._group.exclusive():
        slow._storage.begin()
        time.sleep(0.5)
        assert quick.append([draft("b")])[0].position == 2
        with pytest.raises((psycopg.Error, StoreUnavailable)):
            slow._storage.commit([("s1", 2, "TurnRecorded", None, b"leaf", b"state")], 2)
        slow._storage.rollback()
    assert slow.append([draft("c", expected_version=2)])[0].position == 3
    assert quick.verify() == 3


def test_an_insert_past_the_lock_cannot_get_in_between(opener: Opener, schema: str, sql: Any) -> None:
    """Somebody who takes no lock holds the number of one position: the log waits, and goes on without him."""
    log = opener(lock_timeout=1)
    log.append([draft("a")])
    sql.execute("BEGIN")
    sql.execute(
        f"INSERT INTO {schema}.stored_events SELECT position + 1, 'x', 1, topic, NULL, leaf, state "
        f"FROM {schema}.stored_events"
    )
    with pytest.raises(StoreUnavailable):
        log.append([draft("b")])
    assert log.read(0, 9).position == 1
    sql.execute("ROLLBACK")
    assert log.append([draft("b")])[0].position == 2


# The doorbell ------------------------------------------------------------------------------------------------------


def waiting(log: PostgresEventLog, after: int) -> tuple[Thread, list[int]]:
    heads: list[int] = []
    thread = Thread(target=lambda: heads.append(log.wait(after, 30)))
    thread.start()
    while not log._bell._listening:
        time.sleep(0.005)
    return thread, heads


def test_another_process_rings_without_polling(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """NOTIFY wakes the waiting reader, long before it would look for itself."""
    monkeypatch.setattr("mnemolog.infra.postgres.doorbell.LISTENING_SECONDS", 60.0)
    reader, writer = opener(), opener()
    thread, heads = waiting(reader, 0)
    writer.append([draft("a")])
    thread.join(10)
    assert heads == [1]


def test_a_bell_that_broke_is_mended_and_misses_nothing(
    opener: Opener, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed while nobody listened is seen as soon as somebody does."""
    monkeypatch.setattr("mnemolog.infra.postgres.doorbell.LISTENING_SECONDS", 60.0)
    reader, writer = opener(), opener()
    thread, heads = waiting(reader, 0)
    assert end_connections(sql, "LISTEN%") == 1
    writer.append([draft("a")])
    thread.join(10)
    assert heads == [1]
    thread, heads = waiting(reader, 1)
    writer.append([draft("b")])
    thread.join(10)
    assert heads == [2]


def test_without_a_bell_polling_finds_everything(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bell is a hint; looking is the truth."""
    monkeypatch.setattr("mnemolog.infra.postgres.doorbell.Doorbell._start", lambda self: None)
    reader, writer = opener(), opener()
    heads: list[int] = []
    thread = Thread(target=lambda: heads.append(reader.wait(0, 30)))
    thread.start()
    writer.append([draft("a")])
    thread.join(10)
    assert heads == [1]


def test_waking_ends_the_waiting(opener: Opener) -> None:
    """Nothing was committed, and the waiting ends all the same; the next waiting is not affected."""
    log = opener()
    thread, heads = waiting(log, 0)
    log.wake()
    thread.join(10)
    assert heads == [0]
    started = time.monotonic()
    log.wait(0, 0.1)
    assert time.monotonic() - started >= 0.1


def test_a_look_tells_of_other_processes(opener: Opener) -> None:
    """The number grows with commits of others, not with one's own."""
    log, other = opener(), opener()
    log.append([draft("a")])
    _, before = log.look()
    log.append([draft("b")])
    assert log.look() == (2, before)
    other.append([draft("c")])
    head, after = log.look()
    assert head == 3
    assert after > before


def test_closing_wakes_who_waits(opener: Opener) -> None:
    """And the listening thread ends."""
    reader = opener()
    thread, heads = waiting(reader, 0)
    listener = reader._bell._thread
    reader.close()
    thread.join(10)
    assert heads == [0]
    assert listener is not None
    assert not listener.is_alive()

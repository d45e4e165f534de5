"""Many appenders, few commits; and what an interrupt, a full disk or a kill leaves behind."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest
from log_kinds import Kind, Log

import mnemolog.infra.log.group as group_module
from log_support import FakeSealer, draft
from mnemolog.domain.errors import CorruptStore, MnemologError, StoreClosed, StoreUnavailable, VersionConflict
from mnemolog.domain.events import Receipt
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.log import SqliteEventLog
from mnemolog.infra.log.group import GroupCommit, Request

Factory = Callable[..., Log]


def test_fifty_appenders_get_contiguous_positions_and_versions(log: Log) -> None:
    """One that fails fails alone, whoever commits with it."""

    def work(number: int) -> list[Receipt]:
        receipts = []
        for turn in range(10):
            receipts += log.append([draft("x", stream=f"s{number % 5}"), draft("y", stream=f"own{number}")])
            with pytest.raises(VersionConflict):
                log.append([draft("bad", stream=f"own{number}", expected_version=turn)])
        return receipts

    with ThreadPoolExecutor(50) as pool:
        receipts = [receipt for part in pool.map(work, range(50)) for receipt in part]
    assert sorted(receipt.position for receipt in receipts) == list(range(1, 1001))
    assert log.verify() == 1000
    assert sorted(r.version for r in receipts if r.stream == "s0") == list(range(1, 101))
    assert log.stats()["largest_group"] > 2
    assert log.stats()["version_conflicts"] == 500


def test_fifty_identical_adds_are_one_event(log: Log) -> None:
    """I04: there is no gap between looking a key up and inserting it."""
    with ThreadPoolExecutor(50) as pool:
        receipts = list(pool.map(lambda _: log.append([draft("same", key="k")])[0], range(50)))
    assert len({receipt.event_id for receipt in receipts}) == 1
    assert sum(not receipt.duplicate for receipt in receipts) == 1
    assert log.head() == 1


def test_readers_see_only_whole_commits(log: Log) -> None:
    """A batch shows completely or not at all, and reading does not stop the writer."""
    done, seen = Event(), set()

    def read() -> None:
        while not done.is_set():
            page = log.read(0, 10_000)
            assert page.position == len(page.events)
            seen.add(len(page.events) % 7)

    readers = [Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(50):
        log.append([draft("x")] * 7)
    done.set()
    for reader in readers:
        reader.join()
    assert seen == {0}


def read_for_ever(log: Log) -> None:
    while True:
        log.read(0, 1000)


def test_closing_under_readers_is_an_error_not_a_crash(log_factory: Factory) -> None:
    """Whoever reads while the log closes gets StoreClosed or what was read."""
    for _ in range(10):
        log = log_factory()
        log.append([draft("x")] * 50)

        def read(log: Log = log) -> None:
            with pytest.raises(StoreClosed):
                read_for_ever(log)

        readers = [Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        time.sleep(0.005)
        log.close()
        for reader in readers:
            reader.join(10)
            assert not reader.is_alive()


# Failing groups -------------------------------------------------------------------------------------------------


def group_of(
    count: int, first: Callable[[Sequence[Request]], None]
) -> tuple[list[BaseException | None], list[int]]:
    """One request leads while the others wait; `first` is what happens to the second group."""
    release, sizes = Event(), []

    def commit(requests: Sequence[Request]) -> None:
        sizes.append(len(requests))
        if len(sizes) == 1:
            release.wait(10)
        elif len(sizes) == 2:
            first(requests)

    group, outcomes = GroupCommit(commit), []

    def submit() -> None:
        try:
            group.submit(Request(()))
            outcomes.append(None)
        except BaseException as error:
            outcomes.append(error)

    threads = [Thread(target=submit) for _ in range(count)]
    for thread in threads:
        thread.start()
    while len(group._waiting) < count - 1:
        time.sleep(0.001)
    release.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    return outcomes, sizes


def test_who_waits_together_is_committed_together() -> None:
    """Everything that came while a commit ran goes into the next one."""
    outcomes, sizes = group_of(20, lambda _: None)
    assert outcomes == [None] * 20
    assert sizes == [1, 19]


def test_two_groups_do_not_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who came while another committed wait until that one is back, and share a commit with it."""
    monkeypatch.setattr(group_module, "_LONGEST", 60.0)
    monkeypatch.setattr(group_module, "_SHARE", 1e9)
    release, patient, sizes, wait = Event(), Event(), list[int](), Request.wait

    def commit(requests: Sequence[Request]) -> None:
        sizes.append(len(requests))
        release.wait(10)

    def waiting(self: Request, seconds: float = 0.05) -> None:
        if seconds == 60:
            patient.set()
        wait(self, seconds)

    def come_back() -> None:
        group.submit(Request(()))
        patient.wait(5)
        group.submit(Request(()))

    monkeypatch.setattr(Request, "wait", waiting)
    group = GroupCommit(commit)
    first = Thread(target=come_back)
    first.start()
    while not sizes:
        time.sleep(0.001)
    others = [Thread(target=lambda: group.submit(Request(()))) for _ in range(3)]
    for thread in others:
        thread.start()
    while len(group._waiting) < 3:
        time.sleep(0.001)
    release.set()
    for thread in (first, *others):
        thread.join(10)
        assert not thread.is_alive()
    assert sizes == [1, 4]


def test_who_waits_in_vain_waits_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next group goes at once, then two, four and eight of them."""
    waited: list[int] = []
    done: list[Sequence[Request]] = []
    monkeypatch.setattr(Request, "wait", lambda *_: waited.append(len(done)))
    group = GroupCommit(done.append)
    for _ in range(20):
        group._crowd = 5
        group.submit(Request(()))
    assert waited == [0, 2, 5, 10, 19]


def test_a_failing_commit_fails_its_group_and_no_other() -> None:
    """Each of the group gets the error; the next group goes on."""

    def fail(_: Sequence[Request]) -> None:
        raise StoreUnavailable("disk full")

    outcomes, sizes = group_of(20, fail)
    assert sizes == [1, 19]
    assert sum(isinstance(outcome, StoreUnavailable) for outcome in outcomes) == 19


def test_an_interrupted_leader_leaves_nobody_waiting() -> None:
    """Its followers learn that the outcome is unknown; the leader's interrupt stays an interrupt."""

    def interrupt(_: Sequence[Request]) -> None:
        raise KeyboardInterrupt

    outcomes, _ = group_of(20, interrupt)
    assert sum(isinstance(outcome, KeyboardInterrupt) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, StoreUnavailable) for outcome in outcomes) == 18
    assert outcomes.count(None) == 1


def test_an_interrupted_commit_leaves_the_log_usable(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is stored, and nothing that was remembered of it misleads the next."""
    log.append([draft("a")])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log._storage, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append([draft("b")])
        patch.undo()
        patch.setattr(log._writer, "_remember", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append([draft("c")])
    (receipt,) = log.append([draft("d")])
    assert (receipt.position, receipt.version) == (3, 3)
    assert log.verify() == 3


@pytest.mark.parametrize("log_kind", ["sqlite"], indirect=True)
def test_a_full_disk_is_a_typed_error_and_the_log_goes_on(log: Log) -> None:
    """The commit that does not fit leaves nothing; when there is room again, appending works."""
    log.append([draft("a")])
    sql = log._storage.sql
    sql.execute(f"PRAGMA max_page_count={sql.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StoreUnavailable, match="full"):
        log.append([draft("x" * 100_000)])
    sql.execute("PRAGMA max_page_count=1000000")
    assert log.append([draft("b")])[0].position == 2
    assert log.verify() == 2
    assert log.stats()["failed_groups"] == 1


@pytest.mark.parametrize("log_kind", ["sqlite"], indirect=True)
def test_a_locked_file_is_a_typed_error_and_the_log_goes_on(log_factory: Factory, tmp_path: Path) -> None:
    """Another process may hold the write lock; the appender gives up in time."""
    log = log_factory(lock_timeout=1)
    other = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        log.append([draft("a")])
    other.execute("ROLLBACK")
    other.close()
    assert log.append([draft("b")])[0].position == 1


# Damage ---------------------------------------------------------------------------------------------------------


def test_a_position_is_never_used_twice(log_factory: Factory, log_kind: Kind) -> None:
    """Also when the tail was deleted behind the log's back, with a restart between."""
    log = log_factory()
    log.append([draft("a"), draft("b"), draft("c")])
    log_kind.tamper("DELETE FROM stored_events WHERE position>=2")
    with pytest.raises(CorruptStore, match="behind position 1 are gone"):
        log.verify()
    assert log.append([draft("d")])[0].position == 4
    log.close()
    again = log_factory()
    assert again.append([draft("e")])[0].position == 5
    with pytest.raises(CorruptStore, match="position 2 is missing"):
        again.verify()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("state = {blob}", "hash of position 2"),
        ("leaf = {blob}", "hash of position 2"),
        ("originator_version = 9", "position 2 breaks"),
        ("originator_id = 'other'", "position 2"),
        ("topic = 'MemoryStated'", "columns of position 2"),
        ("key = 'other'", "columns of position 2"),
    ],
)
def test_verification_names_what_was_changed(log: Log, log_kind: Kind, change: str, complaint: str) -> None:
    """Every column of every row is held against the bytes and their hash."""
    log.append([draft("a"), draft("b"), draft("c")])
    change = change.format(blob=log_kind.hex("00" * 32))
    log_kind.tamper(f"UPDATE stored_events SET {change} WHERE position=2")
    with pytest.raises(CorruptStore, match=complaint):
        log.verify()


@pytest.mark.parametrize("log_kind", ["sqlite"], indirect=True)
def test_verification_finds_a_text_where_bytes_should_be(log: Log, log_kind: Kind) -> None:
    """SQLite lets any type into any column."""
    log.append([draft("a"), draft("b")])
    log_kind.tamper("UPDATE stored_events SET state = CAST(x'ff' AS TEXT) WHERE position=2")
    with pytest.raises(CorruptStore, match="hash of position 2"):
        log.verify()


def test_what_is_not_a_database_is_a_typed_error(tmp_path: Path) -> None:
    """Opening fails with a word on what to do."""
    (tmp_path / "log.db").write_bytes(b"not a database at all" * 1000)
    with pytest.raises(MnemologError):
        SqliteEventLog(tmp_path / "log.db", FakeSealer(), SystemClock())
    with pytest.raises(StoreUnavailable):
        SqliteEventLog(tmp_path / "absent" / "log.db", FakeSealer(), SystemClock())


# kill -9 --------------------------------------------------------------------------------------------------------

APPENDER = """
import sys
from threading import Thread
from log_support import PlainSealer, draft
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.log import SqliteEventLog

log = SqliteEventLog(sys.argv[1], PlainSealer(), SystemClock())

def work(stream):
    while True:
        receipts = log.append([draft("x" * 200, stream=stream) for _ in range(3)])
        sys.stdout.write("".join(f"{r.position} {r.event_id}\\n" for r in receipts))
        sys.stdout.flush()

for number in range(4):
    Thread(target=work, args=(f"{sys.argv[2]}-{number}",)).start()
"""


def kill_cycles(path: Path, cycles: int) -> None:
    acknowledged: dict[int, str] = {}
    for cycle in range(cycles):
        command = [sys.executable, "-c", APPENDER, str(path), str(cycle)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(random.Random(cycle).uniform(0.0, 0.2))
        process.kill()
        lines += process.stdout.read().splitlines()
        process.stdout.close()
        process.wait()
        whole = [line.split() for line in lines if len(line.split()) == 2 and len(line.split()[1]) == 32]
        acknowledged.update((int(position), event_id) for position, event_id in whole)
    with SqliteEventLog(path, FakeSealer(), SystemClock()) as log:
        stored = {r.position: r.envelope.id for r in log.read(0, 10_000_000, bodies=False).events}
        assert acknowledged.items() <= stored.items()
        assert log.verify() == len(stored)
        assert len(stored) % 3 == 0


def test_acknowledged_is_durable(tmp_path: Path) -> None:
    """After kill -9 every acknowledged event is there, no call is there by halves, and all hashes are right."""
    kill_cycles(tmp_path / "log.db", 2)


@pytest.mark.slow
def test_acknowledged_is_durable_many_times(tmp_path: Path) -> None:
    """The same, through fifteen kills of one log."""
    kill_cycles(tmp_path / "log.db", 15)

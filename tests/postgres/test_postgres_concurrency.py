"""Many writers that are late, abort and race; readers that never skip and never see twice; kills of anybody."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_support import PlainSealer, draft
from postgres_world import new_schema, running_cluster
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.domain.errors import StoreUnavailable, VersionConflict  # noqa: E402
from mnemolog.infra.clock import SystemClock  # noqa: E402
from mnemolog.infra.postgres.cluster import Cluster  # noqa: E402
from mnemolog.infra.postgres.log import PostgresEventLog  # noqa: E402

pytestmark = pytest.mark.postgres

Seen = list[tuple[int, str]]
"""Position and event id, in the order in which a reader met them."""


def open_log(url: str, schema: str, **options: Any) -> PostgresEventLog:
    return PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema, **options)


def follow(log: PostgresEventLog, done: Event, limit: int, wait: bool) -> Seen:
    """Read page after page, until all writers are done and nothing is left; a server that is away is no end."""
    seen: Seen = []
    position = 0
    while True:
        finished = done.is_set()
        try:
            page = log.read(position, limit, bodies=False)
            if wait and page.position == position:
                log.wait(position, 0.05)
        except StoreUnavailable:
            time.sleep(0.01)
            continue
        seen += [(e.position, e.envelope.id) for e in page.events]
        if finished and page.position == position:
            return seen
        position = page.position


def check(log: PostgresEventLog, readers: Sequence[Seen], acknowledged: Counter[str]) -> None:
    """Every reader saw the log, once and in order; and the log is what was acknowledged."""
    stored = [(e.position, e.envelope.id) for e in log.read(0, 1_000_000, bodies=False).events]
    assert [position for position, _ in stored] == list(range(1, len(stored) + 1))
    for seen in readers:
        assert seen == stored
    assert Counter(event_id for _, event_id in stored) == acknowledged
    assert log.verify() == len(stored)


# Late, aborted and racing -------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "plain", "late", "abort", "race", "again"]),
        st.integers(1, 4),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=6,
)


def spoil(log: PostgresEventLog, kind: str, milliseconds: int) -> None:
    """Let the next commit of this log come late, or not at all."""
    recorder = log._recorder

    def spoil_one(name: str) -> None:
        whole = getattr(recorder, name)

        def spoiled(*given: Any) -> Any:
            del recorder.commit, recorder.append
            time.sleep(milliseconds / 1000)
            if kind == "abort":
                raise psycopg.OperationalError("the transaction was told to fail")
            return whole(*given)

        setattr(recorder, name, spoiled)

    spoil_one("commit")
    spoil_one("append")


def write(log: PostgresEventLog, name: str, steps: Sequence[tuple[str, int, int]]) -> list[str]:
    """What was acknowledged to this writer."""
    acknowledged: list[str] = []
    for number, (kind, count, milliseconds) in enumerate(steps):
        expected = len(log.read_stream("shared", bodies=False)) if kind == "race" else None
        stream = "shared" if kind in ("race", "plain") else name
        drafts = [draft("x", stream=stream, key=f"{name}-{number}-{n}") for n in range(count)]
        if expected is not None:
            drafts = [draft("x", stream=stream, expected_version=expected)]
        if kind in ("late", "abort"):
            spoil(log, kind, milliseconds)
        try:
            receipts = log.append(drafts)
        except VersionConflict:
            continue
        except StoreUnavailable:
            assert kind == "abort"
            continue
        if kind == "again":
            assert [r.event_id for r in log.append(drafts)] == [r.event_id for r in receipts]
        acknowledged += [receipt.event_id for receipt in receipts]
    return acknowledged


@settings(max_examples=15, deadline=None)
@given(plans=st.lists(STEPS, min_size=2, max_size=4), limit=st.integers(1, 7))
def test_a_reader_never_skips_and_never_sees_twice(postgres_url: str, plans: Any, limit: int) -> None:
    """Whatever writers of several processes do at once: positions become visible in order, without a gap."""
    schema, done = new_schema(), Event()
    logs = [open_log(postgres_url, schema) for _ in range(len(plans) + 1)]
    try:
        with ThreadPoolExecutor(8) as pool:
            readers = [pool.submit(follow, logs[-1], done, limit, wait) for wait in (True, False)]
            writers = [
                pool.submit(write, log, f"w{n}", plan)
                for n, (log, plan) in enumerate(zip(logs, plans, strict=False))
            ]
            try:
                acknowledged = Counter(event_id for writer in writers for event_id in writer.result(60))
            finally:
                done.set()
            check(logs[-1], [reader.result(60) for reader in readers], acknowledged)
    finally:
        for log in logs:
            log.close()


def test_expected_versions_let_one_of_two_processes_win(postgres_url: str) -> None:
    """B14: two supersedes with the same expected version, in parallel, many times."""
    schema = new_schema()
    logs = [open_log(postgres_url, schema) for _ in range(3)]

    def attempt(log: PostgresEventLog, version: int) -> bool:
        try:
            log.append([draft("x", expected_version=version)])
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        for version in range(20):
            wins = list(pool.map(attempt, logs, [version] * 3))
            assert sum(wins) == 1
    assert logs[0].verify() == 20
    for log in logs:
        log.close()


# kill -9 ------------------------------------------------------------------------------------------------------------


def kill_writers(url: str, schema: str, cycles: int) -> None:
    acknowledged: dict[int, str] = {}
    child = Path(__file__).with_name("log_child.py")
    environment = {"PYTHONPATH": str(child.parent.parent)}
    for cycle in range(cycles):
        processes = [
            subprocess.Popen(
                [sys.executable, str(child), url, schema, f"{cycle}-{number}"],
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for number in range(2)
        ]
        lines = [process.stdout.readline() for process in processes if process.stdout]
        time.sleep(random.Random(cycle).uniform(0.0, 0.2))
        for process in processes:
            process.kill()
            assert process.stdout is not None
            lines += process.stdout.read().splitlines()
            process.stdout.close()
            process.wait()
        whole = [line.split() for line in lines if len(line.split()) == 2 and len(line.split()[1]) == 32]
        acknowledged.update((int(position), event_id) for position, event_id in whole)
    with open_log(url, schema) as log:
        stored = {r.position: r.envelope.id for r in log.read(0, 10_000_000, bodies=False).events}
        assert acknowledged.items() <= stored.items()
        assert log.verify() == len(stored)
        assert len(stored) % 3 == 0


def test_a_killed_writer_takes_nothing_with_it(postgres_url: str) -> None:
    """After kill -9 every acknowledged event is there, and no call is there by halves; the lock is free at once."""
    kill_writers(postgres_url, new_schema(), 2)


@pytest.mark.slow
def test_many_killed_writers_take_nothing_with_them(postgres_url: str) -> None:
    """The same, through six rounds of kills."""
    kill_writers(postgres_url, new_schema(), 6)


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def insist(log: PostgresEventLog, name: str, done: Event) -> list[str]:
    """Append with keys until `done`, each call again and again until it is acknowledged."""
    acknowledged: list[str] = []
    number = 0
    while not done.is_set():
        drafts = [draft("x", stream=name, key=f"{name}-{number}-{part}") for part in range(2)]
        while True:
            try:
                acknowledged += [receipt.event_id for receipt in log.append(drafts)]
                break
            except StoreUnavailable:
                time.sleep(0.01)
        number += 1
    return acknowledged


def test_a_killed_server_loses_and_doubles_nothing(own_cluster: Cluster) -> None:
    """Writers and readers live through kill -9 of the server: acknowledged equals present, each once."""
    url, schema = own_cluster.status().url or "", new_schema()
    logs = [open_log(url, schema, pool_timeout=1.0) for _ in range(3)]
    stop, done = Event(), Event()
    with ThreadPoolExecutor(8) as pool:
        reader = pool.submit(follow, logs[2], done, 50, True)
        writers = [pool.submit(insist, logs[n % 2], f"w{n}", stop) for n in range(4)]
        try:
            for _ in range(2):
                time.sleep(0.3)
                own_cluster.kill()
                own_cluster.up()
            time.sleep(0.3)
        finally:
            stop.set()
        acknowledged = Counter(event_id for writer in writers for event_id in writer.result(60))
        done.set()
        seen = reader.result(60)
    assert len(acknowledged) > 10
    check(logs[2], [seen], acknowledged)
    for log in logs:
        log.close()

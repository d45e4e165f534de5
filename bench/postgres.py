"""PostgreSQL underneath: `python bench/postgres.py [--quick] [--only SECTION ...]`, on a server of its own with fsync.

append: durable appends a second at the log, 1 and 100 per call with 1, 4 and 16 threads, beside bare psycopg with as
many connections that insert the same bytes under the same unique indexes with a hash.
processes: the same one by one from several processes, each with a log of its own.
lag: milliseconds from an append's return to a reader in another log hearing of it; and what a transaction that stays
open for a second does to readers and writers.

replay: log events a second that a rebuild of each view folds, log and views in PostgreSQL, beside the bare insertion of
the rows of all views into tables with the same indexes.
recall: milliseconds of `Memory.recall(k=10)` at 100,000 events in 100 scopes, encoder included, as in `recall.py`,
and how often it asks the server, once that has vacuumed what was filled in, which else it does meanwhile.

Rates are medians over rounds in which everything that is compared takes its turn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Barrier, Thread
from time import perf_counter, process_time, sleep
from typing import Any, Final

import _data
import psycopg
from _measure import interleaved, machine, percentile, ratio, seconds, table, verdict
from psycopg import _cursor_base, generators

from mnemolog import Memory
from mnemolog.domain.events import Draft
from mnemolog.infra.embedders import SentenceEmbedder
from mnemolog.infra.postgres.cluster import Cluster
from mnemolog.infra.postgres.log import PostgresEventLog
from mnemolog.infra.settings import Settings

PEOPLE: Final = 100
PROCESSES: Final = 4
_FLOOR: Final = "floor: their rows, by COPY"
_TARGETS: Final = {(1, 1): 0.5, (100, 1): 0.3}
_SCHEMAS: Final = count(1)

Row = tuple[str, int, str, str | None, bytes]


@contextmanager
def server() -> Iterator[str]:
    """The url of a server that is thrown away."""
    with TemporaryDirectory(prefix="mnemolog-") as folder:
        Path(folder).chmod(0o755)
        cluster = Cluster(Path(folder) / "cluster")
        try:
            url = cluster.up().url
            assert url is not None
            yield url
        finally:
            cluster.remove()


class BareLog:
    """The columns and unique indexes of the log, a hash per row, one connection per writer, and nothing else."""

    def __init__(self, url: str) -> None:
        self._url, self._connections = url, dict[int, psycopg.Connection[Any]]()
        self._name = f"floor{next(_SCHEMAS)}"
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(
                f"CREATE TABLE {self._name} (position bigserial PRIMARY KEY, stream text NOT NULL, version bigint"
                " NOT NULL, topic text NOT NULL, key text, leaf bytea NOT NULL, state bytea NOT NULL)"
            )
            conn.execute(f"CREATE UNIQUE INDEX ON {self._name} (stream, version)")
            conn.execute(f"CREATE UNIQUE INDEX ON {self._name} (key) WHERE key IS NOT NULL")

    def append(self, writer: int, rows: Sequence[Row]) -> None:
        """Insert in one transaction."""
        conn = self._connections.get(writer)
        if conn is None:
            conn = self._connections[writer] = psycopg.connect(self._url, autocommit=True)
        hashed = [(*row[:4], sha256(row[4]).digest(), row[4]) for row in rows]
        into = f"INSERT INTO {self._name} (stream, version, topic, key, leaf, state)"
        if len(hashed) == 1:
            conn.execute(f"{into} VALUES (%s,%s,%s,%s,%b,%b)", hashed[0])
            return
        columns = [list(column) for column in zip(*hashed, strict=True)]
        conn.cursor().execute(
            f"{into} SELECT * FROM unnest(%b::text[],%b::bigint[],%b::text[],%b::text[],%b::bytea[],%b::bytea[])",
            columns,
        )

    def close(self) -> None:
        for conn in self._connections.values():
            conn.close()


def at_once(writers: int, work: Callable[[int], None]) -> float:
    """Seconds until all threads are through."""
    barrier = Barrier(writers + 1)

    def run(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [Thread(target=run, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = perf_counter()
    for thread in threads:
        thread.join()
    return perf_counter() - started


class Appending:
    """A log and a floor that take their turns, each `events` a round."""

    def __init__(self, url: str, folder: Path, events: int, per_call: int, writers: int) -> None:
        self._events, self._per_call, self._writers = events, per_call, writers
        self._memory = Memory.open(folder, background=False)
        store = self._memory._store
        self._log = PostgresEventLog(url, store.vault, store.clock, schema=f"bench{next(_SCHEMAS)}")
        self._floor = BareLog(url)
        self._turns = _data.turns(PEOPLE, prefix="bench")

    def works(self) -> dict[str, Callable[[], float]]:
        return {"log": self._at_log, "floor": self._bare}

    def _drafts(self) -> list[Draft]:
        made = self._memory._batcher
        return [made._drafted(made._said(item, {})) for item in islice(self._turns, self._events)]

    def _at_log(self) -> float:
        calls = self._parts(self._drafts())

        def work(number: int) -> None:
            for call in calls[number]:
                self._log.append(call)

        return self._events / at_once(self._writers, work)

    def _bare(self) -> float:
        """The bytes of the round before, so that both insert the same."""
        with self._log._reading() as cursor:
            found = self._log._recorder.rows(cursor, self._log.head() - self._events, self._events)
        calls = self._parts([(row[1], row[2], row[3], row[4], row[6]) for row in found])

        def work(number: int) -> None:
            for call in calls[number]:
                self._floor.append(number, call)

        return self._events / at_once(self._writers, work)

    def _parts(self, items: Sequence[Any]) -> list[list[Sequence[Any]]]:
        """For each writer, its calls."""
        calls = [items[at : at + self._per_call] for at in range(0, len(items), self._per_call)]
        return [calls[number :: self._writers] for number in range(self._writers)]

    def close(self) -> None:
        self._log.close()
        self._floor.close()
        self._memory.close()


def append(url: str, folder: Path, quick: bool) -> None:
    """Threads of one process."""
    alone: dict[int, float] = {}
    rows = []
    for per_call, events in ((1, 600), (100, 8_000)):
        for writers in (1, 4, 16):
            here = folder / f"append-{per_call}-{writers}"
            here.mkdir()
            bench = Appending(
                url, here, events // 2 if quick else events * min(writers, 4), per_call, writers
            )
            rates = interleaved(3 if quick else 5, bench.works())
            bench.close()
            log, share = median(rates["log"]), ratio(rates["log"], rates["floor"])
            alone.setdefault(per_call, log)
            target = _TARGETS.get((per_call, writers))
            said = verdict(share, target) if target else ""
            if per_call == 1 and writers == 16:
                said = f"{log / alone[1]:.1f} times one writer {verdict(log / alone[1], 3)}"
            floor = median(rates["floor"])
            rows.append((per_call, writers, f"{log:,.0f}", f"{floor:,.0f}", f"{share:.2f}", said))
    table("Appends a second", ("per call", "writers", "log", "floor", "share", ""), rows)


CHILD: Final = """
import sys, time
sys.path.insert(0, sys.argv[3])
from _floor import PlainSealer
from postgres import draft
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.postgres.log import PostgresEventLog
log = PostgresEventLog(sys.argv[1], PlainSealer(), SystemClock(), schema=sys.argv[2])
drafts = [draft(sys.argv[4]) for _ in range(int(sys.argv[5]))]
print("ready", flush=True)
sys.stdin.readline()
for one in drafts:
    log.append([one])
print("done", flush=True)
"""


def draft(stream: str) -> Draft:
    """A small turn."""
    from datetime import UTC, datetime

    from mnemolog.domain.events import TurnRecorded
    from mnemolog.domain.principal import Role, Tier
    from mnemolog.domain.scope import Scope, ScopeIds
    from mnemolog.infra.clock import UuidV7

    ids = UuidV7()
    return Draft(
        id=ids.event_id(),
        event=TurnRecorded("user", "x" * 200),
        scope=ScopeIds(Scope(tenant="t", user="u", session=stream)),
        stream=stream,
        occurred_at=datetime.now(UTC),
        actor="a",
        role=Role.USER,
        origin=Tier.USER_STATED,
        digest="d",
        subjects=("u",),
    )


def processes(url: str, folder: Path, quick: bool) -> None:
    """One by one from several processes: they take turns at one lock, and share no fsync."""
    each = 100 if quick else 300
    rows = []
    for number in (1, 2, PROCESSES):
        schema, here = f"bench{next(_SCHEMAS)}", str(Path(__file__).parent)
        children = [
            subprocess.Popen(
                [sys.executable, "-c", CHILD, url, schema, here, f"s{n}", str(each)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(number)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        started = perf_counter()
        for child in children:
            child.communicate("go\n")
        rows.append((number, f"{number * each / (perf_counter() - started):,.0f}"))
    table("Appends a second, one by one, by processes", ("processes", "log"), rows)


def lag(url: str, folder: Path, quick: bool) -> None:
    """How soon another process hears of a commit, and what a slow transaction does."""
    from _floor import PlainSealer

    from mnemolog.infra.clock import SystemClock

    schema = f"bench{next(_SCHEMAS)}"
    with (
        PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema) as reader,
        PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema) as writer,
    ):
        reader.wait(0, 0.5)
        heard = [_heard(reader, writer) for _ in range(50 if quick else 300)]
        with psycopg.connect(url, autocommit=True) as slow, slow.cursor() as cursor:
            last = writer._recorder.lock(cursor, "BEGIN; ")
            behind, ended = list[int](), list[float]()
            held = Thread(target=lambda: (sleep(1), cursor.execute("ROLLBACK"), ended.append(perf_counter())))
            held.start()
            blocked = Thread(target=lambda: writer.append([draft("s")]))
            started = perf_counter()
            blocked.start()
            while (head := reader.head()) <= last:
                behind.append(last - head)
            seen = perf_counter()
            held.join()
            blocked.join()
            waited = perf_counter() - started
    milliseconds = [1000 * one for one in heard]
    table(
        "Lag",
        ("", "value"),
        [
            ("another log hears of a commit, p50", f"{percentile(milliseconds, 0.5):.1f} ms"),
            ("and p95", f"{percentile(milliseconds, 0.95):.1f} ms"),
            ("events a reader is behind what is committed, while a transaction is open", max(behind)),
            ("a writer waits for a transaction of 1 s", f"{waited:.2f} s"),
            ("from its end to a reader having what waited for it", f"{1000 * (seen - ended[0]):.1f} ms"),
        ],
    )


def _heard(reader: PostgresEventLog, writer: PostgresEventLog) -> float:
    position = writer.head()
    moments: list[float] = []
    thread = Thread(target=lambda: (reader.wait(position, 5), moments.append(perf_counter())))
    thread.start()
    sleep(0.005)
    writer.append([draft("s")])
    appended = perf_counter()
    thread.join()
    return max(0.0, moments[0] - appended)


@contextmanager
def filled(url: str, folder: Path, events: int, embedder: SentenceEmbedder | None = None) -> Iterator[Memory]:
    name = f"filled{next(_SCHEMAS)}"
    settings = Settings.load(embedder="none", database_url=url, database_schema=name)
    with Memory.open(folder / name, background=False, settings=settings, embedder=embedder) as memory:
        _data.load(memory, _data.mixed(PEOPLE, events))
        memory.operations.catch_up(timeout=3_600)
        memory.operations.embed()
        yield memory


class BareRows:
    """The rows of all views, put by one COPY each into tables that are made like theirs, indexes and all."""

    def __init__(self, url: str, views: str) -> None:
        self._conn = psycopg.connect(url, autocommit=True)
        self._name, self._rows = f"floor{next(_SCHEMAS)}", dict[str, bytes]()
        self._conn.execute(f"CREATE SCHEMA {self._name}")
        found = self._conn.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE %s", (f"{views}\\_%",)
        ).fetchall()
        for number, (schema, name) in enumerate(found):
            mine, theirs = f"{self._name}.rows{number}", f'{schema}."{name}"'
            self._conn.execute(f"CREATE UNLOGGED TABLE {mine} (LIKE {theirs} INCLUDING ALL)")
            with self._conn.cursor().copy(f"COPY {theirs} TO STDOUT (FORMAT BINARY)") as copy:
                self._rows[mine] = b"".join(copy)

    def seconds(self) -> float:
        """Until all are in."""
        for name in self._rows:
            self._conn.execute(f"TRUNCATE {name}")
        started = perf_counter()
        for name, rows in self._rows.items():
            with self._conn.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(rows)
        return perf_counter() - started

    def close(self) -> None:
        self._conn.close()


def replay(url: str, folder: Path, quick: bool) -> None:
    """Each view from position 0."""
    with filled(url, folder, 5_000 if quick else 20_000) as memory:
        head, names = memory._store.log.head(), memory._store.runner.names()
        floor, cpu = (
            BareRows(url, f"{memory._store.settings.database_schema}_views"),
            dict[str, list[float]](),
        )

        def rebuilt(name: str) -> float:
            worked = process_time()
            passed = seconds(lambda: memory.operations.rebuild(name))
            cpu.setdefault(name, []).append(process_time() - worked)
            return passed

        works = {name: lambda name=name: rebuilt(name) for name in names}
        times = interleaved(2, {**works, _FLOOR: floor.seconds})
        floor.close()
    bare = times.pop(_FLOOR)
    all_of_them = [sum(each) for each in zip(*times.values(), strict=True)]
    rows = [
        (name, f"{head / median(each):,.0f}", f"{1e6 * median(cpu[name]) / head:.0f}", "", "")
        for name, each in times.items()
    ]
    rate, busy = head / median(all_of_them), sum(map(median, cpu.values()))
    share = f"{ratio(bare, all_of_them):.2f}"
    rows.append(("all of them", f"{rate:,.0f}", f"{1e6 * busy / head:.0f}", share, verdict(rate, 2_000)))
    rows.append((_FLOOR, f"{head / median(bare):,.0f}", "", "", ""))
    table(f"Replay of {head:,} events", ("", "log events/s", "own CPU us/event", "share", ""), rows)


@contextmanager
def round_trips() -> Iterator[list[int]]:
    """One number that grows with each answer that is waited for."""
    counted, execute = [0], generators.execute

    def counting(pgconn: Any) -> Any:
        counted[0] += 1
        return execute(pgconn)

    # Statements of cursors, and those that begin and end transactions.
    generators.execute = _cursor_base.execute = counting  # type: ignore[attr-defined]
    try:
        yield counted
    finally:
        generators.execute = _cursor_base.execute = execute  # type: ignore[attr-defined]


def recall(url: str, folder: Path, quick: bool) -> None:
    """Questions by people who speak the language they ask in, each in a scope of the person's own."""
    import recall as embedded

    rows, embedder, events = [], embedded.Sampled(), 10_000 if quick else 100_000
    with filled(url, folder, events, embedder) as memory:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("VACUUM ANALYZE")
            conn.execute("CHECKPOINT")
        for name in _data.LANGUAGES:
            rows.append(embedded.asked(memory, embedder, PEOPLE, events, 300, name, None if quick else 40))
        memory.recall(_data.scope(0, 0), "what did we say of the report")
        with round_trips() as trips:
            memory.recall(_data.scope(0, 0), "what did we say of the report")
    table("Memory.recall, k=10, default embedder", embedded.HEAD, rows)
    print(f"round trips to the server for one recall: {trips[0]}")


SECTIONS: Final = {"append": append, "processes": processes, "lag": lag, "replay": replay, "recall": recall}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    arguments = parser.parse_args()
    print(machine())
    with server() as url, TemporaryDirectory() as folder:
        with psycopg.connect(url) as conn:
            print(conn.execute("SELECT version()").fetchone()[0].partition(",")[0])  # type: ignore[index]
        for name in arguments.only:
            SECTIONS[name](url, Path(folder), arguments.quick)


if __name__ == "__main__":
    main()

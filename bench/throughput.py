"""Speed and size of the embedded store: `python bench/throughput.py [--quick] [--events N] [--only SECTION ...]`.

append: durable appends a second through `Memory` and at the log, beside bare sqlite3 that inserts the same bytes
under the same unique indexes with a hash and an fsync. writers: the same with 1, 4 and 16 threads.
replay: log events a second that a rebuild folds, each view and all of them in a process per core, beside a bare
loop that opens, tokenises and inserts.
recall: milliseconds of `Memory.recall(k=10)` over both views, questions of 3 to 8 words, and what a store weighs.
start: seconds and memory until an empty store is open in a new process, and until `mnemolog --help` has answered.

Rates are medians over rounds in which everything that is compared takes its turn.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Barrier, Thread
from time import perf_counter, thread_time
from typing import Any, Final

import _data
from _floor import BareLog, PlainSealer, fold, rows_of
from _measure import (
    in_fresh_process,
    interleaved,
    machine,
    percentile,
    ratio,
    seconds,
    table,
    verdict,
)

from mnemolog import Memory
from mnemolog.infra.compose import VIEWS_FOLDER
from mnemolog.infra.log import SqliteEventLog
from mnemolog.infra.settings import Settings
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.vector_folder import LOG_FILE

PEOPLE: Final = 100
FILLED: Final = 20_000
"""Events that a log has before it is appended to."""
VIEWS: Final = ("catalog", "turns", "curated", "summaries", "working", "access")
Work = Callable[[], float]


# append -----------------------------------------------------------------------------------------------------------


class Appending:
    """Stores and floors that are appended to in turn, each `count` events a round, after `before` events."""

    def __init__(self, folder: Path, count: int, per_call: int, before: int) -> None:
        self._count, self._per_call = count, per_call
        self._paused = Memory.open(folder / "paused", background=False)
        self._running = Memory.open(folder / "running")
        self._floor = BareLog(folder / "floor.db")
        self._log = folder / "paused" / LOG_FILE
        self._turns = {name: _data.turns(PEOPLE, prefix=name) for name in ("paused", "running", "log")}
        self._store = self._paused._store
        clock = self._store.clock
        self._sealed = SqliteEventLog(folder / "sealed.db", self._store.vault, clock)
        self._plain = SqliteEventLog(folder / "plain.db", PlainSealer(), clock)
        self._drafts: list[Any] = []
        self._fill(before)

    def _fill(self, before: int) -> None:
        for memory, name in ((self._paused, "paused"), (self._running, "running")):
            write(memory, list(islice(self._turns[name], before)), 1_000)
        self._floor.append(rows_of(self._log, 0, before))
        self._draft(before)
        for log in (self._sealed, self._plain):
            log.append(self._drafts)
        self._running.operations.catch_up(timeout=600)

    def works(self) -> dict[str, Work]:
        return {
            "Memory, projections paused": lambda: self._through(self._paused, "paused"),
            "floor": self._bare,
            "Memory, projections running": self._while_running,
            "log, ready drafts": self._at_log,
            "log, ready drafts, not sealed": self._unsealed,
        }

    def close(self) -> None:
        for each in (self._paused, self._running, self._floor, self._sealed, self._plain):
            each.close()

    def _through(self, memory: Memory, name: str) -> float:
        items = list(islice(self._turns[name], self._count))
        return self._count / seconds(lambda: write(memory, items, self._per_call))

    def _while_running(self) -> float:
        rate = self._through(self._running, "running")
        self._running.operations.catch_up()
        return rate

    def _bare(self) -> float:
        """The bytes of the round before, so that both insert the same."""
        rows = rows_of(self._log, self._store.log.head() - self._count, self._count)
        calls = in_calls(rows, self._per_call)
        return self._count / seconds(lambda: in_turn(self._floor.append, calls))

    def _at_log(self) -> float:
        self._draft(self._count)
        return self._ready(self._sealed)

    def _draft(self, count: int) -> None:
        made = self._paused._batcher
        self._drafts = [made._drafted(made._said(item, {})) for item in islice(self._turns["log"], count)]

    def _unsealed(self) -> float:
        return self._ready(self._plain)

    def _ready(self, log: SqliteEventLog) -> float:
        calls = in_calls(self._drafts, self._per_call)
        return self._count / seconds(lambda: in_turn(log.append, calls))


def write(memory: Memory, items: list[dict[str, Any]], per_call: int) -> None:
    """Through `record_turn` one at a time, or through `record_batch`."""
    if per_call > 1:
        for call in in_calls(items, per_call):
            memory.record_batch(call)
        return
    for item in items:
        memory.record_turn(item["scope"], **without(item, "type", "scope"))


def append(folder: Path, quick: bool) -> None:
    for per_call, count, target in ((1, 1_000, 0.6), (100, 5_000, 0.4)):
        here = folder / f"append-{per_call}"
        here.mkdir()
        before = FILLED // 2 if quick else FILLED
        bench = Appending(here, count // 2 if quick else count, per_call, before)
        rates = interleaved(5 if quick else 9, bench.works())
        bench.close()
        rows = []
        for name, each in rates.items():
            share = ratio(each, rates["floor"])
            aim = verdict(share, target) if name == "Memory, projections paused" else ""
            rows.append((name, f"{median(each):,.0f}", f"{share:.2f}", aim))
        sealed = ratio(rates["log, ready drafts"], rates["log, ready drafts, not sealed"])
        rows.append(
            ("sealed / not sealed", "", f"{sealed:.2f}", verdict(sealed, 0.7) if per_call > 1 else "")
        )
        title = (
            f"Durable append, {per_call} per call, after {before:,} events: {PEOPLE} people,"
            f" turns of {_data.TURN_CHARACTERS} characters"
        )
        table(title, ("", "events/s", "of the floor", "target"), rows)


# writers ----------------------------------------------------------------------------------------------------------


def writers(folder: Path, quick: bool) -> None:
    """Threads that each append one turn at a time."""
    count = 800 if quick else 3_200
    with Memory.open(folder / "writers", background=False) as memory:
        turns = _data.turns(PEOPLE, prefix="writers")
        works = {str(n): lambda n=n: concurrently(memory, turns, n, count) for n in (1, 4, 16)}
        rates = interleaved(3 if quick else 7, works)
    rows = []
    for name, each in rates.items():
        times = ratio(each, rates["1"])
        rows.append((name, f"{median(each):,.0f}", f"{times:.1f}", verdict(times, 3) if name == "16" else ""))
    table("Concurrent writers, one turn per call", ("threads", "events/s", "of one", "target"), rows)


def concurrently(memory: Memory, turns: Iterator[dict[str, Any]], threads: int, count: int) -> float:
    shares = [list(islice(turns, count // threads)) for _ in range(threads)]
    start = Barrier(threads + 1)

    def run(share: list[dict[str, Any]]) -> None:
        start.wait()
        write(memory, share, 1)

    workers = [Thread(target=run, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    start.wait()
    started = perf_counter()
    for worker in workers:
        worker.join()
    return count / (perf_counter() - started)


# replay -----------------------------------------------------------------------------------------------------------


def replay(folder: Path, memory: Memory, quick: bool) -> None:
    """Rebuilds of a store with the mixed log."""
    store = memory._store
    events, log, analyzer = store.log.head(), folder / LOG_FILE, default_analyzer()

    def rebuild(name: str) -> float:
        analyzer.forget()
        return seconds(lambda: memory.operations.rebuild(name))

    def bare() -> float:
        analyzer.forget()
        with TemporaryDirectory(dir=folder) as scratch:
            return seconds(lambda: fold(log, Path(scratch) / "bare.db", store.vault, analyzer))

    works: dict[str, Work] = {name: lambda name=name: rebuild(name) for name in VIEWS}
    works["all together"] = lambda: seconds(memory.operations.rebuild_all)
    times = interleaved(3 if quick else 5, {**works, "bare loop": bare})
    times["one by one"] = [sum(each) for each in zip(*(times[name] for name in VIEWS), strict=True)]
    rows = []
    for name in (*VIEWS, "one by one", "all together", "bare loop"):
        rate = [events / each for each in times[name]]
        aim = {"curated": 50_000, "all together": 5_000}.get(name)
        opened = bodies_opened(memory, name) if name in VIEWS else ""
        rows.append((name, f"{median(rate):,.0f}", opened, verdict(median(rate), aim) if aim else ""))
    share = ratio(times["bare loop"], times["all together"])
    rows.append(("all together / bare loop", f"{share:.2f}", "", verdict(share, 0.5)))
    table(f"Replay of {events:,} events", ("", "log events/s", "bodies opened", "target"), rows)


def bodies_opened(memory: Memory, name: str) -> int:
    codec = memory._store.log.codec
    vault, opened = codec._sealer, 0

    class Counting(PlainSealer):
        def open(self, *given: Any) -> bytes | None:
            nonlocal opened
            opened += 1
            return vault.open(*given)

    codec._sealer = Counting()
    try:
        memory.operations.rebuild(name)
    finally:
        codec._sealer = vault
    return opened


# recall -----------------------------------------------------------------------------------------------------------


def recall(folder: Path, sizes: list[int], quick: bool, with_replay: bool) -> None:
    rows, weights = [], []
    for size in sizes:
        for people in (1, PEOPLE):
            here = folder / f"recall-{size}-{people}"
            with Memory.open(here, settings=Settings.load(durability="os")) as memory:
                with memory.operations.paused():
                    _data.load(memory, _data.mixed(people, size))
                memory.operations.catch_up(timeout=3_600)
                rows += [asked(memory, size, people, name) for name in _data.LANGUAGES]
                if people == PEOPLE and size == max(sizes) and with_replay:
                    replay(here, memory, quick)
                if people == PEOPLE:
                    weights.append(weight(here, memory))
    table(
        "Memory.recall, k=10, milliseconds",
        ("questions", "events", "scopes", "p50", "p95", "p95 of CPU", "hits", "target"),
        rows,
    )
    table(
        "Bytes per event, and megabytes of a new process that opens the store and asks 100 questions",
        ("events", "log", "keys", *VIEWS, "MB"),
        weights,
    )


def asked(memory: Memory, size: int, people: int, name: str) -> tuple[object, ...]:
    """Questions by people who speak the language they ask in."""
    rng, times, busy, hits = random.Random(5), [], [], 0
    own = [
        person for person in range(people) if people == 1 or _data.language(person) is _data.LANGUAGES[name]
    ]
    for question in _data.questions(name, 500):
        scope = _data.scope(rng.choice(own), 0)
        started, worked = perf_counter(), thread_time()
        hits += len(memory.recall(scope, question))
        times.append((perf_counter() - started) * 1e3)
        busy.append((thread_time() - worked) * 1e3)
    p50, p95, cpu = percentile(times, 0.5), percentile(times, 0.95), percentile(busy, 0.95)
    aim = verdict(p95, 10, lower_is_better=True) if (people, size) == (PEOPLE, 100_000) else ""
    return name, f"{size:,}", people, f"{p50:.2f}", f"{p95:.2f}", f"{cpu:.2f}", f"{hits / 500:.1f}", aim


_READER: Final = """
import sys
import _data, _measure
from mnemolog import Memory
with Memory.open(sys.argv[2]) as memory:
    for question in _data.questions("English", 100):
        memory.recall(_data.scope(0, 0), question)
    print(_measure.rss())
"""


def weight(folder: Path, memory: Memory) -> tuple[object, ...]:
    events = memory._store.log.head()
    memory._store.log.checkpoint()
    memory.close()
    sizes = [size_of(folder / LOG_FILE), size_of(folder / "keys.db")]
    for name in VIEWS:
        sizes.append(sum(size_of(path) for path in (folder / VIEWS_FOLDER).glob(f"{name}*")))
    _, printed = in_fresh_process(
        f"import sys; sys.path.insert(0, sys.argv[1])\n{_READER}", *here_and(folder)
    )
    return f"{events:,}", *(f"{size / events:,.0f}" for size in sizes), f"{int(printed) / 1e6:.0f}"


def here_and(folder: Path) -> tuple[str, str]:
    return str(Path(__file__).parent), str(folder)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# start ------------------------------------------------------------------------------------------------------------

_OPENER: Final = """
import os, sys
from mnemolog import Memory
with Memory.open(sys.argv[1]):
    with open("/proc/self/statm") as statm:
        print(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
"""


def start(folder: Path, quick: bool) -> None:
    times, sizes, helped = [], [], []
    for at in range(5 if quick else 9):
        wall, printed = in_fresh_process(_OPENER, str(folder / f"empty-{at}"))
        times.append(wall)
        sizes.append(int(printed) / 1e6)
        command = "import sys; sys.argv = ['mnemolog', '--help']; from mnemolog.infra.cli import main; main()"
        helped.append(in_fresh_process(command)[0])
    rows = [
        ("new process opens an empty store", f"{median(times):.2f} s", verdict(median(times), 1, True)),
        ("its memory", f"{median(sizes):.0f} MB", verdict(median(sizes), 100, True)),
        ("mnemolog --help", f"{median(helped):.2f} s", verdict(median(helped), 0.5, True)),
    ]
    table("Start, imports included", ("", "median", "target"), rows)


# ------------------------------------------------------------------------------------------------------------------


def in_turn(work: Callable[[Any], object], calls: list[Any]) -> None:
    for call in calls:
        work(call)


def in_calls(items: list[Any], per_call: int) -> list[list[Any]]:
    return [items[at : at + per_call] for at in range(0, len(items), per_call)]


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


SECTIONS: Final = ("append", "writers", "replay", "recall", "start")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--events", type=int, default=100_000, help="the largest store of replay and recall")
    options.add_argument("--quick", action="store_true", help="fewer rounds; 10,000 events unless --events")
    options.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    options.add_argument("--folder", type=Path, help="where the stores are made; default: a temporary folder")
    asked_for = options.parse_args()
    events = 10_000 if asked_for.quick and "--events" not in " ".join(sys.argv) else asked_for.events
    print(machine())
    print(f"Data: {_data.__doc__}".strip())
    with TemporaryDirectory(dir=asked_for.folder) as name:
        folder = Path(name)
        run(folder, set(asked_for.only), events, asked_for.quick)


def run(folder: Path, only: set[str], events: int, quick: bool) -> None:
    if "append" in only:
        append(folder, quick)
    if "writers" in only:
        writers(folder, quick)
    if "recall" in only:
        sizes = sorted({size for size in (1_000, 10_000) if size < events} | {events})
        recall(folder, sizes, quick, "replay" in only)
    elif "replay" in only:
        only_replay(folder, events, quick)
    if "start" in only:
        start(folder, quick)


def only_replay(folder: Path, events: int, quick: bool) -> None:
    with Memory.open(folder / "replay", settings=Settings.load(durability="os"), background=False) as memory:
        _data.load(memory, _data.mixed(PEOPLE, events))
        replay(folder / "replay", memory, quick)


if __name__ == "__main__":
    main()

"""Repeats, medians, tables, and what machine it was."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

_LIBRARIES: Final = ("cryptography", "eventsourcing", "orjson", "SQLAlchemy", "PyStemmer")


def machine() -> str:
    """One line on where the numbers come from."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}, load {load}\n"
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, mnemolog {version('mnemolog')},"
        f" {libraries}"
    )


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def interleaved(rounds: int, works: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run all works in turn, again and again, so that a noisy moment hits all of them. Each gives its own number."""
    results: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            results[name].append(work())
    return results


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return median(a / b for a, b in zip(over, under, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        line = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        print("  " + "  ".join(line))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))
    sys.stdout.flush()


def verdict(value: float, target: float, lower_is_better: bool = False) -> str:
    """The target, and whether it is reached."""
    reached = value <= target if lower_is_better else value >= target
    sign = "<=" if lower_is_better else ">="
    return f"{sign} {target:g} {'ok' if reached else 'MISSED'}"


def rss() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_fresh_process(code: str, *arguments: str) -> tuple[float, str]:
    """Wall seconds of a new interpreter that runs `code`, its start included, and what it printed."""
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    return perf_counter() - started, done.stdout.strip()

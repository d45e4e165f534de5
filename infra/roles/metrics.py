"""Metrics that several roles have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mnemolog.infra.serving import Metric
from mnemolog.projections.supervision import Trouble


def log_head(head: int) -> Metric:
    return Metric("mnemolog_log_head", "The last position of the log.", head)


def rebuilds(count: int) -> Metric:
    help = "Producers that were given up and made anew."
    return Metric("mnemolog_producer_rebuilds", help, count, kind="counter")


def crashes(troubles: Mapping[str, Trouble]) -> Iterator[Metric]:
    help = "How often the work failed and was tried again."
    for name, trouble in troubles.items():
        yield Metric("mnemolog_crashes", help, trouble.crashes, {"part": name}, "counter")


def parked(name: str, failed: int, waiting: int) -> Iterator[Metric]:
    labels = {"projection": name}
    yield Metric("mnemolog_projection_parked", "Events that failed.", failed, labels)
    yield Metric("mnemolog_projection_waiting", "Events behind failed ones.", waiting, labels)


def progress(name: str, position: int, lag: int) -> Iterator[Metric]:
    labels = {"projection": name}
    yield Metric("mnemolog_projection_position", "How far it is.", position, labels)
    yield Metric("mnemolog_projection_lag", "How many events it is behind.", lag, labels)


def counters(prefix: str, rows: Iterable[tuple[str, str, int]]) -> Iterator[Metric]:
    """rows: name, help and value."""
    for name, help, value in rows:
        yield Metric(f"{prefix}_{name}", help, value, kind="counter")

"""What Prometheus may scrape: a store's status as metrics. Ids and numbers only, never a text of anybody's.

Counters come from the log and its views, so they are the same in every process and go on after a restart; only those
that the help calls "of this process" begin anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from prometheus_client import Metric

    from mnemolog.memory import Memory
    from mnemolog.results import GateStatus, ProjectionStatus, Status

Labels = tuple[str, ...]
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_VIEWS: Final = {
    "position": "How far a view has folded the log, in events.",
    "lag": "Events of the log that a view has not folded yet.",
    "parked": "Events that a view could not fold.",
    "waiting": "Events that wait behind a parked one of their owner.",
}


def exposition(memory: Memory) -> bytes:
    """The metrics of a store in Prometheus' text format; for a principal that may inspect it."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(memory.operations.status()))
    return generate_latest(registry)


def samples(text: bytes) -> list[dict[str, Any]]:
    """The samples of an exposition, each with name, labels and value."""
    from prometheus_client.parser import text_string_to_metric_families

    families = text_string_to_metric_families(text.decode())
    found = [sample for family in families for sample in family.samples]
    return [{"name": one.name, "labels": dict(one.labels), "value": one.value} for one in found]


class _Collector:
    """Tells of one look at a store."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """Nothing is collected in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._status
        yield _gauge("log_position", "The last position of the log: how many events there are.", status.head)
        yield _counter("events", "Events in the log.", ("topic",), status.counts)
        yield from _views([*status.projections, *status.vectors, *status.workers])
        yield from _gate(status.gate)
        yield _counter("reads", "Contexts and reads that were recorded.", ("action",), status.reads)
        refused = {"late": status.refused_late, "access": status.refused_access}
        yield _counter("refused", "Writes after an erasure, and calls without the right.", ("what",), refused)
        yield _gauges("size_bytes", "What files and views take.", ("what",), status.sizes)
        yield _counter("crashes", "Crashes of background work, of this process.", ("worker",), status.crashes)
        pending = len(status.pending_erasures)
        yield _gauge("erasures_pending", "Erasures that are not finished.", pending)
        yield _gauge("leader", "1 where this process keeps up the views.", int(status.leads))


def _gate(gate: GateStatus) -> Iterator[Metric]:
    """As it stands: an erasure or a decision of a person changes what became of a candidate."""
    yield _gauges("candidates", "Candidates by what became of them.", ("status",), gate.candidates)
    reasons = {(status, why): count for status, each in gate.reasons.items() for why, count in each.items()}
    yield _gauges("candidate_reasons", "Candidates by outcome and reason.", ("status", "reason"), reasons)
    merged = gate.candidates.get("evidence", 0)
    yield _gauge("merged_candidates", "Candidates that said what a record said already.", merged)
    yield _gauges(
        "people_acts", "What people did to records: edits, corrections, reviews.", ("act",), gate.people
    )
    yield _gauge("quarantine_waiting", "Candidates that wait for a person.", gate.waiting)
    yield _gauge("quarantine_oldest_seconds", "How long the first of them has waited.", gate.waited)
    refused = {(of, why): count for of, each in gate.refused.items() for why, count in each.items()}
    help = "What yielded no candidate, of this process."
    yield _counter("extraction_refused", help, ("extractor", "reason"), refused)


def _views(views: Iterable[ProjectionStatus]) -> Iterator[Metric]:
    every = list(views)
    for name, help in _VIEWS.items():
        unit = "" if name == "position" else "_events"
        values = {(view.name, view.version): getattr(view, name) for view in every}
        yield _gauges(f"view_{name}{unit}", help, ("view", "version"), values)


def _gauge(name: str, help: str, value: float) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"mnemolog_{name}", help, value=value)


def _gauges(name: str, help: str, labels: Labels, values: Mapping[Any, float]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return _labelled(GaugeMetricFamily(f"mnemolog_{name}", help, labels=labels), values)


def _counter(name: str, help: str, labels: Labels, values: Mapping[Any, float]) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    return _labelled(CounterMetricFamily(f"mnemolog_{name}", help, labels=labels), values)


def _labelled(metric: Any, values: Mapping[Any, float]) -> Metric:
    """One sample per name; a pair of names fills two labels."""
    for name, value in sorted(values.items()):
        metric.add_metric([name] if isinstance(name, str) else list(name), value)
    return metric  # type: ignore[no-any-return]

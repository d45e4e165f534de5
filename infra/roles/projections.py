"""The role `projections`: keeps views, vectors, summaries and the gate behind the log, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings
from mnemolog.memory import Memory


class Projections:
    """Implements `infra.serving.Role` over an open memory, whose threads do the work.

    It leads its data directory, or stands by and takes over when the process that leads is gone.
    """

    name = "projections"

    def __init__(self, memory: Memory) -> None:
        self._operations = memory.operations

    def run(self, stop: Event) -> None:
        stop.wait()

    def ready(self) -> bool:
        health = self._operations.health()
        return health.running == health.leads and not health.failing

    def metrics(self) -> Iterator[Metric]:
        operations, health = self._operations, self._operations.health()
        yield Metric("mnemolog_leads", "1 where this process keeps up its directory.", health.leads)
        yield Metric("mnemolog_log_head", "The last position of the log.", health.head)
        for view in (*operations.projections(), *operations.vectors(), *operations.workers()):
            labels = {"projection": view.name}
            yield Metric("mnemolog_projection_position", "How far it is.", view.position, labels)
            yield Metric("mnemolog_projection_lag", "How many events it is behind.", view.lag, labels)
            yield Metric("mnemolog_projection_parked", "Events that failed.", view.parked, labels)
            yield Metric("mnemolog_projection_waiting", "Events behind failed ones.", view.waiting, labels)
        crashes = "How often the work in the background failed and was tried again."
        for name, trouble in health.troubles.items():
            yield Metric("mnemolog_crashes", crashes, trouble.crashes, {"part": name}, "counter")


@contextmanager
def opened(settings: Settings) -> Iterator[Projections]:
    """Open the memory of the settings. A log of its own elsewhere needs no directory that was there before."""
    create = settings.database_url is not None
    with Memory.open(settings, create=create) as memory:
        yield Projections(memory)

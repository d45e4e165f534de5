"""The role `projections`: keeps views, vectors, summaries and the gate behind the log, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from mnemolog.infra.roles import metrics
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings
from mnemolog.memory import Memory
from mnemolog.projections.supervision import first_of


class Projections:
    """Implements `infra.serving.Role` over an open memory, whose threads do the work.

    It leads its data directory, or stands by and takes over when the process that leads is gone.
    """

    name = "projections"

    def __init__(self, memory: Memory) -> None:
        self._operations, self._store = memory.operations, memory._store

    def run(self, stop: Event) -> None:
        stop.wait()

    def ready(self) -> bool:
        health = self._operations.health()
        return health.running == health.leads and not health.failing

    def trouble(self) -> str | None:
        troubles = {one.name: one.trouble for one in self._store.backgrounds()}
        return first_of({"leadership": self._store.leadership.trouble, **troubles})

    def metrics(self) -> Iterator[Metric]:
        operations, health = self._operations, self._operations.health()
        yield Metric("mnemolog_leads", "1 where this process keeps up its directory.", health.leads)
        yield metrics.log_head(health.head)
        for view in (*operations.projections(), *operations.vectors(), *operations.workers()):
            yield from metrics.progress(view.name, view.position, view.lag)
            yield from metrics.parked(view.name, view.parked, view.waiting)
        yield from metrics.crashes(health.troubles)


@contextmanager
def opened(settings: Settings) -> Iterator[Projections]:
    """Open the memory of the settings. A log of its own elsewhere needs no directory that was there before."""
    create = settings.database_url is not None
    with Memory.open(settings, create=create) as memory:
        yield Projections(memory)

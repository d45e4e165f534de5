"""The role `worker`: folds some partitions of the events topic into the views, beside other workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import Any, Final, cast

from mnemolog.consumers.messages import Topics
from mnemolog.consumers.partitions import read_epochs
from mnemolog.consumers.workers import RelayPlace, SharedViews, Worker
from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.compose import Store, open_store
from mnemolog.infra.kafka.connecting import check_reachable, connection
from mnemolog.infra.kafka.owning import check_owner
from mnemolog.infra.kafka.working import FaustWorker
from mnemolog.infra.places import opened_places
from mnemolog.infra.roles import metrics
from mnemolog.infra.roles.kafka import log_id
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings
from mnemolog.projections.ports import Projection
from mnemolog.projections.supervision import first_of

FAUST_FOLDER: Final = "faust"


class WorkerRole:
    """Implements `infra.serving.Role`. Any number of them share the partitions."""

    name = "worker"

    def __init__(self, store: Store, faust: FaustWorker) -> None:
        self._store, self._faust = store, faust

    def run(self, stop: Event) -> None:
        self._faust.run(stop)

    def ready(self) -> bool:
        return self._faust.joined and self._faust.supervisor.now is None

    def trouble(self) -> str | None:
        return self._faust.supervisor.now or first_of(self._faust.worker.troubles())

    def metrics(self) -> Iterator[Metric]:
        faust, worker = self._faust, self._faust.worker
        for lag in worker.lags():
            labels = {"projection": lag.projection, "partition": str(lag.partition)}
            yield Metric("mnemolog_partition_position", "How far it is.", lag.position, labels)
            behind = "How far it is behind what the relay has sent."
            yield Metric("mnemolog_partition_lag", behind, max(0, lag.sent - lag.position), labels)
        rebalances = "How often partitions were dealt out."
        yield Metric("mnemolog_worker_rebalances", rebalances, faust.rebalances, kind="counter")
        yield Metric("mnemolog_worker_partitions", "Partitions of this worker.", len(worker.partitions))
        yield Metric("mnemolog_worker_gaps", "Batches that did not follow.", worker.gaps, kind="counter")
        yield Metric("mnemolog_worker_folded", "Events folded from messages.", worker.folded, kind="counter")
        yield from metrics.crashes(worker.troubles())
        yield metrics.log_head(self._store.log.head())
        for view in self._store.runner.lag():
            yield from metrics.parked(view.projection, view.failed, view.waiting)


@contextmanager
def opened(settings: Settings) -> Iterator[WorkerRole]:
    """Open the stores of the settings. Raises InvalidInput where views are in files, StoreUnavailable."""
    if settings.database is None:
        raise InvalidInput("workers share views in PostgreSQL: set MNEMOLOG_DATABASE_URL")
    kafka = connection(settings)
    check_reachable(kafka)
    with open_store(settings.data, settings.having(workers=True)) as store:
        if not read_epochs(store.log):
            raise StoreUnavailable("no partitions are recorded yet: start `mnemolog serve relay`")
        store.begin(background=False, lead=lambda: None)
        check_owner(kafka, Topics(settings.kafka_prefix), log_id(store.log))
    with closing(store), opened_places(settings) as places:
        yield WorkerRole(store, _faust(store, places, kafka, settings))


def _faust(store: Store, places: RelayPlace, kafka: dict[str, Any], settings: Settings) -> FaustWorker:
    views, policy, folded = cast(SharedViews, store.views), store.policy, store.folded()
    parts = store.log, views, folded, places, store.clock

    def refresh() -> list[Projection]:
        nonlocal policy, folded
        store.look_around()
        if store.policy is not policy:
            policy, folded = store.policy, store.folded()
        return folded

    worker = Worker(*parts, batch_size=settings.batch_size, refresh=refresh)
    topics = Topics(settings.kafka_prefix)
    group = f"{settings.kafka_prefix}.workers"
    seconds = settings.kafka_session_seconds
    return FaustWorker(
        worker, kafka, topics.events, group, settings.data / FAUST_FOLDER, session_seconds=seconds
    )

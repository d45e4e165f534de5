"""The role `embedder`: embeds and keeps the index, writes summaries, and looks for statements and secrets.

What is slow, or appends what it found, has a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event

from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.compose import Store, open_store
from mnemolog.infra.roles import metrics
from mnemolog.infra.serving import Metric
from mnemolog.infra.settings import Settings
from mnemolog.projections.supervision import Trouble, first_of, stop_all


class EmbedderRole:
    """Implements `infra.serving.Role` over the threads of a store.

    A second one does no harm: each batch is committed by compare-and-set, and the index has one writer at a time.
    """

    name = "embedder"

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, stop: Event) -> None:
        for one in self._store.deriving():
            one.start()
        while not stop.wait(1.0):
            with suppress(StoreUnavailable):  # it comes back, and the threads go on
                self._store.look_around()
        stop_all(self._store.deriving())

    def ready(self) -> bool:
        return self.trouble() is None

    def trouble(self) -> str | None:
        return first_of(self._troubles())

    def metrics(self) -> Iterator[Metric]:
        yield from metrics.crashes(self._troubles())
        head = self._store.log.head()
        yield metrics.log_head(head)
        for name, _, position in self._store.gate.lags():
            yield from metrics.progress(name, position, head - position)
        for lag in self._store.vectors.lags():
            yield from metrics.progress(lag.name, lag.position, lag.head - lag.position)

    def _troubles(self) -> dict[str, Trouble]:
        store = self._store
        return {
            **store.vectors.troubles(),
            **dict(store.gate.troubles()),
            "summaries": store.summarising.background.trouble,
        }


@contextmanager
def opened(settings: Settings) -> Iterator[EmbedderRole]:
    """Open the stores of the settings. Raises InvalidInput where vectors are in files, StoreUnavailable."""
    if settings.database is None:
        raise InvalidInput("an embedder is for vectors in PostgreSQL: set MNEMOLOG_DATABASE_URL")
    with open_store(settings.data, settings.having(workers=True)) as store:
        store.begin(background=False, lead=lambda: None)
    with closing(store):
        yield EmbedderRole(store)

"""A corpus in a real store: recorded, folded, embedded, and asked through `Memory.recall`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

from _corpora import Asked, Corpus, Said
from _harness import ROLES
from _vectors import Vectors

from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings

_BATCH: Final = 500


class Cached:
    """The default embedder behind the benchmark's own cache."""

    dimensions: Final = 512

    def __init__(self, vectors: Vectors) -> None:
        self.space = f"{vectors.space}/cached/{self.dimensions}/l2"
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> Any:
        return self._vectors.of(texts)


@dataclass(frozen=True, slots=True)
class StoreScope:
    """One corpus as one user of a store. took: milliseconds of every recall."""

    corpus: Corpus
    memory: Memory
    scope: Scope
    ids: dict[str, str]
    took: list[float]

    def found(self, asked: Asked, k: int) -> list[str]:
        """Ids of the best k, asked on the day after the last turn."""
        started = perf_counter()
        hits = self.memory.recall(self.scope, asked.text, k=k, now=self.day_after)
        self.took.append(1e3 * (perf_counter() - started))
        return [self.ids[hit.event_ids[0]] for hit in hits]

    def in_context(self, asked: Asked, budget: int) -> set[str]:
        """Ids of the turns in a context of memory alone."""
        made = self.memory.context(
            self.scope, asked.text, budget=budget, layers=["memory"], now=self.day_after
        )
        return {self.ids[one["id"]] for one in made.receipt.entries if one["id"] in self.ids}

    @property
    def day_after(self) -> datetime:
        return max(one.when for one in self.corpus.said) + timedelta(days=1)


@contextmanager
def stored(corpora: Sequence[Corpus], vectors: Vectors | None) -> Iterator[list[StoreScope]]:
    """All corpora in one store, each as a user of its own; without vectors it is asked by words alone."""
    settings = Settings.load(durability="os", embedder="none")
    embedder = None if vectors is None else Cached(vectors)
    with (
        TemporaryDirectory() as folder,
        Memory.open(Path(folder), settings=settings, background=False, embedder=embedder) as memory,
    ):
        scopes = [_recorded(memory, corpus, number) for number, corpus in enumerate(corpora)]
        memory.operations.catch_up()
        memory.operations.embed()
        yield scopes


def _recorded(memory: Memory, corpus: Corpus, number: int) -> StoreScope:
    scope, ids = Scope("bench", user=f"u-{number}"), dict[str, str]()
    for at in range(0, len(corpus.said), _BATCH):
        some = corpus.said[at : at + _BATCH]
        receipts = memory.record_batch([_item(scope, one) for one in some])
        ids |= {receipt.event_id: one.id for receipt, one in zip(receipts, some, strict=True)}  # type: ignore[union-attr]
    return StoreScope(corpus, memory, scope, ids, [])


def _item(scope: Scope, said: Said) -> dict[str, Any]:
    named = said.author not in ROLES
    return {
        "type": "turn",
        "scope": Scope(scope.tenant, user=scope.user, session=said.session),
        "role": said.author if said.author and not named else "user",
        "author": said.author if named else None,
        "content": said.text,
        "occurred_at": said.when,
    }

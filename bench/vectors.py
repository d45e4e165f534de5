"""What vectors cost: `python bench/vectors.py [--turns N] [--scopes N] [--each N]`.

embedding: texts a second of the worker, from a sealed log into rows, beside the bare encoder on the same texts.
scan: milliseconds for the cosines of one scope among many, turns and windows, its vectors sampled from real ones.
index: vectors a second into the index, milliseconds of a search in it, and the compaction after an erasure.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import _data
import numpy as np
from _measure import machine, percentile, table

from mnemolog import Memory
from mnemolog.consumers.embedding import EmbeddingWorker
from mnemolog.consumers.indexing import IndexFiller
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.embedders import SentenceEmbedder
from mnemolog.infra.index import EdgeIndex
from mnemolog.infra.vectors import StoredVectors, sqlite_vectors
from mnemolog.projections.dense import DenseScan
from mnemolog.projections.embedding import Floats, embed_query
from mnemolog.projections.vectors import Batch, Kind, Made, Place, Source, Window

KINDS: Final = (Kind.TURN, Kind.WINDOW)
PEOPLE: Final = 20


class Noting(SentenceEmbedder):
    """Keeps what it was given, in the batches in which it came."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Floats:
        self.batches.append(list(texts))
        return super().embed(texts)


def embedding(folder: Path, turns: int) -> Floats:
    """Worker and encoder in turn, batch by batch, so that a noisy moment hits both. Gives the vectors of queries."""
    bare, noting = SentenceEmbedder(), Noting()
    for embedder in (bare, noting):
        embedder.embed(["load"])
    noting.batches.clear()
    worked, encoded, texts = [], [], 0
    with Memory.open(folder / "memory", background=False) as memory:
        _data.load(memory, islice(_data.turns(PEOPLE), turns))
        rows = sqlite_vectors(folder / "worked.db")
        worker = EmbeddingWorker(memory._store.log, rows, noting)
        while True:
            started = perf_counter()
            if not worker.step():
                break
            worked.append(perf_counter() - started)
            for batch in noting.batches:
                started = perf_counter()
                bare.embed(batch)
                encoded.append(perf_counter() - started)
                texts += len(batch)
            noting.batches.clear()
        rows.close()
    share = median(e / w for e, w in zip(encoded, worked, strict=True))
    line = [f"{texts:,}", f"{texts / sum(encoded):,.0f}", f"{texts / sum(worked):,.0f}", f"{share:.0%}"]
    table("embedding", ["", "texts", "bare/s", "worker/s", "share"], [["default embedder", *line]])
    return bare.embed(_data.questions("English", 200))


def fill(rows: StoredVectors, space: str, scopes: Sequence[ScopeIds], each: int, sample: Floats) -> float:
    """Vectors for every scope, interleaved as they would come; vectors stored a second."""
    rng, position, started = random.Random(5), 0, perf_counter()
    while position < len(scopes) * each:
        sources, made, after = [], [], position
        for position in range(after + 1, after + 1001):
            place = Place(position, f"{position:032x}")
            sources.append(Source(place, scopes[position % len(scopes)], session=f"s{position % 997}"))
            made += [Made(kind, Window(place), sample[rng.randrange(len(sample))]) for kind in KINDS]
        rows.commit(Batch(space, after, position, sources, made), lambda after: ((), after))
    return 2 * position / (perf_counter() - started)


def timed(count: int, work: Callable[[int], object]) -> list[str]:
    """Median and 95th percentile in milliseconds."""
    spent = []
    for number in range(count):
        started = perf_counter()
        work(number)
        spent.append(1000 * (perf_counter() - started))
    return [f"{median(spent):.2f}", f"{percentile(spent, 0.95):.2f}"]


def searching(folder: Path, scopes: int, each: int, sample: Floats) -> None:
    embedder, rows = SentenceEmbedder(), sqlite_vectors(folder / "vectors.db")
    rows.open_space(embedder.space, embedder.dimensions)
    users = [ScopeIds(Scope("t", user=f"u{number}")) for number in range(scopes)]
    stored = fill(rows, embedder.space, users, each, sample)
    scan, questions = DenseScan(rows, embedder.space), _data.questions("English", 200)
    queries = [embed_query(embedder, question) for question in questions]
    rng = random.Random(6)

    def both(number: int) -> None:
        for kind in KINDS:
            scan.scores(queries[number % len(queries)], [users[number % len(users)]], kind)

    index = EdgeIndex(folder / "index")
    filler = IndexFiller(rows, index, embedder.space, embedder.dimensions)
    started = perf_counter()
    filler.catch_up()
    filled = 2 * scopes * each / (perf_counter() - started)
    lines = [
        ["one query embedded", *timed(200, lambda number: embed_query(embedder, questions[number]))],
        ["scores of a scope, from disk", *timed(len(users), both)],
        ["scores of a scope, in memory", *timed(400, both)],
        [
            "index, top 50",
            *timed(200, lambda n: index.search(queries[n], [rng.choice(users)], 50, Kind.TURN)),
        ],
    ]
    title = f"{scopes} scopes of {each:,} turns, two vectors each: {stored:,.0f}/s stored, {filled:,.0f}/s indexed"
    table(title, ["", "p50 ms", "p95 ms"], lines)
    index.close()
    rows.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=2_000, help="turns that are embedded")
    parser.add_argument("--scopes", type=int, default=100)
    parser.add_argument("--each", type=int, default=1_000, help="turns of each scope")
    chosen = parser.parse_args()
    print(machine())
    with TemporaryDirectory() as folder:
        sample = embedding(Path(folder), chosen.turns)
        searching(Path(folder), chosen.scopes, chosen.each, np.ascontiguousarray(sample))


if __name__ == "__main__":
    main()

"""How long `Memory.recall(k=10)` takes, vectors and the embedding of the question included: `python bench/recall.py`.

Questions of 3 to 8 words, each asked by a person who speaks the language, in the person's own scope. Turns, tool
outputs and records as in `throughput.py`. Their vectors are sampled from real ones, as embedding a million texts takes
hours; the questions are embedded for real. The floor, in the same run: the question embedded, and one bare product of
its vector with as many as the scope has, twice.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Final

import _data
import numpy as np
from _measure import machine, percentile, ratio, table, verdict

from mnemolog import Memory
from mnemolog.infra.embedders import SentenceEmbedder
from mnemolog.infra.settings import Settings
from mnemolog.projections.embedding import Floats

SAMPLE: Final = 5_000
TARGETS: Final = {(100_000, 100): 20, (1_000_000, 1_000): 60}
"""Events and scopes → milliseconds of p95."""
HEAD: Final = [
    "questions",
    "events",
    "scopes",
    "p50 ms",
    "p95 ms",
    "p95 of CPU",
    "p95 of floor",
    "× floor",
    "target",
]


class Sampled(SentenceEmbedder):
    """Embeds what comes alone, as questions do; a batch gets real vectors of other texts, chosen by its own."""

    def __init__(self) -> None:
        super().__init__()
        texts = [item["content"] for item in islice(_data.turns(20, seed=1), SAMPLE)]
        parts = (super(Sampled, self).embed(texts[at : at + 64]) for at in range(0, SAMPLE, 64))
        self.real = np.concatenate(list(parts))

    def embed(self, texts: Sequence[str]) -> Floats:
        if len(texts) == 1:
            return super().embed(texts)
        chosen = [int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) for text in texts]
        return self.real[np.array(chosen) % len(self.real)]


def fill(folder: Path, embedder: Sampled, people: int, events: int) -> None:
    """Write first, then fold the views in another process beside the vectors: a million events in some ten minutes."""
    started = perf_counter()
    with opened(folder, embedder) as memory:
        _data.load(memory, _data.mixed(people, events))
        print(f"{events:,} events of {people} scopes written in {perf_counter() - started:,.0f} s")
        with ThreadPoolExecutor(1) as pool:
            embedding = pool.submit(memory.operations.embed)
            memory.operations.rebuild_all(processes=1)
            embedding.result()
        memory.operations.catch_up(timeout=7_200)
    print(f"folded and embedded after {perf_counter() - started:,.0f} s")


@contextmanager
def filled(kept: Path | None, embedder: Sampled, people: int, events: int) -> Iterator[Path]:
    """A folder with the store: one that is kept is filled once."""
    if kept is None:
        with TemporaryDirectory() as folder:
            fill(Path(folder), embedder, people, events)
            yield Path(folder)
        return
    folder = kept / f"{events}-{people}"
    done = folder / "filled"
    if not done.exists():
        fill(folder, embedder, people, events)
        done.touch()
    yield folder


def opened(folder: Path, embedder: Sampled) -> Memory:
    """With no work in the background: neither in the way of what is filled, nor of what is measured."""
    settings = Settings.load(durability="os")
    return Memory.open(folder, settings=settings, embedder=embedder, background=False)


def asked(
    memory: Memory,
    embedder: Sampled,
    people: int,
    events: int,
    count: int,
    name: str,
    target: float | None = None,
) -> list[object]:
    """Once unmeasured, so that the scopes are in memory, then once for the clock."""
    own = speakers(name, people)[: max(1, count // 4)]
    for person in own:
        for question in _data.questions(name, 2, seed=person):
            memory.recall(_data.scope(person, 0), question)
    rng = random.Random(5)
    bare = np.resize(embedder.real, (events // people, embedder.dimensions))
    times, busy, floors = list[float](), list[float](), list[float]()
    for question in _data.questions(name, count):
        started = perf_counter()
        vector = embedder.embed([question])[0]
        for _ in range(2):
            bare @ vector
        floors.append((perf_counter() - started) * 1e3)
        scope, started, worked = _data.scope(rng.choice(own), 0), perf_counter(), thread_time()
        memory.recall(scope, question)
        times.append((perf_counter() - started) * 1e3)
        busy.append((thread_time() - worked) * 1e3)
    p95 = percentile(times, 0.95)
    figures = [percentile(times, 0.5), p95, percentile(busy, 0.95), percentile(floors, 0.95)]
    aim = "" if target is None else verdict(p95, target, lower_is_better=True)
    numbers = [f"{each:.1f}" for each in figures]
    return [name, f"{events:,}", people, *numbers, f"{ratio(times, floors):.1f}", aim]


def speakers(name: str, people: int) -> list[int]:
    """Those who speak the language; a single person speaks all."""
    language = _data.LANGUAGES[name]
    return [person for person in range(people) if people == 1 or _data.language(person) is language]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--scopes", type=int, nargs="+", default=[100, 1])
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument(
        "--folder", type=Path, help="where the stores stay, to be asked again; default: they go"
    )
    chosen = parser.parse_args()
    print(machine())
    embedder, rows = Sampled(), list[list[object]]()
    for people in chosen.scopes:
        with (
            filled(chosen.folder, embedder, people, chosen.events) as folder,
            opened(folder, embedder) as memory,
        ):
            for name in _data.LANGUAGES:
                aim = TARGETS.get((chosen.events, people))
                rows.append(asked(memory, embedder, people, chosen.events, chosen.questions, name, aim))
    table("Memory.recall, k=10, default embedder", HEAD, rows)


if __name__ == "__main__":
    main()

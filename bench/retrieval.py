"""How well recall finds: `python bench/retrieval.py [--data FOLDER] [--threads N] [--korquad N]`.

Recall is the share of a question's gold units among the first k, averaged over questions; candidates are the
asker's own scope, one user for each conversation. "The store" is `Memory.recall` over recorded, folded and embedded
turns; what each signal adds is measured with the same formulas in memory. The data are not part of the project:
what is absent is skipped.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Final

from _corpora import BEAM, KORQUAD, LOCOMO, Corpus, beam, korquad, locomo, shared_data
from _harness import MemoryScope, Prepared
from _measure import machine, percentile, table, verdict
from _store import StoreScope, stored
from _vectors import Vectors

from mnemolog.domain.context import estimate_tokens
from mnemolog.domain.retrieval import DEFAULTS, Weights
from mnemolog.infra.stem import default_analyzer

ANSWERABLE: Final = frozenset("1234")
ADVERSARIAL: Final = frozenset("5")
BUDGETS: Final = {500: 74, 1_000: 82, 2_000: 88, 4_000: 91}
NOTHING: Final = Weights(**dict.fromkeys(Weights.__dataclass_fields__, 0.0))
BM25: Final = replace(NOTHING, lexical=1.0)
SUM: Final = replace(BM25, dense=1.0)
VARIANTS: Final[Mapping[str, Weights]] = {
    "all signals": DEFAULTS,
    "BM25 alone": BM25,
    "dense alone": replace(NOTHING, dense=1.0),
    "z(BM25) + z(dense)": SUM,
    "without lexical": replace(DEFAULTS, lexical=0.0),
    "without dense (no index)": replace(DEFAULTS, dense=0.0, window=0.0),
    "without window": replace(DEFAULTS, dense=DEFAULTS.dense + DEFAULTS.window, window=0.0),
    "without neighbours": replace(DEFAULTS, beside=0.0, two_away=0.0),
    "without session best": replace(DEFAULTS, session_best=0.0),
    "without session BM25": replace(DEFAULTS, session_lexical=0.0),
    "without author": replace(DEFAULTS, author=0.0),
    "without recency": replace(DEFAULTS, recency=0.0),
    "long texts lean as short": replace(DEFAULTS, short=1e9),
}


@dataclass(frozen=True, slots=True)
class Study:
    """Scopes with their prepared questions. k: how many hits count."""

    scopes: Sequence[tuple[MemoryScope, Sequence[Prepared]]]
    k: int

    def recall(self, weights: Weights, categories: Collection[str] | None = None) -> float:
        """Mean recall@k in per cent."""
        return 100 * mean(self._recalls(weights, categories))

    def _recalls(self, weights: Weights, categories: Collection[str] | None) -> Iterable[float]:
        for scope, questions in self.scopes:
            for one in questions:
                if categories is None or one.asked.category in categories:
                    found = set(scope.found(one, weights, self.k))
                    yield len(one.asked.gold & found) / len(one.asked.gold)

    @property
    def categories(self) -> list[str]:
        return sorted({one.asked.category for _, questions in self.scopes for one in questions})


def study(corpora: Sequence[Corpus], vectors: Vectors, k: int, dated: bool = True) -> Study:
    """Index the corpora and ask both indexes every question, once."""
    scopes = [MemoryScope(corpus, default_analyzer(), vectors, dated) for corpus in corpora]
    for scope in scopes:
        vectors.of([one.text for one in scope.corpus.asked])
    return Study([(scope, [scope.prepare(one) for one in scope.corpus.asked]) for scope in scopes], k)


def through_store(
    scopes: Sequence[StoreScope], k: int, categories: Collection[str] | None = None
) -> tuple[float, float]:
    """Mean recall@k of `Memory.recall` in per cent, and the 95th percentile of its milliseconds."""
    recalls = [
        len(one.gold & set(scope.found(one, k))) / len(one.gold)
        for scope in scopes
        for one in scope.corpus.asked
        if categories is None or one.category in categories
    ]
    return 100 * mean(recalls), percentile([took for scope in scopes for took in scope.took], 0.95)


def ablation(studies: Mapping[str, Callable[[Weights], float]]) -> None:
    rows = [
        [name, *(f"{measure(weights):.1f}" for measure in studies.values())]
        for name, weights in VARIANTS.items()
    ]
    table("What each signal adds", ["", *studies], rows)


def by_category(title: str, what: Study) -> None:
    """Where the signals help, and where they cost."""
    rows = [
        [category, *(f"{what.recall(weights, {category}):.1f}" for weights in (BM25, SUM, DEFAULTS))]
        for category in what.categories
    ]
    table(title, ["category", "BM25", "z + z", "all signals"], rows)


def budgets(scopes: Sequence[StoreScope]) -> None:
    """Share of the evidence inside a context of so many tokens with only the memory layer, as it is rendered."""
    rows = []
    for budget, target in BUDGETS.items():
        shares = [
            len(one.gold & scope.in_context(one, budget)) / len(one.gold)
            for scope in scopes
            for one in scope.corpus.asked
            if one.category in ANSWERABLE
        ]
        rows.append([budget, f"{100 * mean(shares):.1f}", verdict(100 * mean(shares), target)])
    title = "LoCoMo: share of the evidence in a context of memory alone, rendering included"
    table(title, ["tokens", "%", "target"], rows)
    whole = [sum(estimate_tokens(f"{one.author}: {one.text}") for one in s.corpus.said) for s in scopes]
    print(f"  The full histories have {', '.join(f'{tokens:,}' for tokens in whole)} tokens.")


def speed(what: Study) -> None:
    """Time to rank one scope, without the look-ups that come before."""
    times, sizes = [], []
    for scope, questions in what.scopes:
        for one in questions[:100]:
            started = perf_counter()
            scope.ranked(one, DEFAULTS, 10)
            times.append(1e3 * (perf_counter() - started))
            sizes.append(len(scope.candidates))
    print(
        f"\n  Ranking {mean(sizes):.0f} candidates: p50 {percentile(times, 0.5):.1f} ms,"
        f" p95 {percentile(times, 0.95):.1f} ms"
    )


def conversations(folder: Path, vectors: Vectors) -> Study:
    corpora = locomo(folder)
    what = study(corpora, vectors, k=10)
    with stored(corpora, None) as scopes:
        words, _ = through_store(scopes, 10, ANSWERABLE)
    with stored(corpora, vectors) as scopes:
        reached, p95 = through_store(scopes, 10, ANSWERABLE)
        budgets(scopes)
    rows = [
        ["BM25 alone", f"{what.recall(BM25, ANSWERABLE):.1f}", ""],
        ["the store, words alone", f"{words:.1f}", ""],
        [f"the store (p95 {p95:.0f} ms)", f"{reached:.1f}", verdict(reached, 77)],
        ["the same formulas, in memory", f"{what.recall(DEFAULTS, ANSWERABLE):.1f}", ""],
        ["category 5 (adversarial)", f"{what.recall(DEFAULTS, ADVERSARIAL):.1f}", ""],
    ]
    table("LoCoMo: recall@10, categories 1 to 4", ["", "%", "target"], rows)
    by_category("LoCoMo by category", what)
    speed(what)
    return what


def chats(folder: Path, vectors: Vectors) -> Study:
    corpora = beam(folder)
    what = study(corpora, vectors, k=10)
    plain = what.recall(SUM)
    with stored(corpora, vectors) as scopes:
        reached, p95 = through_store(scopes, 10)
    rows = [
        ["BM25 alone", f"{what.recall(BM25):.1f}", ""],
        ["z(BM25) + z(dense)", f"{plain:.1f}", ""],
        [f"the store (p95 {p95:.0f} ms)", f"{reached:.1f}", verdict(reached, round(plain, 1))],
        ["the same formulas, in memory", f"{what.recall(DEFAULTS):.1f}", ""],
    ]
    table("BEAM: recall@10, questions with evidence", ["", "%", "target"], rows)
    by_category("BEAM by category", what)
    return what


def paragraphs(folder: Path, vectors: Vectors, questions: int) -> Study:
    corpora = [
        replace(one, asked=random.Random(1).sample(one.asked, min(questions, len(one.asked))))
        for one in korquad(folder)
    ]
    what = study(corpora, vectors, k=1, dated=False)
    with stored(corpora, vectors) as scopes:
        reached, p95 = through_store(scopes, 1)
    rows = [
        ["BM25 alone", f"{what.recall(BM25):.1f}", ""],
        [f"the store (p95 {p95:.0f} ms)", f"{reached:.1f}", verdict(reached, 88)],
        ["the same formulas, in memory", f"{what.recall(DEFAULTS):.1f}", ""],
    ]
    table(f"KorQuAD: R@1 of {len(corpora[0].asked)} questions", ["", "%", "target"], rows)
    return what


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=shared_data())
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--korquad", type=int, default=1_000, help="how many of its 5,774 questions")
    asked = options.parse_args()
    vectors = Vectors(asked.threads)
    print(f"{machine()}, numpy {version('numpy')}, {vectors.space}")
    studies: dict[str, Callable[[Weights], float]] = {}
    if (asked.data / LOCOMO).exists():
        talks = conversations(asked.data, vectors)
        studies["LoCoMo"] = lambda weights: talks.recall(weights, ANSWERABLE)
    if (asked.data / BEAM).exists():
        studies["BEAM"] = chats(asked.data, vectors).recall
    if (asked.data / KORQUAD).exists():
        studies["KorQuAD"] = paragraphs(asked.data, vectors, asked.korquad).recall
    if studies:
        ablation(studies)
    else:
        print(f"skipped: no public data in {asked.data}; point MNEMOLOG_SHARED_DATA to them")


if __name__ == "__main__":
    main()

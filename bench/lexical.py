"""Quality and speed of the lexical index: `python bench/lexical.py [--data FOLDER] [--docs N] [--scopes N]`.

Recall is the share of the gold units among the first k, averaged over questions; candidates are the asker's own
scope. The data are not part of the project: what is absent is skipped.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, create_engine

from mnemolog.domain.lexical import Analyzer, Matches, bm25, date_tokens, ranked
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.projections.lexical import LexicalDocument


class Corpus:
    """Texts of one scope, searched in memory with the same formula as the index."""

    def __init__(self, analyzer: Analyzer, texts: Sequence[str]) -> None:
        self._analyzer = analyzer
        tokens = [analyzer.document(text) for text in texts]
        self._lengths = {doc: len(words) for doc, words in enumerate(tokens)}
        self._postings: dict[str, dict[int, int]] = {}
        for doc, words in enumerate(tokens):
            for term, count in Counter(words).items():
                self._postings.setdefault(term, {})[doc] = count

    def top(self, question: str, k: int) -> list[int]:
        found = Matches(len(self._lengths), sum(self._lengths.values()), self._postings, self._lengths)
        return [doc for doc, _ in ranked(bm25(found, self._analyzer.query(question)), limit=k)]


def turns(conversation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(turn id, speaker, text and date as searched) of one LoCoMo conversation."""
    number = 1
    while f"session_{number}_date_time" in conversation:
        when = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for turn in conversation.get(f"session_{number}", []):
            text = f"{turn['speaker']}: {turn['text']} {date_tokens(when)}"
            yield turn["dia_id"], text
        number += 1


def locomo(analyzer: Analyzer, path: Path, k: int = 10) -> float:
    """Mean recall@k over the questions of categories 1 to 4."""
    recalls = []
    for sample in json.loads(path.read_text()):
        ids, texts = zip(*turns(sample["conversation"]), strict=True)
        corpus = Corpus(analyzer, texts)
        for question in sample["qa"]:
            gold = set(re.findall(r"D\d+:\d+", " ".join(question["evidence"])))
            if question["category"] in (1, 2, 3, 4) and gold:
                hits = {ids[doc] for doc in corpus.top(question["question"], k)}
                recalls.append(len(gold & hits) / len(gold))
    return statistics.mean(recalls)


def korquad(analyzer: Analyzer, path: Path) -> float:
    """Share of questions whose own paragraph comes first."""
    paragraphs = [p for article in json.loads(path.read_text())["data"] for p in article["paragraphs"]]
    corpus = Corpus(analyzer, [p["context"] for p in paragraphs])
    asked = [(qa["question"], at) for at, p in enumerate(paragraphs) for qa in p["qas"]]
    return statistics.mean(corpus.top(question, 1) == [at] for question, at in asked)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)] * 1e3


def speed(conn: Connection, analyzer: Analyzer, docs: int, scopes: int) -> None:
    """Index `docs` texts of 30 words in `scopes` scopes, then search single scopes; prints the times."""
    words = [
        f"w{random.randrange(10**9):x}".translate(str.maketrans("0123456789", "ghijklmnop"))
        for _ in range(30_000)
    ]
    spread = [int(len(words) * random.random() ** 3) for _ in range(docs * 30)]
    texts = [" ".join(words[i] for i in spread[at * 30 : at * 30 + 30]) for at in range(docs)]
    index = SqliteLexicalIndex("bench")
    index.create(conn)
    analyzed = index_time = 0.0
    for at in range(0, docs, 1000):
        started = time.perf_counter()
        batch = [
            LexicalDocument(doc, doc % scopes, analyzer.document(texts[doc]))
            for doc in range(at, min(at + 1000, docs))
        ]
        analyzed += time.perf_counter() - started
        started = time.perf_counter()
        index.add(conn, batch)
        conn.commit()
        index_time += time.perf_counter() - started
    print(
        f"analyse {analyzed / docs * 1e6:.1f} us, index {index_time / docs * 1e6:.1f} us a text of 30 words"
    )
    times, hits = [], []
    for _ in range(1000):
        query = analyzer.query(" ".join(random.sample(texts[random.randrange(docs)].split(), 6)))
        started = time.perf_counter()
        hits.append(len(index.search(conn, [random.randrange(scopes)], query)))
        times.append(time.perf_counter() - started)
    print(
        f"search p50 {percentile(times, 0.5):.2f} ms, p95 {percentile(times, 0.95):.2f} ms,"
        f" {statistics.mean(hits):.0f} hits"
    )
    started = time.perf_counter()
    found = index.search(conn, range(scopes), query)
    print(f"all {scopes} scopes: {(time.perf_counter() - started) * 1e3:.0f} ms, {len(found)} hits")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options.add_argument("--docs", type=int, default=100_000)
    options.add_argument("--scopes", type=int, default=100)
    asked = options.parse_args()
    analyzer = default_analyzer()
    for name, measure, path in (
        ("LoCoMo R@10", locomo, "locomo/dev.json"),
        ("KorQuAD R@1", korquad, "korean/KorQuAD_v1.0_dev.json"),
    ):
        if (asked.data / path).exists():
            print(f"{name} {measure(analyzer, asked.data / path) * 100:.1f}")
    if not asked.docs:
        return
    random.seed(7)
    with TemporaryDirectory() as folder, create_engine(f"sqlite:///{folder}/bench.db").connect() as conn:
        conn.exec_driver_sql("PRAGMA journal_mode=WAL")
        conn.commit()
        speed(conn, analyzer, asked.docs, asked.scopes)


if __name__ == "__main__":
    main()

"""A scope in memory that answers as the store does: same analyzer, same formulas, no log and no views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from _corpora import Asked, Corpus, Said
from _vectors import Vectors

from mnemolog.domain.lexical import Analyzer, Matches, bm25, date_tokens
from mnemolog.domain.retrieval import Candidate, Facts, Ranked, Scores, Weights, named_authors, retrieve

EMBEDDED_CHARACTERS: Final = 2_000
ROLES: Final = frozenset({"user", "assistant", ""})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question with what the indexes said of it, so that it can be ranked again under other weights."""

    asked: Asked
    scores: Scores
    facts: Facts


class MemoryScope:
    """One corpus, indexed. `vectors=None` leaves the dense signals out."""

    def __init__(
        self, corpus: Corpus, analyzer: Analyzer, vectors: Vectors | None, dated: bool = True
    ) -> None:
        self.corpus, self._analyzer, self._vectors = corpus, analyzer, vectors
        self.ids = [one.id for one in corpus.said]
        self._index(dated)
        self.candidates = _candidates(corpus.said, self._lengths)
        self._authors = {one.author for one in self.candidates if one.author}
        self._group()
        if vectors is not None:
            self._dense = vectors.of([spoken(one) for one in corpus.said])
            self._window = vectors.of(windows(corpus.said))

    def _index(self, dated: bool) -> None:
        postings: dict[str, dict[int, int]] = {}
        self._lengths: dict[int, int] = {}
        for doc, one in enumerate(self.corpus.said):
            date = date_tokens(one.when) if dated else ""
            words = self._analyzer.document(f"{one.author} {date} {one.text}")
            self._lengths[doc] = len(words)
            for term, count in Counter(words).items():
                postings.setdefault(term, {})[doc] = count
        self._postings = postings

    def _group(self) -> None:
        self._session_of = {one.key: one.session for one in self.candidates if one.session is not None}
        self._session_lengths = Counter[int]()
        for doc, session in self._session_of.items():
            self._session_lengths[session] += self._lengths[doc]

    def prepare(self, asked: Asked) -> Prepared:
        """What both indexes say of one question."""
        terms = self._analyzer.query(asked.text)
        postings: Mapping[str, Mapping[int, int]] = {term: self._postings.get(term, {}) for term, _ in terms}
        found = Matches(len(self._lengths), sum(self._lengths.values()), postings, self._lengths)
        scores = Scores(
            lexical=bm25(found, terms),
            session_lexical=bm25(found.grouped(self._session_of, self._session_lengths), terms),
        )
        if self._vectors is not None:
            vector = self._vectors.of([asked.text])[0]
            scores = replace(scores, dense=_keyed(self._dense @ vector), window=_keyed(self._window @ vector))
        return Prepared(asked, scores, Facts(authors=named_authors(asked.text, self._authors)))

    def ranked(self, prepared: Prepared, weights: Weights, k: int | None = None) -> list[Ranked]:
        """The best k under these weights."""
        return retrieve(self.candidates, prepared.scores, prepared.facts, k=k, weights=weights)

    def found(self, prepared: Prepared, weights: Weights, k: int | None = None) -> list[str]:
        """Ids of the best k."""
        return [self.ids[one.candidate.key] for one in self.ranked(prepared, weights, k)]


def spoken(one: Said) -> str:
    """What is embedded of one turn: a name says who "I" is; a role says nothing."""
    text = one.text if one.author in ROLES else f"{one.author}: {one.text}"
    return text[:EMBEDDED_CHARACTERS]


def windows(said: Sequence[Said], limit: int = EMBEDDED_CHARACTERS // 2) -> list[str]:
    """Each turn with its two neighbours of the same session, as one text to embed; without names."""
    joined = []
    for at, one in enumerate(said):
        around = [said[i] for i in (at - 1, at, at + 1) if 0 <= i < len(said)]
        joined.append("\n".join(each.text[:limit] for each in around if each.session == one.session))
    return joined


def _candidates(said: Sequence[Said], lengths: Mapping[int, int]) -> list[Candidate]:
    numbers: dict[str, int] = {}
    places = Counter[str]()
    candidates = []
    for key, one in enumerate(said):
        session = numbers.setdefault(one.session, len(numbers))
        author = None if one.author in ROLES else one.author
        candidates.append(Candidate(key, one.occurred_us, session, places[one.session], author, lengths[key]))
        places[one.session] += 1
    return candidates


def _keyed(values: Any) -> dict[int, float]:
    return dict(enumerate(values.tolist()))

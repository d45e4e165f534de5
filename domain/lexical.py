"""Words that a text can be found by, and how well they fit: `Analyzer` and `bm25`. Korean and English first.

Stored text is never changed here; only its search form is folded (NFKC, case, accents, stems, particles).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final

from mnemolog.domain.korean import EDGE_WEIGHT, edge, hangul_terms

Term = tuple[str, float]
"""A search term and its weight in (0, 1]."""

ANALYZER_VERSION: Final = 1
"""Raise it with every change of the terms: an index holds the terms of one version only."""

K1: Final = 0.9
"""How soon repeated terms stop to count more: Anserini's value, 0.7 points above 1.2 on dialogue turns."""
B: Final = 0.4
"""How far a long document is discounted, from 0 (not) to 1 (in full): Anserini's value."""

MAX_TERM: Final = 64
"""Longer runs (hashes, encoded data) are indexed by their first characters only."""
PART_WEIGHT: Final = 0.5
"""Weight of a part ('7741') where the query names the whole ('K-7741')."""

_CACHED_WORDS: Final = 48 * 1024
_CACHED_LENGTH: Final = 32
_SUSPECT_LENGTH: Final = 200
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
# "may", "will" and "can" are left in: they are also a month, a name and a thing.
_STOP: Final = frozenset(
    """a about above after again against all also am an and any are aren as at be because been before being
    below between both but by cannot could couldn did didn do does doesn doing don down during each either few
    for from further get got had hadn has hasn have haven having he her here hers herself him himself his how i
    if in into is isn it its itself just let me might mightn more most much must mustn my myself neither no nor
    not now of off on once only or other our ours ourselves out over own quite rather same shall shan she
    should shouldn so some such than that the their theirs them themselves then there these they this those
    through to too under until up upon us very was wasn we were weren what when where which while who whom
    whose why with without would wouldn yes yet you your yours yourself yourselves""".split()
)
_HANGUL: Final = "가-힣"
_HAN_KANA: Final = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_JAMO: Final = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\ud7b0-\ud7ff"
_OTHER: Final = rf"[^\W{_HANGUL}{_HAN_KANA}{_JAMO}]"
_GROUPED: Final = r"[0-9]{1,3}(?:,[0-9]{3}){1,4}(?![0-9,])"
_ASCII_CHUNKS: Final = re.compile(r"\w+(?:[-']\w+){0,7}", re.ASCII)
_ASCII_COMMA_CHUNKS: Final = re.compile(_GROUPED + "|" + _ASCII_CHUNKS.pattern, re.ASCII)
_CHUNKS: Final = rf"[0-9]*[{_HANGUL}]+|[{_HAN_KANA}]+|{_GROUPED}|{_OTHER}+(?:[-'’]{_OTHER}+){{0,7}}"
_IS_HAN_KANA: Final = f"[{_HAN_KANA}]"
_IS_HAN: Final = "[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_pattern = cache(re.compile)
"""Those of all letters take as long to compile as ten modules: when a text is read first, not at the start."""
_JUNK: Final = re.compile(rf"[A-Za-z0-9+/=_-]{{{_SUSPECT_LENGTH},}}")
_CONTRACTED: Final = re.compile(r"'(?:s|d|m|t|ll|re|ve)$")
_PIECES: Final = re.compile(r"[^\W_]+")
_PARTS: Final = re.compile(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W0-9A-Za-z_]+")


class Analyzer:
    """Turns texts into document tokens and queries into weighted terms; the same rules for both.

    `stem` maps one folded word to its stem and must be a pure function that threads may share. What a word
    turns into is remembered (at most 98,304 words); `forget` empties that memory after an erasure.
    """

    __slots__ = ("_words",)

    def __init__(self, stem: Callable[[str], str]) -> None:
        self._words = _Words(stem)

    def document(self, text: str) -> list[str]:
        """The tokens to index for `text`, in order, with repetitions. ASCII letters, digits and letters only."""
        return list(chain.from_iterable(map(self._words.__getitem__, _chunks(text))))

    def query(self, text: str) -> list[Term]:
        """The terms to look up for `text`, each once at its highest weight, sorted by term.

        Empty where the text has nothing but function words and symbols.
        """
        weights: dict[str, float] = {}
        for chunk in _chunks(text):
            for term, weight in self._words.terms(chunk, asked=True):
                weights[term] = max(weight, weights.get(term, 0.0))
        return sorted(weights.items())

    def forget(self) -> None:
        """Drop every remembered word."""
        self._words.clear()


class _Words(dict[str, tuple[str, ...]]):
    """Chunk of text → its document tokens, computed when first asked for.

    When it is full, what it holds becomes the older half: words that are still used come back from there, the rare
    ones are dropped with the next turn.
    """

    def __init__(self, stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stem = stem
        self._older: dict[str, tuple[str, ...]] = {}

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        tokens = self._older.get(chunk)
        if tokens is None:
            tokens = tuple([term for term, _ in self.terms(chunk)])
        if len(chunk) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self._older = dict(self)
                super().clear()
            self[chunk] = tokens
        return tokens

    def clear(self) -> None:
        self._older = {}
        super().clear()

    def terms(self, chunk: str, asked: bool = False) -> Iterable[Term]:
        if "가" <= chunk[-1] <= "힣":
            return hangul_terms(chunk, asked)
        if _pattern(_IS_HAN_KANA).match(chunk):
            return _han_kana_terms(chunk, asked)
        return self._word_terms(chunk[: 4 * MAX_TERM].replace("’", "'"))

    def _word_terms(self, chunk: str) -> Iterable[Term]:
        word = _CONTRACTED.sub("", chunk)
        if word.isalpha() and (word[1:].islower() or word.isupper()):
            return self._plain(word, 1.0)
        if word.lower().endswith("n't"):
            return ()
        if "," in word:
            return ((word.replace(",", ""), 1.0),)
        weights: dict[str, float] = {}
        for part, weight in _split(word):
            for term, _ in self._plain(part, weight):
                weights[term] = max(weight, weights.get(term, 0.0))
        return weights.items()

    def _plain(self, word: str, weight: float) -> tuple[Term, ...]:
        folded = _fold(word)
        if not folded or folded in _STOP:
            return ()
        return ((self._stem(folded) if folded.isalpha() and len(folded) > 2 else folded, weight),)


def _chunks(text: str) -> list[str]:
    if len(text) > _SUSPECT_LENGTH:
        text = _JUNK.sub(lambda run: run[0][:MAX_TERM] + " ", text)
    if text.isascii():
        return (_ASCII_COMMA_CHUNKS if "," in text else _ASCII_CHUNKS).findall(text)
    return _pattern(_CHUNKS).findall(unicodedata.normalize("NFKC", text))


def _fold(word: str) -> str:
    folded = word[:MAX_TERM].casefold()
    if folded.isascii():
        return folded
    return "".join(c for c in unicodedata.normalize("NFKD", folded) if c.isalnum())[:MAX_TERM]


def _split(word: str) -> Iterable[Term]:
    """The whole and the parts of an identifier: K-7741 → k7741, 7741; getUserName → getusername, get, user, name."""
    pieces = _PIECES.findall(word)
    joined = len(pieces) > 1 and "_" not in word and _is_one_name(pieces)
    if joined:
        yield "".join(pieces), 1.0
    rest = PART_WEIGHT if joined else 1.0
    for piece in pieces:
        parts = _PARTS.findall(piece)
        if len(piece) > 1 or len(pieces) == 1 or piece.isdigit():
            yield piece, rest
        if 1 < len(parts) <= 4:
            yield from ((part, PART_WEIGHT) for part in parts if len(part) > 1 or part.isdigit())


def _is_one_name(pieces: Sequence[str]) -> bool:
    return any(len(piece) == 1 or any(c.isdigit() for c in piece) for piece in pieces)


def _han_kana_terms(run: str, asked: bool) -> Iterable[Term]:
    """Pairs of characters; single Han characters too, so that one character alone can be asked for."""
    for pair in pairwise(run):
        yield "".join(pair), 1.0
    if len(run) == 1:
        yield run, 1.0
    elif not asked:
        yield from ((character, 1.0) for character in run if _pattern(_IS_HAN).match(character))


def date_tokens(moment: datetime) -> str:
    """The date as people write it in English and Korean, to be searched with the text: '2023 24 May 5월 24일'."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year} {moment.month}월 {moment.day}일"


@dataclass(frozen=True, slots=True)
class Matches:
    """What an index knows about some terms inside some scopes, and nothing about the world outside.

    `docs` and `tokens` count everything in those scopes; `postings` holds term → document → times;
    `lengths` the tokens of each document that has a term; `spread` term → how many of `docs` have it, where
    `postings` do not name each of them once.
    """

    docs: int
    tokens: int
    postings: Mapping[str, Mapping[int, int]]
    lengths: Mapping[int, int]
    spread: Mapping[str, int] = field(default_factory=dict)

    def grouped(self, group_of: Mapping[int, int], group_lengths: Mapping[int, int]) -> Matches:
        """The same matches with each group of documents (a session) taken as one document.

        `group_lengths` must name every group of the scopes with the tokens of all its documents. A document of no
        group is left out.
        """
        postings: dict[str, dict[int, int]] = {}
        for term, times in self.postings.items():
            merged = postings.setdefault(term, {})
            for doc, count in times.items():
                if (group := group_of.get(doc)) is not None:
                    merged[group] = merged.get(group, 0) + count
        return Matches(len(group_lengths), sum(group_lengths.values()), postings, group_lengths)


def bm25(matches: Matches, query: Iterable[Term]) -> dict[int, float]:
    """Okapi BM25 of every document that has a term of the query, from the given matches alone.

    The same to the last digit whatever the numbers, order or neighbours of the documents are: for each
    document the terms are added in sorted order, and every statistic is a whole number.
    """
    scores: dict[int, float] = {}
    average = matches.tokens / matches.docs if matches.docs else 0.0
    flat, slope = K1 * (1 - B), K1 * B / average if average else 0.0
    lengths = matches.lengths
    for term, weight in sorted(query):
        times = matches.postings.get(term)
        if not times:
            continue
        spread = matches.spread.get(term, len(times))
        gain = weight * (K1 + 1) * math.log(1 + (matches.docs - spread + 0.5) / (spread + 0.5))
        for doc, count in times.items():
            scores[doc] = scores.get(doc, 0.0) + gain * count / (count + flat + slope * lengths[doc])
    return scores


def ranked(
    scores: Mapping[int, float], newness: Callable[[int], int] = int, limit: int | None = None
) -> list[tuple[int, float]]:
    """Best first; among equal scores the greater `newness(document)` first (default: the greater number)."""
    newest_first = sorted(scores, key=newness, reverse=True)
    hits = [(doc, scores[doc]) for doc in newest_first]
    hits.sort(key=itemgetter(1), reverse=True)  # stable: equal scores stay newest first
    return hits[:limit]


__all__ = [
    "ANALYZER_VERSION",
    "EDGE_WEIGHT",
    "Analyzer",
    "B",
    "K1",
    "Matches",
    "Term",
    "bm25",
    "date_tokens",
    "edge",
    "ranked",
]

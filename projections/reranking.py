"""A second look at the first hits: the reranker port, and what happens when one fails.

A reranker reads question and text together, which finds what words and vectors miss, and takes milliseconds a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Protocol

from mnemolog.domain.errors import MnemologError
from mnemolog.projections.supervision import Supervisor, Trouble

_BACKOFF: Final = (0.5, 60.0)


class RerankerFailed(MnemologError):
    """The reranker gave no scores, or wrong ones. Recall goes on without it; `status` says so."""


class Reranker(Protocol):
    """Any thread may call it. Nothing is loaded before the first call. Equal questions and texts get equal scores."""

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the question, on any scale; more is better. Raises RerankerFailed."""


class Reranking:
    """The reranker of a store, made when it is first needed. make: None for a store without one."""

    def __init__(self, make: Callable[[], Reranker] | None) -> None:
        self._make = make
        self._reranker: Reranker | None = None
        self._lock, self._supervisor = Lock(), Supervisor(*_BACKOFF)

    @property
    def enabled(self) -> bool:
        return self._make is not None

    @property
    def trouble(self) -> Trouble:
        """What went wrong since the start."""
        return self._supervisor.trouble

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | None:
        """One for each text; None without a reranker, and for a while after it failed.

        Raises InvalidInput where the settings name one that is not there.
        """
        if self._make is None or not texts or not question.strip() or not self._supervisor.is_due():
            return None
        reranker = self._opened(self._make)
        try:
            found = _checked(reranker.rerank(question, texts), len(texts))
        except Exception as error:
            self._supervisor.crashed(error)
            return None
        self._supervisor.worked()
        return found

    def _opened(self, make: Callable[[], Reranker]) -> Reranker:
        with self._lock:
            if self._reranker is None:
                self._reranker = make()
            return self._reranker


def _checked(scores: Sequence[float], count: int) -> list[float]:
    found = [float(score) for score in scores]
    if len(found) != count:
        raise RerankerFailed(f"the reranker gave {len(found)} scores for {count} texts")
    if any(score - score != 0 for score in found):
        raise RerankerFailed("the reranker gave a score that is no number")
    return found

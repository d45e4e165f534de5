"""The English stemmer behind the lexical index."""

from __future__ import annotations

from functools import cache
from threading import Lock

import Stemmer

from mnemolog.domain.lexical import Analyzer


class PorterStemmer:
    """Porter's stemmer for many threads. A `Stemmer` object is not thread-safe, hence the lock.

    It keeps no words: the analyzer remembers what it asked for.
    """

    def __init__(self) -> None:
        self._stemmer, self._lock = Stemmer.Stemmer("porter", 0), Lock()

    def __call__(self, word: str) -> str:
        with self._lock:
            return str(self._stemmer.stemWord(word))


@cache
def default_analyzer() -> Analyzer:
    """The analyzer that every view of this process shares."""
    return Analyzer(PorterStemmer())

"""Counting tokens: the counter that a caller brings, or an estimate; and a memory for what was counted before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mnemolog.domain.context import Entry, TokenCounter
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.rendering import render

Tokenizer = Callable[[str], int] | Any


class Remembering:
    """A counter that counts a text once: most of a context was in the one before.

    It keeps no text, but this process's hashes of texts. Two texts of one hash, which nobody will see, would be priced
    alike: what is handed over is counted as a whole, by the counter itself.
    """

    def __init__(self, count: TokenCounter, kept: int = 20_000) -> None:
        self._count, self._kept = count, kept
        self._known: dict[int, int] = {}
        self._older: dict[int, int] = {}

    def __call__(self, text: str) -> int:
        return self._counted(hash(text), lambda: text)

    def line(self, entry: Entry) -> int:
        """Of a rendered entry and the end of its line, which is written down only to count it the first time."""
        name = hash((entry.who, entry.text, entry.reference))
        return self._counted(name, lambda: f"{render(entry)}\n")

    def _counted(self, name: int, text: Callable[[], str]) -> int:
        tokens = self._known.get(name)
        if tokens is None:
            tokens = self._older.get(name)
            if len(self._known) >= self._kept // 2:
                self._older, self._known = self._known, {}
            self._known[name] = tokens = self._count(text()) if tokens is None else tokens
        return tokens


def token_counter(tokenizer: Tokenizer) -> TokenCounter:
    """The counter of a callable, or of an object that encodes as tiktoken's do."""
    encode = getattr(tokenizer, "encode", None)
    if encode is not None:
        return lambda text: len(encode(text))
    if not callable(tokenizer):
        raise InvalidInput("tokenizer must be a function from text to a number, or have encode(text)")
    counter: TokenCounter = tokenizer
    return counter

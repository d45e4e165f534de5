"""Counting tokens: the counter that a caller brings, or an estimate; and a memory for what was counted before."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from mnemolog.domain.context import Entry, TokenCounter
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.rendering import render

Tokenizer = Callable[[str], int] | Any


class Remembering:
    """A counter that counts a text once: most of a context was in the one before. It keeps keyed hashes, no text."""

    def __init__(self, count: TokenCounter, kept: int = 20_000) -> None:
        self._count, self._kept, self._key = count, kept, token_bytes(16)
        self._known: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}

    def __call__(self, text: str) -> int:
        return self._counted(f"\0{text}", lambda: text)

    def line(self, entry: Entry) -> int:
        """Of a rendered entry and the end of its line, which is written down only to count it the first time."""
        reference = entry.reference or ""
        name = f"{len(entry.who)} {len(entry.text)} {len(reference)}\0{entry.who}{entry.text}{reference}"
        return self._counted(name, lambda: f"{render(entry)}\n")

    def _counted(self, name: str, text: Callable[[], str]) -> int:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()
        tokens = self._known.get(digest)
        if tokens is None:
            tokens = self._older.get(digest)
            if len(self._known) >= self._kept // 2:
                self._older, self._known = self._known, {}
            self._known[digest] = tokens = self._count(text()) if tokens is None else tokens
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

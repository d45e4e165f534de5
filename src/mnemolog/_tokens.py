"""Counting tokens: the counter that a caller brings, or an estimate; and a memory for what was counted before."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from mnemolog.domain.context import TokenCounter
from mnemolog.domain.errors import InvalidInput

Tokenizer = Callable[[str], int] | Any


class Remembering:
    """A counter that counts a text once: most of a context was in the one before. It keeps keyed hashes, no text."""

    def __init__(self, count: TokenCounter, kept: int = 20_000) -> None:
        self._count, self._kept, self._key = count, kept, token_bytes(16)
        self._known: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}

    def __call__(self, text: str) -> int:
        name = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()
        tokens = self._known.get(name)
        if tokens is None:
            tokens = self._older.get(name)
            if len(self._known) >= self._kept // 2:
                self._older, self._known = self._known, {}
            self._known[name] = tokens = self._count(text) if tokens is None else tokens
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

"""What is counted again in context after context is counted once."""

from __future__ import annotations

from mnemolog._tokens import Remembering
from mnemolog.domain.context import Entry, Layer, estimate_tokens
from mnemolog.domain.principal import Tier
from mnemolog.domain.rendering import render


def test_an_entry_is_counted_as_it_is_rendered() -> None:
    """Whoever says it, whatever stands beside it, the first time and the next; and a text is not taken for a line."""
    remembering = Remembering(estimate_tokens)
    parts = ["", "Mina: ", "the walrus\nsleeps", "바다코끼리 <turns>", "Mina: the walrus"]
    entries = [
        Entry("e", 1, Layer.RECENT, text, Tier.AGENT, who, reference=reference)
        for text in parts
        for who in parts
        for reference in (None, *parts)
    ]
    for entry in entries * 2:
        assert remembering.line(entry) == estimate_tokens(f"{render(entry)}\n")
    for text in parts:
        assert remembering(text) == estimate_tokens(text)


def test_a_text_is_counted_once_and_never_kept() -> None:
    """The counts are the counter's own, also when there is no more room; what is remembered holds no text."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return estimate_tokens(text)

    texts = ["the walrus", "바다코끼리", "\ud800 alone", "", *map(str, range(10))]
    remembering = Remembering(counter, kept=40)
    assert [remembering(text) for text in texts * 2] == [estimate_tokens(text) for text in texts * 2]
    assert counted == texts
    assert "walrus" not in repr(vars(remembering))
    for number in range(100, 200):
        assert remembering(str(number)) == estimate_tokens(str(number))
    assert len(remembering._known) + len(remembering._older) <= 40
    assert remembering("the walrus") == estimate_tokens("the walrus")

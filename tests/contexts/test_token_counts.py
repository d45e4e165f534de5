"""What is counted again in context after context is counted once."""

from __future__ import annotations

from mnemolog._tokens import Remembering
from mnemolog.domain.context import estimate_tokens


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

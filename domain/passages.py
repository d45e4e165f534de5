"""Passages: how a large text is cut into pieces that can be found, shown and read back by their range.

A passage ends where the text itself pauses: at a paragraph, else a line, a sentence, a mark, a blank. Of a very large
text not all can be found: its beginning can, and its end, where logs say what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

RULE: Final = 1
"""Raise it with every change of where passages begin and end: what is stored names them by their place."""
LARGE: Final = 2_000
"""A text of more characters is searched, and shown, by passage."""
LENGTH: Final = 400
"""Characters of a passage at most."""
INDEXED: Final = 2_048
"""How many passages of one text can be found by their words; some 700,000 characters."""
EMBEDDED: Final = 128
"""How many passages of one text can be found by meaning; some 45,000 characters."""
WHOLE: Final = -1
"""In the place of a part: the text that is shown of the event itself."""
PARTS: Final = 1 << 20
"""More than any text has."""

_SHORTEST: Final = LENGTH // 3
_AT_THE_END: Final = 8
"""One in so many of a text's passages is taken from its end."""
_PAUSES: Final = (
    ("\n\n", "\n\r\n"),
    ("\n",),
    (". ", "? ", "! ", "。", "！", "？", ".\t"),
    ("; ", ", ", ": "),
    (" ", "\t"),
    (",", ";"),
    ("}", "]", ">"),
)
"""Best first; the passage ends behind one."""
_BLANK: Final = re.compile(r"\s*")
_ESCAPED: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


class Passage(NamedTuple):
    """Characters [start, end) of a text; neither the first nor the last one is blank. part: 0, 1, 2, … in the text."""

    part: int
    start: int
    end: int


def passages(text: str, most: int | None = None) -> list[Passage]:
    """The passages of a text in order, which together hold all of its letters.

    Where they are more than `most`, so many: the first ones, and for an eighth the last ones.
    """
    found = [Passage(part, *span) for part, span in enumerate(_spans(text))]
    if most is None or len(found) <= most:
        return found
    last = most // _AT_THE_END
    return found[: most - last] + found[len(found) - last :]


def number_of(position: int, part: int) -> int:
    """One number for a passage of the event at a log position."""
    return position * PARTS + part


def place_of(number: int) -> tuple[int, int]:
    """Log position and part of a passage's number."""
    return divmod(number, PARTS)


def readable(passage: str) -> str:
    """JSON's escaped letters (\\uc548) as letters, so that they can be found; half of a pair stays escaped."""
    if "\\u" not in passage:
        return passage
    letters = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), passage)
    try:
        return letters.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return passage


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = _BLANK.match(text).end()  # type: ignore[union-attr]
    while start < len(text):
        cut = _cut(text, start)
        end = start + len(text[start:cut].rstrip())
        yield start, end
        start = _BLANK.match(text, cut).end()  # type: ignore[union-attr]


def _cut(text: str, start: int) -> int:
    """Where the passage that begins here ends."""
    longest = start + LENGTH
    if len(text) <= longest:
        return len(text)
    for marks in _PAUSES:
        ends = [at + len(mark) for mark in marks if (at := text.rfind(mark, start + _SHORTEST, longest)) >= 0]
        if ends:
            return max(ends)
    return longest

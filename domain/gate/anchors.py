"""The matches of a pattern, from where it can begin only: the same that `finditer` gives, without a try at every place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Places = Iterable[tuple[int, int]]
"""From where to where, both included, a match may begin; in order."""


def near(pattern: re.Pattern[str], text: str, places: Places, reach: int) -> Iterator[re.Match[str]]:
    """The matches that begin in these places.

    reach: more characters than a match has, together with what it looks ahead at.
    """
    done = 0
    for first, last in places:
        at = max(first, done)
        while at <= last:
            look = pattern.match if at == last else pattern.search
            found = look(text, at, last + reach)
            if found is None or found.start() > last:
                break
            yield found
            done = at = found.end()


def standing(text: str, word: str) -> Iterator[int]:
    """Where the word stands."""
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)

"""How sensitive the words of a record are: the highest that anybody named, until one who may names less. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Act, Assertion, Record

NORMAL: Final = "normal"
PERSONAL: Final = "personal"
_OTHER_WORDS: Final = frozenset({Act.CORRECTED, Act.EDITED})
_OWN: Final = ""
_By = tuple[bool, Tier]
"""Who said so: (a person, origin)."""


class Sensitivities:
    """By the words that a record had: its own statement, in whatever form it was found, and each correction.

    What is said of it without naming a sensitivity lowers nothing, and a correction carries on what it corrects.
    """

    def __init__(self, rows: Iterable[Assertion]) -> None:
        self._own = {row.form for row in rows if row.act not in _OTHER_WORDS and not row.forgotten}
        self._personal: dict[str, _By] = {}
        """Words → the highest of those who hold them for personal."""

    def take(self, row: Assertion, held: Assertion | None) -> None:
        """What is said next. held: what the record says so far."""
        if row.content is None:
            return
        words, by = self._words(row), (row.human, row.tier)
        before = [self._personal.get(words)]
        if row.act in _OTHER_WORDS:
            before.append(self._personal.get(_OWN if held is None else self._words(held)))
        found = [one for one in before if one is not None]
        if row.sensitivity == PERSONAL:
            found.append(by)
        elif row.sensitivity == NORMAL and all(by >= one for one in found):
            found = []
        self._personal.pop(words, None)
        if found:
            self._personal[words] = max(found)

    def of(self, row: Assertion) -> str:
        """Of its words; of what has none, the highest of all that the record said."""
        words = self._personal if row.content is None else {self._words(row)} & self._personal.keys()
        return PERSONAL if words else NORMAL

    @property
    def highest(self) -> str:
        """Of all that the record said."""
        return PERSONAL if self._personal else NORMAL

    def _words(self, row: Assertion) -> str:
        return _OWN if row.form is None or row.form in self._own else row.form


def together(one: Record, others: Iterable[Record]) -> str:
    """Of a record, and of those that say the same."""
    return PERSONAL if PERSONAL in {one.sensitivity, *(other.sensitivity for other in others)} else NORMAL

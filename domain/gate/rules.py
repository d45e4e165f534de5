"""What a rule of the extractor is. Its pattern is matched where a clause begins, and names what it finds.

Groups: v the value; a the attribute; o the older value; w whose ("my", "우리"); n what negates it; e the entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

from mnemolog.domain.gate.candidates import Span

FACT: Final = "fact"
PREFERENCE: Final = "preference"
CONSTRAINT: Final = "constraint"
EPISODE: Final = "episode"
DECISION: Final = "decision"
"""The relation, and the name, of rules for what was decided."""

Whose = Literal["user", "team"]
Check = Callable[[re.Match[str]], bool]


compiled: Final = cache(re.compile)
"""Tables of rules are compiled when a rule is first asked: at import it would slow down every start."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """A pattern that is compiled when it is first matched; case does not matter."""

    source: str

    def match(self, text: str, start: int, end: int) -> re.Match[str] | None:
        return compiled(self.source, re.IGNORECASE).match(text, start, end)


@dataclass(frozen=True, slots=True)
class Rule:
    """attribute: the slot's, where the rule knows it; relation: without an attribute the slot is "relation: value".

    part: what of the thing that the pattern names, as the owner of the billing service; alone where it names none.
    personal: only a person can say so of themselves; dated: a time at the value's end is not part of it.
    corrects: holds only where something is being corrected; asked, unasked: only of what is to be remembered, or only of what is not;
    document: only in what a tool gives; a person who says so talks about somebody.
    behind: only where the sentence has stated something before. fits: what the pattern cannot say.
    """

    name: str
    pattern: Lazy
    kind: str = FACT
    attribute: str | None = None
    relation: str | None = None
    negated: bool = False
    confidence: float = 0.9
    whose: Whose = "user"
    personal: bool = True
    dated: bool = False
    corrects: bool = False
    asked: bool = False
    unasked: bool = False
    document: bool = False
    part: str | None = None
    behind: bool = False
    fits: tuple[Check, ...] = ()

    def match(self, text: str, start: int, end: int) -> re.Match[str] | None:
        found = self.pattern.match(text, start, end)
        return found if found is not None and all(check(found) for check in self.fits) else None


@dataclass(frozen=True, slots=True)
class Language:
    """What the extractor needs to know of one language. All patterns look at one sentence or clause.

    no_statement: guesses, hypotheses, what was given up, others' words; joke, taken_back: take back what the turn said
    before; condition: at its head only rules count; passing: of the moment, no rule and no preference;
    then_asks: where a sentence that ends as a question begins to ask;
    corrects: something else is being corrected; begins: at the head of a time from which something holds.
    asked: the part that is to be remembered, empty where the sentence points to its neighbour.
    mine: words that mean the speaker alone; articles and tail: what is cut off a value, first and last.
    """

    no_statement: re.Pattern[str]
    joke: re.Pattern[str]
    taken_back: re.Pattern[str]
    condition: re.Pattern[str]
    passing: re.Pattern[str]
    then_asks: re.Pattern[str]
    corrects: re.Pattern[str]
    begins: re.Pattern[str]
    joint: re.Pattern[str]
    filler: re.Pattern[str]
    asked: Callable[[str, int, int], Span | None]
    rules: tuple[Rule, ...]
    mine: frozenset[str]
    articles: re.Pattern[str]
    tail: re.Pattern[str]
    canonical: Mapping[str, str] = field(default_factory=dict)


def group(found: re.Match[str], name: str) -> str | None:
    """A group that this pattern may not have."""
    return found.groupdict().get(name)


def lacks(name: str, pattern: str) -> Check:
    """The group does not match."""
    return lambda found: compiled(pattern, re.IGNORECASE).search(group(found, name) or "") is None


def words(text: str) -> str:
    """Alternatives of a pattern, from words that are split at spaces; _ stands for a space."""
    return "|".join(re.escape(word).replace("_", r"\s") for word in text.split())

"""Summaries: what a session comes to, in its own words; and which raw turns may leave the window for it.

A summary is always made of the raw turns, never of an earlier summary, so errors cannot add up and an erased turn
cannot live on in what is made next.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from mnemolog.domain.context import TokenCounter, estimate_tokens
from mnemolog.domain.landmarks import Mark, RawTurn, mark_of, quote, sentences, terms
from mnemolog.domain.open_items import OpenItem, open_items

ROLLING: Final = "rolling"

TEXT_TOKENS: Final = 650
LANDMARK_TOKENS: Final = 850
OPEN_TOKENS: Final = 250
"""Together with its headings a rendered summary stays below 2,000 tokens, however long the session."""

_LEAD_TURNS: Final = 6
"""What is said first (the task, the rules, who is who) is kept first."""
_LEAD_SHARE: Final = 0.45
_ROUTINE: Final = 3
"""Sentences that differ in their numbers only are routine from this many on; the last of them stands for all."""
_SAME: Final = 0.9
_WEIGHT: Final[Mapping[Mark | None, float]] = {
    Mark.PROHIBITION: 6.0,
    Mark.DECISION: 5.0,
    Mark.CORRECTION: 5.0,
    Mark.REQUIREMENT: 4.5,
    Mark.COMMITMENT: 3.5,
    Mark.FACT: 3.0,
    Mark.NUMBER: 2.0,
    Mark.NAME: 1.0,
    None: 0.0,
}
_CAPS: Final[Mapping[Mark | None, float]] = {
    Mark.FACT: 0.4,
    Mark.NUMBER: 0.25,
    Mark.NAME: 0.12,
    Mark.COMMITMENT: 0.3,
}
"""The share of the landmarks' budget that one kind may take; binding kinds may take all of it."""
_DIGITS: Final = re.compile(r"\d+")
_READABLE: Final = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Landmark:
    """A sentence that must not get lost, as it was said. kind: a `Mark`."""

    kind: str
    event_id: str
    speaker: str
    text: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "event": self.event_id, "speaker": self.speaker, "text": self.text}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Landmark:
        return cls(values["kind"], values["event"], values["speaker"], values["text"])


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser made. text: one quoted sentence a line, in the order in which they were said."""

    text: str
    landmarks: tuple[Landmark, ...] = ()
    open_items: tuple[OpenItem, ...] = ()


class Summariser(Protocol):
    """Makes a summary of raw turns. Equal turns give equal summaries, or the version changes."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def reads_tools(self) -> bool:
        """Whether text of tools can get into its summaries, which then have the tools' trust."""

    def summarise(self, turns: Sequence[RawTurn]) -> Summary: ...


def is_blank(text: str | None) -> bool:
    """Whether a text says nothing: no letter and no digit. A blank summary is refused, and the one before stays."""
    return not isinstance(text, str) or _READABLE.search(text) is None


def rendered(text: str, landmarks: Iterable[Landmark], items: Iterable[OpenItem]) -> str:
    """A summary for a reader: the text, the landmarks that it does not hold yet, and what is open."""
    said = {line.partition(": ")[2] for line in text.splitlines()}
    marks = [_mark_line(mark) for mark in landmarks if mark.text not in said]
    left = [_open_line(item) for item in items]
    parts = [text] if text else []
    parts += ["Also said:", *marks] if marks else []
    parts += ["Still open:", *left] if left else []
    return "\n".join(parts)


def _mark_line(mark: Landmark) -> str:
    return f"- {mark.kind} ({mark.speaker}): {mark.text}"


def _open_line(item: OpenItem) -> str:
    return f"- {item.kind}: {item.text}"


@dataclass(frozen=True, slots=True)
class _Sentence:
    order: int
    turn: int
    event_id: str
    speaker: str
    of_person: bool
    text: str
    mark: Mark | None
    terms: frozenset[str]
    routine: bool = False
    score: float = 0.0

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}"

    @property
    def landmark(self) -> Landmark:
        return Landmark(str(self.mark), self.event_id, self.speaker, self.text)


@dataclass(frozen=True, slots=True)
class Extractive:
    """Quotes the sentences that matter most. Deterministic, without a model; bounded however long the session is."""

    count: TokenCounter = estimate_tokens
    name: str = field(default="extractive", init=False)
    version: str = field(default="1", init=False)
    reads_tools: bool = field(default=False, init=False)

    def summarise(self, turns: Sequence[RawTurn]) -> Summary:
        heard = _scored(_heard(turns))
        lead = [one for one in heard if one.turn < _LEAD_TURNS and one.of_person]
        marks = self._pick(
            [one for one in heard if one.mark is not None], LANDMARK_TOKENS, _landmark_line, _CAPS
        )
        first = self._pick(lead, int(TEXT_TOKENS * _LEAD_SHARE), _text_line)
        spent = sum(self._cost(_text_line(one)) for one in first)
        text = self._pick(heard, TEXT_TOKENS - spent, _text_line, taken=[*first, *marks])
        if not (first or text):
            text = marks  # a summary has a text, whatever its sentences are
        lines = sorted({one.order: one for one in [*first, *text]}.values(), key=lambda one: one.order)
        return Summary(
            "\n".join(one.line for one in lines),
            tuple(one.landmark for one in sorted(marks, key=lambda one: one.order)),
            tuple(self._bounded(open_items(turns))),
        )

    def _cost(self, line: str) -> int:
        return self.count(line) + 1

    def _pick(
        self,
        sentences: Sequence[_Sentence],
        budget: int,
        line: Callable[[_Sentence], str],
        caps: Mapping[Mark | None, float] | None = None,
        taken: Sequence[_Sentence] = (),
    ) -> list[_Sentence]:
        """The best that fit, each said once; without those that are `taken` already."""
        chosen: list[_Sentence] = []
        spent: Counter[Mark | None] = Counter()
        for one in sorted(sentences, key=lambda each: (-each.score, -each.order)):
            cost = self._cost(line(one))
            cap = budget * (caps or {}).get(one.mark, 1.0)
            if spent.total() + cost > budget or spent[one.mark] + cost > cap:
                continue
            if any(_says_the_same(one, other) for other in (*taken, *chosen)):
                continue
            spent[one.mark] += cost
            chosen.append(one)
        return chosen

    def _bounded(self, items: Sequence[OpenItem]) -> list[OpenItem]:
        """The newest that fit, in their order."""
        kept: list[OpenItem] = []
        spent = 0
        for item in reversed(items):
            spent += self._cost(_open_line(item))
            if spent > OPEN_TOKENS:
                break
            kept.append(item)
        return kept[::-1]


def _landmark_line(one: _Sentence) -> str:
    return _mark_line(one.landmark)


def _text_line(one: _Sentence) -> str:
    return one.line


def _heard(turns: Sequence[RawTurn]) -> list[_Sentence]:
    """Every sentence with something in it that a person or the agent said."""
    found: list[_Sentence] = []
    said = [turn for turn in turns if turn.is_heard]
    for at, turn in enumerate(said):
        for sentence in sentences(turn.text):
            mark, cue = mark_of(sentence, turn.is_of_person)
            carried = terms(sentence)
            if len(carried) < 2 and (mark is None or not carried):
                continue
            text, of_person = quote(sentence, cue), turn.is_of_person
            found.append(
                _Sentence(len(found), at, turn.event_id, turn.speaker, of_person, text, mark, carried)
            )
    return found


def _scored(found: Sequence[_Sentence]) -> list[_Sentence]:
    """With scores; of the routine ones only the last."""
    forms = Counter(_form(one) for one in found)
    last = {_form(one): one.order for one in found}
    spread = Counter(term for one in found for term in one.terms)
    turns = 1 + max((one.turn for one in found), default=0)
    scored = []
    for one in found:
        routine = forms[_form(one)] >= _ROUTINE
        if routine and last[_form(one)] != one.order:
            continue
        scored.append(replace(one, routine=routine, score=_score(one, routine, spread, len(found), turns)))
    return scored


def _form(one: _Sentence) -> str:
    return _DIGITS.sub("#", one.text.casefold())


def _score(one: _Sentence, routine: bool, spread: Counter[str], sentences: int, turns: int) -> float:
    weight = _WEIGHT[one.mark] * (0.3 if routine else 1.0)
    person = 1.5 if one.of_person else 0.0
    lead = 3.0 * (1 - one.turn / _LEAD_TURNS) if one.turn < _LEAD_TURNS and one.of_person else 0.0
    rarity = sum(math.log(sentences / spread[term]) for term in one.terms) / max(1, len(one.terms))
    telling = rarity / (1 + math.log(1 + sentences))
    return round(weight + person + lead + telling + 0.5 * one.turn / turns, 9)


def _says_the_same(one: _Sentence, other: _Sentence) -> bool:
    together = one.terms | other.terms
    return bool(together) and len(one.terms & other.terms) >= _SAME * len(together)


# The window -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowRule:
    """keep: raw turns that always stay; step: how many must have come before the next summary is made, or
    1/growth of what the last one covered where that is more (so all summaries of a session cost a multiple of it).
    """

    keep: int = 12
    step: int = 20
    growth: int = 8


@dataclass(frozen=True, slots=True)
class Member:
    """An event of a session that takes part in its window. speaker: user, assistant or tool."""

    position: int
    event_id: str
    speaker: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a session is: its members in order, what its current summary covers (0: nothing), and what was lost.

    lost: up to where a summary reached that an erasure took, and that is to be made anew; 0 where none is.
    """

    members: Sequence[Member]
    covered_to: int = 0
    lost: int = 0
    closed: bool = False


def leaving(at: Standing, rule: WindowRule, indexed_to: int, force: bool = False) -> int | None:
    """Up to which position the next summary covers its session, which lets the window begin behind it.

    None where there is nothing to do yet. Never beyond `indexed_to`: what cannot be found yet stays in sight.
    """
    allowed = [member for member in at.members if member.position <= indexed_to]
    if not (at.closed or force):
        kept = max(0, len(at.members) - rule.keep)
        old_enough = at.members[kept - 1].position if kept else 0
        allowed = [member for member in allowed if member.position <= max(old_enough, at.lost)]
        allowed = _whole_exchanges(allowed, at)
    fresh = sum(member.position > at.covered_to for member in allowed)
    covered = sum(member.position <= at.covered_to for member in at.members)
    if not fresh:
        return None
    if at.closed or force or at.lost or fresh >= max(rule.step, covered // rule.growth):
        return allowed[-1].position
    return None


def _whole_exchanges(allowed: list[Member], at: Standing) -> list[Member]:
    """Cut in front of a user's turn where there is one, so that a question leaves together with its answer."""
    following = at.members[len(allowed)].speaker if len(allowed) < len(at.members) else "user"
    for end in range(len(allowed), 0, -1):
        if allowed[end - 1].position <= max(at.covered_to, at.lost):
            break
        if following == "user":
            return allowed[:end]
        following = allowed[end - 1].speaker
    return allowed

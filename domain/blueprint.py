"""The blueprint of a project: what whoever works on it should know before anything else, whatever the question is.

It is chosen from the records of the project as they stand now, and quoted; so what was superseded, retracted or erased
is not in it a moment longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final

from mnemolog.domain.landmarks import Mark, mark_of
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Record

MOST: Final = 16
OF_ONE_ASPECT: Final = 4
"""So that no aspect crowds the others out."""


class Aspect(IntEnum):
    """What a record tells of its project, the most guiding first."""

    GOAL = 0
    DECISION = 1
    OWNER = 2
    DEADLINE = 3
    PROCEDURE = 4
    REQUIREMENT = 5


Told = Callable[[Record, str], Aspect | None]
"""What a record tells, by what it says."""

_CUES: Final = {
    Aspect.GOAL: re.compile(
        r"\b(?:goals?|purpose|mission|objectives?|aims? (?:to|at)|out of scope|in scope)\b"
        r"|목표|목적|취지|범위(?:는|에)",
        re.IGNORECASE,
    ),
    Aspect.OWNER: re.compile(
        r"\b(?:owners?|owns|leads?|led by|maintainers?|maintains|in charge|responsible|point of contact|approvers?)\b"
        r"|담당|책임자|책임(?:은|을|지)|팀장|리더|승인자|검토자|소유자",
        re.IGNORECASE,
    ),
    Aspect.DEADLINE: re.compile(
        r"\b(?:deadlines?|due (?:on|by|date)|milestones?|releases? (?:on|in|date)|launch(?:es)? (?:on|in|date))\b"
        r"|마감|기한|출시일|출시(?:는|는요)|마일스톤|납기",
        re.IGNORECASE,
    ),
}
_MARKS: Final[dict[Mark | None, Aspect]] = {
    Mark.DECISION: Aspect.DECISION,
    Mark.PROHIBITION: Aspect.REQUIREMENT,
    Mark.REQUIREMENT: Aspect.REQUIREMENT,
}
_APART: Final = frozenset({"constraint", "reference"})
"""These stand in a context of their own accord."""


def blueprint(stated: Iterable[tuple[Record, str]], aspect: Told | None = None) -> list[tuple[Record, str]]:
    """Of the records of a project, given with what they say, those that guide the work on it; most guiding first.

    Only what a person or a system of record stands behind: nobody is to be guided by a tool's output.
    aspect: `aspect_of` with a memory.
    """
    told = aspect or (lambda record, text: aspect_of(record.kind, text))
    chosen: dict[Aspect, list[tuple[Record, str]]] = {}
    for record, text in sorted(stated, key=lambda one: _order(one[0])):
        found = told(record, text) if record.trust >= Tier.USER_INFERRED else None
        if found is not None:
            chosen.setdefault(found, []).append((record, text))
    return [one for each in sorted(chosen) for one in chosen[each][:OF_ONE_ASPECT]][:MOST]


def aspect_of(kind: str, text: str) -> Aspect | None:
    """By its words; None for what guides nobody."""
    if kind in _APART:
        return None
    for aspect, cue in _CUES.items():
        if cue.search(text):
            return aspect
    mark, _ = mark_of(text, of_person=True)
    return _MARKS.get(mark) or (Aspect.PROCEDURE if kind == "procedure" else None)


def _order(record: Record) -> tuple[int, int, int]:
    """Trust, then newness."""
    return -record.trust, -record.order_us, -record.position

"""The blueprint of a project: what whoever works on it should know before anything else, whatever the question is.

It is chosen from the records of the project as they stand now, and quoted; so what was superseded, retracted or erased
is not in it a moment longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


_CUES: Final = {
    Aspect.GOAL: re.compile(
        r"\b(?:goals?|purpose|mission|objectives?|aims? (?:to|at)|out of scope|in scope)\b|목표|목적|취지|범위(?:는|에)",
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
_MARKS: Final = {
    Mark.DECISION: Aspect.DECISION,
    Mark.PROHIBITION: Aspect.REQUIREMENT,
    Mark.REQUIREMENT: Aspect.REQUIREMENT,
}
_LOOKED_UP: Final = frozenset({"constraint", "reference"})
"""These stand in a context of their own accord."""


def blueprint(records: Iterable[Record]) -> list[Record]:
    """Of the records of a project those that guide the work on it, the most guiding first.

    Only what a person or a system of record stands behind; a context is no place to be guided by a tool's output.
    """
    chosen: dict[Aspect, list[Record]] = {}
    for record in sorted(records, key=lambda one: (-one.trust, -one.order_us, -one.position)):
        aspect = aspect_of(record)
        if aspect is not None and record.trust >= Tier.USER_INFERRED:
            chosen.setdefault(aspect, []).append(record)
    return [one for aspect in sorted(chosen) for one in chosen[aspect][:OF_ONE_ASPECT]][:MOST]


def aspect_of(record: Record) -> Aspect | None:
    """By the slot that it fills, then by its words; None for what guides nobody."""
    if record.content is None or record.kind in _LOOKED_UP:
        return None
    for text in (" ".join(record.slot or ()).replace("_", " "), record.content):
        for aspect, cue in _CUES.items():
            if cue.search(text):
                return aspect
        mark, _ = mark_of(text, of_person=True)
        if mark in _MARKS:
            return _MARKS[mark]
    return Aspect.PROCEDURE if record.kind == "procedure" else None

"""What goes into the extractor and what comes out of it: `Source` and `Candidate`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from mnemolog.domain.principal import Tier

Span = tuple[int, int]
"""Characters [start, end) of the source's text."""


@dataclass(frozen=True, slots=True)
class Source:
    """One text as it was recorded, with the facts about it that its writer's credentials gave.

    role: user, assistant, system or tool; occurred_at needs a zone of its own; zone: the calendar of the words
    "yesterday" and "다음 주" in it. speaker: who says it, where that is not the user of the scope.
    """

    text: str
    role: str
    tier: Tier
    occurred_at: datetime
    zone: tzinfo
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that a text states, in the text's own words.

    kind: one of `RECORD_KINDS`; content: the statement, `text[span]`; value: what it says, `text[value_span]`.
    attribute: with the entity the slot, None where the statement has no key; negated: it denies the value (dislikes,
    forbids, has given up). supersedes: the older value that it names ("instead of Y"); superseded_attribute: the
    attribute under which that older value would stand. valid_from, valid_to: UTC, from the event's own day.
    confidence: 0 to 1, of the rule; explicit: the speaker asked to remember it; rule: which one found it.
    """

    kind: str
    content: str
    span: Span
    value: str
    value_span: Span
    entity: str
    attribute: str | None
    negated: bool
    confidence: float
    rule: str
    explicit: bool = False
    supersedes: str | None = None
    superseded_attribute: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    @property
    def slot(self) -> tuple[str, str] | None:
        return None if self.attribute is None else (self.entity, self.attribute)

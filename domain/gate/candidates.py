"""What goes into the extractor and what comes out of it: `Source` and `Candidate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import Tier

Span = tuple[int, int]
"""Characters [start, end) of the source's text."""

EXTRACTOR: Final = "rules-5"
"""Names the rules of `extraction`; change it with every change of what they find."""


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

    @property
    def statement(self) -> str:
        """With the slot what makes a record this one: its value where there is a slot, else its words."""
        if self.attribute is None:
            return self.content
        return f"not {self.value}" if self.negated else self.value

    def denied(self) -> Candidate | None:
        """The older value that it names, as given up in a slot of its own: "X instead of Y" speaks of Y too."""
        older, attribute = self.supersedes, self.superseded_attribute
        if older is None or attribute in (None, self.attribute):
            return None
        at = self.content.find(older)
        place = (self.span[0] + at, self.span[0] + at + len(older)) if at >= 0 else self.span
        return replace(
            self,
            value=older,
            value_span=place,
            attribute=attribute,
            negated=True,
            supersedes=None,
            superseded_attribute=None,
        )


def stored(candidate: Candidate) -> dict[str, Any]:
    """A candidate as an event carries it."""
    values = asdict(candidate)
    for name in ("valid_from", "valid_to"):
        values[name] = None if values[name] is None else values[name].isoformat()
    return {name: value for name, value in values.items() if value is not None}


def restored(values: Mapping[str, Any]) -> Candidate:
    """What `stored` was given. Raises InvalidInput for what no candidate can be."""
    try:
        given = {**dict.fromkeys(("attribute",)), **values}
        for name in ("span", "value_span"):
            start, end = given[name]
            given[name] = (int(start), int(end))
        for name in ("valid_from", "valid_to"):
            moment = given.get(name)
            given[name] = None if moment is None else datetime.fromisoformat(moment)
        return Candidate(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"not a candidate: {type(error).__name__}") from None

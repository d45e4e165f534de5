"""The authored utterances: what a person may say in a chat, and what of it is worth keeping.

`utterances.jsonl` was written before the rules (`seen` and `unseen`, a third that was looked at only as a whole), but
for what is marked `later`: that was written after them, judged once, and then used to mend them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from mnemolog.domain.gate.candidates import Candidate, Source
from mnemolog.domain.gate.extraction import extract
from mnemolog.domain.normalise import normal_form
from mnemolog.domain.principal import Tier

SAID_AT: Final = {
    "en": (datetime.fromisoformat("2026-03-04T10:00:00-05:00"), "America/New_York"),
    "ko": (datetime.fromisoformat("2026-03-04T15:30:00+09:00"), "Asia/Seoul"),
}
"""When and where everything was said, by language: a Wednesday."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """expect: kind, value and negated of each memory in it; attribute, supersedes, valid_from, valid_to where given."""

    id: str
    lang: str
    category: str
    text: str
    split: str
    expect: tuple[dict[str, Any], ...]


@cache
def utterances() -> tuple[Utterance, ...]:
    return _authored("utterances.jsonl")


@cache
def held_out() -> tuple[Utterance, ...]:
    """Five sets that were written when the rules stood, judged once each, and only then used to mend them.

    The last two are by authors who had seen neither the rules nor the other sets.
    """
    return _authored("heldout.jsonl")


def _authored(name: str) -> tuple[Utterance, ...]:
    path = Path(__file__).with_name("gate") / name
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return tuple(Utterance(**{**row, "expect": tuple(row["expect"])}) for row in rows)


def said(text: str, lang: str = "en", **given: Any) -> Source:
    """A text said by the user on that Wednesday."""
    at, zone = SAID_AT[lang]
    facts: dict[str, Any] = {
        "role": "user",
        "tier": Tier.USER_STATED,
        "occurred_at": at,
        "zone": ZoneInfo(zone),
    }
    return Source(text, **{**facts, **given})


def is_right(found: Candidate, expected: dict[str, Any], zone: ZoneInfo) -> bool:
    """Whether a candidate says exactly what was expected, as far as that was written down."""
    values = {
        "kind": found.kind,
        "value": normal_form(found.value),
        "negated": found.negated,
        "attribute": normal_form(found.attribute or ""),
        "supersedes": normal_form(found.supersedes or ""),
        "valid_from": found.valid_from and found.valid_from.astimezone(zone).date().isoformat(),
        "valid_to": found.valid_to and found.valid_to.astimezone(zone).date().isoformat(),
    }
    spelled = {"value", "attribute", "supersedes"}
    return all(
        values[name] == (normal_form(value) if name in spelled else value) for name, value in expected.items()
    )


@dataclass(frozen=True, slots=True)
class Score:
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)


def score(some: Iterable[Utterance]) -> Score:
    """How the extractor does on these utterances: a candidate is right only if all of it is."""
    right = wrong = missed = 0
    for one in some:
        zone = ZoneInfo(SAID_AT[one.lang][1])
        left = list(one.expect)
        for found in extract(said(one.text, one.lang)):
            match = next((each for each in left if is_right(found, each, zone)), None)
            if match is None:
                wrong += 1
            else:
                left.remove(match)
                right += 1
        missed += len(left)
    return Score(right, wrong, missed)

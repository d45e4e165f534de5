"""The authored utterances: what a person may say in a chat, and what of it is worth keeping.

`utterances.jsonl` was written before the rules; a third of it (`unseen`) is looked at only as a whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

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
    path = Path(__file__).with_name("gate") / "utterances.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return tuple(Utterance(**{**row, "expect": tuple(row["expect"])}) for row in rows)

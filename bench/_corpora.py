"""Public question sets as scopes with turns and questions. The data are not part of the project: only read here."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

LOCOMO: Final = "locomo/dev.json"
BEAM: Final = "beam"
KORQUAD: Final = "korean/KorQuAD_v1.0_dev.json"

_UNDATED: Final = datetime(2024, 1, 1, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROMPT_NUMBER: Final = re.compile(r"\s*->->\s*[\d,]+\s*$")


@dataclass(frozen=True, slots=True)
class Said:
    """One candidate: who said what, when, in which session."""

    id: str
    session: str
    author: str
    when: datetime
    text: str

    @property
    def occurred_us(self) -> int:
        return int((self.when - _EPOCH).total_seconds() * 1e6)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, the ids that answer it, and its category."""

    text: str
    gold: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """One scope: what was said in it, in order, and what is asked of it."""

    name: str
    said: Sequence[Said]
    asked: Sequence[Asked]


def shared_data() -> Path:
    """Where the public data are: `MNEMOLOG_SHARED_DATA`, or beside the project."""
    return Path(os.environ.get("MNEMOLOG_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")


def locomo(folder: Path) -> list[Corpus]:
    """The conversations of LoCoMo; gold are turn ids such as D8:6, some of which are written carelessly."""
    return [
        Corpus(sample["sample_id"], _turns(sample["conversation"]), _questions(sample["qa"]))
        for sample in json.loads((folder / LOCOMO).read_text())
    ]


def _turns(conversation: Mapping[str, Any]) -> list[Said]:
    said, number = list[Said](), 1
    while f"session_{number}_date_time" in conversation:
        stamp = conversation[f"session_{number}_date_time"]
        when = datetime.strptime(stamp, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation.get(f"session_{number}", []):
            said.append(Said(turn["dia_id"], str(number), turn["speaker"], when, turn["text"]))
        number += 1
    return said


def _questions(rows: Sequence[Mapping[str, Any]]) -> list[Asked]:
    asked = list[Asked]()
    for row in rows:
        gold = frozenset(re.findall(r"D\d+:\d+", " ".join(row["evidence"])))
        if gold:
            asked.append(Asked(row["question"], gold, str(row["category"])))
    return asked


def beam(folder: Path) -> list[Corpus]:
    """The chats of BEAM: a batch is a session; questions without evidence (abstention) are left out."""
    return [_chat(path) for path in sorted((folder / BEAM).iterdir()) if (path / "chat.json.gz").exists()]


def _chat(path: Path) -> Corpus:
    batches = json.loads(gzip.decompress((path / "chat.json.gz").read_bytes()))
    probing = json.loads(gzip.decompress((path / "probing_questions.json.gz").read_bytes()))
    said = [one for batch in batches for one in _batch(batch)]
    known = {one.id for one in said}
    asked = [
        Asked(row["question"], gold, category)
        for category, rows in probing.items()
        for row in rows
        if (gold := frozenset(_message_ids(row.get("source_chat_ids"))) & known)
    ]
    return Corpus(path.name, said, asked)


def _batch(batch: Mapping[str, Any]) -> Iterator[Said]:
    when, session = _UNDATED, str(batch["batch_number"])
    for message in chain.from_iterable(batch["turns"]):
        if message.get("time_anchor"):
            when = datetime.strptime(message["time_anchor"], "%B-%d-%Y").replace(tzinfo=UTC)
        text = _PROMPT_NUMBER.sub("", message["content"])
        yield Said(str(message["id"]), session, message["role"], when, text)


def _message_ids(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _message_ids(one)
    elif value is not None:
        yield str(value)


def korquad(folder: Path) -> list[Corpus]:
    """All paragraphs of KorQuAD as one scope; an article is a session, gold is the question's own paragraph."""
    said, asked = list[Said](), list[Asked]()
    for number, article in enumerate(json.loads((folder / KORQUAD).read_text())["data"]):
        for paragraph in article["paragraphs"]:
            own = str(len(said))
            said.append(Said(own, str(number), "", _UNDATED, paragraph["context"]))
            asked += [Asked(qa["question"], frozenset({own}), "korquad") for qa in paragraph["qas"]]
    return [Corpus("korquad", said, asked)]

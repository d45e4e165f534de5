"""The gate's public texts and authored sets, as the benchmark reads them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
AUTHORED: Final = ROOT / "tests" / "gate"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def authored(name: str) -> list[dict[str, Any]]:
    """One of the sets that were written for this."""
    return lines(AUTHORED / f"{name}.jsonl")


@dataclass(frozen=True)
class Public:
    """The public data under one folder."""

    data: Path

    def attacks(self) -> Iterator[tuple[str, list[str]]]:
        """Texts that instruct whoever reads them: bastion's, and BIPIA's in their carriers."""
        bastion = lines(self.data / "attacks" / "bastion_dev.jsonl")
        yield "bastion malicious", [one["text"] for one in bastion if one["label"] == "malicious"]
        attacks = json.loads((self.data / "attacks" / "bipia_text_attack_train.json").read_text("utf-8"))
        for at, (kind, texts) in enumerate(attacks.items()):
            yield (
                f"BIPIA {kind}",
                [f"{self.mails[(7 * n + at) % len(self.mails)]}\n{text}" for n, text in enumerate(texts)],
            )

    @cached_property
    def mails(self) -> list[str]:
        """BIPIA's carriers, without an attack."""
        return [one["context"] for one in lines(self.data / "attacks" / "bipia_email_train.jsonl")]

    @cached_property
    def minja(self) -> dict[str, Any]:
        return json.loads((self.data / "attacks" / "minja_dev.json").read_text("utf-8"))  # type: ignore[no-any-return]

    def minja_texts(self) -> Iterator[tuple[str, list[str]]]:
        for prompt in self.minja["indication_prompts"]:
            ((name, text),) = prompt.items()
            yield f"MINJA {name}", [text.format(**victim) for victim in self.minja["victim_target"]]

    def benign(self) -> Iterator[tuple[str, list[str]]]:
        """Ordinary outputs of tools: real ones of tau-bench, bastion's, and BIPIA's mails."""
        yield "tau-bench tool outputs", self.tau
        bastion = lines(self.data / "attacks" / "bastion_dev.jsonl")
        yield "bastion benign", [one["text"] for one in bastion if one["label"] == "benign"]
        yield "BIPIA mails", self.mails

    @cached_property
    def tau(self) -> list[str]:
        with gzip.open(
            self.data / "transcripts" / "tau_bench_airline.json.gz", "rt", encoding="utf-8"
        ) as file:
            runs = json.load(file)
        return [turn["content"] for run in runs for turn in run["traj"] if turn["role"] == "tool"]

    def korquad(self) -> list[str]:
        articles = json.loads((self.data / "korean" / "KorQuAD_v1.0_dev.json").read_text("utf-8"))["data"]
        return [part["context"] for article in articles for part in article["paragraphs"]]


# Facts that change ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Changing:
    """FactConsolidation: numbered facts, of which of equal `keys` the last is right.

    asked: each a question, the number of the fact that answers it, and the numbers of those that did before.
    """

    facts: list[str]
    keys: list[str]
    asked: list[tuple[str, int, set[int]]]


_VERB: Final = (
    r"\b(?:is|was|died|plays|speaks|works?|worked|lives)\b(?: (?:located|born|founded|created|written|married|"
    r"a citizen|famous|associated|affiliated|employed|performed|developed|educated))?(?: (?:in|of|by|to|for|with))?"
    r"(?: the \w+ of)?"
)
_OBJECT: Final = re.compile(rf"(?:The type of music that .*? plays is|.*?{_VERB})(?= \S)")
_WORD: Final = re.compile(r"[\w.'’]+")


def changing(data: Path) -> Changing:
    """The facts by number, each with what of it stands before its object, and the questions."""
    given = json.loads((data / "factconsolidation" / "dev.json").read_text("utf-8"))[0]
    facts = [match[1] for line in given["context"].splitlines() if (match := re.match(r"\d+\. (.+)", line))]
    keys = [_before_object(fact) for fact in facts]
    latest = {key: number for number, key in enumerate(keys)}
    asked = []
    for question, answers in zip(given["questions"], given["answers"], strict=True):
        right = [
            number
            for key, number in latest.items()
            if any(facts[number].removeprefix(key).strip(" .") == answer.strip(" .") for answer in answers)
        ]
        words = set(_WORD.findall(question.casefold()))
        best = max(right, key=lambda number: _shared(words, keys[number]), default=None)
        if best is not None:
            older = {at for at, key in enumerate(keys) if key == keys[best] and at != best}
            asked.append((question, best, older))
    return Changing(facts, keys, asked)


def _shared(words: set[str], key: str) -> float:
    """How much of a fact's subject and relation a question names."""
    mine = set(_WORD.findall(key.casefold()))
    return len(words & mine) / (len(mine) + 1)


def _before_object(fact: str) -> str:
    """The fact up to its object, told by the verbs of this data set alone."""
    found = _OBJECT.match(fact.replace(" was educated is", " WAS educated is"))
    return fact[: found.end()] if found is not None else fact

"""The made-up data of the benchmarks: the same for the same numbers, English and Korean, words as frequent as in life.

Every second person speaks Korean; tools answer in English. Function words are a third of all words, as the first
ranks are in Zipf's law; the frequency of the others falls with their rank behind them. Korean nouns carry particles.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate, islice
from typing import Any, Final

from mnemolog import Memory, Scope

TURN_CHARACTERS: Final = 140
OUTPUT_CHARACTERS: Final = 640
TURNS_A_SESSION: Final = 50

_WORDS: Final = 20_000
_OFFSET: Final = 30
"""The ranks that function words take."""
_SEOUL: Final = timezone(timedelta(hours=9))
_START: Final = datetime(2026, 1, 5, 9, 0, tzinfo=_SEOUL)
_ONSETS: Final = "b c d f g h j k l m n p r s t v w st tr pl gr ch sh".split()
_VOWELS: Final = "a e i o u ai ea oo".split()
_CODAS: Final = ["", "", "n", "r", "s", "t", "l", "ck", "nd"]
_KOREAN_FUNCTION: Final = (
    "있는 있다 그리고 그런데 하지만 그래서 그럼 이런 그런 그 저 더 또 좀 것 및 등 수".split()
)
_FUNCTION: Final = (
    "the of and to in is that it was for on with as at by this not are but from or have".split()
)
_SYLLABLES: Final = [
    chr(0xAC00 + (onset * 21 + vowel) * 28 + coda)
    for coda in (0, 4, 21, 8, 16, 1)
    for vowel in (0, 4, 8, 13, 20, 18, 1, 5)
    for onset in (11, 0, 12, 9, 7, 3, 6, 5, 18, 14)
]
"""By how common they are, about: 가, 지, 이, 사 first, closed ones last."""
_SYLLABLE_WEIGHTS: Final = [1 / (rank + 40) for rank in range(len(_SYLLABLES))]
_PARTICLES: Final = "은 는 이 가 을 를 에 에서 으로 도".split()


@dataclass(frozen=True, slots=True)
class Language:
    """Words by rank, and how they become running text."""

    words: Sequence[str]
    weights: Sequence[float]
    function: Sequence[str]
    particles: Sequence[str]

    def text(self, rng: random.Random, characters: int) -> str:
        """About this many characters of running text."""
        size = characters // 3
        return " ".join(self.some(rng, size))[:characters]

    def some(self, rng: random.Random, count: int) -> list[str]:
        """Running words: some of them function words, some with a particle."""
        words = rng.choices(self.words, cum_weights=self.weights, k=count)
        for at in range(count):
            if rng.random() < 1 / 3:
                words[at] = rng.choice(self.function)
            elif self.particles and rng.random() < 1 / 2:
                words[at] += rng.choice(self.particles)
        return words


def _language(make: Any, function: Sequence[str], particles: Sequence[str]) -> Language:
    rng = random.Random(11)
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        words[make(rng)] = None
    weights = list(accumulate(1 / (rank + _OFFSET) for rank in range(_WORDS)))
    return Language(list(words), weights, function, particles)


def _english_word(rng: random.Random) -> str:
    count = rng.choices((1, 2, 3), (3, 5, 2))[0]
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(count))


def _korean_word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, _SYLLABLE_WEIGHTS, k=rng.choices((2, 3, 4), (6, 3, 1))[0]))


ENGLISH: Final = _language(_english_word, _FUNCTION, ())
KOREAN: Final = _language(_korean_word, _KOREAN_FUNCTION, _PARTICLES)
LANGUAGES: Final = {"English": ENGLISH, "Korean": KOREAN}


def language(number: int) -> Language:
    return KOREAN if number % 2 else ENGLISH


def scope(person: int, turn: int) -> Scope:
    """Where a person's nth turn belongs."""
    session = f"s-{person}-{turn // TURNS_A_SESSION}"
    return Scope(tenant="acme", user=f"u-{person}", project="billing", session=session)


def turns(people: int, seed: int = 7, prefix: str = "run") -> Iterator[dict[str, Any]]:
    """Turns as `record_batch` takes them, of all people in turn, for ever."""
    rng, number = random.Random(seed), 0
    while True:
        turn, person = divmod(number, people)
        yield {
            "type": "turn",
            "scope": scope(person, turn),
            "role": ("user", "assistant")[turn % 2],
            "content": language(person + (turn if people == 1 else 0)).text(rng, TURN_CHARACTERS),
            "author": f"Person {person}",
            "occurred_at": _START + timedelta(seconds=number),
            "key": f"{prefix}-{seed}/turn-{number}",
        }
        number += 1


def mixed(people: int, count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """70 % turns, 25 % tool outputs of 640 characters, 5 % acts on memory (`type` "memory")."""
    rng = random.Random(seed)
    for item in islice(turns(people, seed), count):
        kind = rng.choices(("turn", "tool_result", "memory"), (70, 25, 5))[0]
        if kind == "turn":
            yield item
        elif kind == "tool_result":
            text = ENGLISH.text(rng, OUTPUT_CHARACTERS)
            given = {name: item[name] for name in ("scope", "occurred_at", "key")}
            yield {**given, "type": kind, "output": text, "name": "search", "call_id": item["key"][-12:]}
        else:
            yield {"type": kind, "scope": item["scope"], "content": item["content"][:60]}


def load(memory: Memory, items: Iterator[Mapping[str, Any]], seed: int = 7, batch: int = 500) -> None:
    """Write everything: what happened in batches, acts on memory one by one between them."""
    rng, waiting, records = random.Random(seed), list[Mapping[str, Any]](), list[tuple[Scope, str]]()
    for item in items:
        if item["type"] == "memory":
            _act(memory, item["scope"], item["content"], rng, records)
            continue
        waiting.append(item)
        if len(waiting) == batch:
            memory.record_batch(waiting)
            waiting.clear()
    memory.record_batch(waiting)


def _act(
    memory: Memory, scope: Scope, content: str, rng: random.Random, records: list[tuple[Scope, str]]
) -> None:
    """Of ten acts three fill slots, four state, two correct and one retracts something stated before."""
    kind = rng.choices(("slot", "state", "correct", "retract"), (3, 4, 2, 1))[0]
    if kind in ("correct", "retract") and records:
        own, record = records.pop(rng.randrange(len(records)))
        if kind == "correct":
            memory.correct(own, record, content)
        else:
            memory.retract(own, record)
        return
    slot = ("report", f"part-{rng.randrange(20)}") if kind == "slot" else None
    records.append((scope, memory.remember(scope, content, slot=slot).record_id))


def questions(name: str, count: int, seed: int = 3) -> list[str]:
    """Questions of 3 to 8 running words."""
    rng = random.Random(seed)
    return [" ".join(LANGUAGES[name].some(rng, rng.randint(3, 8))) for _ in range(count)]

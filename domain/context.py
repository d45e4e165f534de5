"""Choosing what an agent gets to read: whole entries, layer by layer, within a budget, with an account of each.

`domain.rendering` writes it down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import Tier

TokenCounter = Callable[[str], int]

_LETTERS: Final = "".join(chr(at) if chr(at).isalpha() else " " for at in range(128))
_SHORT_WORD: Final = 6


def _class_of(character: str) -> str:
    """1: a digit; !: a mark; c: a control character; tab: white space that is no blank; x: all else.

    A ? stands for another script.
    """
    if character == " " or character.isspace():
        return " " if character == " " else "\t"
    if not character.isprintable():
        return "c"
    if character.isalpha() or character == "?":
        return "x"
    return "1" if character.isdigit() else "!"


_CLASSES: Final = "".join(_class_of(chr(at)) for at in range(128))
_GAPS: Final = re.compile("  +")
_BLANKS: Final = 16
_HANGUL: Final = re.compile("[ㄱ-ㆎ가-힣]+")
_EAST_ASIAN: Final = re.compile("[\u3000-\u9fff\uf900-\ufaff]+")
_NEAR: Final = re.compile("[\x80-\u06ff]+")


class Layer(StrEnum):
    """Where an entry stands, in the order in which they are read: the first has the most authority."""

    BOOT = "boot"
    """Constraints: the rules of the scope."""
    BLUEPRINT = "blueprint"
    """What guides the work on the project: its goal, decisions, owners, deadlines, procedures."""
    WORKING = "working"
    REFERENCE = "reference"
    """What a system of record holds: where to look it up."""
    MEMORY = "memory"
    QUESTION = "question"
    """What only a person can decide, as a question to ask."""
    RECALLED = "recalled"
    """Turns that a search found."""
    SUMMARY = "summary"
    LANDMARK = "landmark"
    RECENT = "recent"
    """Turns of the session itself."""
    OPEN = "open"
    STATE = "state"
    """What is being done right now: read last."""


GROUPS: Final = ("boot", "tools", "memory", "session")
"""What a policy gives shares to, and what a caller may ask for."""


class Entry(NamedTuple):
    """One candidate for a context: a whole record, turn or state of a task.

    id: record id or event id; version: the record's version, 1 for events; who: what stands before the text;
    group: what the border says of the entries inside (a date), one border for each session and group; place: the
    order inside a layer; reference: shown instead of text that may not enter, or instead of all of a large one;
    events: ids that must not be erased at the hand-over, besides `id`. others: records that it speaks of besides that
    of its id, each with its version.
    """

    id: str
    version: int
    layer: Layer
    text: str
    tier: Tier
    who: str = ""
    session: str | None = None
    group: str = ""
    place: int = 0
    reference: str | None = None
    is_record: bool = False
    events: tuple[str, ...] = ()
    others: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> tuple[bool, str]:
        """What may be in a context once: an open item may repeat what its turn says."""
        return self.layer is Layer.OPEN, self.id


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry that went in, as it was rendered. tokens: with what it needs of a border."""

    entry: Entry
    rendered: str
    tokens: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that did not go in, and the closed word for why: budget, repeated, erased, changed."""

    id: str
    reason: str


def told_once(left_out: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Each id once for each reason, in their order: several places of one source compete under its id."""
    return tuple(dict.fromkeys(left_out))


@dataclass(frozen=True, slots=True)
class Portion:
    """What competes inside one share, best first. share, floor: fractions of the budget."""

    share: float
    floor: float
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Assembly:
    """What was chosen, in the order in which it is read. body and state are two bordered blocks of text."""

    body: str = ""
    state: str = ""
    tokens: int = 0
    placed: tuple[Placed, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(part for part in (self.body, self.state) if part)


def estimate_tokens(text: str) -> int:
    """Tokens of a text without a tokenizer: seldom fewer, and for prose a fifth more, than those of OpenAI's.

    A word of up to six letters is a token, a longer one more; the characters of other scripts cost 1 to 2.5 each.
    """
    plain = text.replace("?", "!")
    if not text.isascii():
        plain = plain.encode("ascii", "replace").decode("ascii")
    words, classes = plain.translate(_LETTERS).split(), plain.translate(_CLASSES)
    count = len(words) + _pairs(classes, "1") + _pairs(classes, "!") + _gaps(classes) + classes.count("c")
    for word in [word for word in words if len(word) > _SHORT_WORD]:
        count += (len(word) - 2) // 5 if word[1:].islower() else (len(word) - 1) // 3
    if text.isascii():
        return count
    hangul, asian, near = (sum(map(len, some.findall(text))) for some in (_HANGUL, _EAST_ASIAN, _NEAR))
    others = plain.count("?") - hangul - asian - near
    return count + -(-(32 * hangul + 24 * asian + 20 * near + 50 * others) // 20)


def _pairs(classes: str, of: str) -> int:
    """Two digits, or two marks, are a token."""
    halved = classes.replace(of + of, "2")
    return halved.count("2") + halved.count(of)


def _gaps(classes: str) -> int:
    """So is a run of white space that is more than one blank, and sixteen blanks or eight line breaks of a long one."""
    return sum(-(-len(run) // _BLANKS) for run in _GAPS.findall(classes.replace("\t", "  ")))


@dataclass(slots=True)
class Filling:
    """A budget on its way out. cost: tokens of an entry, given the borders that are there already."""

    budget: int
    cost: Callable[[Entry], int]
    opened: Callable[[Entry], None]
    spent: int
    chosen: list[tuple[Entry, int]] = field(default_factory=list)
    seen: set[tuple[bool, str]] = field(default_factory=set)
    taken: set[tuple[bool, str]] = field(default_factory=set)

    def take(self, entry: Entry, most: float) -> int | None:
        """Tokens spent on the entry, which may be none; None where it does not fit in `most` tokens."""
        cost = self.cost(entry)
        if cost > most:
            return None
        self.opened(entry)
        self.taken.add(entry.key)
        self.spent += cost
        self.chosen.append((entry, cost))
        return cost


def fill(filling: Filling, portions: Sequence[Portion]) -> list[LeftOut]:
    """Choose entries: first each portion's floor, then its share, then whoever comes first takes what is left.

    Returns what did not go in. An entry is whole or absent, and enters once: from the portion that stands first, but a
    turn of the session itself from whichever has room for it, or what answers the query would leave the last words out.
    """
    waiting, left_out = _once(filling, portions)
    free = filling.budget - filling.spent
    spent = [0.0] * len(portions)
    floors = [_need(filling, some, portions[at].floor * free) for at, some in enumerate(waiting)]
    for at, some in enumerate(waiting):
        spent[at] = _spend(filling, some, 0, until=floors[at], later=sum(floors[at + 1 :]))
    for at, some in enumerate(waiting):
        spent[at] += _spend(filling, some, spent[at], share=portions[at].share * free)
    for some in waiting:
        _spend(filling, some, 0)
    absent = [entry for some in waiting for entry in some]
    return left_out + [
        LeftOut(entry.id, "repeated" if entry.key in filling.taken else "budget") for entry in absent
    ]


def _once(filling: Filling, portions: Sequence[Portion]) -> tuple[list[list[Entry]], list[LeftOut]]:
    """The entries of each portion without those that stand earlier, but for turns of the session."""
    waiting: list[list[Entry]] = []
    left_out: list[LeftOut] = []
    for portion in portions:
        own = dict[tuple[bool, str], Entry]()
        for entry in portion.entries:
            key = entry.key
            if key in own or (key in filling.seen and entry.layer is not Layer.RECENT):
                left_out.append(LeftOut(entry.id, "repeated"))
            else:
                own[key] = entry
        filling.seen |= own.keys()
        waiting.append(list(own.values()))
    return waiting, left_out


def _need(filling: Filling, entries: Iterable[Entry], floor: float) -> float:
    """What of a floor is needed at all."""
    need = 0.0
    for entry in entries:
        if need >= floor:
            return floor
        need += filling.cost(entry)
    return min(need, floor)


def _spend(
    filling: Filling,
    waiting: list[Entry],
    before: float,
    *,
    until: float = math.inf,
    share: float = math.inf,
    later: float = 0,
) -> int:
    """Take what fits until so much is spent; what was taken leaves `waiting`. Returns the tokens.

    share: what the portion may have, `before` included; later: what must stay free.
    """
    left: list[Entry] = []
    spent = 0
    for at, entry in enumerate(waiting):
        if spent >= until or filling.spent + later >= filling.budget or before + spent >= share:
            left += waiting[at:]
            break
        if entry.key in filling.taken:
            left.append(entry)
            continue
        most = min(filling.budget - filling.spent - later, share - before - spent)
        cost = filling.take(entry, most)
        if cost is None:
            left.append(entry)
        else:
            spent += cost
    waiting[:] = left
    return spent


def scaled(shares: Mapping[str, float], asked: Iterable[str]) -> dict[str, float]:
    """Shares of the groups that are asked for, as fractions that add up to 1. Raises InvalidInput for unknown ones."""
    wanted = list(dict.fromkeys(asked))
    if unknown := [name for name in wanted if name not in GROUPS]:
        raise InvalidInput(f"layers are {', '.join(GROUPS)}, not {', '.join(map(repr, unknown))}")
    if not wanted:
        raise InvalidInput(f"name at least one of the layers {', '.join(GROUPS)}")
    total = sum(shares[name] for name in wanted)
    return {name: shares[name] / total if total else 1 / len(wanted) for name in wanted}

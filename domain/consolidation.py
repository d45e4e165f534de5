"""Which records say the same in other words, or of one slot in two spellings: `proposals`, a pure function.

It proposes and a person decides: likeness merges nothing. So it may err, but what plainly differs, in a name, a number
or a denial, is left alone, and records about different people are never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from types import MappingProxyType
from typing import Final

from mnemolog.domain.normalise import normal_form, slot_key
from mnemolog.domain.records import Record, Status

NEAR: Final = 0.8
"""Cosine from which two statements may mean the same."""
_SPELLED_ALIKE: Final = 0.85
_LONGEST: Final = 2000
"""Characters of a statement that is compared; a longer text is a document, and likeness in words says little of it."""
_COMMON: Final = 50
"""A word that more records have tells nothing."""

Pair = tuple[str, str]
Nearness = Mapping[Pair, float]
"""Ids of two records, in order → cosine of what they say; at least of those that are near."""
_NOTHING_NEAR: Final[Nearness] = MappingProxyType({})

_STANDS: Final = frozenset({Status.CURRENT, Status.DISPUTED})
_SAYING: Final = frozenset({"fact", "preference"})
"""Kinds that people do not keep apart."""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][a-z]+)?")
_NUMBER: Final = re.compile(r"\d+")
_NAME: Final = re.compile(r"(?<!^)\b[A-Z][\w-]*|\b[a-z]+[A-Z]\w*")
_DENIES: Final = re.compile(
    r"\b(?:not?|never|none|nothing|without|cannot|stop(?:ped|s)?|avoids?|dislikes?|hates?)\b|n['’]t\b"
    r"|(?:^|\s)[안못](?=\s)|않|없|아니|말[아고라자]|마세요|싫",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(
    r"[월화수목금토일]요일|오전|오후|아침|점심|저녁|매일|매주|매달|매월|\b(?:\w+day|daily|weekly|monthly|yearly|mornings?|evenings?)\b",
    re.IGNORECASE,
)
_ENDINGS: Final = frozenset({"s", "es", "d", "ed", "ing"})
_LIGHT: Final = frozenset(
    "a an the is are am be was i me my mine we our us you your he she they it its this that to of for in on at by and "
    "with do does will would please really always very user prefer like want use "
    "나 나는 내 제 저 저는 저의 우리 우리는 저희 저희는 사용자 사용자는 늘 항상 정말 아주 주로 보통".split()
)
"""Words that may be left out, or chosen otherwise, without another meaning."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """That `record` be merged into `into`, which is the one that would stand between them. reason: closed words."""

    record: str
    into: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Said:
    """What of a text is compared, looked for once a record. Without words where it is too long to be a statement."""

    words: Sequence[str] = ()
    denies: bool = False
    told: tuple[Sequence[str], Sequence[str]] = ((), ())
    names: frozenset[str] = frozenset()
    folded: str = ""


SPELLING: Final = "one slot in two spellings"
WORDING: Final = "the same in other words"


def proposals(records: Sequence[Record], near: Nearness = _NOTHING_NEAR) -> list[Proposal]:
    """What may be merged, by the position of what would be superseded; each record once at most.

    Only records that stand, of one scope, about the same people, and not what a person has kept apart.
    """
    standing = sorted((r for r in records if r.status in _STANDS and r.content), key=lambda r: r.position)
    by_id = {record.id: record for record in standing}
    said = {record.id: _said(record.content or "") for record in standing}
    found: dict[str, Proposal] = {}
    for one, other in _pairs(standing, said, near):
        first, second = sorted((by_id[one], by_id[other]), key=_precedence)
        if first.id not in found and second.id not in found and _may_merge(first, second):
            cosine = near.get(_pair(one, other), 0.0)
            reason = _reason(first, second, _say_the_same(said[first.id], said[second.id], cosine))
            if reason is not None:
                found[first.id] = Proposal(first.id, second.id, reason)
    return sorted(found.values(), key=lambda each: by_id[each.record].position)


def _precedence(record: Record) -> tuple[bool, int, int, int]:
    """As between the values of one slot: the last stands."""
    return record.ruled, record.authority, record.order_us, record.position


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


def _said(text: str) -> _Said:
    if len(text) > _LONGEST:
        return _Said()
    return _Said(
        [word for word in _WORD.findall(text) if not _is_light(word)],
        bool(_DENIES.search(text)),
        (_told(_NUMBER, text), _told(_WHEN, text)),
        frozenset(map(_stem, _NAME.findall(text))),
        text.casefold(),
    )


def _pairs(records: Sequence[Record], said: Mapping[str, _Said], near: Nearness) -> Iterator[Pair]:
    """Those worth a look, each once, in a fixed order: near ones, of a slot alike, or with a word in common."""
    sharing: dict[str, list[str]] = {}
    for record in records:
        words = {word.casefold()[:2] for word in said[record.id].words}
        slot = set() if record.slot is None else {f"{record.scope}/{_squashed(record.slot[1])[:3]}"}
        for key in words | slot:
            sharing.setdefault(key, []).append(record.id)
    known = {record.id for record in records}
    pairs = {pair for pair in near if known.issuperset(pair)}
    for ids in sharing.values():
        if len(ids) <= _COMMON:
            pairs |= {_pair(*two) for two in combinations(ids, 2)}
    place = {record.id: at for at, record in enumerate(records)}
    yield from sorted(pairs, key=lambda pair: sorted((place[pair[0]], place[pair[1]]), reverse=True))


def _may_merge(one: Record, other: Record) -> bool:
    if one.scope != other.scope or one.subjects != other.subjects or one.group == other.group:
        return False
    if one.id in other.apart or other.id in one.apart:
        return False
    return one.kind == other.kind or {one.kind, other.kind} <= _SAYING


def _reason(one: Record, other: Record, says_the_same: bool) -> str | None:
    if one.slot is None or other.slot is None:
        return WORDING if says_the_same else None
    (entity, attribute), (entity_too, attribute_too) = one.slot, other.slot
    if not _spelled_alike(entity, entity_too):
        return None
    if _squashed(entity) == _squashed(entity_too) and _squashed(attribute) == _squashed(attribute_too):
        return SPELLING
    if _spelled_alike(attribute, attribute_too):
        return SPELLING if says_the_same or _same_value(one, other) else None
    same_entity = slot_key(entity, "") == slot_key(entity_too, "")
    return WORDING if same_entity and says_the_same else None


def _same_value(one: Record, other: Record) -> bool:
    return normal_form(one.content or "").casefold() == normal_form(other.content or "").casefold()


def _say_the_same(one: _Said, other: _Said, cosine: float) -> bool:
    """Two statements, not bare values, that differ in no name, number or denial, and hardly in words or in meaning."""
    if min(len(one.words), len(other.words)) < 2 or (cosine < NEAR and len(one.words) != len(other.words)):
        return False
    if (one.denies, one.told) != (other.denies, other.told):
        return False
    if cosine < NEAR and not _worded_alike(one.words, other.words):
        return False
    return not (_names_differ(one, other) or _begin_otherwise(one.words, other.words))


def _told(pattern: re.Pattern[str], text: str) -> list[str]:
    return sorted(map(_stem, pattern.findall(text)))


def _names_differ(one: _Said, other: _Said) -> bool:
    """Whether one has a name that the other has in no spelling."""
    return any(name not in other.folded for name in one.names) or any(
        name not in one.folded for name in other.names
    )


def _begin_otherwise(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether only the first word differs, which may be a name: who does it."""
    if not (words[0][0].isupper() and others[0][0].isupper()) or _one_word(words[0], others[0]):
        return False
    return _worded_alike(words[1:], others[1:])


def _stem(name: str) -> str:
    return name.casefold().removesuffix("s")


def _worded_alike(words: Sequence[str], others: Sequence[str]) -> bool:
    """Word by word, in order, but for endings."""
    return len(words) == len(others) and all(map(_one_word, words, others))


def _is_light(word: str) -> bool:
    return word.casefold() in _LIGHT or _stem(word) in _LIGHT


def _one_word(word: str, other: str) -> bool:
    one, two = word.casefold(), other.casefold()
    shorter, longer = sorted((one, two), key=len)
    if one == two or (longer.startswith(shorter) and longer[len(shorter) :] in _ENDINGS):
        return True
    shared = next((at for at, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]), None)
    prefix = min(len(one), len(two)) if shared is None else shared
    least = 3 if one.isascii() else 2
    return prefix >= least and prefix >= min(len(one), len(two)) - 1


def _spelled_alike(name: str, other: str) -> bool:
    one, two = _squashed(name), _squashed(other)
    if one == two:
        return True
    if _NUMBER.findall(one) != _NUMBER.findall(two) or min(len(one), len(two)) < 4:
        return False
    first, second = sorted((one, two))
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _SPELLED_ALIKE


def _squashed(name: str) -> str:
    """A name of a slot without case, separators and plural."""
    return "".join(_WORD.findall(name.replace("_", " ").casefold())).removesuffix("s")

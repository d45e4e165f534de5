"""What a sentence is to its session: a prohibition, a decision, a date, ... Cue words of English and Korean.

A sentence is quoted as it was said, never rephrased, so that nothing can be promoted or invented on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from mnemolog.domain.korean import hangul_terms
from mnemolog.domain.principal import Tier

MAX_QUOTE: Final = 280
"""Characters of one quoted sentence; a longer one is cut around its cue."""
MAX_SPEAKER: Final = 40
_READ: Final = 20_000
"""Characters of one turn that are looked at."""


@dataclass(frozen=True, slots=True)
class RawTurn:
    """Something of a session, as a summariser reads it. kind: turn, chunk, tool_call or tool_result."""

    event_id: str
    position: int
    kind: str
    text: str
    tier: Tier
    role: str | None = None
    author: str | None = None
    tool: str | None = None
    call_id: str | None = None
    error: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether it may be quoted: said by a person or the agent, and of no untrusted origin."""
        said = self.kind in ("turn", "chunk") and self.role in ("user", "assistant")
        return said and self.tier >= Tier.AGENT and bool(self.text.strip())

    @property
    def is_of_person(self) -> bool:
        return self.role == "user" and self.tier >= Tier.USER_INFERRED

    @property
    def speaker(self) -> str:
        return " ".join((self.author or self.role or "").split())[:MAX_SPEAKER]


class Mark(StrEnum):
    """Kinds of landmarks, the most binding first: a sentence is the first that it fits."""

    PROHIBITION = "prohibition"
    DECISION = "decision"
    CORRECTION = "correction"
    REQUIREMENT = "requirement"
    COMMITMENT = "commitment"
    FACT = "fact"
    NUMBER = "number"
    NAME = "name"


OF_PERSONS: Final = frozenset({Mark.PROHIBITION, Mark.REQUIREMENT})
"""Rules: only a person makes one, whatever an agent or a document says."""


_WITH_L: Final = "".join(chr(0xAC00 + 28 * at + 8) for at in range(399))
"""Syllables that end in ㄹ: with 게 behind them somebody promises (할게, 보낼게)."""


_pattern = cache(re.compile)
"""Compiled when a text is read first, and not when the store is opened."""


def _cues(*patterns: str) -> str:
    return f"(?i){'|'.join(patterns)}"


_CUES: Final = {
    Mark.PROHIBITION: _cues(
        r"(?:^|[,;:.!–—-]\s*|\b(?:please|and|so|but|just|also|then|we|you)\s+)(?:do not|don['’]?t)\s+"
        r"(?!know|think|worry|mind|see|understand|remember|believe|care|have|need|want|like|get|forget)\w",
        r"(?<!have )(?<!has )(?<!had )(?<!was )(?<!['’]ve )\bnever\s+(?!mind|been|had|heard|seen|thought)\w",
        r"\bmust(?: not|n['’]t)\b|\bshould(?: not|n['’]t)\b|\b(?:not|no longer) allowed\b|\bforbidden\b",
        r"\bprohibited\b|\boff[- ]limits\b|\bunder no circumstances\b|\bavoid \w+ing\b|\bstop \w+ing\b",
        r"(?<!걱정하)지\s?(?:마|말(?:아|고|것|자|라)|않도록|않게|않기로)|쓰지 않",
        r"면\s?안\s?(?:돼|되|됩|된)|금지|절대|삼가",
    ),
    Mark.DECISION: _cues(
        r"\b(?:decided|decision|agreed|settled on|chose|chosen|approved|finali[sz]ed|going with|go with)\b",
        r"\b(?:let['’]s|we['’]ll|we will) (?:use|go|take|keep|ship|stick|adopt|choose)\b|\bthe plan is\b",
        r"결정|확정|채택|합의|승인|정했|하기로|기로 (?:했|함|하자|해요|합니다)|로 (?:하자|가자|합시다|정하)|선택했",
    ),
    Mark.CORRECTION: _cues(
        r"^(?:no|wait|sorry)\b[,:—-]|\bactually\b|\bcorrection\b|\bi meant\b|\bscratch that\b|\bno longer\b",
        r"\b(?:is|was|that['’]s) (?:wrong|incorrect|outdated)\b|\bchanged (?:to|from)\b|\binstead of\b",
        r"\brather than\b|아니라|아니고|아니요|아니에요|정정|잘못|틀렸|바뀌었|바뀝니다|변경|사실은|(?<!지 )말고\b",
    ),
    Mark.REQUIREMENT: _cues(
        r"\b(?:must|always|only|required?|requires|have to|has to|needs? to be|make sure|ensure)\b",
        r"반드시|항상|언제나|필수|\b꼭\b|에만|으로만|해야\s?(?:합|해|한|돼|된|됩)",
    ),
    Mark.COMMITMENT: _cues(
        r"\b(?:i|we)(?:['’]ll| will| shall)\b|\bpromised?\b|\bdeadline\b|\bdue (?:on|by|date)\b|\bremind me\b",
        r"\bby (?:mon|tues|wednes|thurs|fri|satur|sun)day\b|하겠|겠습니다|약속|마감|기한",
        rf"[{_WITH_L}]게(?:요)?\b",
        r"까지 (?:보내|끝|제출|완료|마)",
    ),
    Mark.FACT: _cues(
        r"\b(?:my|our|the) [\w' -]{1,60}? (?:is|are|will be|starts?|ends?|uses?|runs?|lives?|costs?)\b",
        r"\bi(?:['’]m| am| live| work| prefer| like| use)\b|\bwe (?:use|prefer|are)\b|\bprefers?\b",
        r"이름은|저는|우리는|우리 |선호|좋아|싫어|알레르기|살아요|삽니다|담당|입니다|이에요|예요",
    ),
    Mark.NUMBER: _cues(
        r"\d|\b(?:jan|febr)uary\b|\b(?:in|since|until|by|from) (?:march|april|may|june|july)\b|\baugust\b",
        r"\b(?:septem|octo|novem|decem)ber\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
        r"[월화수목금토일]요일|내일|모레|다음 ?주|이번 ?주|다음 ?달|[일이삼사오육칠팔구십]월|(?:천|백|억|만) ?원",
    ),
    Mark.NAME: (
        r"(?<=[a-z,] )[A-Z][a-zA-Z]+|\b[a-z]+[A-Z]\w+|@\w+|[「『“].+?[」』”]|"
        r"\b\w+\.(?:py|md|ts|js|json|ya?ml|toml|sql|csv)\b"
    ),
}
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_INJECTED: Final = re.compile(r"<memory(?: now)?>.*?(?:</memory>|\Z)", re.DOTALL)
"""A context that an agent repeats: what it says was said before, and counts there."""
_QUOTED: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_BREAKS: Final = re.compile(r"(?<=[.!?。！？])[\"'”’)]*\s+|[\r\n]+")
_BULLET: Final = re.compile(r"^\s*(?:[-*•#]+|\d{1,3}[.)])\s+")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|mr|mrs|ms|dr|vs|etc|no|st|cf)|^\d{1,3})\.$", re.IGNORECASE
)
_WORDS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_HANGUL: Final = re.compile("[가-힣]")
_STOP: Final = frozenset(
    "a an the and or but so if of to in on at by for with from as is are was were be been am do does did it its this "
    "that these those i you he she we they me my your our their him her us them not no yes ok okay please thanks "
    "thank sure hi hello hey well just can could would will shall may might should has have had there here what when "
    "where who which how why than then too very also".split()
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a turn, without code blocks, contexts that it repeats and what it quotes from elsewhere."""
    text = _QUOTED.sub("", _INJECTED.sub("\n", _FENCED.sub("\n", text[:_READ])))
    held = ""
    for piece in _BREAKS.split(text):
        piece = f"{held} {piece}".strip() if held else piece.strip()
        held = piece if _ABBREVIATED.search(piece) else ""
        if not held and (cleaned := _BULLET.sub("", piece).strip()):
            yield " ".join(cleaned.split())
    if held:
        yield " ".join(held.split())


def mark_of(sentence: str, of_person: bool) -> tuple[Mark | None, int]:
    """What the sentence is, and where its cue stands. of_person: whether a person said it."""
    for mark, cue in _CUES.items():
        if mark in OF_PERSONS and not of_person:
            continue
        found = _pattern(cue).search(sentence)
        if found is not None:
            return mark, found.start()
    return None, 0


def quote(sentence: str, cue: int) -> str:
    """The sentence, or what stands around its cue, cut at words and marked as cut."""
    if len(sentence) <= MAX_QUOTE:
        return sentence
    start = max(0, min(cue - MAX_QUOTE // 3, len(sentence) - MAX_QUOTE))
    end = start + MAX_QUOTE
    if start and (space := sentence.find(" ", start, start + 30)) > 0:
        start = space + 1
    if end < len(sentence) and (space := sentence.rfind(" ", end - 30, end)) > 0:
        end = space
    return f"{'…' if start else ''}{sentence[start:end].strip()}{'…' if end < len(sentence) else ''}"


def terms(text: str) -> frozenset[str]:
    """The words that carry a sentence: folded, without stop words and Korean particles."""
    found: set[str] = set()
    for word in _WORDS.findall(text.casefold()):
        if _HANGUL.search(word):
            found.update(term for term, weight in hangul_terms(word) if weight >= 1)
        elif word not in _STOP:
            found.add(word)
    return frozenset(found)

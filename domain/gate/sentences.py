"""A turn as sentences and clauses with their places in it, without code, contexts that it repeats, and quotations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HIDDEN: Final = "\ufffc"
"""Stands for every character of what is not the speaker's own statement."""
READ: Final = 20_000
"""Characters of one text that are looked at."""
LONGEST: Final = 400
"""Characters of one sentence; what is longer is no statement."""

_OTHERS: Final = tuple(
    re.compile(pattern, re.DOTALL | re.MULTILINE)
    for pattern in (
        r"```.*?(?:```|\Z)",
        r"<memory(?: now)?>.*?(?:</memory>|\Z)",
        r"^[ \t]*>[^\n]*",
        r"https?://\S+",
    )
)
_CODE: Final = re.compile(r"^[ \t]*[\w.]+ *=+ *\S|[;{}] *$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^[ \t]*(?:#|//)[^\n]*", re.MULTILINE)
_QUOTES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"`[^`\n]{1,300}`",
        r"[\"“„][^\"”“\n]{1,300}[\"”]",
        r"[「『《][^」』》\n]{1,300}[」』》]",
        r"(?<!\w)['‘](?:[^'’\n]|['’](?=[A-Za-z])){1,300}['’](?![A-Za-z0-9])",
    )
)
_END: Final = re.compile(r"[.!?。！？…]+[\"'”’)]*(?=\s|\Z)|[\r\n]+")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Ss]t|vs|etc|cf|Inc|Ltd|Corp|Co|Jr|Sr|[A-Z](?:\.[A-Z])+)|\b[A-Z][\w'’-]*(?: [A-Z]\.?)* [A-Z])\Z"
)
_NUMBERED: Final = re.compile(r"\b(?:\w*[Ss]tr|[Nn]o|[Nn]r|pp?|[Ff]ig|[Vv]ol|[Ee]xt)\.\Z")
"""Before a number: Kaiserstr. 9, No. 5."""
_NEAR: Final = 80
"""Characters before a dot that tell whether it ends a sentence."""
_BULLET: Final = re.compile(r"\s*(?:[-*•]+\s+|\d{1,3}[.)]\s+)?")


@dataclass(frozen=True, slots=True)
class Sentence:
    """text[start:end] without its end mark; asks: it ends as a question."""

    start: int
    end: int
    asks: bool


def hidden(text: str) -> str:
    """`text` with what somebody else says blotted out; places stay as they are."""
    text = text[:READ]
    for pattern in _OTHERS:
        text = pattern.sub(lambda found: HIDDEN * len(found[0]), text)
    if _CODE.search(text):
        text = _COMMENT.sub(lambda found: HIDDEN * len(found[0]), text)
    for pattern in _QUOTES:
        text = pattern.sub(_blotted, text)
    return text


def _blotted(found: re.Match[str]) -> str:
    """A quotation of several words; one word in quotes may be a name."""
    return HIDDEN * len(found[0]) if re.search(r"\s", found[0]) else found[0]


def sentences(text: str) -> Iterator[Sentence]:
    start = 0
    for found in _END.finditer(text):
        if found[0].startswith(".") and _is_abbreviated(text, start, found):
            continue
        yield from _sentence(text, start, found.start(), found[0])
        start = found.end()
    yield from _sentence(text, start, len(text), "")


def _is_abbreviated(text: str, start: int, dot: re.Match[str]) -> bool:
    near = max(start, dot.start() - _NEAR)
    if _ABBREVIATED.search(text, near, dot.start()):
        return True
    return (
        text[dot.end() + 1 : dot.end() + 2].isdigit() and _NUMBERED.search(text, near, dot.end()) is not None
    )


def _sentence(text: str, start: int, end: int, mark: str) -> Iterator[Sentence]:
    bullet = _BULLET.match(text, start, end)
    start = bullet.end() if bullet is not None else start
    while end > start and text[end - 1].isspace():
        end -= 1
    if 0 < end - start <= LONGEST:
        yield Sentence(start, end, "?" in mark or "？" in mark)


def clauses(text: str, start: int, end: int, joint: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The parts of a sentence between joints. A joint's group `keep` belongs to the part before it."""
    at = start
    for found in joint.finditer(text, start, end):
        kept = found.end("keep") if "keep" in joint.groupindex and found["keep"] else found.start()
        if kept > at:
            yield at, kept
        at = found.end()
    if at < end:
        yield at, end

"""What must not be kept as it stands: secrets and personal identifiers, where they are, and how they are hidden.

A finding never carries the text. What is stored of it is a keyed fingerprint, equal for the same thing in any spelling.
"""

from __future__ import annotations

import hmac
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.passages import Passage

SHORTEST_KEY: Final = 16
"""Bytes of a key for fingerprints: a short text can be guessed, so the key must not be."""


class Sort(StrEnum):
    SECRET = "secret"
    RESIDENT = "resident"
    """A Korean resident or foreigner registration number."""
    CARD = "card"
    IBAN = "iban"
    ACCOUNT = "account"
    BUSINESS = "business"
    SSN = "ssn"
    PASSPORT = "passport"
    LICENCE = "licence"
    PHONE = "phone"
    EMAIL = "email"


IDENTIFIERS: Final = frozenset(Sort) - {Sort.SECRET}
_ORDER: Final = {sort: number for number, sort in enumerate(Sort)}


@dataclass(frozen=True, slots=True)
class Sign:
    """rule: what the text tries; text[start:end] is where, of a disguised text where the disguise stands."""

    rule: str
    start: int
    end: int
    disguised: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something at text[start:end]; rule: what found it."""

    sort: Sort
    start: int
    end: int
    rule: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Finding:
        """From the form that events carry."""
        return cls(Sort(values["sort"]), int(values["start"]), int(values["end"]), str(values["rule"]))

    def stored(self) -> dict[str, Any]:
        """The form that events carry."""
        return {"sort": self.sort.value, "start": self.start, "end": self.end, "rule": self.rule}


WINDOW: Final = 100_000
"""Characters that a scanner gets at a time."""
OVERLAP: Final = 9_000
"""Characters of a window that the next one has, too: more than any finding is long."""
Scanner = Callable[[str], Iterable[Finding]]
"""Looks at a text. Ours are pure; an adapter may bring one that stands on a library."""


def scan(text: str, scanners: Sequence[Scanner]) -> tuple[Finding, ...]:
    """What the scanners find, in order and without overlaps: of two the longer, then the more telling one."""
    return apart(_found(text, scanners))


def apart(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Without overlaps, in order: of two the longer, then the more telling one."""
    ranked = sorted(
        set(findings), key=lambda one: (one.start - one.end, _ORDER[one.sort], one.start, one.rule)
    )
    kept: list[Finding] = []
    for found in ranked:
        at = bisect(kept, found.start, key=_start)
        if (at == 0 or kept[at - 1].end <= found.start) and (at == len(kept) or found.end <= kept[at].start):
            kept.insert(at, found)
    return tuple(kept)


def clipped(findings: Iterable[Finding], start: int, end: int) -> tuple[Finding, ...]:
    """What of the findings lies in text[start:end], as places there."""
    return tuple(
        replace(one, start=max(one.start, start) - start, end=min(one.end, end) - start)
        for one in findings
        if one.start < end and one.end > start
    )


def found_around(
    whole: str, pieces: Sequence[Passage], look: Callable[[str], tuple[Finding, ...]]
) -> tuple[Finding, ...]:
    """What is found in these pieces of a text, as places in it: also what a piece has in part, or is named before it.

    Pieces that lie side by side are looked at as one, with what stands around them.
    """
    found: list[Finding] = []
    for start, end in _runs(pieces):
        low = max(0, start - OVERLAP)
        seen = look(whole[low : end + OVERLAP])
        found += [replace(one, start=one.start + low, end=one.end + low) for one in seen]
    return apart(found)


def _runs(pieces: Sequence[Passage]) -> Iterator[tuple[int, int]]:
    """From where to where pieces lie side by side."""
    start = pieces[0].start if pieces else 0
    for piece, following in zip_longest(pieces, pieces[1:]):
        if following is None or following.part != piece.part + 1:
            yield start, piece.end
            start = 0 if following is None else following.start


_ESCAPED: Final = re.compile(r"\\+(?:[bfnrt]|u00[01][0-9a-fA-F])")


def _found(text: str, scanners: Sequence[Scanner]) -> Iterator[Finding]:
    """Window by window: a scanner does not give way while it is at one, and in windows none takes long."""
    for at in range(0, max(1, len(text) - OVERLAP), WINDOW - OVERLAP):
        window = text[at : at + WINDOW]
        for shown in dict.fromkeys((window, _ESCAPED.sub(_unescaped, window))):
            for scanner in scanners:
                yield from (replace(one, start=one.start + at, end=one.end + at) for one in scanner(shown))


def _unescaped(escaped: re.Match[str]) -> str:
    """As white space of the same length: in JSON the n of a line break would else begin what stands behind it."""
    return "\n".ljust(len(escaped[0]))


def _start(finding: Finding) -> int:
    return finding.start


def mask(text: str, findings: Iterable[Finding]) -> str:
    """The text with a word in place of each finding; nothing of what was there is left, not even its length."""
    pieces, at = [], 0
    for found in sorted(findings, key=lambda one: one.start):
        pieces += [text[at : found.start], f"[masked {found.sort.value}]"]
        at = found.end
    return "".join([*pieces, text[at:]])


def fingerprint(text: str, found: Finding, key: bytes) -> str:
    """HMAC-SHA256 of the finding in its normal form, as hex. Raises InvalidInput for a key that could be guessed."""
    if len(key) < SHORTEST_KEY:
        raise InvalidInput(f"a key for fingerprints needs at least {SHORTEST_KEY} bytes")
    value = _normal(found.sort, text[found.start : found.end])
    return hmac.new(key, f"{found.sort.value}:{value}".encode("utf-8", "surrogatepass"), sha256).hexdigest()


WIDE: Final = {0xFEE0 + code: code for code in range(0x21, 0x7F)} | dict.fromkeys(map(ord, "‐‑‒–—−ㅡ"), "-")
"""Full-width characters and dashes as ASCII, one for one, so that places stay."""
_WIDE: Final = re.compile(f"[{''.join(map(chr, WIDE))}]")
SPOKEN: Final = str.maketrans("공영일이삼사오육륙칠팔구", "001234566789")


def narrow(text: str) -> str:
    """The text with what is wide as ASCII, at the same places."""
    return _WIDE.sub(lambda one: one[0].translate(WIDE), text)


def _normal(sort: Sort, value: str) -> str:
    plain = narrow(value)
    if sort is Sort.SECRET:
        return value
    if sort is Sort.EMAIL:
        spelled = re.sub(r"\s*(?:골뱅이|[(\[]at[)\]]|\bat\b)\s*", "@", plain.casefold())
        return re.sub(r"\s*(?:점|[(\[]dot[)\]]|\bdot\b)\s*", ".", spelled)
    if sort is Sort.PHONE:
        digits = re.sub(r"\D", "", plain.translate(SPOKEN))
        return re.sub(r"\A(?:00\d?)?82(?=1|[2-7])0?", "0", digits)
    return re.sub(r"[^0-9a-z]", "", plain.casefold())

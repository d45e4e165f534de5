"""What a text hides from its reader: encoded, percent-escaped, invisible, spaced out, or spelled with digits."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

MOST: Final = 40
"""Encoded pieces of one text that are decoded."""
_LONGEST: Final = 20_000
"""Characters of one encoded piece."""


@dataclass(frozen=True, slots=True)
class Undisguised:
    """text: what is hidden in [start, end) of the text that hides it."""

    text: str
    start: int
    end: int


def undisguised(text: str) -> Iterator[Undisguised]:
    """Every hidden text that can be read."""
    for pattern, decode in _ENCODINGS:
        for number, found in enumerate(pattern.finditer(text)):
            if number == MOST:
                break
            if (hidden := _readable(decode, found[0][:_LONGEST])) is not None:
                yield Undisguised(hidden, found.start(), found.end())
    for respell in (_without_tags, _joined, _unleeted, _rotated):
        if (hidden := respell(text)) is not None:
            yield Undisguised(hidden, 0, len(text))


def _readable(decode: Callable[[str], bytes | str], piece: str) -> str | None:
    """What the piece stands for, if that is text."""
    try:
        decoded = decode(piece)
        text = decoded if isinstance(decoded, str) else decoded.decode("utf-8")
    except (ValueError, binascii.Error):
        return None
    printable = sum(each.isprintable() or each in "\r\n\t" for each in text)
    return text if text and printable >= 0.95 * len(text) else None


def _base64(piece: str) -> bytes:
    bare = piece.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _base32(piece: str) -> bytes:
    bare = piece.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8))


def _bits(piece: str) -> bytes:
    return bytes(int(byte, 2) for byte in piece.split())


_ENCODINGS: Final[tuple[tuple[re.Pattern[str], Callable[[str], bytes | str]], ...]] = (
    (re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}"), _base64),
    (re.compile(r"(?<![A-Z2-7])[A-Z2-7]{24,}={0,6}"), _base32),
    (re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){12,}(?![0-9A-Fa-f])"), bytes.fromhex),
    (re.compile(r"(?<![01])(?:[01]{8}\s+){4,}[01]{8}(?![01])"), _bits),
    (re.compile(r"(?<!\S)\S*%[0-9A-Fa-f]{2}\S*"), unquote),
    (re.compile(r"(?<!\S)[!-~]{60,}(?!\S)"), base64.b85decode),
)
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{4,}")
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]")
_SPACED: Final = re.compile(r"(?<!\w)(?:\w[ .\-_*]){3,}\w(?!\w)")
_LEET: Final = str.maketrans("013457@$", "oieastas")
_LEET_WORD: Final = re.compile(r"\b(?=\w*[a-z])(?=\w*[013457])\w{3,}\b", re.IGNORECASE)


def _without_tags(text: str) -> str | None:
    """Tag characters are invisible ASCII; zero-width ones cut words into pieces."""
    if _TAGS.search(text):
        return _TAGS.sub(lambda found: "".join(chr(ord(each) - 0xE0000) for each in found[0]), text)
    return _INVISIBLE.sub("", text) if _INVISIBLE.search(text) else None


def _joined(text: str) -> str | None:
    """ "I g n o r e" is a word."""
    if _SPACED.search(text) is None:
        return None
    return _SPACED.sub(lambda found: re.sub(r"[ .\-_*]", "", found[0]), text)


def _unleeted(text: str) -> str | None:
    """ "1gn0r3 4ll" where most words are written so."""
    leet, words = len(_LEET_WORD.findall(text)), len(text.split())
    return text.translate(_LEET) if words and leet >= 4 and leet >= 0.3 * words else None


def _rotated(text: str) -> str | None:
    return codecs.decode(text, "rot13") if re.search(r"rot-?13", text, re.IGNORECASE) else None

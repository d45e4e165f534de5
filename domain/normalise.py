"""When two texts say the same: the normal form of a statement and of a slot, and short keys of them."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_CURLY: Final = str.maketrans("“”„‘’", '"""\'\'')
_MARKS: Final = "\"'"
_QUOTES: Final = _MARKS + "`«»「」『』《》"
_ENDS: Final = ".!,;:。、" + _QUOTES
"""What may end a statement without changing it. A question mark does change it, and so does a percent sign."""
_WORD: Final = re.compile(r"[^\s'\"-]+")
"""Parts of a compound count as words; a path, an address or a dotted name is one."""


def normal_form(text: str) -> str:
    """`text` without what carries no meaning: width, case, white space, outer quotes, final punctuation.

    Words, their order, negation and numbers stay, so that equal forms state the same thing; so do units (5', 5") and
    the case of identifiers (aBc, k8S).
    """
    folded = _WORD.sub(_folded, unicodedata.normalize("NFKC", text).translate(_CURLY))
    spaced = _SPACE.sub(" ", unicodedata.normalize("NFKC", folded)).strip()
    return _bare(spaced) or spaced


def _folded(found: re.Match[str]) -> str:
    """A word in lower case, unless its case tells something: with capitals inside, or with digits."""
    word = found[0]
    cased = [letter for letter in word if letter.lower() != letter.upper()]
    ordinary = all(map(str.islower, cased[1:])) or all(map(str.isupper, cased))
    return word.casefold() if ordinary and not any(map(str.isdigit, word)) else word


def _bare(text: str) -> str:
    """`text` without outer quotes and final punctuation; a mark behind a digit stays unless it closes a quotation."""
    inner = text.lstrip(_QUOTES + " ")
    bare = inner.rstrip(_ENDS + " ")
    rest, opening = inner[len(bare) :], text[: len(text) - len(inner)]
    marks = rest[: len(rest) - len(rest.lstrip(_MARKS))]
    if not marks or not bare[-1:].isdigit():
        return bare
    closes = marks[-1] in opening and (bare + marks[:-1]).count(marks[-1]) % 2 == 0
    return bare + (marks[:-1] if closes else marks)


def statement_key(text: str) -> str:
    """A short key, equal for texts of one normal form. Lives and dies with the text: it is not a keyed hash."""
    return _digest(normal_form(text))


def slot_key(entity: str, attribute: str) -> str:
    """A short key of a slot: equal only where the normal forms of entity and attribute, in any case, both are."""
    return _digest(_slot_form(entity), _slot_form(attribute))


def _slot_form(name: str) -> str:
    """Names of slots are chosen and not quoted: whoever writes GitHub, github or GITHUB means one."""
    return normal_form(unicodedata.normalize("NFKC", name).casefold())


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=16)
    for raw in (text.encode("utf-8", "surrogatepass") for text in texts):
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()

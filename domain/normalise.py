"""When two texts say the same: the normal form of a statement and of a slot, and short keys of them."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_QUOTES: Final = "\"'`“”„‘’«»「」『』《》"
_ENDS: Final = ".!,;:。、" + _QUOTES
"""What may end a statement without changing it. A question mark does change it, and so does a percent sign."""


def normal_form(text: str) -> str:
    """`text` without what carries no meaning: width, case, white space, outer quotes, final punctuation.

    Words, their order, negation and numbers stay, so that equal forms state the same thing.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = _SPACE.sub(" ", folded).strip()
    return spaced.lstrip(_QUOTES + " ").rstrip(_ENDS + " ") or spaced


def statement_key(text: str) -> str:
    """A short key, equal for texts of one normal form. Lives and dies with the text: it is not a keyed hash."""
    return _digest(normal_form(text))


def slot_key(entity: str, attribute: str) -> str:
    """A short key of a slot: equal only where the normal forms of entity and attribute both are."""
    return _digest(normal_form(entity), normal_form(attribute))


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=16)
    for raw in (text.encode("utf-8", "surrogatepass") for text in texts):
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()

"""The one rule by which text, times, keys and JSON enter, whatever the door.

What cannot be carried by UTF-8 (a lone surrogate) is escaped reversibly; NUL is kept; what is too large, or a time
whose zone nobody knows, is refused with an error that says what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, TypeVar

from mnemolog.domain.errors import InvalidInput, NotFound

T = TypeVar("T")

ESCAPE: Final = "\U0010fffd"
"""Marks an escaped lone surrogate (ESCAPE + four hex digits); ESCAPE itself is doubled."""

MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
MAX_STATEMENT_CHARS: Final = 32 * 1024
MAX_KEY_LENGTH: Final = 512
MAX_NAME_LENGTH: Final = 512

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_OR_ESCAPE: Final = re.compile(f"[\ud800-\udfff{ESCAPE}]")
_ESCAPED: Final = re.compile(f"{ESCAPE}(?:([0-9a-f]{{4}})|{ESCAPE})")


def carried(text: object, what: str, *, limit: int = MAX_TEXT_BYTES) -> str:
    """`text` in the form that the log carries. `original` gives back what came in.

    Raises InvalidInput when it is not a string, or longer than `limit` bytes of UTF-8.
    """
    if not isinstance(text, str):
        hint = ": decode bytes as UTF-8 first" if isinstance(text, bytes | bytearray) else ""
        raise InvalidInput(f"{what} must be a string, not {type(text).__name__}{hint}")
    size = len(text)
    if not text.isascii():
        text, size = _encodable(text)
    if size > limit:
        raise InvalidInput(f"{what} has {size} bytes of UTF-8; the limit is {limit}: split it")
    return text


def _encodable(text: str) -> tuple[str, int]:
    """The text with pairs joined and lone surrogates escaped, and its size in bytes."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
        return _escaped(text)
    return _escaped(text) if ESCAPE in text else (text, size)


def _escaped(text: str) -> tuple[str, int]:
    text = _LONE_OR_ESCAPE.sub(
        lambda found: ESCAPE * 2 if found[0] == ESCAPE else f"{ESCAPE}{ord(found[0]):04x}", text
    )
    return text, len(text.encode())


def original(text: str) -> str:
    """The text as it came in, lone surrogates included (such text cannot be encoded as UTF-8)."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else ESCAPE, text)


def short(text: object, what: str, limit: int = MAX_NAME_LENGTH) -> str:
    """A non-empty name or key of bounded length."""
    text = carried(text, what, limit=limit * 4)
    if not text.strip():
        raise InvalidInput(f"{what} must not be empty")
    if len(text) > limit:
        raise InvalidInput(f"{what} has {len(text)} characters; the limit is {limit}")
    return text


def known_id(id: object) -> str:
    """The id of an event or a record, as it is looked up. Raises NotFound for what no id can be."""
    if not isinstance(id, str):
        raise InvalidInput(f"an id must be a string, not {type(id).__name__}")
    if not id.isprintable() or not 0 < len(id) <= MAX_NAME_LENGTH:
        raise NotFound("no event or record has such an id: ids are short and printable")
    return id


def optional(text: object | None, what: str, limit: int = MAX_NAME_LENGTH) -> str | None:
    return None if text is None else short(text, what, limit)


def whole(value: object, what: str, low: int = 0, high: int = 1 << 53) -> int:
    """A whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(f"{what} must be a whole number from {low} to {high}")
    return value


def seconds(value: object, what: str) -> float:
    """A time to wait, in seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        raise InvalidInput(f"{what} must be a number of seconds, 0 or more")
    return value


def several(value: Iterable[T], what: str, of: str) -> tuple[T, ...]:
    """What a sequence holds, in its order. One text is none, nor is a mapping. of: what it should hold."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(f"{what} must be a sequence of {of}, not one {type(value).__name__}")
    return tuple(value)


def texts(value: Iterable[str], what: str) -> tuple[str, ...]:
    """A sequence of strings, in its order."""
    found = several(value, what, "strings")
    for one in found:
        if not isinstance(one, str):
            raise InvalidInput(f"{what} must hold strings only, not {type(one).__name__}")
    return found


def names(value: Iterable[str] | None, what: str) -> frozenset[str]:
    """A collection of names, given or not."""
    return frozenset() if value is None else frozenset(texts(value, what))


def slot(value: object) -> tuple[str, str]:
    """The entity and the attribute of a slot."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput('slot must be a pair such as ("report", "format")')
    return short(value[0], "slot entity"), short(value[1], "slot attribute")


def statement(text: object, what: str = "content") -> str:
    """The content of a memory: not empty, and of a length that a person would write."""
    text = carried(text, what)
    if not text.strip():
        raise InvalidInput(f"{what} must not be empty")
    if len(text) > MAX_STATEMENT_CHARS:
        raise InvalidInput(
            f"{what} has {len(text)} characters; a memory holds {MAX_STATEMENT_CHARS}: record it as a tool output"
        )
    return text


def moment(
    value: datetime | str | None, what: str, *, zone: Callable[[], tzinfo | None], now: datetime
) -> datetime:
    """An aware time with its original offset. `None` is `now`; a time without offset takes the session's zone.

    zone: asked only where it is needed.

    Accepts datetime and ISO 8601 text (`Z` included). Raises InvalidInput when there is no zone to be had.
    """
    if value is None:
        return now
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInput(f"{what} is not an ISO 8601 time, such as 2026-03-02T09:14:00+09:00") from None
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime or ISO 8601 text, not {type(value).__name__}")
    if value.utcoffset() is None:
        own = zone()
        if own is None:
            raise InvalidInput(f"{what} has no time zone: add an offset, or open the session with timezone=")
        value = value.replace(tzinfo=own)
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} is outside the years that can be stored") from None
    return value


def microseconds(value: datetime) -> int:
    """Microseconds since 1970 in UTC, exact; the order and range key of times."""
    delta = value - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def interval(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Refuse an inverted interval. Equal bounds are allowed and hold nowhere."""
    if valid_from is not None and valid_to is not None and valid_to < valid_from:
        raise InvalidInput("valid_to lies before valid_from: swap them, or leave one out")


def json_text(value: Any, what: str) -> str:
    """JSON text of a value, or the text itself when the runtime already gave text (kept byte for byte)."""
    if isinstance(value, str):
        return carried(value, what)
    try:
        return carried(json.dumps(value, ensure_ascii=False, allow_nan=False), what)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON: {type(error).__name__}") from error


def readable_text(value: Any, what: str) -> str:
    """A tool's output as text: text as it is, anything else as JSON."""
    return json_text(value, what)

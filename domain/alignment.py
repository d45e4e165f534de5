"""Finding which messages of a history are new, by place and content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

MOST_INSERTED: Final = 8
"""How many messages put in front of a kept piece are recognised when the history comes again."""


def new_messages(stored: Sequence[str], incoming: Sequence[str]) -> list[int]:
    """Indices of `incoming` that `stored` does not hold yet; both are digests in order.

    A history may come again whole, with its start cut off, with its beginning or middle replaced (a runtime that
    compacts), or as an older snapshot. Two equal messages stay two, because place counts as well as content.
    """
    if not stored or not incoming:
        return list(range(len(incoming)))
    if _is_snapshot(stored, incoming):
        return []
    start, length, late = _block(stored, incoming)
    if length:
        end = len(stored) - late
        others = Counter([*stored[: end - length], *stored[end:]])
        return _unknown(others, incoming[:start]) + list(range(start + length, len(incoming)))
    if stored[0] == incoming[0] and not Counter(incoming) - Counter(stored):
        return []  # a history whose middle was replaced, sent again: what replaced it stands behind the rest
    known = _known_before(stored, incoming)
    return [index for index in range(len(incoming)) if index not in known]


def _unknown(stored: Counter[str], head: Sequence[str]) -> list[int]:
    """What stands before a piece that is known and is not in the store: new messages come behind it, not here."""
    unknown = []
    for index, digest in enumerate(head):
        if stored[digest]:
            stored[digest] -= 1
        else:
            unknown.append(index)
    return unknown


def _block(stored: Sequence[str], incoming: Sequence[str]) -> tuple[int, int, int]:
    """The longest piece of `incoming` that ends where `stored` ends, but for late comers: (start, length, late).

    late: how many of the last of `stored` stand before the piece in `incoming`: a summary that a runtime put in
    front is stored behind what was there before it.
    """
    best = (*_tail_block(stored, incoming), 0)
    for late in range(1, min(MOST_INSERTED, len(stored) - 1, len(incoming) - 1) + 1):
        if best[0] == 0 and best[1] > 1:
            break
        start, length = _tail_block(stored[:-late], incoming)
        if length > best[1] and not Counter(stored[-late:]) - Counter(incoming[:start]):
            best = (start, length, late)
    return best


def _is_snapshot(stored: Sequence[str], incoming: Sequence[str]) -> bool:
    """Whether all of `incoming` stands in `stored` in one piece: as its beginning, or two messages or more."""
    size = len(incoming)
    if list(stored[:size]) == list(incoming):
        return True
    if size < 2:
        return False
    return any(
        stored[at] == incoming[0] and list(stored[at : at + size]) == list(incoming)
        for at in range(len(stored) - size + 1)
    )


def _tail_block(stored: Sequence[str], incoming: Sequence[str]) -> tuple[int, int]:
    """The longest piece of `incoming` that ends where `stored` ends: (start, length), (0, 0) when there is none.

    Of equally long ones the earliest. A single message counts only where `incoming` begins, else a chance
    repetition would swallow a new one.
    """
    best = (0, 0)
    for end in range(len(incoming), 0, -1):
        length = _common_end(stored, incoming, end)
        start = end - length
        if length >= best[1] and (length > 1 or start == 0):
            best = (start, length)
    return best


def _common_end(stored: Sequence[str], incoming: Sequence[str], end: int) -> int:
    """How many messages before `end` equal the last ones of `stored`."""
    length = 0
    while length < min(len(stored), end) and incoming[end - 1 - length] == stored[-1 - length]:
        length += 1
    return length


def _known_before(stored: Sequence[str], head: Sequence[str]) -> set[int]:
    """Messages of `head` that stand in `stored` in the same order, beginning with the same first message."""
    known: set[int] = set()
    if not stored or not head or stored[0] != head[0]:
        return known
    at = 0
    for index, digest in enumerate(head):
        try:
            at = list(stored).index(digest, at) + 1
        except ValueError:
            continue
        known.add(index)
    return known

"""Finding which messages of a history are new, by place and content."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

MOST_REPEATS: Final = 8
"""How many places of one stored text are considered, the last ones."""
MOST_ADDED: Final = 16
"""How many messages at the end of what is stored are tried as what the last history added."""
MOST_WORK: Final = 32_000
"""How many messages are read for that in all, so that long histories stay quick; beyond it fewer are tried."""


def new_messages(stored: Sequence[str], incoming: Sequence[str]) -> list[int]:
    """Indices of `incoming` that `stored` does not hold yet; both are digests in order.

    A history may come again whole, with its start cut off, with its beginning or middle replaced (a runtime that
    compacts), or as an older snapshot. Two equal messages stay two, because place counts as well as content. Where
    content allows several readings, a history that came just before adds nothing, and else one whose beginning is
    the end of what is stored goes on from there: a message is doubled rather than lost.
    """
    new = _read(stored, incoming)
    return [] if new and _came_just_before(stored, incoming) else new


def _read(stored: Sequence[str], incoming: Sequence[str]) -> list[int]:
    if not stored or not incoming:
        return list(range(len(incoming)))
    carried = _carried_on(stored, incoming)
    going_on = list(range(carried, len(incoming)))
    if carried in (len(stored), len(incoming)):
        return going_on
    if _is_snapshot(stored, incoming):
        return going_on if carried else []
    placed = _placed(stored, incoming)
    if not carried or not placed or _was_put_in_front(stored, incoming, carried):
        return placed
    return going_on


def _came_just_before(stored: Sequence[str], incoming: Sequence[str]) -> bool:
    """Whether the end of `stored` is what `incoming` adds to all before it: then it is the last history again."""
    if len(stored) <= len(incoming) and list(incoming[: len(stored)]) == list(stored):
        return False
    if Counter(incoming) - Counter(stored):
        return False
    most = min(len(incoming), len(stored), MOST_ADDED, MOST_WORK // (len(incoming) + len(stored)))
    return any(
        [incoming[index] for index in _read(stored[:-added], incoming)] == list(stored[-added:])
        for added in range(1, most + 1)
    )


def _carried_on(stored: Sequence[str], incoming: Sequence[str]) -> int:
    """How many messages at the end of `stored` are the beginning of `incoming`, at most."""
    reach = _reach([*incoming, None, *stored])[len(incoming) + 1 :]
    return next((length for at, length in enumerate(reach) if length == len(stored) - at), 0)


def _was_put_in_front(stored: Sequence[str], incoming: Sequence[str], carried: int) -> bool:
    """Whether the carried beginning is a summary, stored last, and behind it come two or more stored before it."""
    before = len(stored) - carried
    if set(stored[:before]) & set(stored[before:]):
        return False
    return any(
        list(stored[before - size : before]) == list(incoming[carried : carried + size])
        for size in range(2, min(before, len(incoming) - carried) + 1)
        if stored[before - size] == incoming[carried]
    )


def _placed(stored: Sequence[str], incoming: Sequence[str]) -> list[int]:
    """What is new in a history whose beginning or middle was replaced, or that is another one."""
    start, length = _tail_block(stored, incoming)
    block = {start + step: len(stored) - length + step for step in range(length)}
    common = _common(stored, incoming)
    if length > 1 and (len(common) <= length or common[max(common)] != len(stored) - 1):
        return _unknown(stored, incoming, block)
    if _is_history(stored, incoming, common):
        return _unknown(stored, incoming, common)
    return list(range(len(incoming)))


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
    """The longest piece of `incoming` that ends where `stored` ends: (start, length), the first of equals."""
    reach = _reach([*reversed(stored), None, *reversed(incoming)])[len(stored) + 1 :]
    length = max(reach)
    end = len(incoming) - (len(reach) - 1 - reach[::-1].index(length))
    return end - length, length


def _reach(items: Sequence[str | None]) -> list[int]:
    """For each place, how many items from there on equal those from the beginning on (the Z function)."""
    reach, left, right = [0] * len(items), 0, 0
    for at in range(1, len(items)):
        if at < right:
            reach[at] = min(right - at, reach[at - left])
        while at + reach[at] < len(items) and items[reach[at]] == items[at + reach[at]]:
            reach[at] += 1
        if at + reach[at] > right:
            left, right = at, at + reach[at]
    return reach


def _is_history(stored: Sequence[str], incoming: Sequence[str], known: Mapping[int, int]) -> bool:
    """Whether what is common shows that `incoming` is the history of `stored`, and not a chance repetition."""
    if not known:
        return False
    if incoming[0] in (stored[0], stored[-1]):
        return True
    neighbours = set(pairwise(stored))
    in_one_piece = any(
        index - 1 in known and (incoming[index - 1], incoming[index]) in neighbours for index in known
    )
    return in_one_piece and stored[-1] in incoming


def _unknown(stored: Sequence[str], incoming: Sequence[str], known: Mapping[int, int]) -> list[int]:
    """What is not common. Before the last common message only what is nowhere in `stored`: a summary that was put
    in front, or an edited message, is stored behind what was there before it.
    """
    last = max(known)
    elsewhere = Counter(stored)
    elsewhere.subtract(incoming[index] for index in known)
    unknown = []
    for index in (index for index in range(len(incoming)) if index not in known):
        if index < last and elsewhere[incoming[index]] > 0:
            elsewhere[incoming[index]] -= 1
        else:
            unknown.append(index)
    return unknown


@dataclass(frozen=True, slots=True)
class _Match:
    """A message of both, and the longest common sequence before it."""

    index: int
    at: int
    before: _Match | None


def _common(stored: Sequence[str], incoming: Sequence[str]) -> dict[int, int]:
    """A longest common subsequence: index in `incoming` → place in `stored` (Hunt and Szymanski's algorithm).

    Of equally long ones, the one that reaches furthest in `incoming`; for a history whose start was cut off, one
    that ends where `stored` ends.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for at, digest in enumerate(stored):
        places[digest].append(at)
    ends: list[int] = []
    best: list[_Match] = []
    last: list[_Match] = []
    for index, digest in enumerate(incoming):
        for at in reversed(places.get(digest, ())[-MOST_REPEATS:]):
            length = bisect_left(ends, at)
            match = _Match(index, at, best[length - 1] if length else None)
            if length == len(ends):
                ends.append(at)
                best.append(match)
                last = [match]
            else:
                ends[length], best[length] = at, match
                if length == len(ends) - 1:
                    last.append(match)
    if stored[0] != incoming[0]:
        last = [match for match in last if match.at == len(stored) - 1][:1] or last[:1]
    return {match.index: match.at for match in _chain(last[-1] if last else None)}


def _chain(match: _Match | None) -> Iterator[_Match]:
    while match is not None:
        yield match
        match = match.before

"""By which rule one record of a slot stands before another: told of what `standing` judged, never deciding itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from mnemolog.domain.contests import Rank, near, rivals
from mnemolog.domain.records import Precedence, Record, Status
from mnemolog.domain.standing import holds, merged_last, ranked

_GONE: Final = frozenset({Status.RETRACTED, Status.FORGOTTEN, Status.HELD})


@dataclass(frozen=True, slots=True)
class Compared:
    """Two records of one slot. winner: which of the two stands before the other; None where neither does."""

    record: str
    other: str
    rule: Precedence
    winner: str | None


@dataclass(slots=True)
class _Order:
    """How the records of a slot stand. ranks: of what holds; near: what would be open; first: what leads."""

    places: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    near: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()


def compared(record: Record, peers: Sequence[Record], now_us: int, within_us: int) -> list[Compared]:
    """The record against each other one of its slot, as all of them were judged at that time."""
    order = _order(peers, now_us, within_us)
    merged = _merged(peers)
    return [_between(record, one, order, merged) for one in peers if one.id != record.id]


def _order(peers: Sequence[Record], now_us: int, within_us: int) -> _Order:
    ordered = merged_last(ranked([one for one in peers if one.status not in _GONE and holds(one, now_us)]))
    if not ordered:
        return _Order()
    return _Order(
        {one.id: place for place, (one, _) in enumerate(ordered)},
        {one.id: rank for one, rank in ordered},
        frozenset(one.id for one in near(ordered, within_us, now_us)),
        frozenset(one.id for one in rivals(ordered, within_us, now_us)),
    )


def _merged(peers: Collection[Record]) -> frozenset[str]:
    """What gives way because a person merged it into another record, of this slot or of another one."""
    names = {one.id for one in peers}
    return frozenset(
        one.id
        for one in peers
        if one.merged_into in names or (one.merged_into is not None and one.superseded_by == one.merged_into)
    )


def _between(one: Record, other: Record, order: _Order, merged: Collection[str]) -> Compared:
    def won(rule: Precedence, winner: Record | None) -> Compared:
        return Compared(one.id, other.id, rule, None if winner is None else winner.id)

    gone = [each for each in (one, other) if each.status in _GONE]
    if gone:
        return won(Precedence.RETRACTED, _left(one, other, gone))
    outside = [each for each in (one, other) if each.id not in order.ranks]
    if outside:
        return won(Precedence.VALID_NOW, _left(one, other, outside))
    ahead, behind = sorted((one, other), key=lambda each: order.places[each.id])
    if other.id in one.rivals:
        return won(Precedence.OPEN, None)
    if one.form == other.form:
        return won(Precedence.SAME, ahead)
    if (one.id in merged) != (other.id in merged):
        return won(Precedence.MERGED, other if one.id in merged else one)
    higher, lower = order.ranks[ahead.id], order.ranks[behind.id]
    if higher[0] != lower[0]:
        return won(Precedence.PERSON, ahead)
    if higher[1] != lower[1]:
        return won(Precedence.AUTHORITY, ahead)
    if (chosen := _confirmed(ahead, behind, order)) is not None:
        return won(Precedence.CONFIRMED, chosen)
    return won(Precedence.RECENT if ahead.order_us != behind.order_us else Precedence.LATER, ahead)


def _left(one: Record, other: Record, out: Sequence[Record]) -> Record | None:
    """The one of the two that is not out."""
    return next((each for each in (one, other) if each not in out), None)


def _confirmed(ahead: Record, behind: Record, order: _Order) -> Record | None:
    """The one that leads because a person confirmed it, where the order alone says otherwise, or nothing."""
    if behind.id in order.first and ahead.id not in order.first:
        return behind
    if ahead.id in order.first and behind.id in order.near - order.first:
        return ahead
    return None

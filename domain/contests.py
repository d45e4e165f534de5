"""What nothing decides: values of one slot that stand against each other, and records that a person merged. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from mnemolog.domain.principal import Tier
from mnemolog.domain.records import READABLE, Record, Status, microseconds
from mnemolog.domain.sensitivity import together

Rank = tuple[bool, Tier]
"""(a human correction or decision, authority)."""
Ranked = Sequence[tuple[Record, Rank]]
K = TypeVar("K")

_GONE: Final = frozenset({Status.RETRACTED, Status.FORGOTTEN, Status.HELD, Status.NOT_YET_VALID})
"""What stands before nothing."""
_BELOW: Final = frozenset({Status.SUPERSEDED, Status.OUTRANKED, Status.DUPLICATE})


def rivals(ranked: Ranked, within_us: int, now_us: int) -> list[Record]:
    """Of what holds in a slot, best first, those between which nothing decides; one alone is the value of the slot.

    They are of equal rank and of different voices, and were said, and are to hold, from within this time of the best.
    A later word of the same voice has replaced the earlier one. A person's confirmation decides against everything
    that was said before it.
    """
    found = near(ranked, within_us, now_us)
    open_ = [one for one in found if not any(_decides(other, one) for other in found)]
    names = {one.id for one in open_}
    return [one for one in open_ if one.merged_into not in names] or open_[:1]


def near(ranked: Ranked, within_us: int, now_us: int) -> list[Record]:
    """The best and all that would be its rivals, had nobody confirmed one of them."""
    best, rank = ranked[0]
    found, forms, voices = [best], {best.form}, {best.voice}
    if _is_over(best, now_us):
        return found
    for record, other in ranked[1:]:
        if other != rank:
            break
        other_word = record.voice not in voices and record.form not in forms
        if other_word and _is_near(record, best, within_us) and not _is_over(record, now_us):
            found.append(record)
        forms.add(record.form)
        voices.add(record.voice)
    return found


def _decides(one: Record, against: Record) -> bool:
    return one is not against and one.confirmed > max(against.position, against.confirmed)


def _is_near(record: Record, best: Record, within_us: int) -> bool:
    if best.order_us - record.order_us > within_us:
        return False
    return abs(_said_us(best) - _said_us(record)) <= within_us


def _said_us(record: Record) -> int:
    return microseconds(record.occurred_at) if record.occurred_at else record.order_us


def _is_over(record: Record, now_us: int) -> bool:
    return record.expires_us is not None and record.expires_us <= now_us


def contested(found: Sequence[Record]) -> list[Record]:
    """Rivals, each with the names of the others."""
    names = [record.id for record in found]
    return [
        replace(
            record,
            status=Status.CONTESTED,
            rivals=tuple(name for name in names if name != record.id),
            unrivalled=record.status,
        )
        for record in found
    ]


def after_merges(judged: Sequence[tuple[K, Record]]) -> list[tuple[K, Record]]:
    """Judged records by their keys: what a person merged into another one is superseded by it, as long as that stands.

    It is then nobody's rival: who has none left is the value of the slot. What stands is as sensitive as what was
    merged into it. All that a merged record may be merged into, and its peers, must be among them.
    """
    if not any(record.merged_into for _, record in judged):
        return list(judged)
    by_id = {record.id: record for _, record in judged}
    after = [(key, _behind(record, by_id)) for key, record in judged]
    gone = {record.id for _, record in after if record.status is Status.SUPERSEDED}
    below = _merged_into([record for _, record in after if _is_below(record, by_id)])
    return [(key, _without(_as_sensitive(record, below), gone)) for key, record in after]


def _is_below(record: Record, by_id: dict[str, Record]) -> bool:
    return record.status in _BELOW and _stands_before(record, by_id)


def _merged_into(merged: Sequence[Record]) -> dict[str, list[Record]]:
    """What stands behind a record because it was merged into it."""
    into: dict[str, list[Record]] = {}
    for one in merged:
        into.setdefault(one.merged_into or "", []).append(one)
    return into


def _as_sensitive(record: Record, below: dict[str, list[Record]]) -> Record:
    others = [_as_sensitive(one, below) for one in below.get(record.id, ())]
    return replace(record, sensitivity=together(record, others)) if others else record


def _without(record: Record, gone: Collection[str]) -> Record:
    left = tuple(name for name in record.rivals if name not in gone)
    if left == record.rivals:
        return record
    if left or record.unrivalled is None:
        return replace(record, rivals=left)
    return replace(record, status=record.unrivalled, rivals=(), unrivalled=None)


def _behind(record: Record, by_id: dict[str, Record]) -> Record:
    if record.status not in READABLE or not _stands_before(record, by_id):
        return record
    return replace(
        record, status=Status.SUPERSEDED, superseded_by=record.merged_into, rivals=(), unrivalled=None
    )


def _stands_before(record: Record, by_id: dict[str, Record]) -> bool:
    """Whether what it was merged into is there, and is not merged into it in turn."""
    into = by_id.get(record.merged_into or "")
    if into is None or into.status in _GONE:
        return False
    seen, at = {record.id}, into
    while at.merged_into is not None and at.merged_into in by_id:
        if at.id in seen:
            return False
        seen.add(at.id)
        at = by_id[at.merged_into]
    return at.id not in seen

"""Which record stands in a slot: judged at a time, among all records of one scope and group. Pure, total.

Between them: what holds at the time asked → human correction → higher authority → more recent (valid time, then
position); what different voices of equal authority say at about the same time is decided by a person (`contests`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mnemolog.domain.contests import Rank, Ranked, contested, rivals
from mnemolog.domain.records import Evidence, Record, Status
from mnemolog.domain.sensitivity import together


def standing(peers: Sequence[Record], now_us: int, within_us: int = 0) -> list[Record]:
    """Judge all records of one scope and group at a time (UTC microseconds): status, successor, predecessor.

    Of those that hold at the time, one at most is current (or disputed), or several need confirmation; their
    duplicates, and what they superseded or outrank, say so. What has outlived its time to live still stands before
    what it superseded: nothing stale returns. within_us: apart in time by no more, voices contradict each other.
    """
    alive = [record for record in peers if record.status in (Status.ACTIVE, Status.DISPUTED)]
    holding = ranked([record for record in alive if holds(record, now_us)])
    return [
        *_chain(holding, now_us, within_us),
        *(_outside(record, now_us) for record in alive if not holds(record, now_us)),
        *(record for record in peers if record.status in (Status.RETRACTED, Status.FORGOTTEN, Status.HELD)),
    ]


def stood(record: Record, judged: Record, twins: Sequence[Record]) -> Record:
    """A record as `standing` judged it without its evidence. twins: its duplicates, best first."""
    return replace(
        record,
        status=judged.status,
        supersedes=judged.supersedes,
        superseded_by=judged.superseded_by,
        believed_to=judged.believed_to,
        rivals=judged.rivals,
        sensitivity=judged.sensitivity,
        evidence=_together(record, twins),
    )


def standing_alone(
    status: Status, from_us: int | None, to_us: int | None, expires_us: int | None, now_us: int
) -> Status:
    """What `standing` says of a record that has no peers, without making a record for it."""
    if status is not Status.ACTIVE and status is not Status.DISPUTED:
        return status
    if from_us is not None and now_us < from_us:
        return Status.NOT_YET_VALID
    if (to_us is not None and to_us <= now_us) or (expires_us is not None and expires_us <= now_us):
        return Status.EXPIRED
    return Status.DISPUTED if status is Status.DISPUTED else Status.CURRENT


def holds(record: Record, now_us: int) -> bool:
    """Half-open: [valid_from, valid_to). Equal bounds hold nowhere."""
    return (record.from_us is None or record.from_us <= now_us) and (
        record.to_us is None or now_us < record.to_us
    )


def _outside(record: Record, now_us: int) -> Record:
    ahead = record.from_us is not None and now_us < record.from_us
    return replace(record, status=Status.NOT_YET_VALID if ahead else Status.EXPIRED)


def ranked(records: Sequence[Record]) -> Ranked:
    """Best first; total, because positions differ."""
    rulings = [record for record in records if record.ruled]
    ranks = {
        record.id: (record.ruled or any(_answers(record, ruling) for ruling in rulings), record.authority)
        for record in records
    }
    best_first = sorted(records, key=lambda r: (*ranks[r.id], r.order_us, r.position), reverse=True)
    return [(record, ranks[record.id]) for record in best_first]


def _answers(record: Record, ruling: Record) -> bool:
    """A person's statement competes with a human correction that came before it, or that is about an earlier time."""
    if not record.human or record.authority < ruling.authority:
        return False
    return record.position > ruling.ruling or (
        ruling.from_us is not None and record.order_us > ruling.order_us
    )


def _chain(best_first: Ranked, now_us: int, within_us: int) -> Iterator[Record]:
    if not best_first:
        return
    ordered = merged_last(best_first)
    found = rivals(ordered, within_us, now_us)
    winner, rank = next(pair for pair in ordered if pair[0].id == found[0].id)
    forms = {one.form: one for one in found}
    names = {one.id for one in found}
    twins = [record for record, _ in ordered if record.form in forms and record.id not in names]
    others = [pair for pair in ordered if pair[0].form not in forms]
    leading = {one.id: _leading(one, twins, others, now_us) for one in found}
    yield from contested(list(leading.values())) if len(found) > 1 else leading.values()
    for twin in twins:
        yield replace(twin, status=Status.DUPLICATE, superseded_by=forms[twin.form].id)
    yield from _below(winner, rank, others)


def merged_last(best_first: Ranked) -> Ranked:
    """What was merged into another one here stands behind it."""
    names = {record.id for record, _ in best_first}
    gone = [pair for pair in best_first if pair[0].merged_into in names]
    return [*(pair for pair in best_first if pair[0].merged_into not in names), *gone]


def _leading(one: Record, twins: Sequence[Record], others: Ranked, now_us: int) -> Record:
    same = [twin for twin in twins if twin.form == one.form]
    return replace(
        one,
        status=_winning(one, now_us),
        supersedes=others[0][0].id if others else None,
        sensitivity=together(one, same),
        evidence=_together(one, same),
    )


def _below(winner: Record, rank: Rank, others: Ranked) -> Iterator[Record]:
    """What is not of the best, each linked with its neighbours."""
    above = winner
    for place, (record, lower) in enumerate(others, 1):
        outranked, later = lower < rank and record.position > _since(winner), record.position > above.position
        yield replace(
            record,
            status=Status.OUTRANKED if outranked else Status.SUPERSEDED,
            superseded_by=above.id,
            supersedes=others[place][0].id if place < len(others) else None,
            believed_to=max(
                record.position, _since(above), above.confirmed if later and lower == rank else 0
            ),
        )
        above = record


def _since(record: Record) -> int:
    """Position from which the record stands as it does: of its content, or of a later decision for it."""
    return max(record.position, record.ruling)


def _winning(record: Record, now_us: int) -> Status:
    if record.expires_us is not None and record.expires_us <= now_us:
        return Status.EXPIRED
    return Status.DISPUTED if record.status is Status.DISPUTED else Status.CURRENT


def _together(winner: Record, twins: Sequence[Record]) -> tuple[Evidence, ...]:
    if not twins:
        return winner.evidence
    return tuple(dict.fromkeys(e for record in (winner, *twins) for e in record.evidence))

"""Which statement is effective in a record, and which record stands in a slot. Pure, total, order of effect only.

Inside a record acts take effect in log order, unless what stands has more authority. Between records of one slot:
what holds at the time asked → human correction → higher authority → more recent (valid time, then position); what
different voices of equal authority say at about the same time is decided by a person (`contests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mnemolog.domain.contests import Rank, Ranked, contested, rivals
from mnemolog.domain.normalise import slot_key
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import (
    GATED,
    STATING,
    Act,
    Assertion,
    Evidence,
    Record,
    Status,
    Step,
    microseconds,
)

_LOWEST: Final[Rank] = (False, Tier.IMPORT)


@dataclass(slots=True)
class _Course:
    """How far the fold over one record's live assertions has come."""

    held: Assertion | None = None
    rank: Rank = _LOWEST
    ruling: int = 0
    order: int = 0
    withdrawn: Assertion | None = None
    disputed: Assertion | None = None
    verified: str | None = None
    reason: str | None = None
    confirmed: int = 0
    merged_into: str | None = None
    apart: set[str] = field(default_factory=set)
    outranked: set[str] = field(default_factory=set)


def settle(rows: Iterable[Assertion], erased: Mapping[str, int], up: int = 0, down: int = 0) -> Record:
    """The record that these assertions (all of one stream, at least one) make: a function of their set.

    erased: event id → position of its erasure, for forgotten assertions and for cited events.
    """
    ordered = sorted(rows, key=lambda row: row.position)
    course = _run(ordered)
    first = min(ordered, key=lambda row: row.version)
    version = max(row.version for row in ordered)
    if course.held is None:
        last = ordered[-1]
        waits = any(row.act in GATED and not row.forgotten for row in ordered)
        status = Status.HELD if waits else Status.FORGOTTEN
        return Record(first.record, first.scope, status, version, last.position, recorded_at=last.recorded_at)
    return _record(course, course.held, ordered, erased, (first.scope, version, up, down))


def _run(ordered: Sequence[Assertion]) -> _Course:
    course = _Course()
    for row in ordered:
        if not row.forgotten:
            _apply(course, row)
    return course


def _apply(course: _Course, row: Assertion) -> None:
    if row.act in GATED:
        return
    if row.act in (Act.STATED, Act.ADMITTED):
        _state(course, row)
    elif row.act in STATING or (row.act is Act.APPROVED and course.held is None and row.content is not None):
        _correct(course, row)
    elif row.act in (Act.RETRACTED, Act.REJECTED):
        _retract(course, row)
    elif row.act is Act.DISPUTED:
        course.disputed = row
    elif row.act in (Act.MERGED, Act.PARTED):
        _compare(course, row)
    else:
        _confirm(course, row)


def _state(course: _Course, row: Assertion) -> None:
    """A later statement takes effect at equal authority, unless it arrived late; a person may answer a correction."""
    answers = course.rank[0] and row.human and row.trust >= course.rank[1]
    rank = (answers, row.trust)
    order = _order(row)
    if course.held is not None or course.withdrawn is not None:
        if rank < course.rank:
            course.outranked.add(row.event_id)
        if rank < course.rank or (rank == course.rank and _is_late(course, row, order)):
            course.held = course.held or row
            return
    _hold(course, row, rank, order)


def _is_late(course: _Course, row: Assertion, order: int) -> bool:
    """About an earlier time than what stands; of what was withdrawn: said before it was."""
    gone = course.withdrawn
    return order < course.order if gone is None else row.occurred_us < gone.occurred_us


def _compare(course: _Course, row: Assertion) -> None:
    """With other records: the last decision about each counts."""
    course.apart -= set(row.rejected)
    if row.act is Act.MERGED:
        course.merged_into = row.rejected[0]
        return
    course.apart |= set(row.rejected)
    if course.merged_into in row.rejected:
        course.merged_into = None


def _correct(course: _Course, row: Assertion) -> None:
    rank = (row.human, row.trust)
    merged = row if course.held is None else _merged(row, course.held)
    if rank < course.rank:
        course.outranked.add(row.event_id)
        course.held = course.held or merged
        return
    if course.held is not None and course.held.form != row.form:
        course.merged_into = None  # other words: they were never compared
    _hold(course, merged, rank, _order(merged))
    course.reason = row.reason
    _settle_dispute(course, row)


def _retract(course: _Course, row: Assertion) -> None:
    rank = (row.human, row.trust)
    if rank < course.rank:
        course.outranked.add(row.event_id)
        return
    course.withdrawn, course.rank, course.reason = row, rank, row.reason
    if rank[0]:
        course.ruling = row.position


def _confirm(course: _Course, row: Assertion) -> None:
    """Confirmed, approved or chosen. A person's approval or choice also stands as a decision of their rank."""
    course.verified = row.occurred_at
    _settle_dispute(course, row)
    rank = (row.human, row.trust)
    if not row.human or rank < course.rank:
        return
    if row.act is Act.CONFIRMED:
        course.confirmed = row.position
        return
    course.withdrawn, course.rank, course.ruling = None, rank, row.position
    course.order = max(course.order, row.occurred_us)
    course.reason = row.reason


def _hold(course: _Course, row: Assertion, rank: Rank, order: int) -> None:
    course.held, course.rank, course.order = row, rank, order
    course.withdrawn = course.reason = None
    if rank[0]:
        course.ruling = row.position


def _settle_dispute(course: _Course, row: Assertion) -> None:
    doubt = course.disputed
    if doubt is not None and (row.human, row.trust) >= (doubt.human, doubt.trust):
        course.disputed = None


def _order(row: Assertion) -> int:
    return row.occurred_us if row.valid_from is None else microseconds(row.valid_from)


def _merged(row: Assertion, held: Assertion) -> Assertion:
    """The correction with what it leaves open filled in from what it corrects."""
    begins, ends = _interval(row, held)
    return replace(
        row,
        kind=held.kind,
        entity=held.entity,
        attribute=held.attribute,
        valid_from=begins,
        valid_to=ends,
        expires_at=row.expires_at or held.expires_at,
        sensitivity=held.sensitivity,
        consent=held.consent,
        confidence=1.0 if row.human else held.confidence,
    )


def _interval(row: Assertion, held: Assertion) -> tuple[str | None, str | None]:
    """The correction's valid time. An inherited bound that would make it hold nowhere is dropped."""
    begins, ends = row.valid_from or held.valid_from, row.valid_to or held.valid_to
    if begins and ends and microseconds(ends) <= microseconds(begins):
        return row.valid_from, row.valid_to
    return begins, ends


# From the course to the record --------------------------------------------------------------------------------------


def _record(
    course: _Course,
    held: Assertion,
    ordered: Sequence[Assertion],
    erased: Mapping[str, int],
    frame: tuple[int, int, int, int],
) -> Record:
    evidence, lost = _evidence(held, ordered, erased)
    left = len({e.event_id for e in evidence})
    gone = course.withdrawn
    scope, version, up, down = frame
    return Record(
        id=held.record,
        scope=scope,
        status=Status.RETRACTED if gone else Status.DISPUTED if course.disputed else Status.ACTIVE,
        version=version,
        authority=course.rank[1],
        ruled=course.rank[0],
        ruling=course.ruling,
        order_us=course.order,
        confidence=(1.0 if held.confidence is None else held.confidence) * left / max(1, left + lost),
        reason=course.reason or (course.disputed.reason if course.disputed else None),
        last_verified=course.verified,
        believed_to=gone.position if gone else None,
        lost=lost,
        up=up,
        down=down,
        subjects=_subjects(ordered),
        evidence=evidence,
        confirmed=course.confirmed,
        merged_into=course.merged_into,
        apart=tuple(sorted(course.apart)),
        **_carried(held),
    )


def _carried(held: Assertion) -> dict[str, Any]:
    """What a record takes from its effective assertion as it is."""
    return {
        "position": held.position,
        "content": held.content,
        "kind": held.kind or "fact",
        "entity": held.entity,
        "attribute": held.attribute,
        "group": f"t{held.form}" if held.slot is None else f"s{slot_key(*held.slot)}",
        "form": held.form,
        "trust": held.trust,
        "human": held.human,
        "valid_from": held.valid_from,
        "valid_to": held.valid_to,
        "expires_at": held.expires_at,
        "from_us": _at(held.valid_from),
        "to_us": _at(held.valid_to),
        "expires_us": _at(held.expires_at),
        "sensitivity": held.sensitivity or "normal",
        "consent": held.consent,
        "actor": held.actor,
        "voice": held.voice or held.actor,
        "session": held.session,
        "occurred_at": held.occurred_at,
        "recorded_at": held.recorded_at,
    }


def _at(moment: str | None) -> int | None:
    return None if moment is None else microseconds(moment)


def _subjects(ordered: Sequence[Assertion]) -> tuple[str, ...]:
    if len(ordered) == 1:
        return ordered[0].subjects
    return tuple(sorted({subject for row in ordered for subject in row.subjects}))


def _evidence(
    held: Assertion, ordered: Sequence[Assertion], erased: Mapping[str, int]
) -> tuple[tuple[Evidence, ...], int]:
    """What is left of what supports the effective statement, and how many pieces of it were erased.

    A statement that was forgotten before anything that supports the record now was said is no loss of it.
    """
    supports = [
        row for row in ordered if row.form is not None and row.form == held.form and row.act not in GATED
    ]
    found: dict[Evidence, None] = {}
    lost: set[str] = set()
    for row in supports:
        if row.act is not Act.ADMITTED:  # that it was found is no evidence; where it was found is
            found[Evidence(row.event_id, tier=row.tier)] = None
        for cited in row.evidence:
            if cited.event_id in erased:
                lost.add(cited.event_id)
            else:
                found[cited] = None
    if len(ordered) > len(supports) and any(row.act in (Act.STATED, Act.ADMITTED) for row in supports):
        since = supports[0].position
        lost.update(
            row.event_id
            for row in ordered
            if row.forgotten
            and row.act in (Act.STATED, Act.FOUND)
            and erased.get(row.event_id, since + 1) > since
        )
    return tuple(found), len(lost)


def chronicle(rows: Iterable[Assertion]) -> list[Step]:
    """Every event of one record with its effect, in the order of the stream; forgotten ones without content."""
    ordered = sorted(rows, key=lambda row: row.position)
    course = _run(ordered)
    return [_step(row, course) for row in sorted(ordered, key=lambda row: row.version)]


def _step(row: Assertion, course: _Course) -> Step:
    return Step(
        row.record,
        row.event_id,
        row.position,
        row.version,
        row.act,
        row.actor,
        row.recorded_at,
        _effect(row, course),
        row.occurred_at,
        row.content,
        row.reason,
        row.valid_from,
        row.valid_to,
        row.tier,
    )


def _effect(row: Assertion, course: _Course) -> str:
    if row.forgotten:
        return "forgotten"
    if row.act in GATED:
        return "not kept" if row.act is Act.DROPPED else "held"
    if row.event_id in course.outranked:
        return "outranked"
    held = course.held
    if row.act not in STATING or held is None:
        return "noted"
    if row.event_id == held.event_id:
        return "retracted" if course.withdrawn else "effective"
    return "evidence" if row.form == held.form else "replaced"


# Between records ----------------------------------------------------------------------------------------------------


def standing(peers: Sequence[Record], now_us: int, within_us: int = 0) -> list[Record]:
    """Judge all records of one scope and group at a time (UTC microseconds): status, successor, predecessor.

    Of those that hold at the time, one at most is current (or disputed), or several need confirmation; their
    duplicates, and what they superseded or outrank, say so. What has outlived its time to live still stands before
    what it superseded: nothing stale returns. within_us: apart in time by no more, voices contradict each other.
    """
    alive = [record for record in peers if record.status in (Status.ACTIVE, Status.DISPUTED)]
    ranked = _ranked([record for record in alive if _holds(record, now_us)])
    return [
        *_chain(ranked, now_us, within_us),
        *(_outside(record, now_us) for record in alive if not _holds(record, now_us)),
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


def _holds(record: Record, now_us: int) -> bool:
    """Half-open: [valid_from, valid_to). Equal bounds hold nowhere."""
    return (record.from_us is None or record.from_us <= now_us) and (
        record.to_us is None or now_us < record.to_us
    )


def _outside(record: Record, now_us: int) -> Record:
    ahead = record.from_us is not None and now_us < record.from_us
    return replace(record, status=Status.NOT_YET_VALID if ahead else Status.EXPIRED)


def _ranked(records: Sequence[Record]) -> Ranked:
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


def _chain(ranked: Ranked, now_us: int, within_us: int) -> Iterator[Record]:
    if not ranked:
        return
    ordered = _merged_last(ranked)
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


def _merged_last(ranked: Ranked) -> Ranked:
    """What was merged into another one here stands behind it."""
    names = {record.id for record, _ in ranked}
    gone = [pair for pair in ranked if pair[0].merged_into in names]
    return [*(pair for pair in ranked if pair[0].merged_into not in names), *gone]


def _leading(one: Record, twins: Sequence[Record], others: Ranked, now_us: int) -> Record:
    return replace(
        one,
        status=_winning(one, now_us),
        supersedes=others[0][0].id if others else None,
        evidence=_together(one, [twin for twin in twins if twin.form == one.form]),
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

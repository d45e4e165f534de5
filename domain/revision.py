"""Which statement is effective in a record. Pure, total, order of effect only; between records see `standing`.

Acts take effect in log order, unless what stands has more authority.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mnemolog.domain.contests import Rank
from mnemolog.domain.normalise import slot_key
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import (
    GATED,
    STATING,
    Act,
    Assertion,
    Evidence,
    Precedence,
    Record,
    Side,
    Status,
    Step,
    microseconds,
)
from mnemolog.domain.sensitivity import Sensitivities

_LOWEST: Final[Rank] = (False, Tier.IMPORT)
_BETWEEN: Final = frozenset({Act.RESOLVED, Act.MERGED, Act.PARTED})
Decided = tuple[Precedence, str | None]
"""A rule, and the event that was on the other side."""


@dataclass(slots=True)
class _Course:
    """How far the fold over one record's live assertions has come."""

    sensitivities: Sensitivities
    held: Assertion | None = None
    rank: Rank = _LOWEST
    ruling: int = 0
    order: int = 0
    kind: str | None = None
    """As a statement named it."""
    withdrawn: Assertion | None = None
    disputed: Assertion | None = None
    verified: str | None = None
    reason: str | None = None
    confirmed: int = 0
    merged_into: str | None = None
    apart: set[str] = field(default_factory=set)
    outranked: set[str] = field(default_factory=set)
    decided: dict[str, Decided] = field(default_factory=dict)
    said: dict[str, str | None] = field(default_factory=dict)
    """By the event of a decision between records, what this record said when it was made."""


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
        return Record(
            first.record,
            first.scope,
            status,
            version,
            last.position,
            kind=next((row.kind for row in reversed(ordered) if row.kind), "fact"),
            recorded_at=last.recorded_at,
            sensitivity=course.sensitivities.highest,
        )
    return _record(course, course.held, ordered, erased, (first.scope, version, up, down))


def _run(ordered: Sequence[Assertion]) -> _Course:
    course = _Course(Sensitivities(ordered))
    for row in ordered:
        if not row.forgotten:
            course.sensitivities.take(row, course.held)
            if row.act in _BETWEEN:
                course.said[row.event_id] = course.held.content if course.held else None
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
            _outrank(course, row, rank)
        if rank < course.rank or (rank == course.rank and _is_late(course, row, order)):
            course.decided.setdefault(row.event_id, (Precedence.RECENT, _stands(course)))
            course.held = course.held or row
            return
    _hold(course, _carrying(course, row), rank, order)


def _carrying(course: _Course, row: Assertion) -> Assertion:
    """Said again, it keeps what was named of it before; what was found in a turn names no kind against a statement."""
    named, held = row.kind if row.act is Act.STATED else None, course.held
    course.kind = named or course.kind
    if held is None:
        return replace(row, kind=course.kind or row.kind)
    return replace(
        row,
        kind=course.kind or row.kind or held.kind,
        consent=held.consent if row.consent is None else row.consent,
    )


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
        _outrank(course, row, rank)
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
        _outrank(course, row, rank)
        return
    course.withdrawn, course.rank, course.reason = row, rank, row.reason
    if rank[0]:
        course.ruling = row.position


def _confirm(course: _Course, row: Assertion) -> None:
    """Confirmed, approved or chosen. A person's approval or choice also stands as a decision of their rank."""
    course.verified = row.occurred_at
    _settle_dispute(course, row)
    rank = (row.human, row.trust)
    if row.act is Act.RESOLVED and rank < course.rank:
        _outrank(course, row, rank)
    if not row.human or rank < course.rank:
        return
    if row.act is Act.CONFIRMED:
        course.confirmed = row.position
        return
    course.withdrawn, course.rank, course.ruling = None, rank, row.position
    course.order = max(course.order, row.occurred_us)
    course.reason = row.reason


def _outrank(course: _Course, row: Assertion, rank: Rank) -> None:
    """It says less than what stands."""
    course.outranked.add(row.event_id)
    course.decided[row.event_id] = (_higher(course.rank, rank), _stands(course))


def _higher(rank: Rank, than: Rank) -> Precedence:
    """By what the one is above the other."""
    if rank[0] != than[0]:
        return Precedence.PERSON
    return Precedence.AUTHORITY if rank[1] != than[1] else Precedence.RECENT


def _stands(course: _Course) -> str | None:
    """The event that made the record what it is."""
    last = course.withdrawn or course.held
    return last.event_id if last else None


def _hold(course: _Course, row: Assertion, rank: Rank, order: int) -> None:
    before = _stands(course)
    rule = Precedence.FIRST if before is None else _higher(rank, course.rank)
    course.decided[row.event_id] = (rule, before)
    if course.held is not None:
        course.decided[course.held.event_id] = (rule, row.event_id)
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
        status=_status(course),
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
        sensitivity=course.sensitivities.of(held),
        **_carried(held),
    )


def _status(course: _Course) -> Status:
    """What a reviewer rejected after it was let in is held as it was before: only who reviews is told of it."""
    gone = course.withdrawn
    if gone is not None:
        return Status.HELD if gone.act is Act.REJECTED else Status.RETRACTED
    return Status.DISPUTED if course.disputed else Status.ACTIVE


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
    effect = _effect(row, course)
    rule, other = _decided(row, effect, course)
    won, against = _sides(row, course)
    return Step(
        row.record,
        row.event_id,
        row.position,
        row.version,
        row.act,
        row.actor,
        row.recorded_at,
        effect,
        row.occurred_at,
        row.content,
        row.reason,
        row.valid_from,
        row.valid_to,
        row.tier,
        rule,
        other,
        won,
        against,
        course.sensitivities.of(row),
        row.session,
    )


def _decided(row: Assertion, effect: str, course: _Course) -> tuple[Precedence | None, str | None]:
    """The rule that gave it its effect."""
    if effect == "evidence" and course.held is not None:
        return Precedence.SAME, course.held.event_id
    if effect == "retracted" and course.withdrawn is not None:
        return Precedence.RETRACTED, course.withdrawn.event_id
    return course.decided.get(row.event_id, (None, None))


def _sides(row: Assertion, course: _Course) -> tuple[Side | None, tuple[Side, ...]]:
    """Which record a person's decision is for, and against which: their words are known of this one only."""
    if row.forgotten or row.act not in _BETWEEN:
        return None, ()
    own, others = Side(row.record, course.said[row.event_id]), tuple(map(Side, row.rejected))
    if row.act is Act.MERGED:
        return others[0], (own,)
    return (own if row.act is Act.RESOLVED else None), others


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

"""How a statement or a record stands: told from its record, what the gate decided, and what was erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.records import STATING, Record, Status, Step
from mnemolog.projections.gate_reads import OutcomeRow
from mnemolog.results import DROPPED, ERASED, HELD, UNDECIDED, WITHHELD, Standing

_GONE: Final = ("its content was erased",)
_UNFOLDED: Final = ("it could not be folded: see `projections parked`",)
_OUTRANKED: Final = ("what the record says comes from somebody of higher authority",)
_CLOSED: Final = ("the policy does not let this role read it",)


def of_event(
    event_id: str, record: Record | None, steps: Sequence[Step], outcomes: Sequence[OutcomeRow], *, open: bool
) -> Standing:
    """What became of one statement or correction. steps, outcomes: of its record. open: to the caller's role."""
    name = steps[0].record if steps else event_id
    step = next((one for one in steps if one.event_id == event_id), None)
    if step is None:
        return Standing(name, UNDECIDED, _UNFOLDED)
    if step.effect == "forgotten":
        return Standing(name, ERASED, _GONE)
    own = next((one for one in outcomes if one.event_id == event_id), None)
    reasons = () if own is None else own.why
    known = any(_says(one) for one in steps if one.position < step.position)
    if own is not None and own.decision not in (Decision.ADMIT, Decision.EVIDENCE):
        return Standing(name, _not_kept(own), reasons, known)
    if step.effect == "outranked":
        return Standing(name, Status.OUTRANKED.value, (*reasons, *_OUTRANKED), known)
    stands = of_record(name, record, outcomes, open=open)
    return Standing(name, stands.status, tuple(dict.fromkeys((*reasons, *stands.reasons))), known)


def of_record(
    name: str, record: Record | None, outcomes: Sequence[OutcomeRow], *, open: bool, erased: bool = False
) -> Standing:
    """How a record stands. erased: its last event was, for a view that knows nothing of the record any more."""
    if record is None:
        return Standing(name, ERASED, _GONE) if erased else Standing(name, UNDECIDED, _UNFOLDED)
    if record.status is Status.FORGOTTEN:
        return Standing(name, ERASED, _GONE)
    if record.status is Status.HELD:
        taken_back = any(Reason.WITHDRAWN in one.why for one in outcomes)
        if taken_back or record.reason == Reason.WITHDRAWN:
            return Standing(name, WITHHELD, (Reason.WITHDRAWN.value,))
        last = outcomes[-1] if outcomes else None
        return Standing(name, HELD) if last is None else Standing(name, _not_kept(last), last.why)
    if not open:
        return Standing(name, WITHHELD, _CLOSED)
    return Standing(name, record.status.value)


def _not_kept(one: OutcomeRow) -> str:
    if Reason.WITHDRAWN in one.why:
        return WITHHELD
    return DROPPED if one.decision is Decision.REJECT else HELD


def _says(step: Step) -> bool:
    """Whether it says something that is memory, or was."""
    return step.act in STATING and step.effect not in ("forgotten", "held", "not kept")

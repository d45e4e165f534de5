"""The path of a record, or of an event, through the control points, as far as the caller may be told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._views import View
from mnemolog.domain.controls import Control, Seen, at_the_gate
from mnemolog.domain.events import CandidatesExtracted, MemoryStated, Recorded
from mnemolog.domain.gate.admission import Decision
from mnemolog.domain.gate.findings import Finding
from mnemolog.domain.gate.judging import later
from mnemolog.domain.precedence import Compared, compared
from mnemolog.domain.records import (
    RECORD_KINDS,
    Act,
    Evidence,
    Precedence,
    Record,
    Status,
    Step,
    microseconds,
)
from mnemolog.projections.gate_reads import OutcomeRow

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TAKEN: Final = frozenset({Act.RETRACTED, Act.REJECTED})


class Explainer:
    """Tells which rule decided where."""

    def __init__(self, guard: Guard, reader: Reader) -> None:
        self._guard, self._reader, self._store = guard, reader, guard.store

    # The gate -------------------------------------------------------------------------------------------------------

    def gate(self, rows: Sequence[OutcomeRow], steps: Sequence[Step] = ()) -> list[Control]:
        """What decided about these candidates and statements. steps: of their records, where nothing was objected."""
        judged = {row.event_id for row in rows}
        said = [step for step in steps if step.act is Act.STATED and step.effect != "forgotten"]
        plain = [step for step in said if step.event_id not in judged]
        places = [*(row.position for row in rows), *(step.position for step in plain)]
        events = {one.position: one for one in self._store.log.read_at(places)} if places else {}
        seen = [(row.position, _seen(row, events.get(row.position))) for row in rows]
        seen += [(step.position, _stated(step, events.get(step.position))) for step in plain]
        policy = self._store.policy.gate
        ordered = sorted(seen, key=lambda each: each[0])
        return [control for _, one in ordered for control in at_the_gate(one, policy)]

    def unseen(self, event_id: str, looked: dict[str, bool]) -> list[Control]:
        """Why nothing was found in an event."""
        if self._store.policy.gate.mode == "window":
            return [Control("", "extract", "memory.mode: window", "stopped", "", event_id)]
        told = {
            True: ("nothing found", "nothing in it is stated for good"),
            False: ("waits", "it has not looked yet"),
        }
        return [Control("", "extract", name, *told[seen], event_id) for name, seen in looked.items()]

    # Revision, reading, forgetting ------------------------------------------------------------------------------------

    def stands(self, view: View, record: Record, steps: Sequence[Step]) -> list[Control]:
        """What decided between the record's own statements, and between it and the others of its slot.

        steps: what happened to all of them.
        """
        related, open_ = self._reader.peers(view, record.id)
        peers = [one for one in related if (one.scope, one.group) == (record.scope, record.group)]
        return [
            *_effective(record, steps),
            *self._compared(record, peers, {one.id for one in open_}, steps),
            *_merged(record, {one.id for one in peers}, steps),
            *self._forgotten(record, steps),
            *self.read(record),
        ]

    def _compared(
        self, record: Record, peers: Sequence[Record], told: Collection[str], steps: Sequence[Step]
    ) -> Iterator[Control]:
        now, policy = microseconds(self._store.clock.now()), self._store.policy.gate
        known = {one.id: one for one in peers}
        for pair in compared(record, peers, now, policy.contested_us):
            if pair.other not in told:
                continue
            won = "open" if pair.winner is None else "won" if pair.winner == record.id else "lost"
            rule = pair.rule.value
            if pair.rule is Precedence.OPEN:
                rule = f"memory.contested_within: {policy.contested_within:g}"
            step = _deciding(pair, known, steps)
            yield Control(
                record.id,
                "revise",
                rule,
                won,
                _told(pair, known, step),
                None if step is None else step.event_id,
                () if pair.winner is None else known[pair.winner].evidence,
                pair.other,
            )

    def _forgotten(self, record: Record, steps: Sequence[Step]) -> Iterator[Control]:
        if record.status is Status.RETRACTED:
            step = next(
                (one for one in reversed(steps) if one.record == record.id and one.act in _TAKEN), None
            )
            by = "" if step is None else f"by {step.actor}"
            yield Control(
                record.id, "forget", "retracted", "stopped", by, None if step is None else step.event_id
            )
        if record.expires_at is not None and record.expires_us is not None:
            over = record.expires_us <= microseconds(self._store.clock.now())
            days = self._store.policy.gate.expiry.get(record.kind)
            ours = days is not None and _after(record.occurred_at, days) == record.expires_us
            rule = f"memory.expiry.{record.kind}: {days:g}" if ours else "expires_at"
            yield Control(record.id, "forget", rule, "stopped" if over else "passed", record.expires_at)

    def read(self, record: Record) -> Iterator[Control]:
        """Whether the caller's role may read it."""
        policy, role = self._store.policy.reading, self._guard.principal.role.value
        read = policy.kinds.get(role, frozenset())
        kinds = "all" if set(RECORD_KINDS) <= read else ", ".join(sorted(read))
        may = record.kind in read
        yield Control(
            record.id, "read", f"reading.kinds.{role}: {kinds}", "passed" if may else "stopped", record.kind
        )
        if record.sensitivity == "personal":
            may = role in policy.personal
            rule = f"reading.personal: {', '.join(sorted(policy.personal))}"
            yield Control(record.id, "read", rule, "passed" if may else "stopped", role)


# What is known --------------------------------------------------------------------------------------------------------


def _seen(row: OutcomeRow, recorded: Recorded | None) -> Seen:
    event = None if recorded is None else recorded.event
    findings, signs, said = _looked_at(event, row)
    return Seen(
        row.record,
        row.event_id,
        row.decision,
        row.why,
        row.trust,
        kind=row.kind,
        confidence=row.confidence,
        topic=row.topic,
        extractor=row.extractor,
        rule=row.rule,
        asked=row.asked,
        voices=row.voices,
        slot=row.slot,
        evidence=(Evidence(row.source, row.start, row.end),),
        role=str(said.get("role") or ""),
        who=str(said.get("who") or ""),
        sorts=tuple(dict.fromkeys(one.sort for one in findings)),
        signs=signs,
    )


def _looked_at(event: object, row: OutcomeRow) -> tuple[list[Finding], tuple[str, ...], dict[str, object]]:
    """What was found where the candidate stands, by which signs its source orders, and who said it."""
    findings = [Finding.of(one) for one in getattr(event, "findings", None) or ()]
    if isinstance(event, CandidatesExtracted):
        if row.start is not None and row.end is not None:
            findings = [one for one in findings if one.start < row.end and row.start < one.end]
        return findings, event.signs, dict(event.said)
    signs = event.signs if isinstance(event, MemoryStated) else ()
    return findings, signs, {}


def _stated(step: Step, recorded: Recorded | None) -> Seen:
    """A statement that nothing was said of at the gate."""
    event = None if recorded is None else recorded.event
    cited = [Evidence.of(one) for one in event.evidence or ()] if isinstance(event, MemoryStated) else []
    trust = min([step.tier, *(one.tier for one in cited if one.tier is not None)])
    evidence = (Evidence(step.event_id), *cited)
    return Seen(step.record, step.event_id, Decision.ADMIT, (), trust, evidence=evidence)


# Words ----------------------------------------------------------------------------------------------------------------


def _effective(record: Record, steps: Sequence[Step]) -> Iterator[Control]:
    """By which rule the record says what it says."""
    for step in steps:
        if (
            step.record == record.id
            and step.rule is not None
            and step.effect in ("effective", "outranked", "replaced")
        ):
            by = "" if step.other is None else f"against event {step.other}"
            mine = record.evidence if step.effect == "effective" else ()
            yield Control(record.id, "revise", step.rule.value, step.effect, by, step.event_id, mine)


def _merged(record: Record, peers: Collection[str], steps: Sequence[Step]) -> Iterator[Control]:
    """A merge into a record of another slot."""
    into = record.merged_into
    if into is not None and into not in peers and record.superseded_by == into:
        step = next(
            (one for one in reversed(steps) if one.record == record.id and one.act is Act.MERGED), None
        )
        by = "" if step is None else f"by {step.actor}"
        yield Control(
            record.id,
            "revise",
            Precedence.MERGED.value,
            "lost",
            by,
            None if step is None else step.event_id,
            (),
            into,
        )


def _deciding(pair: Compared, known: dict[str, Record], steps: Sequence[Step]) -> Step | None:
    """What a person did that decided between the two."""
    if pair.winner is None:
        return None
    winner = known[pair.winner]
    loser = known[pair.other if pair.winner == pair.record else pair.record]
    if pair.rule is Precedence.MERGED:
        return next(
            (one for one in reversed(steps) if one.record == loser.id and one.act is Act.MERGED), None
        )
    if pair.rule is Precedence.RETRACTED:
        return next((one for one in reversed(steps) if one.record == loser.id and one.act in _TAKEN), None)
    at = {Precedence.PERSON: winner.ruling or winner.position, Precedence.CONFIRMED: winner.confirmed}.get(
        pair.rule
    )
    return next((one for one in steps if one.record == winner.id and one.position == at), None)


def _told(pair: Compared, known: dict[str, Record], step: Step | None) -> str:
    """What the rule looked at."""
    if step is not None:
        return f"{step.act.value} by {step.actor}"
    one, other = known[pair.record], known[pair.other]
    first, second = (other, one) if pair.winner == other.id else (one, other)
    if pair.rule is Precedence.AUTHORITY:
        return f"{_tier(first)} over {_tier(second)}"
    if pair.rule is Precedence.RECENT:
        return f"{_time(first)} after {_time(second)}"
    if pair.rule is Precedence.LATER:
        return f"position {first.position} after {second.position}"
    if pair.rule is Precedence.OPEN:
        return f"both {_tier(first)}, {abs(first.order_us - second.order_us) / 60_000_000:.3g} minutes apart"
    if pair.rule is Precedence.VALID_NOW:
        return f"the other holds from {second.valid_from or 'ever'} to {second.valid_to or 'ever'}"
    return ""


def _tier(record: Record) -> str:
    return record.authority.name.lower()


def _time(record: Record) -> str:
    return (_EPOCH + timedelta(microseconds=record.order_us)).isoformat()


def _after(occurred_at: str, days: float) -> int | None:
    end = later(datetime.fromisoformat(occurred_at), days)
    return None if end is None else microseconds(end)

"""What waits for a person, and what they decide; and why memory holds something, or does not."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, Unpack

from mnemolog._asking import may_be_read
from mnemolog._comparing import Comparing
from mnemolog._explaining import Explainer
from mnemolog._guard import Guard
from mnemolog._histories import Histories
from mnemolog._reading import Reader
from mnemolog._standing import of_event, of_record
from mnemolog._stating import Acting, Stater, said
from mnemolog._views import View
from mnemolog.domain import ingress
from mnemolog.domain.controls import Control
from mnemolog.domain.errors import AccessDenied, InvalidInput, NotFound
from mnemolog.domain.events import (
    MEMORY,
    QuarantineReviewed,
    Receipt,
)
from mnemolog.domain.gate.admission import Reason
from mnemolog.domain.gate.wording import STANDINGS, WAITING, question
from mnemolog.domain.principal import Action
from mnemolog.domain.records import UNREADABLE, Record, Step
from mnemolog.domain.scope import Scope
from mnemolog.projections import gate_reads
from mnemolog.projections.catalog import CatalogRow
from mnemolog.projections.gate_reads import OutcomeRow
from mnemolog.results import Conflict, MergeProposal, Outcome, Standing, Why, WhyNot

_NOTHING: Final = "nothing was found for a record {} in this scope: `review list` shows what waits"
_DECIDED_OTHERWISE: Final = (
    "it was stated, and does not wait: `review resolve` decides a conflict, `review merge` and `apart` what may be the "
    "same, `correct` and `retract` change it"
)
_KEPT: Final = frozenset({"admitted", "evidence"})
_DECISIONS: Final = {name: decision for decision, name in STANDINGS.items()}


class Review:
    """The queue of what waits for a person, and their decisions. For users and operators; they outlive every policy."""

    def __init__(self, guard: Guard, reader: Reader, stater: Stater) -> None:
        self._guard, self._reader, self._stater, self._store = guard, reader, stater, guard.store
        self._comparing = Comparing(guard, reader, stater)
        self.histories, self._explainer = Histories(guard, reader), Explainer(guard, reader)

    def list(
        self, scope: Scope, *, status: Sequence[str] = WAITING, limit: int = 100
    ) -> builtins.list[Outcome]:
        """What waits, oldest first. status: needs confirmation, quarantined, log only, admitted, evidence."""
        self._enter(scope)
        wanted = ingress.texts(status, "status")
        if unknown := set(wanted) - set(_DECISIONS):
            raise InvalidInput(f"no status {', '.join(sorted(unknown))}: use {', '.join(_DECISIONS)}")
        decisions, limit = [_DECISIONS[one] for one in wanted], ingress.whole(limit, "limit")
        with self._reader.view(scope) as view:
            most = (limit,) if self._reader.reads_all else ()  # else what is not for this role does not count
            rows = gate_reads.in_scopes(view.conn, self._store.curated, view.scopes, decisions, *most)
            return [self._outcome(row, view) for row in self._candidates(view, rows)[:limit]]

    def show(self, scope: Scope, record_id: str) -> builtins.list[Outcome]:
        """Everything that was found for a record, oldest first. Raises NotFound."""
        self._enter(scope)
        with self._reader.view(scope) as view:
            found = [
                self._outcome(row, view) for row in self._candidates(view, self._of_record(view, record_id))
            ]
        if not found:
            raise NotFound(_NOTHING.format(record_id))
        return found

    def approve(self, scope: Scope, record_id: str, **about: Unpack[Acting]) -> Receipt:
        """Keep it: what was found for the record so far is memory from here on."""
        return self._decide(scope, record_id, "approve", None, about)

    def reject(self, scope: Scope, record_id: str, **about: Unpack[Acting]) -> Receipt:
        """Do not keep it; who says it again is not heard, and a person is asked."""
        return self._decide(scope, record_id, "reject", None, about)

    def edit(self, scope: Scope, record_id: str, content: str, **about: Unpack[Acting]) -> Receipt:
        """Keep it in other words."""
        return self._decide(scope, record_id, "edit", ingress.statement(content), about)

    def conflicts(self, scope: Scope) -> builtins.list[Conflict]:
        """Records of one slot between which nothing decides, each with the question to ask, oldest first."""
        self._enter(scope)
        return self._comparing.conflicts(scope)

    def resolve(
        self, scope: Scope, record_id: str, rejected: Sequence[str] = (), **about: Unpack[Acting]
    ) -> Receipt:
        """Choose this record over others of its slot; without `rejected`, over all it needs confirmation against."""
        return self._comparing.resolve(scope, record_id, ingress.texts(rejected, "rejected"), about)

    def merges(self, scope: Scope) -> builtins.list[MergeProposal]:
        """Records that may say the same, in other words or in a slot spelled otherwise. Nothing is merged by itself."""
        self._enter(scope)
        return self._comparing.merges(scope)

    def merge(self, scope: Scope, record_id: str, into: str, **about: Unpack[Acting]) -> Receipt:
        """Let a record be superseded by another one of its scope, as long as that stands. Erasing that erases both."""
        return self._comparing.merge(scope, record_id, into, about)

    def keep_apart(self, scope: Scope, record_id: str, other: str, **about: Unpack[Acting]) -> Receipt:
        """Remember that two records say different things: they are not proposed again, and a merge is undone."""
        return self._comparing.keep_apart(scope, record_id, other, about)

    def standing(self, scope: Scope, said: Receipt | str) -> Standing:
        """What became of a statement or a correction; see `Memory.standing`."""
        self._guard.enter(Action.READ, scope)
        event_id = said.event_id if isinstance(said, Receipt) else said
        row = self._reader.require(scope, event_id)
        if row.topic not in MEMORY:
            raise NotFound(f"{event_id} is no statement: `why_not` tells what became of it")
        with self._reader.view(scope) as view:
            outcomes = self._of_record(view, row.stream)
            record, steps = self._reader.judged(view, row.stream)
        if event_id == row.stream:
            return of_record(row.stream, record, outcomes, open=self._is_open(record), erased=row.erased)
        return of_event(row.event_id, record, steps, outcomes, open=self._is_open(record))

    def _is_open(self, record: Record | None) -> bool:
        return record is None or self._reader.may_read(record)

    def why(self, scope: Scope, record_id: str) -> Why:
        """How a record came to be what it is: what was found where, what people did, and what it stands against."""
        self._guard.enter(Action.READ, scope)
        row = self._reader.require(scope, record_id)
        if row.topic not in MEMORY:
            raise NotFound(f"{record_id} is an event, not a record: `why-not` tells what became of it")
        with self._reader.view(scope) as view:
            outcomes = self._of_record(view, row.stream)
            stands, own = self._reader.judged(view, row.stream)
            record = self._reader.shown(view, row.stream)
            readable = {} if record is None else self._reader.readable(view, {row.stream})
            found = [self._open_to(self._outcome(each, view), readable) for each in outcomes]
            peers = [self._reader.handed(one, view) for one in self._reader.peers(view, row.stream)[1]]
            steps = [] if record is None else self.histories.steps(view, row.stream)
            path = self._explainer.gate(outcomes, own)
            if stands is not None:
                path += self._stands(view, stands, steps)
        standing = of_record(row.stream, stands, outcomes, open=self._is_open(stands), erased=row.erased)
        return Why(row.stream, record, tuple(found), tuple(steps), tuple(peers), standing, tuple(path))

    def _stands(self, view: View, record: Record, steps: Sequence[Step]) -> builtins.list[Control]:
        """What decided about a record after the gate, where anything of it is to be read."""
        if record.status in UNREADABLE:
            return []
        if not self._reader.may_read(record):
            return builtins.list(self._explainer.read(record))
        return self._explainer.stands(view, record, steps)

    def why_not(self, scope: Scope, event_id: str) -> WhyNot:
        """What became of an event: what was found in it and why that is memory or not; what was hidden in it."""
        self._guard.enter(Action.READ, scope)
        row = self._reader.require(scope, event_id)
        with self._reader.view(scope) as view:
            rows = gate_reads.of_event(view.conn, self._store.curated, row.event_id, view.scopes)
            readable = self._reader.readable(view, {each.record for each in rows})
            found = [self._open_to(self._outcome(each, view), readable) for each in rows]
            path = self._path_of(view, row, rows, readable)
        looked = {one.extractor.version: one.position >= row.position for one in self._store.gate.extracting}
        standing = self.standing(scope, row.event_id) if row.topic in MEMORY else None
        if not path and not row.erased:
            path = self._explainer.unseen(row.event_id, looked)
        mode = self._store.policy.gate.mode
        return WhyNot(row.event_id, row.topic, tuple(found), looked, mode, standing, row.erased, tuple(path))

    def _path_of(
        self, view: View, row: CatalogRow, rows: Sequence[OutcomeRow], readable: Collection[str]
    ) -> builtins.list[Control]:
        """Through the gate, for each thing that was found in the event, and on for the records that they became."""
        stated = [row.stream] if row.topic in MEMORY else []
        records = {
            name: self._reader.judged(view, name) for name in (*stated, *(each.record for each in rows))
        }
        own = [step for _, steps in records.values() for step in steps if step.event_id == row.event_id]
        path = self._explainer.gate(rows, own)
        for name, (record, _) in records.items():
            if record is not None and (name in readable or name in stated):
                path += self._stands(view, record, self.histories.steps(view, name))
        return path

    # ----------------------------------------------------------------------------------------------------------------

    def _enter(self, scope: Scope) -> None:
        """Reading the queue may ask for `ANY`; it takes who may also decide."""
        self._guard.enter(Action.READ, scope)
        role = self._guard.principal.role
        if not self._guard.reviews:
            reason = f"role {role.value} may not review"
            self._guard.refuse(Action.REVIEW, reason, scope)
            raise AccessDenied(f"{role.value} {self._guard.principal.id!r}: {reason}")

    def _decide(
        self, scope: Scope, record_id: str, decision: str, content: str | None, given: Acting
    ) -> Receipt:
        self._guard.enter(Action.REVIEW, scope)
        self._reader.demand_open(scope, ingress.known_id(record_id))
        with self._reader.view(scope) as view:
            rows = self._of_record(view, record_id)
        if not rows:
            self._reader.scope_of_record(scope, record_id)
            raise InvalidInput(_DECIDED_OTHERWISE)
        row = next((one for one in reversed(rows) if one.content is not None), rows[-1])
        if decision == "approve" and row.content is None:
            raise InvalidInput(
                "nothing of it may be kept as it was said: `review edit` says it in other words"
            )
        words = row.content if decision == "approve" else content
        examined = () if words is None else self._stater.findings(words)
        # Its own origin: what a policy makes of it may be another one when the decision is folded again.
        origin = self._store.log.read_at([row.position], bodies=False)[0].envelope.origin
        event = QuarantineReviewed(
            decision,
            words,
            said(given.get("reason")),
            row.kind,
            row.slot,
            row.sensitivity,
            ({"event_id": row.source, "start": row.start, "end": row.end, "tier": int(origin)},),
            examined,
        )
        sources = tuple(dict.fromkeys((row.source, row.event_id)))
        return self._stater.on_record(scope, record_id, event, given, sources)

    def _of_record(self, view: View, record_id: str) -> builtins.list[OutcomeRow]:
        record_id = ingress.known_id(record_id)
        return gate_reads.of_record(view.conn, self._store.curated, record_id, view.scopes)

    def _candidates(self, view: View, rows: Sequence[OutcomeRow]) -> builtins.list[OutcomeRow]:
        return may_be_read(self._reader, view, rows, self._store.clock.now())

    def _open_to(self, one: Outcome, readable: Mapping[str, str | None]) -> Outcome:
        """What was found, without its words where the principal may not see them. readable: records that are.

        What a reviewer has let in with other words was never let in with these.
        """
        kept = one.record_id in readable and one.status in _KEPT
        if Reason.APPROVED in one.reasons:
            kept = kept and readable[one.record_id] == one.content
        if (kept or self._guard.reviews) and self._reader.may_read_sort(one.kind or "", one.sensitivity):
            return one
        return replace(one, content=None, slot=None, question=None)

    def _outcome(self, row: OutcomeRow, view: View) -> Outcome:
        status = STANDINGS[row.decision]
        asks = status in WAITING and row.content is not None
        belongs = view.scopes[row.scope]
        return Outcome(
            record_id=row.record,
            scope=self._store.vault.names(belongs),
            status=status,
            reasons=row.why,
            content=row.content,
            kind=row.kind,
            slot=self._store.gate.masking.slot(row.slot),
            trust=row.trust,
            sensitivity=row.sensitivity or "normal",
            topic=row.topic,
            found_in=row.source,
            found_by=row.extractor,
            rule=row.rule,
            asked=row.asked,
            voices=row.voices,
            question=question(row.content or "", row.why, row.topic) if asks else None,
            occurred_at=row.occurred_at,
            recorded_at=row.recorded_at,
            session=self._reader.session_of(view, belongs, row.session),
            event_id=row.event_id,
        )

"""What waits for a person, what they decide, what they agree to; and why memory holds something, or does not."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Unpack

from mnemolog._erasing import Eraser
from mnemolog._guard import Guard
from mnemolog._reading import Reader, View
from mnemolog._stating import Acting, Stater
from mnemolog._writing import About, Writer
from mnemolog.domain import ingress
from mnemolog.domain.errors import AccessDenied, InvalidInput, NotFound
from mnemolog.domain.events import (
    ConflictResolved,
    ConsentGranted,
    ConsentWithdrawn,
    QuarantineReviewed,
    Receipt,
)
from mnemolog.domain.gate.wording import STANDINGS, WAITING, question
from mnemolog.domain.principal import ALLOWED, Action, Tier, turn_tier
from mnemolog.domain.scope import Scope
from mnemolog.projections import gate_reads
from mnemolog.projections.gate_reads import OutcomeRow
from mnemolog.results import Outcome, Why, WhyNot

_NOTHING: Final = "nothing was found for a record {} in this scope: `review list` shows what waits"
_DECISIONS: Final = {name: decision for decision, name in STANDINGS.items()}


class Review:
    """The queue of what waits for a person, and their decisions. For users and operators; they outlive every policy."""

    def __init__(self, guard: Guard, writer: Writer, reader: Reader, stater: Stater, eraser: Eraser) -> None:
        self._guard, self._writer, self._reader, self._stater = guard, writer, reader, stater
        self._eraser, self._store = eraser, guard.store

    def list(
        self, scope: Scope, *, status: Sequence[str] = WAITING, limit: int = 100
    ) -> builtins.list[Outcome]:
        """What waits, oldest first. status: needs confirmation, quarantined, log only, admitted, evidence."""
        self._enter(scope)
        if unknown := set(status) - set(_DECISIONS):
            raise InvalidInput(f"no status {', '.join(sorted(unknown))}: use {', '.join(_DECISIONS)}")
        decisions = [_DECISIONS[one] for one in status]
        with self._reader.view(scope) as view:
            rows = gate_reads.in_scopes(view.conn, self._store.curated, view.scopes, decisions, limit)
            return [self._outcome(row, view) for row in rows]

    def show(self, scope: Scope, record_id: str) -> builtins.list[Outcome]:
        """Everything that was found for a record, oldest first. Raises NotFound."""
        self._enter(scope)
        with self._reader.view(scope) as view:
            found = [self._outcome(row, view) for row in self._of_record(view, record_id)]
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

    def resolve(
        self, scope: Scope, record_id: str, rejected: Sequence[str], **about: Unpack[Acting]
    ) -> Receipt:
        """Choose this record over others of its slot."""
        self._guard.enter(Action.REVIEW, scope)
        for one in rejected:
            self._reader.scope_of_record(scope, one)
        event = ConflictResolved(tuple(rejected), about.get("reason"))
        return self._stater.on_record(scope, record_id, event, about)

    def why(self, scope: Scope, record_id: str) -> Why:
        """How a record came to be what it is: what was found where, what people did, and what it stands against."""
        self._guard.enter(Action.READ, scope)
        row = self._reader.require(scope, record_id)
        reviews = Action.REVIEW in ALLOWED[self._guard.principal.role]
        with self._reader.view(scope) as view:
            found = [self._outcome(each, view) for each in self._of_record(view, row.stream)]
            record = self._reader.shown(view, row.stream)
            peers = self._reader.competing(view, row.stream)
        if not reviews:
            found = [
                one if one.status in ("admitted", "evidence") else replace(one, content=None) for one in found
            ]
        steps = tuple(self._reader.history(scope, row.stream)) if record is not None else ()
        return Why(row.stream, record, tuple(found), steps, tuple(peers))

    def why_not(self, scope: Scope, event_id: str) -> WhyNot:
        """What became of an event: what was found in it and why that is memory or not; what was hidden in it."""
        self._guard.enter(Action.READ, scope)
        row = self._reader.require(scope, event_id)
        reviews = Action.REVIEW in ALLOWED[self._guard.principal.role]
        with self._reader.view(scope) as view:
            rows = gate_reads.of_event(view.conn, self._store.curated, row.event_id, view.scopes)
            found = [self._outcome(each, view) for each in rows]
        if not reviews:
            found = [
                one if one.status in ("admitted", "evidence") else replace(one, content=None) for one in found
            ]
        looked = {one.extractor.version: one.position >= row.position for one in self._store.gate.extracting}
        return WhyNot(row.event_id, row.topic, tuple(found), looked, self._store.policy.gate.mode)

    # Consent --------------------------------------------------------------------------------------------------------

    def grant(self, scope: Scope, topic: str | None, reason: str | None) -> Receipt:
        """Record that the scope's user agrees."""
        return self._consent(scope, ConsentGranted(self._topic(topic), self._said(reason)))

    def withdraw(self, scope: Scope, topic: str | None, reason: str | None) -> Receipt:
        """Record that the scope's user takes it back; erase what was kept, where the policy says so."""
        event = ConsentWithdrawn(self._topic(topic), self._said(reason))
        receipt = self._consent(scope, event)
        if self._store.policy.on_withdrawal == "erase":
            self._erase_withdrawn(Scope(scope.tenant, user=scope.user), event.about)
        return receipt

    def _consent(self, scope: Scope, event: ConsentGranted | ConsentWithdrawn) -> Receipt:
        if scope.user is None:
            raise InvalidInput("consent is a user's: give a scope with user")
        person = Scope(scope.tenant, user=scope.user)
        self._guard.enter(Action.REVIEW, person)
        return self._writer.write(person, event, turn_tier(self._guard.principal, "user"), About())

    def _erase_withdrawn(self, person: Scope, topic: str | None) -> None:
        """Everything kept of the person in curated memory, or only about the topic; what was said stays said."""
        for scope, record in self._reader.withdrawn_records(person, topic):
            plan = self._eraser.plan(
                scope, "record", record, reason="consent was withdrawn", keep_evidence=True
            )
            plan.apply()

    def _topic(self, topic: str | None) -> str | None:
        known = self._store.policy.gate.admission.topics
        if topic is not None and topic not in known:
            raise InvalidInput(f"the policy has no topic {topic!r}: it has {', '.join(known) or 'none'}")
        return topic

    @staticmethod
    def _said(reason: str | None) -> str | None:
        return None if reason is None else ingress.statement(reason, "reason")

    # ----------------------------------------------------------------------------------------------------------------

    def _enter(self, scope: Scope) -> None:
        """Reading the queue may ask for `ANY`; it takes who may also decide."""
        self._guard.enter(Action.READ, scope)
        role = self._guard.principal.role
        if Action.REVIEW not in ALLOWED[role]:
            reason = f"role {role.value} may not review"
            self._guard.refuse(Action.REVIEW, reason, scope)
            raise AccessDenied(f"{role.value} {self._guard.principal.id!r}: {reason}")

    def _decide(
        self, scope: Scope, record_id: str, decision: str, content: str | None, given: Acting
    ) -> Receipt:
        self._guard.enter(Action.REVIEW, scope)
        with self._reader.view(scope) as view:
            rows = self._of_record(view, record_id)
        if not rows:
            raise NotFound(_NOTHING.format(record_id))
        row = next((one for one in reversed(rows) if one.content is not None), rows[-1])
        if decision == "approve" and row.content is None:
            raise InvalidInput(
                "nothing of it may be kept as it was said: `review edit` says it in other words"
            )
        words = row.content if decision == "approve" else content
        examined = () if content is None else self._store.gate.examined(content, Tier.USER_STATED)["findings"]
        # Its own origin: what a policy makes of it may be another one when the decision is folded again.
        origin = self._store.log.read_at([row.position], bodies=False)[0].envelope.origin
        event = QuarantineReviewed(
            decision,
            words,
            self._said(given.get("reason")),
            row.kind,
            row.slot,
            row.sensitivity,
            ({"event_id": row.source, "start": row.start, "end": row.end, "tier": int(origin)},),
            examined,
        )
        sources = tuple(dict.fromkeys((row.source, row.event_id)))
        return self._stater.on_record(scope, record_id, event, given, sources)

    def _of_record(self, view: View, record_id: str) -> builtins.list[OutcomeRow]:
        return gate_reads.of_record(view.conn, self._store.curated, record_id, view.scopes)

    def _outcome(self, row: OutcomeRow, view: View) -> Outcome:
        status = STANDINGS[row.decision]
        asks = status in WAITING and row.content is not None
        name = self._store.vault.name
        return Outcome(
            record_id=row.record,
            scope=self._store.vault.names(view.scopes[row.scope]),
            status=status,
            reasons=row.why,
            content=row.content,
            kind=row.kind,
            slot=row.slot,
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
            session=None if row.session is None else name(row.session),
            event_id=row.event_id,
        )

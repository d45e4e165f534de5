"""What a person agrees to be remembered in, and what is erased when they take it back."""

from __future__ import annotations

from contextlib import suppress

from mnemolog._erasing import Eraser
from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._stating import said
from mnemolog._writing import About, Writer
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput, StoreInUse
from mnemolog.domain.events import ConsentGranted, ConsentWithdrawn, Receipt
from mnemolog.domain.principal import Action, turn_tier
from mnemolog.domain.scope import Scope, a_scope
from mnemolog.projections import gate_reads


class Consent:
    """Records consent and its withdrawal for one principal."""

    def __init__(self, guard: Guard, writer: Writer, reader: Reader, eraser: Eraser) -> None:
        self._guard, self._writer, self._reader, self._eraser = guard, writer, reader, eraser
        self._store = guard.store

    def grant(self, scope: Scope, topic: str | None, reason: str | None) -> Receipt:
        """Record that the scope's user agrees."""
        return self._consent(scope, ConsentGranted(self._topic(topic), said(reason)))

    def withdraw(self, scope: Scope, topic: str | None, reason: str | None) -> Receipt:
        """Record that the scope's user takes it back; erase what was kept, where the policy says so."""
        event = ConsentWithdrawn(self._topic(topic), said(reason))
        receipt = self._consent(scope, event)
        if self._store.policy.on_withdrawal == "erase":
            self._erase_withdrawn(Scope(scope.tenant, user=scope.user), event.about, receipt.position)
        return receipt

    def _consent(self, scope: Scope, event: ConsentGranted | ConsentWithdrawn) -> Receipt:
        if a_scope(scope).user is None:
            raise InvalidInput("consent is a user's: give a scope with user")
        person = Scope(scope.tenant, user=scope.user)
        self._guard.enter(Action.REVIEW, person)
        return self._writer.write(person, event, turn_tier(self._guard.principal, "user"), About())

    def go_on(self, position: int) -> None:
        """Erase what was withdrawn behind a position, where its erasure did not begin."""
        with self._store.runner.read("curated") as conn:
            found = gate_reads.withdrawals(conn, self._store.curated, position)
        name = self._store.vault.name
        for one in found:
            tenant, person = name(one.tenant), name(one.person)
            if tenant is not None and person is not None:
                with suppress(StoreInUse):
                    self._erase_withdrawn(Scope(tenant, user=person), one.topic, one.position)

    def _erase_withdrawn(self, person: Scope, topic: str | None, before: int) -> None:
        """What was kept of the person in curated memory by then, or only about the topic; what was said stays said."""
        for scope, record in self._reader.withdrawn_records(person, topic, before):
            plan = self._eraser.plan(
                scope, "record", record, reason="consent was withdrawn", keep_evidence=True
            )
            plan.apply()

    def _topic(self, topic: str | None) -> str | None:
        known = self._store.policy.gate.admission.topics
        if topic is not None and ingress.short(topic, "topic") not in known:
            raise InvalidInput(f"the policy has no topic {topic!r}: it has {', '.join(known) or 'none'}")
        return topic

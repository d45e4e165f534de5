"""Memory acts: what people and agents state, correct, confirm, dispute and retract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypedDict

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._writing import About, Writer
from mnemolog.domain import ingress
from mnemolog.domain.errors import Erased, InvalidInput, NotKept
from mnemolog.domain.events import (
    MEMORY,
    Draft,
    Event,
    FeedbackGiven,
    MemoryConfirmed,
    MemoryCorrected,
    MemoryDisputed,
    MemoryRetracted,
    MemoryStated,
    Receipt,
)
from mnemolog.domain.gate.findings import Finding
from mnemolog.domain.principal import Action, Tier, refusal, statement_tier, turn_tier
from mnemolog.domain.records import RECORD_KINDS, SENSITIVITIES, identity
from mnemolog.domain.scope import RECORD_LEVELS, Scope, ScopeIds, a_scope, sees
from mnemolog.domain.sensitivity import PERSONAL
from mnemolog.projections import catalog
from mnemolog.projections.catalog import CatalogRow

_ACTS: Final = {"retract": MemoryRetracted, "confirm": MemoryConfirmed, "dispute": MemoryDisputed}


class Acting(TypedDict, total=False):
    """What an act on a record may say. expected_version: raises VersionConflict when the record has moved on."""

    reason: str | None
    expected_version: int | None
    occurred_at: datetime | str | None
    key: str | None


class Correcting(Acting, total=False):
    """What a correction may say besides the new content; what it leaves out stays as it was."""

    sensitivity: str | None
    evidence: Sequence[str | Mapping[str, Any]]
    valid_from: datetime | str | None
    valid_to: datetime | str | None
    expires_at: datetime | str | None


Known = dict[str, frozenset[str]]
"""Record → the persons that the statements of a batch about it are about, so far."""

_STATING: Final[Mapping[str, Any]] = {
    "slot": None,
    "kind": None,
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "sensitivity": None,
    "consent": None,
    "confidence": 1.0,
}
"""What a statement may say, and what it says where it does not."""
_ACTING: Final = frozenset(Acting.__optional_keys__)
_CORRECTING: Final = frozenset(Correcting.__optional_keys__)


class Stater:
    """Turns memory acts into events on the stream of their record."""

    def __init__(self, guard: Guard, writer: Writer, reader: Reader) -> None:
        self._guard, self._writer, self._reader = guard, writer, reader
        self._store = guard.store

    def remember(self, scope: Scope, given: Mapping[str, Any], about: About) -> Receipt:
        """given: the keyword arguments of `Memory.remember` that are not in `about`."""
        return self._writer.append([self.drafted(scope, given, about, {})])[0]

    def drafted(self, scope: Scope, given: Mapping[str, Any], about: About, known: Known) -> Draft:
        """The draft of a statement. known: what the drafts of the same batch are about, kept up here."""
        about = replace(about, began_at=self._store.position)
        details = dict(given)
        evidence, belongs_to = details.pop("evidence", ()), details.pop("belongs_to", None)
        stated = self._stated(scope, details)
        at = self._writer.moment(scope, about.occurred_at, "occurred_at")
        caller = self._writer.ids(scope, ingress.microseconds(at))
        ids = self._belongs(scope, belongs_to, caller, at)
        cited, about = self._cited(scope, evidence, replace(about, occurred_at=at))
        tier = min([statement_tier(self._guard.principal), *(one["tier"] for one in cited)])
        examined = self._store.gate.examined(stated.content, Tier(tier))
        event = replace(stated, evidence=cited, **examined)
        record_id = self._record_id(ids, event)
        subjects = known.get(record_id) or self._subjects(self._rows_of(record_id))
        draft = self._writer.draft(
            scope,
            event,
            statement_tier(self._guard.principal),
            replace(about, source_subjects=about.source_subjects | subjects),
            stream=record_id,
            ids=ids,
        )
        known[record_id] = subjects | {one for one in draft.subjects if one != ids.tenant}
        return draft

    def correct(self, scope: Scope, record_id: str, content: str, given: Correcting) -> Receipt:
        about = replace(_about(given, _CORRECTING), began_at=self._store.position)
        cited, about = self._cited(scope, given.get("evidence", ()), about)
        held = self._reader.record(scope, record_id)
        content = ingress.statement(content)
        event = MemoryCorrected(
            content,
            said(given.get("reason")),
            held.kind,
            held.slot,
            self._sensitivity(given.get("sensitivity"), held.kind) or _named(held.sensitivity),
            **self._times(scope, given),
            evidence=cited,
            findings=self.findings(content),
        )
        return self._on_record(scope, record_id, event, about)

    def findings(self, content: str) -> tuple[dict[str, Any], ...]:
        """What must be hidden in what a person decides. Raises NotKept for what the policy keeps in no form."""
        found: tuple[dict[str, Any], ...] = self._store.gate.examined(content, Tier.USER_STATED)["findings"]
        handling = self._store.policy.gate.admission.handling
        sorts = dict.fromkeys(Finding.of(one).sort for one in found)
        if blocked := [sort.value for sort in sorts if handling(sort) == "block"]:
            names = ", ".join(f"personal.{name}" for name in blocked)
            raise NotKept(
                f"the policy keeps no text with what stands in this one ({names}: block): leave it out"
            )
        return found

    def act(self, scope: Scope, act: str, record_id: str, given: Acting) -> Receipt:
        about = replace(_about(given), began_at=self._store.position)
        return self._on_record(scope, record_id, _ACTS[act](said(given.get("reason"))), about)

    def on_record(
        self, scope: Scope, record_id: str, event: Event, given: Acting, sources: tuple[str, ...] = ()
    ) -> Receipt:
        """Append a decision to a record. sources: events with which it falls."""
        about = replace(_about(given), began_at=self._store.position, sources=sources)
        return self._on_record(scope, record_id, event, about)

    def earlier(self, scope: Scope, record_id: str, given: Acting) -> object | None:
        """What was said of the record before under the same key: then this is said again."""
        belongs = self._reader.scope_of_record(scope, record_id)
        caller = self._store.vault.resolve(scope, create=False)
        if caller is None or given.get("key") is None:
            return None
        ids = ScopeIds(replace(belongs, agent=caller.agent, session=caller.session))
        found = self._writer.found(ids, given.get("key"))
        return None if found is None else self._store.log.read_at([found.position])[0].event

    def feedback(self, scope: Scope, target: str, rating: str, comment: str | None, about: About) -> Receipt:
        if rating not in ("up", "down"):
            raise InvalidInput("rating must be up or down")
        began_at, row = self._store.position, self._reader.require(scope, target)
        if row.topic in MEMORY:
            self._reader.demand_open(scope, row.stream, target)
        about = replace(
            about, began_at=began_at, sources=(row.event_id,), source_subjects=self._subjects([row])
        )
        event = FeedbackGiven(target, rating, said(comment))
        return self._writer.write(scope, event, turn_tier(self._guard.principal, "user"), about)

    # -----------------------------------------------------------------------------------------------------------

    def _stated(self, scope: Scope, given: Mapping[str, Any]) -> MemoryStated:
        details = {"content": None, **_STATING, **given}
        if unknown := sorted(details.keys() - _STATING.keys() - {"content"}):
            raise TypeError(f"remember: unexpected keyword argument {unknown[0]!r}")
        content = details["content"]
        kind, slot, confidence = details["kind"], details["slot"], details["confidence"]
        if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            raise InvalidInput("confidence must be a number from 0 to 1")
        return MemoryStated(
            ingress.statement(content),
            None if kind is None else _one_of(kind, RECORD_KINDS, "kind"),
            None if slot is None else self._slot(ingress.slot(slot)),
            sensitivity=self._sensitivity(details["sensitivity"], kind or "fact"),
            consent=ingress.optional(details["consent"], "consent"),
            confidence=float(confidence),
            **self._times(scope, details),
        )

    def _sensitivity(self, named: str | None, kind: str) -> str | None:
        """As it was named. Who may not read personal records does not say that one is none."""
        if named is None:
            return None
        known = _one_of(named, SENSITIVITIES, "sensitivity")
        return known if self._reader.may_read_sort(kind, PERSONAL) else _named(known)

    def _slot(self, slot: tuple[str, str]) -> tuple[str, str]:
        """A slot is shown wherever its record is, so it may hold nothing that the policy hides."""
        masking = self._store.gate.masking
        if any(masking.text(name) != name for name in slot):
            raise InvalidInput(
                "a slot names what is remembered: put secrets and identifiers into the content"
            )
        return slot

    def _times(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, Any]:
        moments: dict[str, datetime | None] = {
            name: None if given.get(name) is None else self._writer.moment(scope, given[name], name)
            for name in ("valid_from", "valid_to", "expires_at")
        }
        ingress.interval(moments["valid_from"], moments["valid_to"])
        return {name: value.isoformat() if value else None for name, value in moments.items()}

    def _belongs(self, scope: Scope, belongs_to: Scope | None, caller: ScopeIds, at: datetime) -> ScopeIds:
        """Where a new record belongs; agent and session stay as provenance."""
        target = scope.at(RECORD_LEVELS) if belongs_to is None else belongs_to
        if belongs_to is not None:
            if a_scope(belongs_to, "belongs_to").session or belongs_to.agent or not sees(scope, belongs_to):
                raise InvalidInput(
                    "belongs_to is the caller's scope with levels left out, without agent and session"
                )
            self._guard.enter(Action.STATE, belongs_to)
        ids = self._writer.ids(target, ingress.microseconds(at))
        return ScopeIds(replace(ids, agent=caller.agent, session=caller.session))

    def _record_id(self, ids: ScopeIds, event: MemoryStated) -> str:
        """Equal for the same normalised statement in the same scope and slot, so that saying it again adds evidence."""
        belongs = ScopeIds(ids.at(RECORD_LEVELS))
        what = identity(belongs, event.slot, event.content)
        return self._store.vault.keyed_hash(belongs.user or belongs.tenant, b"record", what).hex()

    def _cited(
        self, scope: Scope, evidence: Sequence[str | Mapping[str, Any]], about: About
    ) -> tuple[tuple[dict[str, Any], ...], About]:
        """Evidence as stored, and the sources and subjects that come with it."""
        cited, sources, subjects = [], [], set[str]()
        for one in ingress.several(evidence, "evidence", "event ids or spans"):
            if not isinstance(one, str | Mapping):
                raise InvalidInput("evidence must hold event ids, or spans with event_id, start and end")
            given = {"event_id": one} if isinstance(one, str) else dict(one)
            row, source_subjects, tier = self._source(scope, given.get("event_id"))
            cited.append({**_span(given), "tier": int(tier)})
            sources.append(row.event_id)
            subjects |= source_subjects
        return tuple(cited), replace(
            about, sources=tuple(dict.fromkeys(sources)), source_subjects=frozenset(subjects)
        )

    def _source(self, scope: Scope, event_id: object) -> tuple[CatalogRow, frozenset[str], int]:
        if not isinstance(event_id, str):
            raise InvalidInput("evidence needs event_id")
        row = self._reader.require(scope, event_id)
        if row.event_id != event_id:
            raise InvalidInput(f"{event_id} is a record, not an event: cite the events that it rests on")
        if row.erased:
            raise Erased(f"event {event_id} was erased: it is evidence for nothing")
        if row.topic in MEMORY:
            self._reader.demand_open(scope, row.stream, event_id)
        recorded = self._store.log.read_at([row.position])[0]
        return row, self._subjects([row]), min(recorded.envelope.origin, *_tiers(recorded.event))

    def _subjects(self, rows: Sequence[CatalogRow]) -> frozenset[str]:
        """The persons that these events are about."""
        recorded = self._store.log.read_at([row.position for row in rows], bodies=False)
        return frozenset(
            subject for each in recorded for subject in each.envelope.subjects - {each.envelope.scope.tenant}
        )

    def _about_record(self, record_id: str, about: About) -> About:
        """A change of a record is about whom the record is about, and falls with what it answers.

        Raises Erased when nothing of the record is left.
        """
        rows = self._rows_of(record_id)
        if not rows:
            raise Erased(f"record {record_id} was erased: remember it anew")
        subjects = about.source_subjects | self._subjects(rows)
        return replace(about, source_subjects=subjects, causation=rows[-1].event_id)

    def _rows_of(self, record_id: str) -> list[CatalogRow]:
        told = self._store.log.read_stream(record_id, bodies=False)
        if not told:
            return []
        # To wait for all that was said here would be to wait for the workers.
        at_least = told[-1].position if self._store.settings.workers else None
        with self._store.runner.read("catalog", at_least) as conn:
            return [row for row in catalog.by_stream(conn, record_id) if not row.erased]

    def _on_record(self, scope: Scope, record_id: str, event: Event, about: About) -> Receipt:
        """Append to a record that the caller sees, and may read and change."""
        belongs = self._reader.scope_of_record(scope, record_id)
        self._reader.demand_open(scope, record_id)
        reason = refusal(self._guard.principal, Action.STATE, self._store.vault.names(belongs))
        if reason is not None:
            self._guard.enter(Action.STATE, self._store.vault.names(belongs))
        about = self._about_record(record_id, about)
        at = self._writer.moment(scope, about.occurred_at, "occurred_at")
        caller = self._writer.ids(scope, ingress.microseconds(at))
        ids = ScopeIds(replace(belongs, agent=caller.agent, session=caller.session))
        return self._writer.write(
            scope,
            event,
            statement_tier(self._guard.principal),
            replace(about, occurred_at=at),
            stream=record_id,
            ids=ids,
        )


def said(reason: str | None) -> str | None:
    """A reason as it is stored."""
    return None if reason is None else ingress.statement(reason, "reason")


def _about(given: Acting, known: frozenset[str] = _ACTING) -> About:
    for name in given.keys() - known:
        raise TypeError(f"unexpected keyword argument {name!r}")
    at, key, expected = given.get("occurred_at"), given.get("key"), given.get("expected_version")
    return About(at, key, expected_version=expected)


def _one_of(value: object, known: Sequence[str], what: str) -> str:
    if value not in known:
        raise InvalidInput(f"{what} must be one of {', '.join(known)}, not {value!r}")
    return str(value)


def _named(sensitivity: str) -> str | None:
    """What a record carries on; that it is normal, nobody has named by that."""
    return sensitivity if sensitivity == PERSONAL else None


def _tiers(event: object) -> list[int]:
    """The tiers of what a memory event itself cites; citing it gives no higher trust than that."""
    cited = getattr(event, "evidence", None) or ()
    return [one["tier"] for one in cited if one.get("tier") is not None] or [max(Tier)]


def _span(given: Mapping[str, Any]) -> dict[str, Any]:
    start, end = given.get("start"), given.get("end")
    whole = all(isinstance(bound, int) for bound in (start, end) if bound is not None)
    if not whole or (start is None) != (end is None) or (start is not None and not 0 <= start <= end):
        raise InvalidInput("an evidence span needs 0 <= start <= end, or neither")
    span = {"event_id": given["event_id"]}
    return span if start is None else {**span, "start": start, "end": end}

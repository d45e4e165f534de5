"""From what a caller says to validated drafts in the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson

from mnemolog._guard import Guard
from mnemolog._happened import event_of, preview
from mnemolog.domain import ingress, messages
from mnemolog.domain.alignment import new_messages
from mnemolog.domain.errors import ErasedScope, VersionConflict
from mnemolog.domain.events import (
    Draft,
    Event,
    MemoryCorrected,
    MemoryStated,
    QuarantineReviewed,
    Receipt,
    Recorded,
    SessionOpened,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
)
from mnemolog.domain.principal import Tier, tool_tier, turn_tier
from mnemolog.domain.scope import SESSION_LEVELS, Scope, ScopeIds
from mnemolog.domain.sensitivity import NORMAL

_ALIGNMENT_TRIES: Final = 20
_REMEMBERED: Final = 16_384
_SPOKEN: Final = frozenset({"TurnRecorded", "ToolCalled", "ToolReturned"})
_LARGE: Final[dict[type[Event], str]] = {
    TurnRecorded: "content",
    ToolCalled: "arguments",
    ToolReturned: "output",
}
"""The field whose text may go to the blob store."""


@dataclass(frozen=True, slots=True)
class About:
    """What every write may say besides its content.

    began_at: the position of the log when the work on it began; what it rests on and was erased since refuses it.
    """

    occurred_at: datetime | str | None = None
    key: str | None = None
    subjects: Sequence[str] = ()
    expected_version: int | None = None
    sources: tuple[str, ...] = ()
    source_subjects: frozenset[str] = frozenset()
    causation: str | None = None
    began_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Home:
    """What all events of one session share. session: its levels as bytes."""

    session: bytes
    stream: str


class Writer:
    """Builds drafts for one principal and appends them."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._store = guard.store
        self._homes: dict[ScopeIds, _Home] = {}

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append all or none; large bodies of what was not appended are removed again."""
        try:
            receipts = self._store.accesses.append(drafts)
        except BaseException:
            self._drop_blobs(drafts)
            raise
        self._drop_blobs(
            draft for draft, receipt in zip(drafts, receipts, strict=True) if receipt.event_id != draft.id
        )
        if any(isinstance(draft.event, SessionOpened) for draft in drafts):
            self._store.zones.clear()
        return receipts

    def _drop_blobs(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            if getattr(draft.event, "blob", None):
                self._store.blobs.delete(draft.id)

    def write(
        self,
        scope: Scope,
        event: Event,
        origin: Tier,
        about: About,
        *,
        stream: str | None = None,
        ids: ScopeIds | None = None,
    ) -> Receipt:
        return self.append([self.draft(scope, event, origin, about, stream=stream, ids=ids)])[0]

    def draft(
        self,
        scope: Scope,
        event: Event,
        origin: Tier,
        about: About,
        *,
        stream: str | None = None,
        ids: ScopeIds | None = None,
    ) -> Draft:
        """The draft of an event. `ids` overrides where it belongs (a record of a wider scope)."""
        # Before the look at the fences: an erasure behind it then closes this draft, however late it is appended.
        began_at = self._store.position if about.began_at is None else about.began_at
        at = self.moment(scope, about.occurred_at, "occurred_at")
        caller = self.ids(scope, ingress.microseconds(at))
        belongs = caller if ids is None else ids
        subjects = self._subjects(scope, caller, about, at)
        home = belongs.user or subjects[0]
        event_id = self._store.ids.event_id()
        try:
            return Draft(
                id=event_id,
                event=self._with_blob(event_id, event, subjects),
                scope=belongs,
                stream=stream or self.stream(belongs),
                occurred_at=at,
                actor=self._guard.actor(belongs.tenant),
                role=self._guard.principal.role,
                origin=origin,
                digest=self.digest(home, event, stream),
                subjects=subjects,
                key=self._key(home, belongs, about.key),
                expected_version=about.expected_version,
                sources=about.sources,
                causation=about.causation,
                began_at=began_at,
            )
        except ErasedScope:  # its keys went since the look at the fences
            self._store.vault.count_refusal(scope)
            raise

    def ids(self, scope: Scope, occurred_us: int) -> ScopeIds:
        """Random ids of a scope, made if new. Raises ErasedScope for what was erased, and counts it."""
        vault = self._store.vault
        self._refuse_fenced(scope, occurred_us)
        ids = vault.resolve(scope, create=True)
        assert ids is not None
        # An erasure between the two lines above would have made new ids for an old event: look again.
        self._refuse_fenced(scope, occurred_us)
        return ids

    def digest(self, home: str, event: Event, record: str | None = None) -> str:
        """Keyed hash of what an event says (of which record), blind to when and to who is named as its author.

        home: whose hash key; nobody can test a guess of the text once that subject is erased.
        """
        said = _identity(event) + (record or "").encode()
        return self._store.vault.keyed_hash(home, b"body", said).hex()

    def moment(self, scope: Scope, value: datetime | str | None, what: str) -> datetime:
        """A time by the ingress rule, in the zone of the scope's session where it has none of its own."""
        return ingress.moment(
            value, what, zone=lambda: self._store.zone_of(scope), now=self._store.clock.now()
        )

    def _refuse_fenced(self, scope: Scope, occurred_us: int) -> None:
        if self._store.vault.is_fenced(scope, occurred_us):
            self._store.vault.count_refusal(scope)
            raise ErasedScope("this belongs to something that was erased: it is refused and counted")

    def _subjects(self, scope: Scope, ids: ScopeIds, about: About, at: datetime) -> tuple[str, ...]:
        named = ingress.texts(about.subjects, "subjects")
        if not named and not about.source_subjects:
            return (ids.user or ids.tenant,)
        subjects = set(about.source_subjects)
        if ids.user is not None:
            subjects.add(ids.user)
        if len(named) > 1:
            self._introduce_people(scope, named, at)
        for name in named:
            person = Scope(scope.tenant, user=ingress.short(name, "subject"))
            rid = self.ids(person, ingress.microseconds(at)).user
            assert rid is not None
            subjects.add(rid)
        return tuple(sorted(subjects)) or (ids.tenant,)

    def _introduce_people(self, scope: Scope, names: Sequence[str], at: datetime) -> None:
        """Make the names of many persons in one commit."""
        people = {Scope(scope.tenant, user=ingress.short(name, "subject")) for name in names}
        vault, us = self._store.vault, ingress.microseconds(at)
        vault.introduce({one for one in people if not vault.knows(one) and not vault.is_fenced(one, us)})

    def _key(self, home: str, ids: ScopeIds, key: str | None) -> str | None:
        if key is None:
            return None
        text = ingress.short(key, "key", ingress.MAX_KEY_LENGTH)
        session = self._home(ids).session
        return self._store.vault.keyed_hash(home, b"key", session + b"\0" + text.encode()).hex()

    def _with_blob(self, event_id: str, event: Event, subjects: Sequence[str]) -> Event:
        field = _LARGE.get(type(event))
        if field is None:
            return event
        text: str = getattr(event, field)
        if len(text) <= self._store.settings.blob_threshold // 4:
            return event
        if len(text.encode()) <= self._store.settings.blob_threshold:
            return event
        reference = self._store.blobs.write(event_id, subjects, text)
        return replace(event, **{field: preview(text), "blob": reference})  # type: ignore[type-var]

    # Messages --------------------------------------------------------------------------------

    def messages(self, scope: Scope, given: Iterable[Mapping[str, Any]], about: About) -> list[Receipt]:
        """Append what a history says that the session does not hold yet, in order.

        Raises VersionConflict when other writers of the session were quicker every time.
        """
        events = [event_of(item) for item in messages.expand(given)]
        for left in reversed(range(_ALIGNMENT_TRIES)):
            drafts = self._new_drafts(scope, events, about)
            if not drafts:
                return []
            try:
                return self.append(drafts)
            except VersionConflict:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _new_drafts(self, scope: Scope, events: list[Event], about: About) -> list[Draft]:
        about = replace(about, began_at=self._store.position)
        at = self.moment(scope, about.occurred_at, "occurred_at")
        ids = self.ids(scope, ingress.microseconds(at))
        stream = self.stream(ids)
        stored = self._store.log.read_stream(stream, bodies=False)
        home = ids.user or self._subjects(scope, ids, about, at)[0]
        digests = [self.digest(home, event) for event in events]
        spoken = [item.envelope.digest for item in stored if item.envelope.topic in _SPOKEN]
        fresh = self._fresh(events, digests, spoken)
        version = stored[-1].envelope.version if stored else 0
        drafts = [
            self.draft(scope, events[index], self.origin(events[index]), replace(about, occurred_at=at))
            for index in fresh
        ]
        return [replace(draft, expected_version=version + at) for at, draft in enumerate(drafts)]

    @staticmethod
    def _fresh(events: list[Event], digests: list[str], stored: list[str]) -> list[int]:
        """Indices of new messages. A system prompt has no place in the order: runtimes rewrite and move it."""
        system = {index for index, event in enumerate(events) if getattr(event, "role", None) == "system"}
        spoken = [index for index in range(len(events)) if index not in system]
        known, moving = set(stored), {digests[index] for index in system}
        aligned = new_messages(
            [digest for digest in stored if digest not in moving], [digests[index] for index in spoken]
        )
        prompts = [index for index in system if digests[index] not in known]
        return sorted([spoken[index] for index in aligned] + prompts)

    def written(self, scope: Scope, key: str) -> Recorded | None:
        """The event of exactly this scope and session that was written under this key, without its body."""
        ids = self._store.vault.resolve(scope, create=False)
        return None if ids is None else self.found(ids, key)

    def found(self, ids: ScopeIds, key: str | None) -> Recorded | None:
        """As `written`, by ids."""
        try:
            stored = self._key(ids.user or ids.tenant, ids, key)
        except ErasedScope:
            return None
        return None if stored is None else self._store.log.by_key(stored)

    def stream(self, ids: ScopeIds) -> str:
        """The stream of a session's turns and tools."""
        return self._home(ids).stream

    def _home(self, ids: ScopeIds) -> _Home:
        home = self._homes.get(ids)
        if home is None:
            subject, session = ids.user or ids.tenant, ids.at(SESSION_LEVELS).encode()
            stream = self._store.vault.keyed_hash(subject, b"stream", session).hex()
            if len(self._homes) >= _REMEMBERED:
                self._homes.clear()
            home = self._homes[ids] = _Home(session, stream)
        return home

    def origin(self, event: Event) -> Tier:
        """The origin of something that happened: the lower of the principal's tier and the content's own."""
        principal = self._guard.principal
        if isinstance(event, ToolReturned):
            return tool_tier(principal, event.name)
        if isinstance(event, ToolCalled):
            return turn_tier(principal, "assistant")
        return turn_tier(principal, getattr(event, "role", "user"))


def _identity(event: Event) -> bytes:
    """What is not named is the same as its default, as in events that were written before that was told apart."""
    if isinstance(event, TurnRecorded):
        what: Any = (event.role, event.content)
    elif isinstance(event, ToolCalled):
        what = (event.name, _canonical(event.arguments), event.call_id)
    elif isinstance(event, ToolReturned):
        what = (event.output, event.call_id, event.error)
    elif isinstance(event, MemoryStated):
        what = replace(event, kind=event.kind or "fact", sensitivity=event.sensitivity or NORMAL)
    elif isinstance(event, MemoryCorrected | QuarantineReviewed):
        what = replace(event, sensitivity=event.sensitivity or NORMAL)
    else:
        what = event
    return orjson.dumps((event.topic, what))


def _canonical(arguments: str) -> Any:
    """Arguments as a value, so that two ways of writing the same JSON are one call."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments

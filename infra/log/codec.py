"""From a draft to the bytes that are stored, and back.

state = length(envelope) envelope length(part) part ...; lengths are 4 bytes, big-endian. The envelope is compact
JSON in clear and the associated data of every sealed part. leaf = SHA-256(0x00 || state), as in RFC 6962.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, Protocol

import orjson

from mnemolog.domain.errors import CorruptStore, InvalidInput, UnknownEventType
from mnemolog.domain.events import (
    CLEAR_FIELDS,
    FORGOTTEN,
    REGISTRY,
    SEALED_FIELDS,
    Draft,
    Envelope,
    Event,
    Forgotten,
    Json,
    Part,
    Recorded,
    Undecodable,
    restore,
)
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import LEVELS, Scope, ScopeIds

_ROLES: Final = {role.value: role for role in Role}
_TIERS: Final = {int(tier): tier for tier in Tier}
_SCOPE_CACHE: Final = 65_536
_scope_values: Final = attrgetter(*LEVELS)

_UNREADABLE: Final = (CorruptStore, UnknownEventType, TypeError, ValueError, LookupError, AttributeError)
"""What a broken body or envelope can raise. Everything else (a key store that is away) is not the event's fault."""

NOWHERE: Final = Envelope(
    id="?",
    topic="?",
    schema=0,
    stream="?",
    version=0,
    occurred_at="",
    recorded_at="",
    scope=ScopeIds(Scope(tenant="?")),
    actor="?",
    role=Role.SERVICE,
    origin=Tier.IMPORT,
    digest="",
    key=None,
    sources=(),
    parts=(),
    clear={},
)
"""Stands in for an envelope that cannot be read, so that a reader goes on."""


class Sealer(Protocol):
    """Closes and opens one part of a body under the keys of its subjects."""

    def next_leaf(self, subject: str) -> int:
        """A leaf number that no part has had, for a part of this subject."""

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
        """Raises ErasedScope when a subject was destroyed."""

    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None:
        """The plaintext; None when a key was destroyed. Raises CorruptStore when it was changed."""


@dataclass(slots=True)
class Prepared:
    """A draft whose bodies are serialised: what can be done, and can fail, before the log's turn."""

    draft: Draft
    envelope: Json
    bodies: list[tuple[tuple[str, ...], bytes]]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the fields of one event class are stored."""

    clear: tuple[str, ...]
    sealed: tuple[str, ...]
    required: tuple[str, ...]
    values: Callable[[Event], Json]
    is_empty: Callable[[Event], bool]


class Codec:
    """Encodes drafts and decodes stored states with the keys of `sealer`. Safe to share between threads."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._scopes: dict[tuple[str | None, ...], ScopeIds] = {}

    def prepare(self, draft: Draft) -> Prepared:
        """Serialise the bodies of a draft. Raises InvalidInput for what UTF-8 JSON cannot carry."""
        try:
            # These two are also columns, which fail in other ways.
            draft.stream.encode()
            (draft.key or "").encode()
            layout = _layout(draft.event)
            return Prepared(draft, _static(draft, layout), _bodies(draft, layout))
        except (TypeError, UnicodeEncodeError) as error:
            raise InvalidInput(
                f"{draft.event.topic} cannot be stored as UTF-8 JSON ({type(error).__name__})"
            ) from None

    def seal(self, prepared: Prepared, version: int, recorded_at: str) -> bytes:
        """The state to store. Raises InvalidInput, or what the sealer raises (ErasedScope)."""
        sealer, bodies = self._sealer, prepared.bodies
        parts = [(sealer.next_leaf(subjects[0]), subjects) for subjects, _ in bodies]
        try:
            envelope = orjson.dumps({**prepared.envelope, "v": version, "r": recorded_at, "p": parts})
        except TypeError as error:
            raise InvalidInput(f"an envelope field cannot be stored as UTF-8 JSON: {error}") from None
        chunks = [len(envelope).to_bytes(4, "big"), envelope]
        for (leaf, subjects), (_, plaintext) in zip(parts, bodies, strict=True):
            sealed = sealer.seal(subjects, leaf, plaintext, envelope)
            chunks += (len(sealed).to_bytes(4, "big"), sealed)
        return b"".join(chunks)

    def decode(self, position: int, state: bytes, *, bodies: bool = True) -> Recorded:
        """The event of a stored state. Never raises for what is stored: `Undecodable` names the error class."""
        try:
            aad = _chunk(state, 0)
            envelope = self._envelope(orjson.loads(aad))
        except _UNREADABLE as error:
            return Recorded(position, NOWHERE, Undecodable(type(error).__name__))
        return Recorded(position, envelope, self._event(envelope, state, aad) if bodies else None)

    def _envelope(self, raw: Json) -> Envelope:
        get = raw.get
        if not (type(raw["i"]) is type(raw["st"]) is type(raw["t"]) is str and type(raw["v"]) is int):
            raise TypeError
        return Envelope(
            raw["i"],
            raw["t"],
            raw["s"],
            raw["st"],
            raw["v"],
            raw["o"],
            raw["r"],
            self._scope(tuple(raw["sc"])),
            raw["a"],
            _ROLES[raw["ro"]],
            _TIERS[raw["or"]],
            raw["d"],
            get("k"),
            tuple(get("src", ())),
            tuple([Part(leaf, tuple(subjects)) for leaf, subjects in raw["p"]]),
            get("c") or {},
            get("ca"),
            get("co"),
        )

    def _scope(self, values: tuple[str | None, ...]) -> ScopeIds:
        known = self._scopes.get(values)
        if known is None:
            known = ScopeIds(Scope(**dict(zip(LEVELS, values, strict=True))))  # type: ignore[arg-type]
            if len(self._scopes) >= _SCOPE_CACHE:
                self._scopes.clear()
            self._scopes[values] = known
        return known

    def _event(self, envelope: Envelope, state: bytes, aad: bytes) -> Event | Forgotten | Undecodable:
        try:
            values, offset, forgotten = dict(envelope.clear), 4 + len(aad), False
            for part in envelope.parts:
                ciphertext = _chunk(state, offset)
                offset += 4 + len(ciphertext)
                plaintext = self._sealer.open(part.subjects, part.leaf, ciphertext, aad)
                if plaintext is not None:
                    values.update(orjson.loads(plaintext))
                elif part is envelope.parts[0]:
                    return FORGOTTEN
                else:
                    forgotten = True
            if forgotten:
                values = {**dict.fromkeys(_LAYOUTS[envelope.topic].required, FORGOTTEN), **values}
            return restore(envelope.topic, envelope.schema, values)
        except _UNREADABLE as error:
            return Undecodable(type(error).__name__)


def leaf_hash(state: bytes) -> bytes:
    """The Merkle leaf of a stored state (RFC 6962, section 2.1)."""
    return sha256(b"\x00" + state).digest()


def _chunk(state: bytes, offset: int) -> bytes:
    start = offset + 4
    end = start + int.from_bytes(state[offset:start], "big")
    if end > len(state) or start == end:
        raise CorruptStore("a stored state is cut off")
    return state[start:end]


def _static(draft: Draft, layout: _Layout) -> Json:
    """The envelope without what only the commit knows: version, time, leaf numbers."""
    event = draft.event
    raw: Json = {
        "i": draft.id,
        "t": event.topic,
        "s": event.schema,
        "st": draft.stream,
        "o": _iso(draft.occurred_at),
        "sc": _scope_values(draft.scope),
        "a": draft.actor,
        "ro": draft.role.value,
        "or": int(draft.origin),
        "d": draft.digest,
    }
    if draft.key is not None:
        raw["k"] = draft.key
    if draft.sources:
        raw["src"] = draft.sources
    if layout.clear:
        raw["c"] = {name: getattr(event, name) for name in layout.clear}
    if draft.causation is not None:
        raw["ca"] = draft.causation
    if draft.correlation is not None:
        raw["co"] = draft.correlation
    return raw


def _bodies(draft: Draft, layout: _Layout) -> list[tuple[tuple[str, ...], bytes]]:
    """Subjects and plaintext of each part; empty when there is nothing to seal."""
    event = draft.event
    if not layout.required and layout.is_empty(event):
        return []
    values = layout.values(event)
    if not draft.parts:
        return [(_known(draft.subjects, event.topic), orjson.dumps(values))]
    if sorted(name for _, names in draft.parts for name in names) != sorted(layout.sealed):
        raise InvalidInput(f"the parts of a {event.topic} must hold each of {', '.join(layout.sealed)} once")
    return [
        (_known(subjects, event.topic), orjson.dumps({name: values[name] for name in names}))
        for subjects, names in draft.parts
    ]


def _known(subjects: tuple[str, ...], topic: str) -> tuple[str, ...]:
    if not subjects:
        raise InvalidInput(f"{topic} has content to seal but names no subject: pass subjects=(...)")
    return subjects


def _iso(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise InvalidInput("occurred_at needs a time zone: pass an aware datetime")
    return moment.isoformat()


def _layout(event: Event) -> _Layout:
    topic = getattr(event, "topic", "?")
    if REGISTRY.get(topic) is not type(event):
        raise UnknownEventType(f"{type(event).__name__} is not in the registry of events")
    return _LAYOUTS[topic]


def _layout_of(cls: type[Event]) -> _Layout:
    defaults = {f.name: f.default for f in fields(cls)}  # type: ignore[arg-type]
    clear = tuple(name for name in defaults if name in CLEAR_FIELDS[cls.topic])
    sealed = tuple(name for name in defaults if name in SEALED_FIELDS[cls.topic])
    return _Layout(
        clear=clear,
        sealed=sealed,
        required=tuple(name for name in sealed if defaults[name] is MISSING),
        values=_values(sealed),
        is_empty=lambda event: all(getattr(event, name) == defaults[name] for name in sealed),
    )


def _values(names: tuple[str, ...]) -> Callable[[Event], Json]:
    if len(names) == 1:
        return lambda event: {names[0]: getattr(event, names[0])}
    get: Callable[[Event], tuple[Any, ...]] = attrgetter(*names) if names else lambda _: ()
    return lambda event: dict(zip(names, get(event), strict=True))


_LAYOUTS: Final = {topic: _layout_of(cls) for topic, cls in REGISTRY.items()}

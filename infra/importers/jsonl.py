"""The event file: one JSON object per line, as docs/import-format.md describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from mnemolog.consumers.importing import RECORDED, Entry, Item, Names, Place, Skipped
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.ingress import moment
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers.reading import Options, records_of_lines
from mnemolog.infra.importers.sources import Source, derived_key

FORM: Final = "jsonl"
COMMON: Final = frozenset({"type", "scope", "occurred_at", "key"})

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GIVE: Final = ", or give --tenant"
Check = Callable[[str, Any, tzinfo | None], Any]


def read(source: Source, after: Place, options: Options) -> Iterator[Entry]:
    """The entries after a place. The lines before it are looked at only for the zones of sessions."""
    zones = _Zones(options.zone)
    for found in records_of_lines(source, after, '"session_'):
        if found.place.number > after.number:
            yield found.problem or _entry(found.place, found.value, options, zones)
        elif found.problem is None and _type(found.value) in ("session_opened", "session_closed"):
            _entry(found.place, found.value, options, zones)


def announce(source: Source, options: Options, names: Names) -> None:
    """Tell `names` which keys lines name."""
    with suppress(InvalidInput):  # damage is told of when the lines are read
        for line in source.lines():
            for tenant, key in _references(line.text or "", options):
                names.want(tenant, key)


def _references(text: str, options: Options) -> list[tuple[str, str]]:
    if '"target"' not in text and '"evidence"' not in text:
        return []
    try:
        line = json.loads(text)
        tenant = _scope(line, options).tenant
        named = [line.get("target"), *(line.get("evidence") or ())]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []
    return [(tenant, key) for key in named if isinstance(key, str)]


def _type(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else None


def _entry(place: Place, value: Any, options: Options, zones: _Zones) -> Entry:
    try:
        return Entry(place, (_item(place, value, options, zones),))
    except InvalidInput as error:
        return Entry(place, skipped=(Skipped(place.number, str(error)),))


def entry_of(value: Any, number: int, apart: str) -> Entry:
    """What one message of a topic says, by the rules of a line. apart: tells it from others with the same content."""
    try:
        options = Options(None, None, _EPOCH)
        return Entry(Place(number), (_item(Place(number), value, options, _Zones(None), apart),))
    except InvalidInput as error:
        reason = str(error).removesuffix(_GIVE)  # there is no importer to give it to
        return Entry(Place(number), skipped=(Skipped(number, reason),))


def _item(place: Place, line: Any, options: Options, zones: _Zones, apart: str | None = None) -> Item:
    if not isinstance(line, dict):
        raise InvalidInput("the line is not a JSON object")
    kind = line.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise InvalidInput(f"unknown type: use one of {', '.join(FIELDS)}")
    scope = _scope(line, options)
    if kind in RECORDED and scope.session is None:
        raise InvalidInput(f"the scope of a {kind} line must name its session")
    zone = zones.of(kind, scope, line)
    fields = _fields(kind, line, zone)
    if line.get("occurred_at") is None:
        raise InvalidInput("`occurred_at` is missing")
    fields["occurred_at"] = _time("occurred_at", line["occurred_at"], zone)
    key = line.get("key")
    if key is None:
        where = place.number if apart is None else apart
        made = derived_key(FORM, scope.encode(), where, json.dumps(line, sort_keys=True))
        return Item(kind, scope, fields, made, place.number, derived_key=True)
    return Item(kind, scope, fields, _text("key", key, None), place.number)


def _scope(line: Mapping[str, Any], options: Options) -> Scope:
    """The line's own scope; without one, or without a tenant in it, what the importer gave."""
    levels = line.get("scope")
    if levels is None and options.defaults is not None:
        return options.defaults
    if not isinstance(levels, dict):
        raise InvalidInput(f"`scope` must be an object with a tenant{_GIVE}")
    if not levels.get("tenant") and options.defaults is not None:
        levels = {**levels, "tenant": options.defaults.tenant}
    return Scope.of(levels)


def _fields(kind: str, line: Mapping[str, Any], zone: tzinfo | None) -> dict[str, Any]:
    """The line's own fields, checked; `null` is the same as absent."""
    spec = FIELDS[kind]
    if unknown := sorted(line.keys() - COMMON - spec.checks.keys()):
        raise InvalidInput(f"a {kind} line has no field {', '.join(f'`{name[:40]}`' for name in unknown)}")
    given = {name: value for name in spec.checks if (value := line.get(name)) is not None}
    if missing := [name for name in spec.required if name not in given]:
        raise InvalidInput(f"a {kind} line needs `{missing[0]}`")
    if kind == "tool_result" and ("output" in given) == ("error" in given):
        raise InvalidInput("a tool_result line has exactly one of `output` and `error`")
    return {name: spec.checks[name](name, value, zone) for name, value in given.items()}


class _Zones:
    """The time zones of the sessions that are open at this place of the file."""

    def __init__(self, default: tzinfo | None) -> None:
        self._default = default
        self._open: dict[tuple[str | None, ...], tzinfo] = {}

    def of(self, kind: str, scope: Scope, line: Mapping[str, Any]) -> tzinfo | None:
        """The zone of a line's times; None leaves a time as it is, for the memory knows its own sessions."""
        session = (scope.tenant, scope.user, scope.project, scope.session)
        if kind == "session_opened" and line.get("timezone") is not None:
            self._open[session] = zone_of(line["timezone"])
        if kind == "session_closed":
            return self._open.pop(session, self._default)
        return self._open.get(session, self._default)


def zone_of(name: Any) -> tzinfo:
    """The zone with this IANA name. Raises InvalidInput when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        raise InvalidInput("`timezone` must be an IANA name, such as Asia/Seoul") from None


def _text(name: str, value: Any, _: tzinfo | None) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` must be a string")
    return value


def _json(_name: str, value: Any, _: tzinfo | None) -> Any:
    return value


def _number(name: str, value: Any, _: tzinfo | None) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"`{name}` must be a number")
    return value


def _flag(name: str, value: Any, _: tzinfo | None) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false")
    return value


def _texts(name: str, value: Any, _: tzinfo | None) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise InvalidInput(f"`{name}` must be a list of strings")
    return tuple(value)


def _pair(name: str, value: Any, zone: tzinfo | None) -> tuple[str, ...]:
    pair = _texts(name, value, zone)
    if len(pair) != 2:
        raise InvalidInput(f"`{name}` must be a list of two strings")
    return pair


def _time(name: str, value: Any, zone: tzinfo | None) -> datetime:
    """A time, in the session's zone when it has no offset; left without one when no zone is known here."""
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` must be ISO 8601 text, such as 2026-03-02T09:14:00+09:00")
    if zone is None:
        try:
            naive = datetime.fromisoformat(value.strip())
        except ValueError:
            naive = None
        if naive is not None and naive.utcoffset() is None:
            return naive
    return moment(value, f"`{name}`", zone=lambda: zone, now=_EPOCH)


@dataclass(frozen=True, slots=True)
class Spec:
    """The fields that a type of line may have, with their checks, and those that it must have."""

    required: tuple[str, ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)


_CHANGE: Final[Mapping[str, Check]] = {"record": _text, "reason": _text}
_ABOUT: Final[Mapping[str, Check]] = {
    "valid_from": _time,
    "valid_to": _time,
    "expires_at": _time,
    "evidence": _texts,
}
FIELDS: Final[Mapping[str, Spec]] = {
    "session_opened": Spec((), {"timezone": _text, "title": _text}),
    "turn": Spec(("role", "content"), {"role": _text, "content": _text, "author": _text, "subjects": _texts}),
    "chunk": Spec(
        ("role", "content", "utterance", "index"),
        {
            "role": _text,
            "content": _text,
            "author": _text,
            "utterance": _text,
            "index": _number,
            "final": _flag,
        },
    ),
    "tool_call": Spec(
        ("name", "arguments"), {"name": _text, "arguments": _json, "call_id": _text, "subjects": _texts}
    ),
    "tool_result": Spec(
        (),
        {
            "output": _json,
            "error": _text,
            "call_id": _text,
            "name": _text,
            "source": _pair,
            "subjects": _texts,
        },
    ),
    "feedback": Spec(("target", "rating"), {"target": _text, "rating": _text, "comment": _text}),
    "session_closed": Spec((), {"reason": _text}),
    "remember": Spec(
        ("content",),
        {
            **_ABOUT,
            "content": _text,
            "kind": _text,
            "slot": _pair,
            "sensitivity": _text,
            "consent": _text,
            "confidence": _number,
            "subjects": _texts,
            "id": _text,
        },
    ),
    "correct": Spec(("record", "content"), {**_ABOUT, **_CHANGE, "content": _text, "sensitivity": _text}),
    "confirm": Spec(("record",), _CHANGE),
    "dispute": Spec(("record",), _CHANGE),
    "retract": Spec(("record",), _CHANGE),
}

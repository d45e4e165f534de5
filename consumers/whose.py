"""Whom a message is about that could not be taken: as far as it can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from re import compile as pattern
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.ingress import microseconds
from mnemolog.domain.scope import LEVELS, Scope

_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_NAMED: Final = pattern(rf'"({"|".join(LEVELS)}|occurred_at)"\s*:\s*({_TEXT}|\d+)')
_SUBJECTS: Final = pattern(rf'"subjects"\s*:\s*\[((?:[^\]"]|{_TEXT})*)')
_EASTERNMOST: Final = timezone(timedelta(hours=14))


@dataclass(frozen=True, slots=True)
class Whose:
    """Whom a message is about: the names of its scope, and persons besides its user.

    occurred_us: UTC microseconds, as early as it can be; 0 where the message does not say.
    """

    scope: Scope
    subjects: tuple[str, ...] = ()
    occurred_us: int = 0

    def people(self) -> Iterator[Scope]:
        """Each person that it is about; the tenant where there is none."""
        users = dict.fromkeys([self.scope.user, *self.subjects])
        yield from (
            Scope(self.scope.tenant, user=user) for user in users if user is not None or len(users) == 1
        )

    def places(self) -> Iterator[Scope]:
        """Whatever an erasure may have closed."""
        yield self.scope
        yield from self.people()


def whose(raw: bytes) -> Whose | None:
    """Whom a message is about, as far as that can be read of one that is wrong, cut off, or no JSON at all."""
    text = raw.decode("utf-8", "replace")
    value = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
    if not isinstance(value, dict) or not _levels(value.get("scope")):
        value = _fragments(text)
    subjects = value.get("subjects")
    try:
        scope = Scope.of(_levels(value["scope"]))
        names = map(_name, subjects if isinstance(subjects, list) else ())
        found = Whose(scope, tuple(name for name in names if name), _earliest(value.get("occurred_at")))
        return found if list(found.people()) and not scope.has_any else None
    except InvalidInput:
        return None


def _levels(given: Any) -> dict[str, str | None]:
    """The levels that can be read; none without a tenant."""
    names = {level: _name(given.get(level)) for level in LEVELS} if isinstance(given, dict) else {}
    return names if names.get("tenant") else {}


def _name(value: Any) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) else None


def _fragments(text: str) -> Mapping[str, Any]:
    """The first of each name that stands in a text that is no JSON."""
    found: dict[str, Any] = {}
    for name, quoted in _NAMED.findall(text):
        with suppress(ValueError):
            found.setdefault(name, json.loads(quoted, strict=False))
    value: dict[str, Any] = {"scope": found, "occurred_at": found.pop("occurred_at", None)}
    listed = _SUBJECTS.search(text)
    if listed is not None:
        with suppress(ValueError):
            value["subjects"] = json.loads(f"[{listed[1]}]", strict=False)
    return value


def _earliest(occurred_at: Any) -> int:
    with suppress(ValueError, OverflowError):
        at = datetime.fromisoformat(str(occurred_at).strip())
        return microseconds(at.replace(tzinfo=_EASTERNMOST) if at.utcoffset() is None else at)
    return 0

"""What a point of an index holds, whoever keeps the index: ids, scope and facts to filter by, never text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import Any, Final, Protocol
from uuid import UUID, uuid5

from mnemolog.domain.scope import RECORD_LEVELS, ScopeIds
from mnemolog.projections.vectors import Kind, StoredVector

VECTOR: Final = "dense"
WHOLE: Final = tuple(kind for kind in Kind if kind is not Kind.PASSAGE)
"""Kinds of which an event has one vector at most."""
INDEXED: Final = (*RECORD_LEVELS, "kind", "scope")
"""Keyword indexes; in Edge each costs a tenth of a second and some megabytes per shard."""
FOUND: Final = ("position", "part")
"""What of its payload a hit brings along."""
_NAMES: Final = UUID("6f1c5b0a-9b0e-5d3b-8a64-6d6e656d6f6c")


def point_id(space: str, kind: Kind, position: int, part: int = 0) -> str:
    """The same for the same vector, so that a repetition adds no second one."""
    of_part = f"/{part}" if kind is Kind.PASSAGE else ""
    return str(uuid5(_NAMES, f"{space}/{kind.name}/{position}{of_part}"))


def payload_of(row: StoredVector) -> dict[str, Any]:
    """The facts of a vector."""
    payload: dict[str, Any] = {
        "position": row.place.position,
        "change": row.change,
        "kind": row.kind.name,
        "scope": scope_key(row.scope),
        "at": row.occurred_us,
        "origin": row.origin,
        **{level: getattr(row.scope, level) for level in RECORD_LEVELS if getattr(row.scope, level)},
    }
    if row.session:
        payload["session"] = row.session
    if row.kind is Kind.PASSAGE:
        payload["part"] = row.part
    return payload


def named(payload: dict[str, Any]) -> tuple[tuple[int, Kind, int], int]:
    """(log position, kind, part) and change number of a point."""
    return (payload["position"], Kind[payload["kind"]], payload.get("part", 0)), payload["change"]


def scope_key(scope: ScopeIds) -> str:
    """One keyword for a scope, from its random ids."""
    return blake2b(scope.at(RECORD_LEVELS).encode(), digest_size=12).hexdigest()


def wanted(
    scopes: Collection[ScopeIds], kind: Kind, key: Callable[[ScopeIds], str] = scope_key
) -> dict[str, list[str]]:
    """Field → values, one of which a point of these scopes and this kind has. key: how their scopes are written."""
    return {
        "tenant": sorted({scope.tenant for scope in scopes}),
        "scope": sorted({key(scope) for scope in scopes}),
        "kind": [kind.name],
    }


class Scored(Protocol):
    """A point that was found."""

    @property
    def payload(self) -> Any: ...

    @property
    def score(self) -> Any: ...


def hits(points: Iterable[Scored], kind: Kind) -> list[tuple[int, float]]:
    """What each goes by, and its cosine: best first, of equals the newer first."""
    found = [(point.payload or {}, float(point.score)) for point in points]
    named = [(kind.listed(values["position"], values.get("part", 0)), score) for values, score in found]
    return sorted(named, key=lambda hit: (-hit[1], -hit[0]))

"""Notes beside the log: one for each erasure that is not finished. They hold ids only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.locks import exclusively
from mnemolog.infra.places import FILE, opened_places
from mnemolog.infra.settings import Settings
from mnemolog.infra.turns import among_machines

_PREFIX: Final = "erasure/"
WAIT_SECONDS: Final = 600.0
"""How long an erasure waits for another one."""


@dataclass(frozen=True, slots=True)
class Work:
    """One erasure as its note keeps it: ids only. place: the ids of the levels that the target is in."""

    erasure: str
    what: str
    target: str
    place: Mapping[str, str]
    events: tuple[str, ...]
    sessions: tuple[str, ...] = ()
    evidence_left: tuple[str, ...] = ()
    keep_evidence: bool = False
    twins: tuple[str, ...] = ()
    position: int = 0
    """Of its last event in the log, once the keys are gone and the log knows. What came later is not its business."""
    root: str = ""
    """Fingerprint of the root key under which copies of the destroyed keys may be left, outside the key store."""
    waiting: bool = False
    """Whether all is done but that this root key is still in use."""

    @property
    def scope(self) -> ScopeIds:
        return ScopeIds(Scope(**self.place))

    @property
    def tenant(self) -> ScopeIds:
        return ScopeIds(self.scope.at(()))


@contextmanager
def erasing(path: Path, settings: Settings, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """One erasure at a time in a data directory, and among the machines that share its log.

    Raises StoreInUse when `wait` seconds were not enough, StoreUnavailable where the database is away.
    """
    here = exclusively(path / "erasing.lock", wait, f"erasing in {path}")
    with here, among_machines(settings, "erasing", wait):
        yield


class Notes:
    """The notes of one memory: in its data directory, or beside a log in PostgreSQL, for any machine to go on with.

    Every call raises StoreUnavailable where the database is away. Whoever writes is inside `erasing`.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self._settings = settings.model_copy(update={"data": path})

    def pending(self) -> list[Work]:
        """Erasures that are not finished, in the order in which they began."""
        if self._settings.database_url is None and not (self._settings.data / FILE).exists():
            return []
        with opened_places(self._settings) as places:
            stored = places.all()
        return [_read(stored[name]) for name in sorted(stored) if name.startswith(_PREFIX)]

    def write(self, work: Work) -> None:
        """Durable when this returns."""
        name = _PREFIX + work.erasure
        with opened_places(self._settings) as places:
            places.save(name, places.load(name), orjson.dumps(asdict(work)))

    def remove(self, work: Work) -> None:
        with opened_places(self._settings) as places:
            places.remove(_PREFIX + work.erasure)


def what_next(work: Work) -> str:
    """What an operator does about an erasure that is not finished."""
    if work.waiting:
        return "copies of its keys can be opened until `mnemolog keys rotate`"
    return "`mnemolog erase --resume` goes on"


def _read(note: bytes) -> Work:
    stored: dict[str, Any] = orjson.loads(note)
    values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    return Work(**values)

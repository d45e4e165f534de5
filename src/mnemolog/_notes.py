"""Notes in the data directory: one for each erasure that is not finished. They hold ids only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.locks import exclusively
from mnemolog.infra.settings import Settings
from mnemolog.infra.turns import among_machines
from mnemolog.projections.private import private

NOTES_FOLDER: Final = "erasures"
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


def pending_notes(path: Path) -> list[Path]:
    """The notes of erasures in a data directory that are not finished."""
    folder = path / NOTES_FOLDER
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def what_next(path: Path, erasure: str) -> str:
    """What an operator does about an erasure that is not finished."""
    note = path / NOTES_FOLDER / f"{erasure}.json"
    if note.exists() and read_note(note).waiting:
        return "copies of its keys can be opened until `mnemolog keys rotate`"
    return "`mnemolog erase --resume` goes on"


def write_note(path: Path, work: Work) -> Path:
    folder = path / NOTES_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    note = folder / f"{work.erasure}.json"
    half = note.with_suffix(".half")
    with open(half, "wb", opener=private) as file:
        file.write(orjson.dumps(asdict(work)))
        file.flush()
        os.fsync(file.fileno())
    half.rename(note)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return note


def read_note(note: Path) -> Work:
    stored: dict[str, Any] = orjson.loads(note.read_bytes())
    values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    return Work(**values)

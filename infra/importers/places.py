"""Where an import stopped: one small file per imported file in the data directory.

It holds numbers and closed words, never what was said, nor digests of it, nor labels, keys or names, also not hashed:
a hash of something short can be guessed. It is written after what it tells of is durable, so it can be behind the
log but not before it; losing it costs time only.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from mnemolog.consumers.importing import CODES, NOT_KEPT, Place, Skipped, Tally, code_of
from mnemolog.domain.scope import Scope
from mnemolog.projections.private import private

VERSION: Final = 2
CLOCK_STEP: Final = 0.02
"""Seconds within which a file system may give two changes the same time."""

Stamp = list[int]


@dataclass(slots=True)
class Saved:
    """A place with all that going on from it needs. stamp: of the file when the reading of it began."""

    start: datetime
    place: Place = field(default_factory=Place)
    stamp: Stamp = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


def stamp_of(path: Path) -> Stamp:
    """What differs after a file was changed or replaced, as far as can be told without looking at its content.

    A file that was changed in this very moment is looked at a moment later, so that the next change has another time.
    """
    if 0 <= time.time() - path.stat().st_mtime < CLOCK_STEP:
        time.sleep(CLOCK_STEP)
    status = path.stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def place_path(folder: Path, source: Path, form: str, defaults: Scope | None, zone: str | None) -> Path:
    """The place of one file under one set of options: with others, the same file says something else."""
    digest = hashlib.sha256(os.fsencode(source.resolve()))
    scope = b"" if defaults is None else defaults.encode()
    digest.update(b"\0".join([b"", form.encode(), (zone or "").encode(), scope]))
    return folder / f"{digest.hexdigest()[:40]}.json"


def load(path: Path) -> Saved | None:
    """The saved place, or None when there is none that can be read."""
    try:
        stored = json.loads(path.read_bytes())
        if stored["version"] != VERSION:
            return None
        return _restored(stored)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(path: Path, saved: Saved) -> None:
    """Replace the place file; a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    stored = {
        "version": VERSION,
        "start": saved.start.isoformat(),
        "place": saved.place.number,
        "stamp": saved.stamp,
        "tally": {
            "appended": saved.tally.appended,
            "duplicates": saved.tally.duplicates,
            "refused": saved.tally.refused,
            "position": saved.tally.position,
            "wrong": saved.tally.wrong,
            "codes": saved.tally.codes,
            "skipped": [[skipped.number, code_of(skipped)] for skipped in saved.tally.skipped],
        },
    }
    written = path.with_suffix(f".{os.getpid()}")
    with open(written, "w", opener=private) as file:
        file.write(json.dumps(stored))
    written.replace(path)


def _restored(stored: dict[str, Any]) -> Saved:
    """What was appended in an earlier run is already here in this one; of reasons there are only the codes."""
    tally = stored["tally"]
    return Saved(
        datetime.fromisoformat(stored["start"]),
        Place(stored["place"]),
        stored["stamp"],
        Tally(
            duplicates=tally["appended"] + tally["duplicates"],
            refused=tally["refused"],
            position=tally["position"],
            wrong=tally["wrong"],
            codes=Counter(tally["codes"]),
            reasons=Counter({CODES[code]: count for code, count in tally["codes"].items()}),
            skipped=[_skipped(number, code) for number, code in tally["skipped"]],
        ),
    )


def _skipped(number: int, code: str) -> Skipped:
    return Skipped(number, CODES[code], by_design=code == NOT_KEPT, code=code)

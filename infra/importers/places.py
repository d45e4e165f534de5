"""Where an import stopped: one small file per imported file in the data directory.

It holds numbers, ids, salted hashes and why something was skipped, never what was said, nor labels or names. It is
written after what it tells of is durable, so it can be behind the log but not before it; losing it costs time only.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from mnemolog.consumers.importing import Place, Skipped, Tally
from mnemolog.domain.scope import Scope

VERSION: Final = 1


@dataclass(slots=True)
class Saved:
    """A place with all that going on from it needs. digest: of what was read; size: of the file then."""

    start: datetime
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    place: Place = field(default_factory=Place)
    digest: str = ""
    size: int = 0
    names: dict[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)


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
        "salt": saved.salt.hex(),
        "place": asdict(saved.place),
        "digest": saved.digest,
        "size": saved.size,
        "names": saved.names,
        "tally": {
            "appended": saved.tally.appended,
            "duplicates": saved.tally.duplicates,
            "refused": saved.tally.refused,
            "position": saved.tally.position,
            "reasons": saved.tally.reasons,
            "wrong": saved.tally.wrong,
            "skipped": [asdict(skipped) for skipped in saved.tally.skipped],
        },
    }
    written = path.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(stored))
    written.replace(path)


def _restored(stored: dict[str, Any]) -> Saved:
    """What was appended in an earlier run is already here in this one."""
    tally = stored["tally"]
    return Saved(
        datetime.fromisoformat(stored["start"]),
        bytes.fromhex(stored["salt"]),
        Place(**stored["place"]),
        stored["digest"],
        stored["size"],
        dict(stored["names"]),
        Tally(
            duplicates=tally["appended"] + tally["duplicates"],
            refused=tally["refused"],
            position=tally["position"],
            reasons=Counter(tally["reasons"]),
            wrong=tally["wrong"],
            skipped=[Skipped(**skipped) for skipped in tally["skipped"]],
        ),
    )

"""Files that hold something of a memory are for their owner alone, whatever the umask."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def private(path: str, flags: int) -> int:
    """An `opener` for `open`."""
    return os.open(path, flags, 0o600)


def made_private(path: Path) -> Path:
    """The file, made empty if it is not there; who opens it tells why it cannot be made."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return path

"""How the file of one projection version is named: `<name>-<version>-<generation>.db`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mnemolog.domain.errors import InvalidInput

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*")
_FILE: Final = re.compile(rf"({_NAME.pattern})-({_VERSION.pattern})-([1-9][0-9]*)\.db")


@dataclass(frozen=True, slots=True)
class ViewFile:
    """One projection version in one file. No two files of a projection have the same generation."""

    name: str
    version: str
    generation: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not _VERSION.fullmatch(self.version) or self.generation < 1:
            raise InvalidInput(f"not a projection, version and generation: {self!r}")

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-{self.generation}.db"

    @classmethod
    def parse(cls, filename: str) -> ViewFile | None:
        """The version that a file name tells; None where it is not such a name."""
        found = _FILE.fullmatch(filename)
        return cls(found[1], found[2], int(found[3])) if found else None


def version_of(code: str, *parts: str) -> str:
    """The version of a projection: of its code, and of all else that decides its rows (analyzer, policy hash)."""
    return ".".join((code, *parts))

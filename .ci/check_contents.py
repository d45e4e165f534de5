"""Checks that a wheel and an sdist hold the four folders as files, not as links, and the type marker."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("domain", "projections", "consumers", "infra")
SYMLINK = 0o120000


def in_wheel(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if (member.external_attr >> 16) & 0o170000 == SYMLINK:
                sys.exit(f"{path}: {member.filename} is a link")
            yield member.filename


def in_sdist(path: str) -> Iterator[str]:
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.issym() or member.islnk():
                sys.exit(f"{path}: {member.name} is a link")
            yield member.name.partition("/")[2].removeprefix("src/")


def expected() -> set[str]:
    folders = [source for folder in FOLDERS for source in (ROOT / folder).rglob("*.py")]
    public = (ROOT / "src" / "mnemolog").glob("*.py")
    return {f"mnemolog/{source.relative_to(ROOT)}" for source in folders} | {
        f"mnemolog/{source.name}" for source in public
    }


for archive_path in sys.argv[1:]:
    names = set(in_wheel(archive_path) if archive_path.endswith(".whl") else in_sdist(archive_path))
    if absent := (expected() | {"mnemolog/py.typed"}) - names:
        sys.exit(f"{archive_path}: lacks {sorted(absent)}")
    print(f"{Path(archive_path).name}: holds all {len(expected())} modules as files")

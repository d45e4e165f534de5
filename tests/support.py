"""What tests share: where the project is, and what to do when a part that a test needs is not here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("domain", "projections", "consumers", "infra")
REQUIRE_ALL = os.environ.get("MNEMOLOG_REQUIRE_ALL", "") not in ("", "0")


def require(component: str, how_to_install: str, *, present: bool = False) -> None:
    """Go on when the component is present; else skip, saying what to install, or fail where all is required.

    `MNEMOLOG_REQUIRE_ALL=1` asks for all. `@pytest.mark.kafka` and its like only select; this decides.
    """
    if present:
        return
    message = f"{component} is not here: {how_to_install}"
    if REQUIRE_ALL:
        pytest.fail(message, pytrace=False)
    pytest.skip(message, allow_module_level=True)


def require_module(module: str, how_to_install: str) -> None:
    """`require` for an importable module."""
    # Asked first: a module that takes its own place while it is imported, as faust does, has no spec any more.
    present = module in sys.modules or find_spec(module) is not None
    require(module, how_to_install, present=present)


def files_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file with its content; one that is gone before it is read, as another process works there, is left out."""
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in sorted(names)):
            with suppress(FileNotFoundError):
                yield path, path.read_bytes()


def shared_data_folder() -> Path:
    """Where recorded transcripts and public test sets are, if they are anywhere."""
    return Path(os.environ.get("MNEMOLOG_SHARED_DATA") or ROOT.parent / "shared" / "data")

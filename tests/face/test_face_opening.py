"""An opened memory has loaded what it needs, and nothing that only a question, a plan or a review asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LATER = (
    "mnemolog._contexts", "mnemolog._erasing", "mnemolog._reading", "mnemolog._reviewing", "mnemolog._stating",
    "mnemolog.domain.gate.credentials", "mnemolog.domain.gate.identifiers", "mnemolog.domain.retrieval",
    "mnemolog.operations", "mnemolog.projections.hybrid", "mnemolog.results",
    "detect_secrets", "fastembed", "httpx", "numpy", "onnxruntime", "psycopg", "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm", "yaml",
)  # fmt: skip


def run(code: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, timeout=120)


def test_opening_and_recording_load_little(tmp_path: Path) -> None:
    """Neither to open an empty store, nor to record a turn, nor to close it takes any of these."""
    run(
        "import sys; from mnemolog import Memory, Scope\n"
        "with Memory.open(sys.argv[1], background=False) as memory:\n"
        "    memory.record_turn(Scope('acme', user='u-1'), role='user', content='the walrus')\n"
        f"found = [name for name in {LATER!r} if name in sys.modules]\n"
        "assert not found, found\n",
        str(tmp_path / "data"),
    )


def test_an_import_leaves_the_collector_as_it_was() -> None:
    """It is on again, or off, and what the caller had frozen stays frozen."""
    run(
        "import gc\n"
        "gc.freeze(); frozen = gc.get_freeze_count()\n"
        "from mnemolog import Memory\n"
        "assert gc.isenabled() and gc.get_freeze_count() > frozen / 2 > 0\n"
        "gc.unfreeze(); gc.disable()\n"
        "from mnemolog import AsyncMemory\n"
        "assert not gc.isenabled() and gc.get_freeze_count() == 0\n"
    )


def test_what_is_imported_is_not_looked_through_again() -> None:
    """The modules are among the old objects, so that no look at the young ones goes through them."""
    run(
        "import gc; from mnemolog import Memory\n"
        "young = [one for at in (0, 1) for one in gc.get_objects(generation=at)]\n"
        "assert len(young) < len(gc.get_objects(generation=2)) / 10, len(young)\n"
    )

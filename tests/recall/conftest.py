"""A memory whose vectors are always up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding_fakes import embedding_memory
from mnemolog import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with embedding_memory(tmp_path / "data") as opened:
        yield opened

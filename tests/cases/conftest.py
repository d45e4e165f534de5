"""The memory that these tests use: once with words alone, once with vectors beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding_fakes import embedding_memory
from face_world import open_memory
from mnemolog import Memory


@pytest.fixture(params=["words", "vectors"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    opening = embedding_memory if request.param == "vectors" else open_memory
    with opening(tmp_path / "data") as opened:
        yield opened

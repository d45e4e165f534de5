"""Worlds that a test opened are closed when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vector_fakes import World


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Opens worlds over the test's folder; one at a time has the index."""
    made: list[World] = []

    def make(**options: Any) -> World:
        while made:
            made.pop().close()
        made.append(World(tmp_path, **options))
        return made[-1]

    yield make
    while made:
        made.pop().close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """An empty world."""
    return make_world()

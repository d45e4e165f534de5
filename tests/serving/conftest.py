"""Roles in processes of their own that are gone when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from served import Served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts a role, on the test's directory or another."""
    started: list[Served] = []

    def one(role: str = "projections", *, data: Path | None = None, **environment: str) -> Served:
        started.append(Served(role, data or tmp_path / "data", **environment))
        return started[-1]

    yield one
    for served in started:
        served.kill()

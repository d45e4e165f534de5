"""Fixtures of the tests that need PostgreSQL."""

from __future__ import annotations

import pytest
from moving_world import files, prepared, server

__all__ = ["files", "prepared", "server"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)

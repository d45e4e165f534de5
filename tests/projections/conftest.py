"""Views that a test opened are closed when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from projection_fakes import OPENED


@pytest.fixture(autouse=True)
def close_views() -> Iterator[None]:
    """Leave no connection open."""
    yield
    while OPENED:
        OPENED.pop().close()

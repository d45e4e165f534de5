"""Other processes that are gone when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from peers import Peer


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    """Starts another process on the test's directory, and waits until it has opened it unless told otherwise."""
    started: list[Peer] = []

    def one(*, background: bool = True, wait: bool = True) -> Peer:
        peer = Peer(tmp_path / "data", background=background)
        started.append(peer)
        return peer.ready() if wait else peer

    yield one
    for peer in started:
        peer.kill()

"""A log behind its port: every contract test runs against each kind of log in `LOGS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from log_support import FakeSealer

from mnemolog.infra.clock import SeededClock
from mnemolog.infra.log import SqliteEventLog

LogFactory = Callable[..., SqliteEventLog]


@pytest.fixture
def sealer() -> FakeSealer:
    return FakeSealer()


@pytest.fixture
def log_factory(tmp_path: Path, sealer: FakeSealer) -> Iterator[LogFactory]:
    """Opens the same store each time it is called: `log_factory()` again is another process, or a restart."""
    opened: list[SqliteEventLog] = []

    def make(**options: Any) -> SqliteEventLog:
        options = {"sealer": sealer, "clock": SeededClock(), **options}
        opened.append(SqliteEventLog(tmp_path / "log.db", **options))
        return opened[-1]

    yield make
    for log in opened:
        log.close()


@pytest.fixture
def log(log_factory: LogFactory) -> SqliteEventLog:
    return log_factory()

"""A log behind its port: every contract test runs against each kind of log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from log_kinds import Kind, Log, PostgresKind, SqliteKind

from log_support import FakeSealer
from mnemolog.infra.clock import SeededClock
from postgres_world import new_schema

LogFactory = Callable[..., Log]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def log_kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Where the log is, and how it is changed behind its back."""
    if request.param == "sqlite":
        return SqliteKind(tmp_path / "log.db")
    return PostgresKind(request.getfixturevalue("postgres_url"), new_schema())


@pytest.fixture
def sealer() -> FakeSealer:
    return FakeSealer()


@pytest.fixture
def log_factory(log_kind: Kind, sealer: FakeSealer) -> Iterator[LogFactory]:
    """Opens the same store each time it is called: `log_factory()` again is another process, or a restart."""
    opened: list[Log] = []

    def make(**options: Any) -> Log:
        options = {"sealer": sealer, "clock": SeededClock(), **options}
        opened.append(log_kind.open(**options))
        return opened[-1]

    yield make
    for log in opened:
        log.close()


@pytest.fixture
def log(log_factory: LogFactory) -> Log:
    return log_factory()

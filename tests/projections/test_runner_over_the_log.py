"""The runner over the log and the vault of the embedded mode."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemolog.domain.events import Draft, Event, MemoryStated, ToolReturned, TurnRecorded
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import Scope
from mnemolog.infra.compose import Store, open_store
from mnemolog.infra.settings import Settings
from mnemolog.projections import catalog


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data", Settings()) as opened:
        opened.begin(False, lambda: None)
    yield opened
    opened.close()


def write(store: Store, event: Event, user: str = "u1") -> str:
    """Append one event; its id."""
    scope = store.vault.resolve(Scope(tenant="t", user=user, session="s"), create=True)
    assert scope is not None
    assert scope.user is not None
    draft = Draft(
        id=store.ids.event_id(),
        event=event,
        scope=scope,
        stream=scope.session or "",
        occurred_at=datetime(2026, 3, 2, tzinfo=UTC),
        actor="a",
        role=Role.AGENT,
        origin=Tier.AGENT,
        digest="d",
        subjects=(scope.user,),
    )
    return store.log.append([draft])[0].event_id


def test_what_was_appended_is_read_at_once_and_rebuilt_the_same(store: Store) -> None:
    """Every view reaches the head of the real log, over events that it does not care for, and folds to the same."""
    ids = [write(store, TurnRecorded("user", f"turn {number}"), f"u{number % 3}") for number in range(20)]
    write(store, ToolReturned("out", "tool"))
    write(store, MemoryStated("remembered"))
    store.runner.catch_up_all()
    assert {lag.lag for lag in store.runner.lag()} == {0}
    with store.runner.read("catalog") as conn:
        row = catalog.find(conn, ids[4])
        assert row is not None
        assert row.topic == "TurnRecorded"
    for name in store.runner.names():
        live = store.runner.dump(name)
        store.runner.rebuild(name, batch_size=3)
        assert store.runner.dump(name) == live
        assert store.runner.purge(name)


def test_the_doorbell_of_the_log_wakes_the_runner(store: Store) -> None:
    """In the background the views follow an append within a moment, and closing waits for no poll."""
    store.runner.background.start()
    for _ in range(5):
        time.sleep(0.05)
        write(store, TurnRecorded("user", "ring"))
        deadline = time.monotonic() + 5
        while any(lag.lag for lag in store.runner.lag()):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    started = time.monotonic()
    store.runner.background.stop()
    assert time.monotonic() - started < 1

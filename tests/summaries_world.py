"""A memory without threads, and a worker that can be asked to write summaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from face_world import open_memory
from mnemolog import Memory, Scope
from mnemolog._guard import Guard
from mnemolog._working import Desk
from mnemolog._writing import Writer
from mnemolog.consumers.summarising import Summarising
from mnemolog.domain.scope import ScopeIds
from mnemolog.domain.summaries import Member, WindowRule
from mnemolog.projections import summaries_view
from mnemolog.projections.scopes import record_scope
from mnemolog.projections.summaries_view import SummaryRow

S1 = Scope("acme", user="u-1", project="heron", session="s-1")
S2 = Scope("acme", user="u-1", project="heron", session="s-2")
SMALL = WindowRule(keep=2, step=3)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "data") as opened:
        yield opened


def worker(memory: Memory, **options: Any) -> Summarising:
    store = memory._store
    actor = Guard(store, memory.principal).actor
    log = options.pop("log", store.log)
    return Summarising(log, store.runner, store.vault, store.ids, store.clock, actor, **options)


def desk(memory: Memory) -> Desk:
    guard = Guard(memory._store, memory.principal)
    return Desk(guard, Writer(guard))


def ids_of(memory: Memory, scope: Scope) -> ScopeIds:
    ids = memory._store.vault.resolve(scope, create=False)
    assert ids is not None
    return ids


def session_of(memory: Memory, scope: Scope) -> str:
    session = ids_of(memory, scope).session
    assert session is not None
    return session


def current(memory: Memory, scope: Scope) -> SummaryRow | None:
    """The session's current summary, as its scope sees it."""
    with memory._store.runner.read("summaries") as conn:
        return summaries_view.of_session(conn, numbers(memory, conn, scope), session_of(memory, scope))


def window(memory: Memory, scope: Scope, keep: int = SMALL.keep) -> list[Member]:
    with memory._store.runner.read("summaries") as conn:
        seen = numbers(memory, conn, scope)
        return summaries_view.window(conn, seen, session_of(memory, scope), keep=keep)


def numbers(memory: Memory, conn: Any, scope: Scope) -> list[int]:
    from sqlalchemy import MetaData

    from mnemolog.projections.scopes import ScopeTable

    return list(ScopeTable(MetaData()).visible(conn, record_scope(ids_of(memory, scope))))


def written(memory: Memory) -> int:
    """How many summaries the log holds."""
    return len(memory.log(limit=10_000, topics={"SummaryWritten"}))


def talk(memory: Memory, scope: Scope, *texts: str) -> list[str]:
    """User and assistant in turns; the ids of the events."""
    roles = ("user", "assistant")
    return [
        memory.record_turn(scope, role=roles[at % 2], content=text).event_id for at, text in enumerate(texts)
    ]

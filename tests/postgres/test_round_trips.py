"""How often the server is asked: an answer costs what a network takes, so what is asked must not grow with the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from embedding_fakes import Bigrams
from face_world import U1, open_memory
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.settings import Settings
from mnemolog.projections.vectors import Batch, Kind, Made, Place, Source, Window
from postgres_world import new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import numpy as np  # noqa: E402
from psycopg import _cursor_base, generators  # noqa: E402

from mnemolog.infra.postgres.vectors import postgres_vectors  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]

RECALL = 14
"""The head of the log; beginning, scopes and end of two views; words of turns with passages, and of records; whether
what is kept of records and vectors is new; the turns, the records and their peers that are shown."""
IDLE = 10
"""What a worker asks that finds nothing to embed, ten times a second."""


@contextmanager
def round_trips(patch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Counts the answers that are waited for."""
    execute, counted = generators.execute, count()

    def counting(connection: Any) -> Any:
        next(counted)
        return execute(connection)

    with patch.context() as patched:
        for module in (generators, _cursor_base):
            patched.setattr(module, "execute", counting)
        yield lambda: next(counted)


def test_a_recall_and_an_idle_worker_ask_a_few_times(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many turns there are, and with vectors."""
    settings = Settings.load(database_url=postgres_url, database_schema=new_schema(), durability="os")
    with open_memory(tmp_path / "data", embedder=Bigrams(), settings=settings) as memory:
        for number in range(40):
            memory.record_turn(U1, role="user", content=f"the budget {number} of friday")
        memory.remember(U1, "the budget is fixed")
        memory.operations.embed()
        for _ in range(12):  # what is asked often is prepared
            memory.recall(U1, "budget")
        with round_trips(monkeypatch) as asked:
            assert len(memory.recall(U1, "budget", k=5)) == 5
            assert asked() <= RECALL
        worker = memory._store.vectors._open().worker
        with round_trips(monkeypatch) as asked:
            assert not worker.step()
            assert asked() <= IDLE


def batch(positions: range, after: int) -> Batch:
    """Turns of as many people, each in a session of its own, alone and with what was said before."""
    sources, made = list[Source](), list[Made]()
    for position in positions:
        place, user = Place(position, f"e{position}"), f"u{position}"
        scope = ScopeIds(Scope("t", user=user))
        sources.append(Source(place, scope, session=f"s{position}", subjects=("t", "other")))
        values = np.full(4, 0.5, np.float32)
        made += [Made(kind, Window(place), values) for kind in (Kind.TURN, Kind.WINDOW)]
    return Batch("words@1", after, positions[-1], sources, made)


def test_vectors_are_stored_in_as_many_round_trips_however_many_there_are(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is with the look at the sessions that they continue. Only a new scope costs one."""
    rows = postgres_vectors(postgres_url, new_schema())
    rows.open_space("words@1", 4)
    people = batch(range(1, 81), 0)
    assert rows.commit(people, lambda after: ((), after)).committed
    sessions = [source.session or "" for source in people.sources]
    trips = list[int]()
    for some in (10, 80):
        with round_trips(monkeypatch) as asked:
            last = rows.position("words@1")
            sources = [
                Source(Place(last + n, f"e{last + n}"), source.scope, source.session, subjects=("t",))
                for n, source in enumerate(people.sources[:some], 1)
            ]
            values = np.full(4, 0.5, np.float32)
            made = [Made(Kind.TURN, Window(source.place), values) for source in sources]
            rows.commit(Batch("words@1", last, last + some, sources, made), lambda after: ((), after))
            found = rows.tails(sessions[:some], last + some)
            trips.append(asked())
        assert [len(found[session]) for session in sessions[:some]] == [2] * some
    assert max(trips) <= 20
    rows.close()

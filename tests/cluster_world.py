"""A deployment on this machine: PostgreSQL, a broker, and roles in processes of their own, that can be harmed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kafka_world import Kafka, until
from mnemolog import Memory, Scope
from mnemolog.consumers.partitions import partition_of
from mnemolog.infra.compose import Store
from mnemolog.infra.settings import Settings
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections.access import Accessed
from mnemolog.projections.catalog import Catalog
from mnemolog.projections.curated import Curated
from mnemolog.projections.ports import Projection
from mnemolog.projections.runner import Runner
from mnemolog.projections.summaries import Summaries
from mnemolog.projections.turns import Turns
from mnemolog.projections.working import Working
from postgres_world import new_schema
from served import Served


@dataclass
class Deployment:
    """One data directory for what is not in servers, and the roles that run."""

    folder: Path
    database: str
    kafka: Kafka
    partitions: int = 3
    schema: str = field(default_factory=new_schema)
    session_seconds: float = 3.0
    roles: list[Served] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **self.kafka.environment,
            "MNEMOLOG_DATABASE_URL": self.database,
            "MNEMOLOG_DATABASE_SCHEMA": self.schema,
            "MNEMOLOG_KEYS_URL": self.database,
            "MNEMOLOG_KAFKA_PARTITIONS": str(self.partitions),
            "MNEMOLOG_KAFKA_SESSION_SECONDS": str(self.session_seconds),
            "MNEMOLOG_WORKERS": "true",
            "MNEMOLOG_EMBEDDER": "none",
            "MNEMOLOG_DURABILITY": "fsync",
        }

    @property
    def settings(self) -> Settings:
        """Of a process that appends and reads."""
        values = {name.removeprefix("MNEMOLOG_").lower(): value for name, value in self.environment.items()}
        return Settings.load(data=self.folder / "data", **values)

    def serve(self, role: str, **environment: str) -> Served:
        """Start a role."""
        served = Served(role, self.folder / "data", **self.environment, **environment)
        self.roles.append(served)
        return served

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        with Memory.open(self.folder / "data", settings=self.settings, background=False) as memory:
            yield memory

    def settled(self, memory: Memory, seconds: float = 120.0) -> int:
        """Wait until the workers have folded all that is in the log; its head."""
        store, head = store_of(memory), store_of(memory).log.head()

        def done() -> bool:
            return all(lag.position >= head for lag in _lags(store))

        try:
            until(done, f"the views at {head}", seconds)
        except AssertionError as error:
            behind = [lag for lag in _lags(store) if lag.position < head]
            raise AssertionError(f"{error}; behind: {behind}; said:\n{self.said()}") from error
        return head

    def said(self) -> str:
        return "\n".join(each.said for each in self.roles)

    def end(self) -> None:
        """Let everything that runs drain; what does not is killed."""
        alive = [each for each in self.roles if each.process.poll() is None]
        for each in alive:
            each.process.send_signal(signal.SIGCONT)
            each.process.terminate()
        for each in alive:
            try:
                each.process.wait(30)
            except Exception:
                each.kill()


def store_of(memory: Memory) -> Store:
    return memory._store


def _lags(store: Store) -> list[Any]:
    try:
        return list(store.runner.lag())
    except Exception:  # the views are being made, or their server is
        store.views.refresh()
        return [type("Lag", (), {"position": -1})]


def embedded(memory: Memory, folder: Path) -> Runner:
    """What one process makes of the same log, in files."""
    store = store_of(memory)
    store.vault.refresh()
    turns, curated = store.turns, store.curated
    lexical = [SqliteLexicalIndex(name) for name in ("turns_lex", "passages_lex", "records_lex")]
    projections: list[Projection] = [
        Catalog(),
        Turns(lexical[0], lexical[1], turns.analyzer, store.blobs),
        Curated(lexical[2], curated.analyzer),
        Summaries(),
        Working(),
        Accessed(),
    ]
    runner = Runner(store.log, SqliteViews(folder), projections, place=partition_of)
    runner.open()
    runner.catch_up_all()
    return runner


def assert_as_embedded(memory: Memory, folder: Path) -> None:
    """Every view that the workers made has the rows that one process makes, and nothing is parked elsewhere."""
    shared, single = store_of(memory).runner, embedded(memory, folder)
    for name in shared.names():
        assert shared.dump(name) == single.dump(name), f"the view {name} differs"
        assert [row.position for row in shared.parked(name)] == [row.position for row in single.parked(name)]


def say(memory: Memory, random: Random, many: int, people: int = 8) -> None:
    """Turns, facts, corrections and feedback of some people, in Korean and English; erasures among them."""
    for _ in range(many):
        user = f"u-{random.randrange(people)}"
        scope = Scope("acme", user=user, project="billing", session=f"{user}-s{random.randrange(3)}")
        what, number = random.random(), random.randrange(1000)
        if what < 0.7:
            memory.record_turn(scope, role="user", content=f"budget {number} for Busan, 예산 {number}만원")
        elif what < 0.85:
            memory.remember(scope, f"The budget is {number}", slot=("budget", f"item {number % 5}"))
        elif what < 0.97:
            memory.record_turn(scope, role="assistant", content=f"noted {number}, 확인했습니다")
        else:
            memory.feedback(scope, memory.record_turn(scope, role="user", content="ok").event_id, rating="up")

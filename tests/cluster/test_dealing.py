"""Which partitions a worker believes to be its own, when they are dealt anew while the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from mnemolog.consumers.workers import Worker
from mnemolog.errors import StoreUnavailable
from mnemolog.infra.kafka.working import FaustWorker


class Dealt:
    """A worker whose database is away for so many questions."""

    def __init__(self, away: int) -> None:
        self.partitions: Collection[int] = ()
        self._away = away

    def assign(self, partitions: Collection[int]) -> None:
        self.partitions = partitions

    def begins(self) -> dict[int, int | None]:
        self._away -= 1
        if self._away >= 0:
            raise StoreUnavailable("away")
        return dict.fromkeys(self.partitions)


async def test_a_question_that_waited_does_not_bring_back_what_was_dealt_before(tmp_path: Path) -> None:
    """Faust asks again for each dealing, and may still wait for the answer to the one before."""
    worker, dealt = Dealt(away=1), [1, 2]
    faust = FaustWorker(cast(Worker, worker), dict[str, Any](), "events", "workers", tmp_path)
    before = asyncio.ensure_future(faust._begins(lambda: dealt))
    while not faust.supervisor.trouble.backoff:
        await asyncio.sleep(0.01)
    dealt = [1, 2, 4]
    assert set(await faust._begins(lambda: dealt)) == {1, 2, 4}
    assert set(await before) == {1, 2, 4} == set(worker.partitions)
    faust._thread.shutdown()

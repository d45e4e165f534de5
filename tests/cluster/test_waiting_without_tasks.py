"""What a worker's Kafka client waits for, without tasks of its own where there is nothing to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

pytest.importorskip("faust", reason="faust-streaming is not installed: pip install 'mnemolog[kafka]'")

from mnemolog.infra.kafka.working import _rest


async def begun(work: Coroutine[Any, Any, int]) -> asyncio.Task[int]:
    """The task of the rest of some work that has begun here."""
    return asyncio.ensure_future(_rest(work, work.send(None)))


async def test_work_that_has_begun_goes_on_to_its_end() -> None:
    """However often it waits, it gets what it waited for, and gives its result."""
    given: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        await asyncio.sleep(0)
        found = await given
        await asyncio.sleep(0)
        return found + 1

    rest = await begun(work())
    given.set_result(4)
    assert await rest == 5


async def test_an_interruption_reaches_it() -> None:
    """It hears that it is cancelled, as by partitions that are taken away."""
    heard = []

    async def work() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise
        return 0

    rest = await begun(work())
    await asyncio.sleep(0)
    rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rest
    assert heard == ["cancelled"]


async def test_its_error_is_raised() -> None:
    """An error after the wait is the waiter's."""

    async def work() -> int:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await (await begun(work()))

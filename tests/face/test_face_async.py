"""`AsyncMemory`: every method of `Memory`, awaited."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from face_world import ACME, U1, user
from mnemolog import FORGOTTEN, AsyncMemory, Memory
from mnemolog.errors import AccessDenied, StoreClosed


def test_both_faces_have_the_same_methods() -> None:
    """Each public method of Memory is there, with the same parameters."""
    for name, method in vars(Memory).items():
        if name.startswith("_") or not callable(method) or name in ("open", "acting_as"):
            continue
        twin = getattr(AsyncMemory, name, None)
        assert twin is not None, name
        if name != "erase":
            assert inspect.signature(twin).parameters == inspect.signature(method).parameters


async def test_every_method_can_be_awaited(tmp_path: Path) -> None:
    """A walk over all methods gives what the synchronous ones give."""
    async with await AsyncMemory.open(tmp_path / "data") as memory:
        await memory.open_session(U1, timezone="Asia/Seoul")
        turn = await memory.record_turn(U1, role="user", content="the walrus")
        await memory.record_chunk(U1, role="user", content="the", utterance="u", index=0, final=True)
        await memory.record_tool_call(U1, name="f", arguments={})
        output = await memory.record_tool_result(U1, output="result")
        assert len(await memory.record_messages(U1, [{"role": "user", "content": "hello"}])) == 1
        batch = await memory.record_batch([{"type": "turn", "scope": U1, "role": "user", "content": "b"}])
        assert len(batch) == 1
        note = await memory.remember(U1, "walrus fact")
        await memory.feedback(U1, note.record_id, "up")
        await memory.correct(U1, note.record_id, "walrus truth")
        await memory.dispute(U1, note.record_id)
        await memory.confirm(U1, note.record_id)
        assert {hit.text for hit in await memory.recall(U1, "walrus")} == {"the walrus", "walrus truth"}
        assert (await memory.context(U1, "walrus", budget=500)).receipt.entries
        assert (await memory.get(U1, turn.event_id)).text == "the walrus"
        assert len(await memory.records(U1)) == 1
        assert len(await memory.history(U1, note.record_id)) == 4
        assert (await memory.read_output(U1, output.event_id)).text == "result"
        events = await memory.log(limit=1)
        assert (await memory.names(events[0].envelope.scope)).user == "u-1"
        head = (await memory.operations.status()).head
        assert await memory.wait(head - 1, 1.0) == head == await memory.operations.catch_up()
        assert len(await memory.operations.projections()) == 6
        before = await memory.operations.dump_hash("turns")
        await memory.operations.rebuild("turns")
        assert await memory.operations.dump_hash("turns") == before
        assert await memory.operations.parked() == []
        for decide in (memory.operations.replay_parked, memory.operations.dismiss_parked):
            with pytest.raises(LookupError):
                await decide("turns", 1)
        async with memory.operations.paused():
            await memory.record_turn(U1, role="user", content="while paused")
        await memory.operations.rotate_root_key()
        assert await memory.operations.verify_log() == (await memory.operations.status()).head
        with pytest.raises(AccessDenied):
            await memory.acting_as(user("u-2")).recall(U1, "walrus")
        await memory.retract(U1, note.record_id)
        await memory.close_session(U1)
        plan = await memory.erase(ACME, subject="u-1", reason="asked")
        assert note.record_id in plan.records
        assert (await plan.apply()).complete
        assert await memory.get(U1, note.record_id) is FORGOTTEN
    with pytest.raises(StoreClosed):
        await memory.recall(U1, "walrus")


async def test_many_at_once(tmp_path: Path) -> None:
    """Gathered writes all go in, and an open `Memory` can be shared with asyncio."""
    with Memory.open(tmp_path / "data") as plain:
        memory = AsyncMemory(plain)
        receipts = await asyncio.gather(
            *(memory.record_turn(U1, role="user", content=f"walrus {number}") for number in range(50))
        )
        assert sorted(receipt.position for receipt in receipts) == list(range(1, 51))
        assert len(await memory.recall(U1, "walrus", k=100)) == 50

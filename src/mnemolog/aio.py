"""`AsyncMemory`: the same methods, awaited; each runs in a worker thread, where it may wait for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from mnemolog._erasing import ErasurePlan, Progress
from mnemolog._reviewing import Review
from mnemolog.domain.erasure import ErasureReceipt
from mnemolog.domain.principal import Principal
from mnemolog.infra.settings import Settings
from mnemolog.memory import Memory
from mnemolog.operations import Operations

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
    @wraps(method)
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.memory, *args, **kwargs)

    return call


def _operated(
    method: Callable[Concatenate[Operations, P], R],
) -> Callable[Concatenate[AsyncOperations, P], Awaitable[R]]:
    @wraps(method)
    async def call(self: AsyncOperations, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.operations, *args, **kwargs)

    return call


class AsyncOperations:
    """`Operations`, awaited."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """As `Operations.paused`."""
        paused = self.operations.paused()
        await asyncio.to_thread(paused.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(paused.__exit__, None, None, None)

    status = _operated(Operations.status)
    health = _operated(Operations.health)
    partitions = _operated(Operations.partitions)
    projections = _operated(Operations.projections)
    catch_up = _operated(Operations.catch_up)
    run_workers = _operated(Operations.run_workers)
    behind = _operated(Operations.behind)
    vectors = _operated(Operations.vectors)
    workers = _operated(Operations.workers)
    embed = _operated(Operations.embed)
    extract = _operated(Operations.extract)
    rebuild = _operated(Operations.rebuild)
    rebuild_all = _operated(Operations.rebuild_all)
    dump_hash = _operated(Operations.dump_hash)
    parked = _operated(Operations.parked)
    replay_parked = _operated(Operations.replay_parked)
    dismiss_parked = _operated(Operations.dismiss_parked)
    policy = _operated(Operations.policy)
    policy_document = _operated(Operations.policy_document)
    adopt_policy = _operated(Operations.adopt_policy)
    audit_record = _operated(Operations.audit_record)
    audit_context = _operated(Operations.audit_context)
    finish_erasures = _operated(Operations.finish_erasures)
    rotate_root_key = _operated(Operations.rotate_root_key)
    verify_log = _operated(Operations.verify_log)


def _reviewed(
    method: Callable[Concatenate[Review, P], R],
) -> Callable[Concatenate[AsyncReview, P], Awaitable[R]]:
    @wraps(method)
    async def call(self: AsyncReview, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.review, *args, **kwargs)

    return call


class AsyncReview:
    """`Review`, awaited."""

    def __init__(self, review: Review) -> None:
        self.review = review

    list = _reviewed(Review.list)
    show = _reviewed(Review.show)
    approve = _reviewed(Review.approve)
    reject = _reviewed(Review.reject)
    edit = _reviewed(Review.edit)
    conflicts = _reviewed(Review.conflicts)
    resolve = _reviewed(Review.resolve)
    merges = _reviewed(Review.merges)
    merge = _reviewed(Review.merge)
    keep_apart = _reviewed(Review.keep_apart)


class AsyncErasurePlan:
    """An `ErasurePlan` whose `apply` is awaited; everything else is the plan's."""

    def __init__(self, plan: ErasurePlan) -> None:
        self.plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)

    async def apply(self, progress: Progress | None = None) -> ErasureReceipt:
        return await asyncio.to_thread(self.plan.apply, progress)


class AsyncMemory:
    """`Memory` for asyncio. `await AsyncMemory.open(path)`, or wrap an open memory: `AsyncMemory(memory)`."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.path, self.principal = memory, memory.path, memory.principal
        self.operations, self.review = AsyncOperations(memory.operations), AsyncReview(memory.review)

    @classmethod
    async def open(cls, where: str | Path | Settings, **options: Any) -> Self:
        """As `Memory.open`."""
        return cls(await asyncio.to_thread(Memory.open, where, **options))

    def acting_as(self, principal: Principal) -> AsyncMemory:
        """As `Memory.acting_as`."""
        return AsyncMemory(self.memory.acting_as(principal))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    close = _awaited(Memory.close)
    open_session = _awaited(Memory.open_session)
    close_session = _awaited(Memory.close_session)
    record_turn = _awaited(Memory.record_turn)
    record_chunk = _awaited(Memory.record_chunk)
    record_tool_call = _awaited(Memory.record_tool_call)
    record_tool_result = _awaited(Memory.record_tool_result)
    record_messages = _awaited(Memory.record_messages)
    record_batch = _awaited(Memory.record_batch)
    feedback = _awaited(Memory.feedback)
    remember = _awaited(Memory.remember)
    correct = _awaited(Memory.correct)
    retract = _awaited(Memory.retract)
    confirm = _awaited(Memory.confirm)
    dispute = _awaited(Memory.dispute)
    grant_consent = _awaited(Memory.grant_consent)
    withdraw_consent = _awaited(Memory.withdraw_consent)
    standing = _awaited(Memory.standing)
    why = _awaited(Memory.why)
    why_not = _awaited(Memory.why_not)
    set_state = _awaited(Memory.set_state)
    state = _awaited(Memory.state)
    states = _awaited(Memory.states)
    recall = _awaited(Memory.recall)
    context = _awaited(Memory.context)
    get = _awaited(Memory.get)
    records = _awaited(Memory.records)
    history = _awaited(Memory.history)
    read_output = _awaited(Memory.read_output)
    log = _awaited(Memory.log)
    names = _awaited(Memory.names)
    wait = _awaited(Memory.wait)
    _erase = _awaited(Memory.erase)

    async def erase(self, *args: Any, **kwargs: Any) -> AsyncErasurePlan:
        """As `Memory.erase`; await the plan's `apply`."""
        return AsyncErasurePlan(await self._erase(*args, **kwargs))

"""The transaction of a group of appends: versions, keys, fences and sealing, then one insert and one commit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from typing import Final

from mnemolog.domain.errors import (
    AnotherLog,
    CorruptStore,
    ErasedScope,
    IdempotencyConflict,
    VersionConflict,
)
from mnemolog.domain.events import ERASURE, Draft, Receipt
from mnemolog.infra.log.codec import Codec, Prepared, leaf_hash
from mnemolog.infra.log.fences import Fences, LateWork
from mnemolog.infra.log.group import Request
from mnemolog.infra.log.storage import Overtaken, Storage, StoredRow
from mnemolog.projections.ports import Clock

STREAM_CACHE: Final = 65_536
"""How many stream heads are remembered."""


@dataclass(slots=True)
class Counters:
    """What the log has done since it was opened.

    duplicates: drafts answered with an earlier receipt. refused_late: refused because it began before an erasure.
    refused_erased: refused because a subject's keys are gone. failed_groups: commits that failed as a whole.
    """

    events: int = 0
    groups: int = 0
    largest_group: int = 0
    duplicates: int = 0
    version_conflicts: int = 0
    key_conflicts: int = 0
    refused_late: int = 0
    refused_erased: int = 0
    failed_groups: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


_Keys = dict[str, tuple[str, Receipt]]
"""Idempotency key -> digest of the body, and the first receipt."""


class _Plan:
    """What a request, or a group of them, is about to write; nothing of it is visible before the commit."""

    __slots__ = ("heads", "keys", "rows")

    def __init__(self, keys: _Keys) -> None:
        self.heads: dict[str, int] = {}
        self.keys = keys
        self.rows: list[StoredRow] = []

    def take(self, other: _Plan) -> None:
        self.heads.update(other.heads)
        self.keys.update(other.keys)
        self.rows += other.rows


class Writer:
    """The one who writes. Not thread-safe: the caller holds the commit lock."""

    def __init__(self, storage: Storage, codec: Codec, clock: Clock) -> None:
        self._storage, self._codec, self._clock = storage, codec, clock
        self.counters = Counters()
        self._data_version = -1
        self._foreign, self._claimed = 0, 0
        """How often another process was found to have committed."""
        self._careful = False
        """Whether keys are looked up beforehand. Most are new, and the unique index finds those that are not."""
        self._forget()

    def commit(self, requests: Sequence[Request]) -> int:
        """Settle all requests in one transaction; the last position. Raises StoreUnavailable when all failed."""
        with self._failing():
            plan, seen = self._written(requests)
        self._remember(plan, requests)
        self._data_version = seen
        return self._position

    def _written(self, requests: Sequence[Request]) -> tuple[_Plan, int]:
        try:
            return self._unless_known(requests, eager=True)
        except Overtaken:
            self._storage.rollback()
            self._claimed = 0
            if self._fences.position > self._position:  # an erasure that was to be written is noted
                self._forget()
            return self._unless_known(requests, eager=False)

    def _unless_known(self, requests: Sequence[Request], *, eager: bool) -> tuple[_Plan, int]:
        try:
            return self._write(requests, eager=eager)
        except self._storage.conflict:
            # A key that is known, in a group that was not looked up: nothing is stored, so begin again.
            self._undo()
            self._careful = True
            return self._write(requests, eager=False)

    def _write(self, requests: Sequence[Request], *, eager: bool) -> tuple[_Plan, int]:
        """What was committed, and the data version to remember once it is known that it was."""
        self._look_around(self._storage.begin(eager=eager))
        self._tick()
        plan = self._plan(requests)
        self._claimed = max(self._claimed, self._position + len(plan.rows))
        # Until the outcome is remembered, an interrupt must make the next group look around anew.
        seen, self._data_version = self._data_version, -1
        self._storage.commit(plan.rows, self._position + 1)
        return plan, seen

    def carry(self, rows: Sequence[StoredRow], first: int) -> None:
        """Store rows of another log as they are, at the positions from `first` on.

        Raises AnotherLog where they would not follow what is stored, StoreUnavailable.
        """
        with self._failing():
            self._look_around(self._storage.begin())
            if self._position != first - 1:
                raise AnotherLog(f"the target has {self._position} events where {first - 1} were expected")
            self._storage.commit(rows, first)
        self._forget()

    def foreign_up_to(self, head: int) -> int:
        """Grows with every commit of another process that is found, by an append or by a head beyond our own."""
        if head > self._claimed:
            self._claimed = head
            self._foreign += 1
        return self._foreign

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Whatever ends the block early undoes the transaction; the driver's errors become ours."""
        try:
            yield
        except self._storage.failure as error:
            self._fail()
            raise self._storage.typed(error) from error
        except BaseException:
            self._fail()
            raise

    def _undo(self) -> None:
        self._storage.rollback()
        self._forget()

    def _fail(self) -> None:
        self._undo()
        self.counters.failed_groups += 1

    def _forget(self) -> None:
        """After a rollback: what was remembered may never have happened."""
        self._heads: OrderedDict[str, int] = OrderedDict()
        self._fences = Fences()
        self._position, self._now, self._data_version = 0, "", -1
        self._claimed = 0
        """Up to where everything is known, or about to be our own."""

    def _look_around(self, data_version: int) -> None:
        """Inside the transaction: forget what another process may have changed since the last one."""
        if data_version == self._data_version:
            return
        self._foreign += 1
        self._heads.clear()
        self._position = self._storage.allocated()
        for position, state in self._storage.last():
            recorded_at = self._codec.decode(position, state, bodies=False).envelope.recorded_at
            self._now = max(self._now, recorded_at)
        erasures = self._storage.erasures(self._fences.position)
        self._fences.load(self._codec.decode(position, state, bodies=False) for position, state in erasures)
        self._data_version = data_version

    def _tick(self) -> None:
        """Never before the last event, whatever the clock does. Fixed width, so that text order is time order."""
        now = self._clock.now().astimezone(UTC).isoformat(timespec="microseconds")
        if now > self._now:
            self._now = now

    def _look_up_streams(self, requests: Sequence[Request]) -> None:
        streams = {prepared.draft.stream for request in requests for prepared in request.drafts}
        unknown = [stream for stream in streams if stream not in self._heads]
        if unknown:
            self._heads.update(self._storage.versions(unknown))

    def _known_keys(self, requests: Sequence[Request]) -> _Keys:
        keys = {p.draft.key for request in requests for p in request.drafts if p.draft.key is not None}
        if not keys:
            return {}
        known = {}
        for position, state in self._storage.by_keys(keys):
            found = self._codec.decode(position, state, bodies=False).envelope
            if found.key is None:
                raise CorruptStore(f"the event at position {position} cannot be read: run a verification")
            known[found.key] = (found.digest, Receipt(found.id, position, found.stream, found.version))
        return known

    def _plan(self, requests: Sequence[Request]) -> _Plan:
        careful = self._careful
        self._look_up_streams(requests)
        known = self._known_keys(requests) if careful else {}
        self._careful = bool(known)
        plan = self._place_all(requests, known)
        if not careful and any(request.error is not None for request in requests):
            # A known draft gets its first receipt, whatever else is wrong with it now.
            plan = self._place_all(requests, self._known_keys(requests))
        return plan

    def _place_all(self, requests: Sequence[Request], known: _Keys) -> _Plan:
        """What all requests together write. The failure of one is noted in it and leaves the others alone."""
        plan = _Plan(known)
        for request in requests:
            own, request.error = _Plan({}), None
            try:
                request.receipts = [self._place(prepared, own, plan) for prepared in request.drafts]
            except self._storage.failure:
                raise
            except Exception as error:
                request.error, request.receipts = error, []
            else:
                self._note_erasures(own, self._position + len(plan.rows) + 1)
                plan.take(own)
        return plan

    def _note_erasures(self, own: _Plan, first: int) -> None:
        """What is erased in this group is closed to the requests behind it."""
        for position, (_, _, topic, _, _, state) in enumerate(own.rows, first):
            if topic in ERASURE:
                self._fences.load([self._codec.decode(position, state, bodies=False)])

    def _place(self, prepared: Prepared, own: _Plan, plan: _Plan) -> Receipt:
        draft = prepared.draft
        if draft.key is not None:
            known = own.keys.get(draft.key) or plan.keys.get(draft.key)
            if known is not None:
                return _again(draft, known, self._fences)
        self._fences.check(draft)
        actual = self._head(draft.stream, own, plan)
        if draft.expected_version is not None and draft.expected_version != actual:
            raise VersionConflict(draft.stream, draft.expected_version, actual)
        version, topic = actual + 1, draft.event.topic
        state = self._codec.seal(prepared, version, self._now)
        own.heads[draft.stream] = version
        own.rows.append((draft.stream, version, topic, draft.key, leaf_hash(state), state))
        position = self._position + len(plan.rows) + len(own.rows)
        receipt = Receipt(draft.id, position, draft.stream, version)
        if draft.key is not None:
            own.keys[draft.key] = (draft.digest, receipt)
        return receipt

    def _head(self, stream: str, own: _Plan, plan: _Plan) -> int:
        for heads in (own.heads, plan.heads, self._heads):
            version = heads.get(stream)
            if version is not None:
                return version
        raise CorruptStore(f"the version of stream {stream} was not looked up")

    def _remember(self, plan: _Plan, requests: Sequence[Request]) -> None:
        """After the commit."""
        heads, counters = self._heads, self.counters
        self._position += len(plan.rows)
        for stream, version in plan.heads.items():
            heads[stream] = version
            heads.move_to_end(stream)
        while len(heads) > STREAM_CACHE:
            heads.popitem(last=False)
        counters.events += len(plan.rows)
        counters.groups += 1
        counters.duplicates += sum([len(request.receipts) for request in requests]) - len(plan.rows)
        for request in requests:
            if request.error is not None:
                self._count(request.error)
        if len(plan.rows) > counters.largest_group:
            counters.largest_group = len(plan.rows)

    def _count(self, error: Exception) -> None:
        counters = self.counters
        if isinstance(error, VersionConflict):
            counters.version_conflicts += 1
        elif isinstance(error, IdempotencyConflict):
            counters.key_conflicts += 1
        elif isinstance(error, LateWork):
            counters.refused_late += 1
        elif isinstance(error, ErasedScope):
            counters.refused_erased += 1


def _again(draft: Draft, known: tuple[str, Receipt], fences: Fences) -> Receipt:
    digest, receipt = known
    # What was erased answers every body alike, else a writer could test guesses of it.
    if digest != draft.digest and not fences.is_erased(receipt.event_id):
        raise IdempotencyConflict(receipt.event_id)
    return replace(receipt, duplicate=True)

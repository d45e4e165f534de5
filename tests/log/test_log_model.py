"""The log against a list: whatever is appended, in whatever order, by whichever of two writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from log_kinds import Kind, Log, SqliteKind

from log_support import FakeSealer, draft
from mnemolog.domain.errors import IdempotencyConflict, VersionConflict
from mnemolog.domain.events import Draft, MemoryConfirmed, Recorded, TurnRecorded
from mnemolog.infra.clock import SeededClock
from postgres_world import new_schema


@dataclass(frozen=True)
class Ask:
    """One draft to come: its stream, key, body, and whether its expected version is right."""

    stream: str
    key: str | None
    body: str
    topic: str
    expected: str


ASKS = st.builds(
    Ask,
    stream=st.sampled_from(["s1", "s2"]),
    key=st.sampled_from([None, None, "k1", "k2", "k3"]),
    body=st.sampled_from(["a", "b"]),
    topic=st.sampled_from(["TurnRecorded", "MemoryConfirmed"]),
    expected=st.sampled_from(["none", "none", "right", "wrong"]),
)


class LogMachine(RuleBasedStateMachine):
    def __init__(self, open_log: Callable[..., Log]) -> None:
        super().__init__()
        self.open_log, self.sealer = open_log, FakeSealer()
        self.logs = [self.open(), self.open()]
        self.model: list[Draft] = []

    def open(self) -> Log:
        return self.open_log(sealer=self.sealer, clock=SeededClock(), durability="os")

    def teardown(self) -> None:
        for log in self.logs:
            log.close()

    def version(self, drafts: list[Draft], stream: str) -> int:
        return sum(known.stream == stream for known in drafts)

    def make(self, ask: Ask, known: list[Draft]) -> Draft:
        version = self.version(known, ask.stream)
        expected = {"none": None, "right": version, "wrong": version + 1}[ask.expected]
        event = TurnRecorded("user", ask.body) if ask.topic == "TurnRecorded" else MemoryConfirmed(ask.body)
        digest = f"{ask.topic} {ask.body}"
        return draft(event, stream=ask.stream, key=ask.key, digest=digest, expected_version=expected)

    @rule(writer=st.sampled_from([0, 1]), asks=st.lists(ASKS, min_size=1, max_size=4))
    def append(self, writer: int, asks: list[Ask]) -> None:
        after, drafts, duplicates, error = list(self.model), [], [], None
        for ask in asks:
            one = self.make(ask, after)
            first = next((known for known in after if known.key is not None and known.key == one.key), None)
            if first is None and ask.expected == "wrong":
                error = error or VersionConflict
            elif first is not None and first.digest != one.digest:
                error = error or IdempotencyConflict
            drafts.append(one)
            duplicates.append(first)
            if first is None:
                after.append(one)
        self.check(writer, drafts, duplicates, error, after)

    def check(
        self,
        writer: int,
        drafts: list[Draft],
        duplicates: list[Draft | None],
        error: type[Exception] | None,
        after: list[Draft],
    ) -> None:
        if error is not None:
            with pytest.raises(error):
                self.logs[writer].append(drafts)
            return
        receipts = self.logs[writer].append(drafts)
        self.model = after
        for one, first, receipt in zip(drafts, duplicates, receipts, strict=True):
            assert receipt.event_id == (first or one).id
            assert receipt.duplicate == (first is not None)
            assert after[receipt.position - 1].id == receipt.event_id

    @rule(after=st.integers(0, 12), limit=st.integers(1, 5), topic=st.sampled_from([None, "MemoryConfirmed"]))
    def read(self, after: int, limit: int, topic: str | None) -> None:
        page = self.logs[0].read(after, limit, topics=None if topic is None else [topic])
        numbered = [
            (n, d) for n, d in enumerate(self.model, 1) if n > after and topic in (None, d.event.topic)
        ]
        self.same(list(page.events), numbered[:limit])
        last = numbered[limit - 1][0] if len(numbered) >= limit else max(after, len(self.model))
        assert page.position == last

    @rule(writer=st.sampled_from([0, 1]))
    def restart(self, writer: int) -> None:
        self.logs[writer].close()
        self.logs[writer] = self.open()

    @invariant()
    def streams_agree(self) -> None:
        for stream in ("s1", "s2"):
            numbered = [(n, d) for n, d in enumerate(self.model, 1) if d.stream == stream]
            found = self.logs[1].read_stream(stream)
            self.same(found, numbered)
            assert [r.envelope.version for r in found] == list(range(1, len(numbered) + 1))

    def same(self, found: list[Recorded], expected: list[tuple[int, Draft]]) -> None:
        assert [(r.position, r.envelope.id, r.event) for r in found] == [
            (n, d.id, d.event) for n, d in expected
        ]


NUMBERS = count(1)


def empty(kind: Kind) -> Kind:
    """The same kind of log, with nothing in it."""
    if isinstance(kind, SqliteKind):
        return SqliteKind(kind.path.with_name(f"log{next(NUMBERS)}.db"))
    return replace(kind, schema=new_schema())


def test_the_log_behaves_as_a_list(log_kind: Kind) -> None:
    """Append, read, restart: the log and the list never differ."""
    examples = 15 if isinstance(log_kind, SqliteKind) else 10
    run_state_machine_as_test(
        lambda: LogMachine(empty(log_kind).open),
        settings=settings(max_examples=examples, stateful_step_count=20, deadline=None),
    )

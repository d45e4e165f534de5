"""What a message of the events topic holds, and in which partitions an event is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from log_support import ALICE, FakeSealer, draft
from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.partitions import Epoch, Epochs, change_partitions, partition_of, read_epochs
from mnemolog.domain.errors import CorruptStore, InvalidInput, VersionConflict
from mnemolog.domain.events import PartitionsChanged, PolicyAdopted, SubjectErased
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.clock import SeededClock
from mnemolog.infra.log.sqlite import SqliteEventLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteEventLog]:
    with SqliteEventLog(tmp_path / "log.db", FakeSealer(), SeededClock(), durability="os") as opened:
        yield opened


def test_a_message_comes_back_as_it_went() -> None:
    """Epoch, position, the position before it, and the stored bytes."""
    message = EventMessage(epoch=3, position=2**40, previous=17, state=b"\x00\x01 sealed")
    assert EventMessage.decode(message.encode()) == message


def test_an_event_that_no_message_can_hold_is_named_by_its_position() -> None:
    """Without a state, the reader takes it from the log."""
    assert EventMessage.decode(EventMessage(1, 5, 4, None).encode()).state is None


@pytest.mark.parametrize("value", [b"", b"MNE1", b"MNE2" + bytes(40), b'{"type":"turn"}' * 3])
def test_something_else_in_the_topic_is_an_error(value: bytes) -> None:
    """A foreign or cut message is refused, whatever it is."""
    with pytest.raises(CorruptStore):
        EventMessage.decode(value)


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)],
)
def test_an_owner_is_where_kafkas_own_clients_put_its_key(key: str, murmur2: int) -> None:
    """The hashes are test vectors of Kafka's Java client."""
    assert partition_of(key, 6) == (murmur2 & 0x7FFFFFFF) % 6


def test_an_event_is_in_the_partition_of_its_owner_and_what_concerns_all_is_in_every_one() -> None:
    """One place for Alice's turn; all places for an erasure and a policy."""
    epochs = Epochs([Epoch(1, 4, 1)])
    envelope = _envelope(draft("hello"))
    assert list(epochs.partitions_of(9, envelope)) == [partition_of("alice", 4)]
    for event in (SubjectErased("x", "bob"), PolicyAdopted("", "h")):
        assert list(epochs.partitions_of(9, _envelope(draft(event)))) == [0, 1, 2, 3]


def test_the_first_epoch_holds_for_what_was_before_it_and_a_later_one_from_its_event_on() -> None:
    """The event itself belongs to the epoch that it begins."""
    epochs = Epochs([Epoch(1, 2, 10), Epoch(2, 3, 20)])
    assert [epochs.at(position).partitions for position in (1, 10, 19, 20, 99)] == [2, 2, 2, 3, 3]
    assert list(epochs.partitions_of(20, _envelope(draft(PartitionsChanged(2, 3))))) == [0, 1, 2]


def test_partitions_are_recorded_in_the_log_and_only_grow(log: SqliteEventLog) -> None:
    """The same number again is no new epoch; a smaller one, and one out of range, are refused."""
    with pytest.raises(InvalidInput):
        _ = read_epochs(log).latest
    log.append([draft("before")])
    first = change_partitions(log, draft, 2)
    assert (first.number, first.begins) == (1, 2)
    assert change_partitions(log, draft, 2) == first
    second = change_partitions(log, draft, 5)
    assert list(read_epochs(log)) == [first, second]
    for count in (4, 0, 10**6):
        with pytest.raises(InvalidInput):
            change_partitions(log, draft, count)


def test_two_processes_cannot_record_the_same_epoch(log: SqliteEventLog) -> None:
    """The one who comes second gets a conflict, not an epoch of the same number."""

    def overtaken(event: Any) -> Any:
        log.append([replace(draft(PartitionsChanged(1, 7)), stream="partitions", expected_version=0)])
        return draft(event)

    with pytest.raises(VersionConflict):
        change_partitions(log, overtaken, 3)
    assert [epoch.partitions for epoch in read_epochs(log)] == [7]


def test_an_epoch_is_learned_once_however_often_its_event_is_seen(log: SqliteEventLog) -> None:
    """Redelivery changes nothing."""
    change_partitions(log, draft, 2)
    (recorded,) = log.read(0, 10).events
    epochs = read_epochs(log)
    epochs.learn(recorded)
    assert len(list(epochs)) == 1


def _envelope(made: Any) -> Any:
    """An envelope with the draft's topic and scope."""
    from mnemolog.infra.log.codec import NOWHERE

    return replace(NOWHERE, topic=made.event.topic, scope=ScopeIds(Scope(ALICE.tenant, user="alice")))

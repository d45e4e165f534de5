"""The compacted topic of current records, and the cache that reads it, against a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from face_world import ACME, U1, U2, open_memory, user
from kafka_world import Kafka, until
from mnemolog import ANY, FORGOTTEN, Memory
from mnemolog.consumers.records import FILLER, CachedRecord, RecordsCache, RecordsPublisher, SealedRecord
from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import AccessDenied, CorruptStore
from mnemolog.domain.scope import Scope, sees
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.records import Following, KafkaRecords
from mnemolog.infra.kafka.topics import CONFIGS
from mnemolog.infra.roles.records import publisher
from mnemolog.kafka import CurrentRecords

QUICK = {"segment.ms": "1000", "max.compaction.lag.ms": "1000", "delete.retention.ms": "0"}


class World:
    """A memory whose records are published by hand, and a cache of them."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder / "data"
        self.memory = open_memory(self.folder)
        self.store = self.memory._store
        configs = {**CONFIGS, "records": {**CONFIGS["records"], **QUICK}}
        kafka.admin().create(2, 1, configs)
        self.producing = Producing(kafka.connection)
        self.topic = KafkaRecords(kafka.connection, kafka.topics.records, self.producing)
        self.now = 0.0
        self.following = Following(kafka.connection, kafka.topics.records)
        self.cache = RecordsCache(self.following, self.store.vault)
        self.topics = [self.topic]
        self.publisher = self.new_publisher()

    def new_publisher(self, clock: Callable[[], float] | None = None) -> RecordsPublisher:
        self.topics.append(KafkaRecords(self.kafka.connection, self.kafka.topics.records, self.producing))
        made = publisher(self.store, self.topics[-1], 1.0)
        made._clock = clock or (lambda: self.now)
        made.load()
        return made

    def publish(self) -> None:
        """Fold what is new, send what changed, and take it into the cache."""
        self.memory.operations.catch_up()
        self.publisher.step()
        while self.cache.refresh(0.5):
            pass

    def seen(self, scope: Scope = U1) -> list[str]:
        ids = self.store.vault.resolve(scope, create=False)
        assert ids is not None
        return [record.content for record in self.cache.records(lambda one: sees(ids, one))]

    def get(self, record: str) -> Any:
        """Whatever its scope."""
        return self.cache.get(record, lambda one: True)

    def settled(self) -> dict[str, str]:
        """What a cache holds after the publisher has looked once more."""
        self.publish()
        return {one.id: one.content for one in self.cache.records(lambda _: True)}

    def values(self) -> list[Any]:
        """Every message of the topic that is no filler, oldest first."""
        found = [one for each in self.kafka.read(self.kafka.topics.records).values() for one in each]
        return sorted((one for one in found if one.key != FILLER), key=lambda one: one.timestamp)

    def segments(self) -> bytes:
        """What the broker has on disk of the topic."""
        return self.kafka.segments(self.kafka.topics.records)

    def is_gone(self, sealed: bytes) -> bool:
        self.publisher.step()
        return sealed not in self.segments()

    def close(self) -> None:
        for one in (self.following, *self.topics):
            one.close()
        self.producing.close()
        self.memory.close()


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, tmp_path)
    yield made
    made.close()


def slot(memory: Memory, text: str, scope: Scope = U1) -> str:
    return memory.remember(scope, text, slot=("report", "format")).record_id


def test_what_somebody_else_sends_stops_nothing(world: World) -> None:
    """A message of another form is passed over; one under the key of a record is set right."""
    record = slot(world.memory, "PDF")
    world.publish()
    for key in (b"", b"\xff\xfe", record.encode()):
        for value in (b"hello", b"MNR1", b"MNR1\x00\x00\x00\x02{}", b'MNR1\x00\x00\x00\x0c{"scope":[1]}'):
            world.kafka.send(world.kafka.topics.records, [value], key=key, partition=0)
    until(lambda: world.settled() == {record: "PDF"}, "the record is there again")
    assert world.new_publisher()._published.keys() == {record}
    assert world.seen() == ["PDF"]


def test_the_cache_has_what_a_default_read_has(world: World) -> None:
    """Current records only, each as the memory says it, and every scope its own."""
    slot(world.memory, "Reports go out as PDF.")
    slot(world.memory, "Reports go out as HWP.", U2)
    world.publish()
    assert (world.seen(U1), world.seen(U2)) == (["Reports go out as PDF."], ["Reports go out as HWP."])
    slot(world.memory, "Reports go out as Word.")
    world.publish()
    assert world.seen(U1) == ["Reports go out as Word."]
    assert len(world.cache) == 2


def test_a_record_that_is_superseded_corrected_or_retracted(world: World) -> None:
    """A correction is a new value under the same id; a superseded and a retracted record have a tombstone."""
    first = slot(world.memory, "PDF")
    world.publish()
    second = slot(world.memory, "Word")
    world.publish()
    assert (world.get(first), world.seen()) == (None, ["Word"])
    world.memory.correct(U1, second, "Word, by mail")
    world.publish()
    held = world.get(second)
    assert isinstance(held, CachedRecord)
    assert (held.content, held.entity, held.kind) == ("Word, by mail", "report", "fact")
    world.memory.retract(U1, second)
    world.publish()
    assert world.get(second) is None
    assert {one.key.decode() for one in world.values() if one.value is None} >= {second}


def test_nothing_is_sent_that_has_not_changed(world: World) -> None:
    """Neither by the same publisher, nor by one that starts anew, nor after a rebuild of the view."""
    slot(world.memory, "PDF")
    world.publish()
    world.publish()
    world.publisher = world.new_publisher()
    world.publish()
    world.memory.operations.rebuild("curated")
    world.publish()
    assert len(world.values()) == 1


def test_a_publisher_that_died_left_nothing_undone(world: World) -> None:
    """What changed while none ran is sent by the next: new ones, and tombstones of what is gone."""
    gone, kept = slot(world.memory, "PDF"), world.memory.remember(U2, "Min prefers tea.").record_id
    world.publish()
    world.memory.retract(U1, gone)
    new = world.memory.remember(U1, "Invoices are due on Friday.").record_id
    world.publisher = world.new_publisher()
    world.publish()
    assert world.get(gone) is None
    assert all(isinstance(world.get(one), CachedRecord) for one in (kept, new))


def test_a_publisher_that_was_overtaken_is_set_right(world: World) -> None:
    """One that hung between looking and sending sends what is no longer so; the other one notices, and mends it."""
    record = slot(world.memory, "PDF")
    world.publish()
    stale = world.values()[0]
    world.memory.correct(U1, record, "PDF/A")
    world.publish()
    gone = world.memory.remember(U1, "Invoices are due on Friday.").record_id
    world.publish()
    undead = next(one for one in world.values() if one.key.decode() == gone)
    world.memory.retract(U1, gone)
    world.publish()
    late = [Outgoing(one.partition, one.key, one.value) for one in (stale, undead)]
    world.topic.publish(late)
    until(world.publisher.step, "it notices")
    until(lambda: world.settled() == {record: "PDF/A"}, "it is as the view again")


def test_the_topic_holds_no_text_and_no_name(world: World) -> None:
    """Random ids, numbers, and what is sealed."""
    slot(world.memory, "the locker code is K-7741")
    world.publish()
    stored = world.segments()
    assert b"MNR1" in stored
    assert not any(clear in stored for clear in (b"K-7741", b"locker", b"u-1", b"acme", b"report"))


@pytest.mark.parametrize("by", ["subject", "record"])
def test_an_erasure_closes_the_copy_at_once(world: World, by: str) -> None:
    """Before any tombstone: the key is gone, so the cache says FORGOTTEN; afterwards there is no such record."""
    record = slot(world.memory, "the locker code is K-7741")
    world.memory.remember(U2, "Min prefers tea.")
    world.publish()
    held = SealedRecord.decode(world.values()[0].value)
    if by == "subject":
        world.memory.erase(ACME, subject="u-1").apply()
    else:
        world.memory.erase(U1, record=record).apply()
    assert world.get(record) is FORGOTTEN
    assert held.opened(world.store.vault) is FORGOTTEN
    world.publish()
    assert world.get(record) is None
    assert world.seen(U2) == ["Min prefers tea."]


@pytest.mark.slow
def test_the_bytes_are_gone_after_the_cleaner(world: World) -> None:
    """A10, A14: the sealed bytes of what was erased leave the broker's segment files, by the filler; others stay."""
    record = slot(world.memory, "the locker code is K-7741")
    neighbour = world.memory.remember(U2, "Min prefers tea.").record_id
    world.publish()
    sealed = {one.key.decode(): SealedRecord.decode(one.value).sealed for one in world.values()}
    assert sealed[record] in world.segments()
    world.memory.erase(ACME, subject="u-1").apply()
    world.publisher = world.new_publisher(time.monotonic)
    world.publish()
    assert world.publisher.tombstones == 1
    until(lambda: world.is_gone(sealed[record]), "the bytes are gone")
    assert sealed[neighbour] in world.segments()
    assert world.publisher.fillers > 0


def test_the_filler_comes_when_the_segment_may_be_closed(world: World) -> None:
    """One message to each partition with replaced values, once, and not before its time."""
    first = slot(world.memory, "PDF")
    world.publish()
    world.now += 100
    world.publish()  # those of the start
    before = world.publisher.fillers
    world.memory.correct(U1, first, "PDF/A")
    world.publish()
    assert world.publisher.fillers == before
    world.now += 100
    world.publish()
    world.publish()
    assert world.publisher.fillers == before + 1


def test_a_principal_reads_the_copy_inside_its_scopes(world: World) -> None:
    """C02, C03: a scope sees its own records, by list and by id; nothing of another person or tenant is there."""
    ours = slot(world.memory, "PDF")
    theirs = slot(world.memory, "HWP", U2)
    foreign = slot(world.memory, "Word", Scope("globex", user="u-1", project="billing"))
    world.publish()
    (address,) = world.kafka.connection["bootstrap_servers"]
    memory = world.memory.acting_as(user("u-1"))
    with CurrentRecords(memory, address, prefix=world.kafka.prefix) as current:
        assert current.refresh(5) == 3
        own = Scope("acme", user="u-1", project="billing")
        assert [record.content for record in current.records(own)] == ["PDF"]
        for level in ("project", "user"):
            opened = replace(own, **{level: ANY})
            assert [record.content for record in current.records(opened)] == ["PDF"]
        assert isinstance(current.get(own, ours), CachedRecord)
        assert current.get(own, theirs) is current.get(own, foreign) is None
        for other in (U2, Scope("globex", user="u-1")):
            with pytest.raises(AccessDenied):
                current.records(other)


def test_something_else_in_the_topic_is_an_error() -> None:
    """A foreign message is refused."""
    with pytest.raises(CorruptStore):
        SealedRecord.decode(b'{"content": "x"}')

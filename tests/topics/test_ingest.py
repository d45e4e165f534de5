"""Ingest against a real broker: batches, redelivery, sealed messages, dead letters, and what was erased."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from face_world import U1, U2, contents
from ingest_world import WHEN, World, said, stated, turn
from kafka_world import Kafka
from mnemolog import Memory, Scope
from mnemolog.consumers.ingest import Incoming
from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.kafka.sealing import IngestKeys


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, tmp_path)
    yield made
    made.close()


def test_what_a_runtime_sends_is_in_the_memory(world: World) -> None:
    """Turns and statements, by the producer of this package, in the order of their owner."""
    with world.producer() as producer:
        for number in range(20):
            producer.send("turn", U1, key=f"{number}", occurred_at=WHEN, role="user", content=f"말 {number}")
        producer.send("remember", U2, key="r", occurred_at=WHEN, content="Reports go out as PDF.")
    ingest = world.take_in()
    assert said(world.memory) == [f"말 {number}" for number in range(20)]
    assert contents(world.memory, U2) == ["Reports go out as PDF."]
    assert (ingest.counters.appended, ingest.counters.dead) == (21, 0)


def test_a_sealed_message_is_read_by_the_ingest_alone(world: World) -> None:
    """With the public key no text, and no name of a person, is in the topic; a person's turns stay in order."""
    with world.producer(key=world.keys.current.text) as producer:
        for number in range(5):
            text = f"{number}: the locker code is K-7741"
            producer.send("turn", U1, key=f"{number}", occurred_at=WHEN, role="user", content=text)
    stored = [one for each in world.kafka.read(world.kafka.topics.ingest).values() for one in each]
    assert len(stored) == 5
    for one in stored:
        assert one.key is None
        assert not any(clear in one.value for clear in (b"K-7741", b"u-1", b"acme", b"turn"))
    world.take_in()
    assert [text[0] for text in said(world.memory)] == list("01234")


def test_a_redelivered_message_adds_nothing(world: World) -> None:
    """I08, I11: a second group reads all of it again: no event more, and none is counted as new."""
    world.send(turn("one", "k1"), turn("two"), turn("two"))
    first = world.take_in()
    again = world.take_in("another")
    assert said(world.memory) == ["one", "two", "two"]
    assert (first.counters.appended, first.counters.redelivered) == (3, 0)
    assert (again.counters.appended, again.counters.redelivered, again.counters.dead) == (0, 3, 0)


def test_a_retried_statement_is_one_record_with_one_piece_of_evidence(world: World) -> None:
    """I05: what is sent again after a failure has the ids that it had, so nothing derived from it is there twice."""
    said_once = {**turn("", "s"), "type": "remember", "content": "Min prefers tea."}
    del said_once["role"]
    world.send(said_once, said_once)
    world.take_in()
    world.take_in("another")
    assert contents(world.memory, U1) == ["Min prefers tea."]
    assert world.memory.operations.status().counts["MemoryStated"] == 1


def test_a_runtime_that_sends_again_what_it_does_not_know_to_be_there_doubles_nothing(world: World) -> None:
    """I09: the outbox of a producer that lost its connection is sent once more, under the same keys."""
    for _ in range(2):
        with world.producer() as producer:
            producer.send("turn", U1, key="only", occurred_at=WHEN, role="user", content="once")
    world.take_in()
    assert said(world.memory) == ["once"]


def test_offsets_are_committed_after_the_events_are_durable(world: World) -> None:
    """A crash between append and commit brings the batch again; one before the append loses nothing."""
    world.send(*(turn(f"{number}", f"{number}") for number in range(10)))
    source = world.source()
    messages = source.poll(10, 4)
    world.ingest(source)._append(messages)  # and then it dies
    source.close()
    ingest = world.take_in()
    assert said(world.memory) == [f"{number}" for number in range(10)]
    assert ingest.counters.redelivered == len(messages)


POISON: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "invalid"),
    "not UTF-8": (b"\xff\xfe{}", "invalid"),
    "empty": (b"", "invalid"),
    "no object": (b"[1]", "invalid"),
    "unknown type": (turn("x", "u") | {"type": "shout"}, "invalid"),
    "no tenant": (turn("x", "n") | {"scope": {"session": "s"}}, "invalid"),
    "unknown record": (
        {"type": "retract", "scope": {"tenant": "acme"}, "record": "nobody", "occurred_at": WHEN.isoformat()},
        "invalid",
    ),
    "sealed to a stranger": (b"MNI1" + bytes(80), "invalid"),
    "too deep": (b"[" * 100_000, "invalid"),
    "surrogate in a name": (b'{"type":"\\ud83d"}', "invalid"),
}


def test_poison_never_stops_the_rest(world: World) -> None:
    """Each bad message is a dead letter with its reason and its bytes; what stands between them is taken."""
    world.send(turn("first", "first"))
    for number, (poison, _) in enumerate(POISON.values()):
        world.send(poison, turn(f"after {number}", f"after {number}"))
    ingest = world.take_in()
    assert said(world.memory) == ["first", *(f"after {number}" for number in range(len(POISON)))]
    letters = world.letters.open()
    assert [letter.code for letter in letters] == [code for _, code in POISON.values()]
    wanted = [raw if isinstance(raw, bytes) else orjson.dumps(raw) for raw, _ in POISON.values()]
    assert [letter.original for letter in letters] == wanted
    assert all(letter.reason for letter in letters)
    assert ingest.counters.dead == len(POISON)


def test_a_message_as_large_as_a_topic_takes_is_kept_whole(world: World) -> None:
    """The letter is larger than its message, and its topic takes that."""
    noise = random.Random(7).randbytes(1_048_400)
    world.send(noise, turn("after", "after"))
    world.take_in()
    assert said(world.memory) == ["after"]
    assert [letter.original for letter in world.letters.open()] == [noise]


def test_a_batch_asks_the_log_once_how_far_it_is(world: World) -> None:
    """Not once per message, which is a question to the server each time."""
    log, asked = world.memory._store.log, list[int]()
    look = log.look
    world.memory.record_turn(U1, role="user", content="first")
    log.look = lambda: (asked.append(1), look())[1]  # type: ignore[method-assign]
    items = [turn(f"{number}", f"{number}") for number in range(50)]
    world.memory.record_batch([{**one, "scope": U1} for one in items])
    assert len(asked) == 1
    assert len(said(world.memory)) == 51


def test_a_key_that_was_used_for_something_else_is_a_conflict(world: World) -> None:
    """I03 through the topic: the first stays, the other is kept as a dead letter."""
    world.send(turn("first", "k"), turn("second", "k"))
    world.take_in()
    assert said(world.memory) == ["first"]
    assert [letter.code for letter in world.letters.open()] == ["conflict"]


def test_a_message_that_breaks_the_code_is_found_among_its_batch(world: World) -> None:
    """An error that no rule foresaw costs the one message that causes it."""

    class Breaking:
        def __init__(self, memory: Memory) -> None:
            self.memory = memory

        def record_batch(self, items: Sequence[Mapping[str, Any]]) -> Any:
            if any(item["content"] == "boom" for item in items):
                raise ZeroDivisionError
            return self.memory.record_batch(items)

    world.send(turn("one", "1"), turn("boom", "2"), turn("three", "3"))
    source = world.source()
    ingest = world.ingest(source, Breaking(world.memory))
    ingest.take(source.poll(10, 10))
    assert said(world.memory) == ["one", "three"]
    (letter,) = world.letters.open()
    assert letter.code == "failed"
    assert "ZeroDivisionError" in str(letter.reason)


def test_a_store_that_is_away_is_no_fault_of_the_messages(world: World) -> None:
    """Nothing is committed and nothing becomes a dead letter; the same batch is taken when the store is back."""

    class Away:
        def record_batch(self, items: Sequence[Mapping[str, Any]]) -> Any:
            return [StoreUnavailable("away") for _ in items]

    world.send(turn("one", "1"))
    source = world.source()
    messages = source.poll(10, 10)
    with pytest.raises(StoreUnavailable):
        world.ingest(source, Away()).take(messages)
    source.close()
    assert world.letters.all() == []
    world.take_in()
    assert said(world.memory) == ["one"]


def test_a_message_names_earlier_ones_by_their_keys(world: World) -> None:
    """Evidence, record and target, also of what another member took in before; an id does as well."""
    world.send(turn("From now on only PDF/A.", "t"), stated("remember", "r", content="PDF/A", evidence=["t"]))
    world.take_in()
    world.send(
        stated("correct", "c", record="r", content="PDF/A-3"),
        stated("feedback", "f", target="r", rating="up"),
    )
    world.take_in()
    (record,) = world.memory.records(U1)
    assert record.content == "PDF/A-3"
    said, statement, *_ = world.memory.log()
    assert statement.envelope.sources == (said.envelope.id,)
    world.send(stated("retract", "x", record=record.record_id), stated("retract", "y", record="unknown"))
    world.take_in()
    assert world.memory.records(U1) == []
    assert [letter.code for letter in world.letters.open()] == ["invalid"]


def test_what_another_tenant_sends_is_nobody_elses(world: World) -> None:
    """C01, C03: equal session and user names of two tenants, in one batch, are different scopes."""
    theirs = Scope("globex", user="u-1", project="billing", session="s-1")
    invoices = {U1: "invoice Acme", theirs: "invoice Globex", U2: "invoice Min"}
    world.send(*(turn(text, "k", scope) for scope, text in invoices.items()))
    world.take_in()
    for scope, text in invoices.items():
        assert [hit.text for hit in world.memory.recall(scope, "invoice Acme Globex Min")] == [text]


def test_what_runtimes_send_is_trusted_as_the_role_says(world: World) -> None:
    """E02 through the topic: no field of a message raises its own tier; a correction by an agent is no human's."""
    world.send(turn("x", "k") | {"origin": "operator"}, turn("fine", "f"))
    world.take_in()
    assert [letter.code for letter in world.letters.open()] == ["invalid"]
    (event,) = [one for one in world.memory.log() if one.envelope.topic == "TurnRecorded"]
    assert event.envelope.role == "agent"


def test_a_producer_says_what_cannot_be_sent(world: World) -> None:
    """No time zone, no tenant, too large, no JSON: refused before anything is sent."""
    with world.producer() as producer:
        for wrong in (
            {"occurred_at": datetime(2026, 3, 9)},
            {"scope": {"user": "u"}},
            {"content": "x" * 1_000_000},
            {"content": object()},
        ):
            given = {"scope": U1, "occurred_at": WHEN, "content": "x", **wrong}
            with pytest.raises(InvalidInput):
                producer.send("turn", key="k", role="user", **given)
    assert not any(world.kafka.read(world.kafka.topics.ingest).values())


def test_a_rotated_key_closes_what_was_sealed_to_the_old_one(tmp_path: Path) -> None:
    """The new key is in front, the old one opens as long as it is kept, and nothing is left of it afterwards."""
    path = tmp_path / "ingest.key"
    old = IngestKeys.load(path, create=True)
    sealed = old.current.seal(b"text")
    rotated = old.rotated(path)
    assert rotated.current.id != old.current.id
    assert IngestKeys.load(path).open(sealed) == b"text"
    rotated.alone(path)
    with pytest.raises(InvalidInput):
        IngestKeys.load(path).open(sealed)
    assert len(path.read_text().split()) == 1
    assert path.stat().st_mode & 0o077 == 0


def test_whoever_follows_the_page_can_seal(tmp_path: Path) -> None:
    """A message that is sealed by the words of docs/kafka.md, with nothing of this package, opens."""
    keys = IngestKeys.load(tmp_path / "ingest.key", create=True)
    public = base64.b64decode(keys.current.text)
    own = X25519PrivateKey.generate()
    head = b"MNI1" + sha256(public).digest()[:8] + own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(public))
    made = HKDF(SHA256(), 44, salt=head, info=b"mnemolog ingest 1").derive(shared)
    sealed = AESGCM(made[:32]).encrypt(made[32:], b'{"type": "turn"}', head)
    assert len(head) == 44
    assert keys.open(head + sealed) == b'{"type": "turn"}'


@pytest.mark.parametrize("place", [0, 5, 20, 60, -1])
def test_a_sealed_message_that_was_changed_does_not_open(tmp_path: Path, place: int) -> None:
    """Whatever byte it is: of the mark, the key's id, the sender's half, the text or the tag."""
    keys = IngestKeys.load(tmp_path / "ingest.key", create=True)
    sealed = bytearray(keys.current.seal(b"some text"))
    sealed[place] ^= 1
    if place == 0:
        assert keys.open(bytes(sealed)) == bytes(sealed)  # no sealed message at all
    else:
        with pytest.raises(InvalidInput):
            keys.open(bytes(sealed))


def test_an_incoming_message_is_named_by_its_place() -> None:
    """Topic, partition and offset."""
    assert Incoming("t", 2, 7, 0, b"").id == "t/2/7"

"""Messages that ingest could not take: kept, shown, replayed, dismissed, and closed with whom they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from face_world import ACME, U1, U2
from ingest_world import World, said, stated, turn
from kafka_world import Kafka
from mnemolog import Scope
from mnemolog.consumers.whose import Whose, whose
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import FORGOTTEN
from mnemolog.infra.kafka.letters import State
from mnemolog.infra.kafka.sealing import IngestKeys


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, tmp_path)
    yield made
    made.close()


def test_a_dead_letter_is_replayed_or_dismissed_once(world: World) -> None:
    """A replay sends the bytes again; both are recorded in the letter, whose bytes are gone."""
    world.send(b"{", turn("fine", "f") | {"scope": {"session": "s"}})
    world.take_in()
    broken, homeless = world.letters.open()
    world.letters.dismiss([broken])
    world.letters.replay([homeless])
    assert world.letters.open() == []
    assert [letter.state for letter in world.letters.all()] == [State.DISMISSED, State.REPLAYED]
    assert [letter.original for letter in world.letters.all()] == [b"", b""]
    for act in (world.letters.replay, world.letters.dismiss):
        with pytest.raises(InvalidInput):
            act([world.letters.get(broken.id)])
    world.take_in()
    assert [letter.reason for letter in world.letters.open()] == [homeless.reason]


def test_a_replayed_letter_goes_in_when_what_it_lacked_is_there(world: World) -> None:
    """Sealed to a key that was missing: with the key back, the replay is taken."""
    stranger = IngestKeys.load(world.kafka.broker.folder / f"{world.kafka.prefix}.key", create=True)
    world.send(stranger.current.seal(orjson.dumps(turn("at last", "l"))))
    world.take_in()
    assert said(world.memory) == []
    world.keys = IngestKeys([*world.keys.private, *stranger.private])
    world.letters.replay(world.letters.open())
    world.take_in()
    assert said(world.memory) == ["at last"]


def test_a_dead_letter_holds_no_text_that_others_can_read_and_goes_with_its_person(world: World) -> None:
    """A02: it is sealed under the person's key where the person is known, and closed with it."""
    world.send(turn("first", "k"), turn("the locker code is K-7741", "k"), b"K-7741 and no JSON")
    world.take_in()
    stored = world.kafka.read(world.kafka.topics.dead_letters)[0]
    assert len(stored) == 2
    assert not any(b"K-7741" in one.value or b"u-1" in one.value for one in stored)
    assert b"K-7741" in world.letters.open()[0].original  # type: ignore[operator]
    world.memory.erase(ACME, subject="u-1").apply()
    conflict, unread = world.letters.open()
    assert (conflict.original, conflict.reason) == (FORGOTTEN, FORGOTTEN)
    assert unread.original == b"K-7741 and no JSON"


def test_what_arrives_after_an_erasure_is_dropped_and_counted(world: World) -> None:
    """A08: a delayed event of an erased session or person is refused, is no dead letter, and stays away in a replay."""
    late = turn("too late", "late", U1.at({"tenant", "user", "project", "session"}))
    world.send(turn("in time", "early"))
    world.take_in()
    world.memory.erase(ACME, subject="u-1").apply()
    world.send(late, turn("of somebody else", "else", U2))
    ingest = world.take_in()
    assert (ingest.counters.erased, ingest.counters.dead, ingest.counters.appended) == (1, 0, 1)
    assert world.letters.all() == []
    world.memory.operations.rebuild_all(processes=0)
    assert world.memory.recall(U1, "too late") == []
    assert world.memory.operations.status().refused_late > 0


SECRET = "K-7741"


def without(message: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}


OF_U1: dict[str, Any] = {
    "a correction": stated("correct", "1", record="r", content=SECRET),
    "evidence": stated("remember", "2", content=SECRET, evidence=["t"]),
    "feedback": stated("feedback", "3", target="t", rating="up", comment=SECRET),
    "a field too many": turn(SECRET, "4", colour="red"),
    "no time": without(turn(SECRET, "5"), "occurred_at"),
    "a time without a zone": turn(SECRET, "6", colour="red") | {"occurred_at": "2026-03-09T09:14:00"},
    "no session": turn(SECRET, "7", Scope("acme", user="u-1")),
    "cut off": orjson.dumps(turn(SECRET + "x" * 100, "8"))[:-150],
    "not UTF-8": orjson.dumps(turn(SECRET, "9")).replace(b'"role"', b'"\xff"'),
    "an unknown level": turn(SECRET, "10") | {"scope": {**dict(U1.present()), "team": "x"}},
    "levels outside": without(turn(SECRET, "11"), "scope") | dict(U1.present()),
    "about the person": turn(SECRET, "12", U2, subjects=["u-1"], colour="red"),
    "about the person, cut off": orjson.dumps({"subjects": ["u-2", "u-1"], **turn(SECRET, "13", U2)})[:-9],
}
"""Messages that cannot be taken, of one person."""


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_promise_8_what_comes_late_of_an_erased_person_is_no_dead_letter(world: World, sealed: bool) -> None:
    """However wrong it is: it is dropped and counted, and nothing of it is in the broker's files."""
    world.send(turn("in time", "t"), stated("remember", "r", content="PDF"))
    world.take_in()
    world.memory.erase(ACME, subject="u-1").apply()
    raw = [one if isinstance(one, bytes) else orjson.dumps(one) for one in OF_U1.values()]
    late = [one.replace(b"2026-03-09", b"2025-03-09") for one in raw]  # before this world's clock begins
    world.send(*(world.keys.current.seal(one) if sealed else one for one in late))
    ingest = world.take_in()
    assert world.letters.all() == []
    assert (ingest.counters.erased, ingest.counters.dead, ingest.counters.appended) == (len(late), 0, 0)
    assert world.dead_bytes() == b""
    assert world.memory.operations.status().refused_late >= len(late)


def test_promise_8_erasing_a_person_closes_the_dead_letters_that_are_there(world: World) -> None:
    """Also of somebody of whom nothing was ever taken in; another person's letter stays open, and nothing is clear."""
    world.send(*OF_U1.values(), turn("theirs", "x", U2, colour="red"))
    world.take_in()
    letters = world.letters.open()
    assert len(letters) == len(OF_U1) + 1
    assert all(isinstance(letter.original, bytes) for letter in letters)
    world.memory.erase(ACME, subject="u-1").apply()
    *closed, theirs = world.letters.open()
    assert [(letter.original, letter.reason) for letter in closed] == [(FORGOTTEN, FORGOTTEN)] * len(OF_U1)
    assert b"theirs" in theirs.original  # type: ignore[operator]
    stored = world.dead_bytes()
    assert len(stored) > 1000
    assert not any(clear in stored for clear in (SECRET.encode(), b"u-1", b"acme", b"PDF"))


def test_what_names_an_erased_event_or_record_is_no_dead_letter(world: World) -> None:
    """A late correction of what was erased falls with it, though its person is still there."""
    world.send(turn("the code", "t"), stated("remember", "r", content=SECRET))
    world.take_in()
    (record,) = world.memory.records(U1)
    world.memory.erase(U1, record=record.record_id).apply()
    (said_first, *_) = world.memory.log()
    world.memory.erase(U1, event=said_first.envelope.id).apply()
    world.send(
        stated("correct", "1", record="r", content=SECRET),
        stated("retract", "2", record="r"),
        stated("remember", "3", content=SECRET, evidence=["t"]),
    )
    ingest = world.take_in()
    assert (ingest.counters.erased, ingest.counters.dead) == (3, 0)
    assert world.letters.all() == []


def test_what_somebody_else_sends_to_the_topic_is_no_letter(world: World) -> None:
    """No form, half a head, no head: the letters are listed all the same."""
    topic = world.kafka.topics.dead_letters
    for value in (b"", b"hello", b"MND1", b"MND1\x00\x00\x00\x02{}", b"MND1\x00\x00\x00\x02[]"):
        world.kafka.send(topic, [value], key=b"\xff" + value)
    world.send(b"{")
    world.take_in()
    assert [letter.original for letter in world.letters.open()] == [b"{"]


def test_what_was_sealed_is_shown_opened(world: World) -> None:
    """To an operator with the ingest's keys; while they are away it is what was sent."""
    sealed = world.keys.current.seal(b"the words")
    world.send(sealed)
    world.take_in()
    (letter,) = world.letters.open()
    assert (letter.original, letter.size, letter.owners) == (sealed, len(sealed), ())
    assert world.letters.text(letter) == b"the words"


def test_erasing_a_session_closes_its_dead_letters(world: World) -> None:
    """The person stays, and so does the key; what is of the session is shown to nobody and sent nowhere again."""
    other = Scope("acme", user="u-1", project="billing", session="s-2")
    world.send(
        turn("in time", "t"), turn(SECRET, "1", colour="red"), turn("theirs", "2", other, colour="red")
    )
    world.take_in()
    world.memory.erase(U1, session="s-1").apply()
    closed, theirs = world.letters.open()
    assert (closed.original, closed.reason, world.letters.text(closed)) == (FORGOTTEN,) * 3
    assert b"theirs" in theirs.original  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="erased"):
        world.letters.replay([closed])


def test_a_key_that_comes_back_opens_no_letter_of_an_erased_person(world: World) -> None:
    """While it was away nobody could tell whose the letter is."""
    stranger = IngestKeys.load(world.kafka.broker.folder / f"{world.kafka.prefix}.key", create=True)
    late = orjson.dumps(turn(SECRET, "1")).replace(b"2026-03-09", b"2025-03-09")
    world.send(turn("in time", "t"), stranger.current.seal(late))
    world.take_in()
    world.memory.erase(ACME, subject="u-1").apply()
    world.letters._keys = IngestKeys([*world.keys.private, *stranger.private])
    (letter,) = world.letters.open()
    assert (letter.original, letter.reason) == (FORGOTTEN, FORGOTTEN)


def test_a_person_who_came_back_may_send_wrong_messages_again(world: World) -> None:
    """What occurred after the erasure is a dead letter like any other, under the keys of the new person."""
    world.send(turn("in time", "t"))
    world.take_in()
    world.memory.erase(ACME, subject="u-1").apply()
    later = Scope("acme", user="u-1", project="billing", session="s-2")
    world.send(turn("back", "b", later, colour="red") | {"occurred_at": "2036-03-09T09:14:00Z"})
    assert world.take_in().counters.dead == 1
    assert b"back" in world.letters.open()[0].original  # type: ignore[operator]


def test_a_message_that_names_nobody_is_nobodys() -> None:
    """No tenant, no object, an empty name: it cannot be said whose it is; nesting is no way around."""
    nobody = (b"", b"[1]", b"{", b'{"scope":{"user":"u-1"}}', b'{"scope":{"tenant":" "}}', b"\xff" * 9)
    assert [whose(raw) for raw in nobody] == [None] * len(nobody)
    deep = b'{"scope":{"tenant":"acme","user":17},"content":' + b"[" * 100_000
    assert whose(deep) == Whose(Scope("acme", user="17"))

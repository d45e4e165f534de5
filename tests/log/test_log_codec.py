"""What is stored, and what comes back whatever is stored."""

from __future__ import annotations

import sys
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson
import pytest

from log_support import ALICE, FakeSealer, draft
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import (
    FORGOTTEN,
    ContentErased,
    Draft,
    MemoryConfirmed,
    MemoryStated,
    Recorded,
    SessionOpened,
    ToolReturned,
    TurnRecorded,
    Undecodable,
)
from mnemolog.infra.log.codec import Codec, leaf_hash

NOW = "2026-03-01T09:30:00.000000+00:00"


@pytest.fixture
def codec(sealer: FakeSealer) -> Codec:
    return Codec(sealer)


def stored(codec: Codec, one: Draft, version: int = 1) -> bytes:
    return codec.seal(codec.prepare(one), version, NOW)


def round_trip(codec: Codec, one: Draft) -> Recorded:
    return codec.decode(7, stored(codec, one))


def rewritten(state: bytes, **changes: Any) -> bytes:
    """The state with another envelope before the same parts."""
    length = int.from_bytes(state[:4], "big")
    envelope = orjson.dumps({**orjson.loads(state[4 : 4 + length]), **changes})
    return len(envelope).to_bytes(4, "big") + envelope + state[4 + length :]


def unsealed(sealer: FakeSealer, body: bytes, **envelope: Any) -> bytes:
    """A state as another version of this program may have written it: any envelope, any body."""
    template = Codec(sealer)
    first = stored(template, draft("x"))
    length = int.from_bytes(first[:4], "big")
    aad = orjson.dumps({**orjson.loads(first[4 : 4 + length]), **envelope, "p": [[99, ["alice"]]]})
    part = sealer.seal(["alice"], 99, body, aad)
    return b"".join(len(chunk).to_bytes(4, "big") + chunk for chunk in (aad, part))


@pytest.mark.parametrize(
    "event",
    [
        TurnRecorded("user", "안녕, \x00 world", author="Min", blob={"ref": "b1", "bytes": 12}),
        SessionOpened(timezone="Asia/Seoul"),
        ToolReturned("out", name="read", call_id="c", error=True, source=("file:a.py", "v3")),
        MemoryStated("x", slot=("report", "format"), evidence=({"event_id": "e", "start": 0, "end": 2},)),
        ContentErased("e1", events=("a", "b"), session="s1"),
        MemoryConfirmed(),
    ],
)
def test_an_event_comes_back_as_it_went_in(codec: Codec, event: Any) -> None:
    """Sealed and clear fields, tuples included, survive storage."""
    assert round_trip(codec, draft(event)).event == event


def test_the_envelope_comes_back_as_it_went_in(codec: Codec) -> None:
    """Every field of a draft is in the envelope, and so are version and time of the commit."""
    one = draft("x", key="k", sources=("a", "b"), causation="c", correlation="d")
    found = round_trip(codec, one).envelope
    assert (found.id, found.topic, found.schema, found.stream) == (one.id, "TurnRecorded", 2, "s1")
    assert (found.version, found.recorded_at, found.occurred_at) == (1, NOW, "2026-03-01T09:30:00+00:00")
    assert (found.scope, found.actor, found.role, found.origin) == (ALICE, "agent-1", one.role, one.origin)
    assert (found.key, found.sources, found.causation, found.correlation) == ("k", ("a", "b"), "c", "d")
    assert (found.owner, found.subjects) == ("alice", {"alice"})


def test_the_same_draft_gives_the_same_bytes() -> None:
    """Encoding is deterministic, so that hashes can be recomputed."""
    one = draft("x", key="k", sources=("a",))
    assert stored(Codec(FakeSealer()), one) == stored(Codec(FakeSealer()), one)


def test_the_leaf_hash_is_that_of_rfc_6962() -> None:
    """A zero byte before the data separates leaves from inner nodes."""
    assert leaf_hash(b"state") == sha256(b"\x00state").digest()


def test_sealed_text_is_not_in_the_stored_bytes(codec: Codec) -> None:
    """Content never stands in clear in the log."""
    assert b"confidential" not in stored(codec, draft("confidential"))


def test_bodies_stay_closed_when_not_asked_for(codec: Codec) -> None:
    """`bodies=False` yields the envelope alone."""
    assert codec.decode(1, stored(codec, draft()), bodies=False).event is None


def test_an_event_without_content_has_no_parts(codec: Codec) -> None:
    """Nothing to seal needs no key, and no subject."""
    found = round_trip(codec, draft(MemoryConfirmed(), subjects=()))
    assert found.envelope.parts == ()
    assert found.event == MemoryConfirmed()


def test_content_without_a_subject_is_refused(codec: Codec) -> None:
    """What nobody's key closes could never be erased."""
    with pytest.raises(InvalidInput, match="names no subject"):
        codec.prepare(draft("x", subjects=()))


def test_a_destroyed_key_yields_forgotten(codec: Codec, sealer: FakeSealer) -> None:
    """Readers of destroyed content get FORGOTTEN, never an error."""
    state = stored(codec, draft("x"))
    sealer.destroyed.add("alice")
    found = codec.decode(1, state)
    assert found.event is FORGOTTEN
    assert found.envelope.topic == "TurnRecorded"


def test_a_destroyed_later_part_leaves_the_rest(codec: Codec, sealer: FakeSealer) -> None:
    """Fields of a later part fall back to their defaults, required ones to FORGOTTEN."""
    parts = ((("bob",), ("role", "author")), (("alice",), ("content",)))
    state = stored(codec, draft(TurnRecorded("user", "x", author="Bob"), parts=parts))
    assert codec.decode(1, state).event == TurnRecorded("user", "x", author="Bob")
    sealer.destroyed.add("alice")
    found = codec.decode(1, state).event
    assert isinstance(found, TurnRecorded)
    assert (found.role, found.content, found.author) == ("user", FORGOTTEN, "Bob")
    sealer.destroyed.add("bob")
    assert codec.decode(1, state).event is FORGOTTEN


@pytest.mark.parametrize("names", [("role",), ("role", "content"), ("role", "content", "author", "author")])
def test_parts_must_hold_every_sealed_field_once(codec: Codec, names: tuple[str, ...]) -> None:
    """A field in no part would be lost, one in two parts would outlive an erasure."""
    with pytest.raises(InvalidInput, match="once"):
        codec.prepare(draft("x", parts=((("alice",), names),)))


def test_a_lone_surrogate_is_refused(codec: Codec) -> None:
    """What orjson cannot carry is an error of the writer, not of a later reader."""
    with pytest.raises(InvalidInput):
        codec.prepare(draft("\ud800"))
    with pytest.raises(InvalidInput):
        codec.prepare(draft("x", key="\ud800"))
    with pytest.raises(InvalidInput):
        stored(codec, draft("x", stream="\ud800"))


def test_a_time_without_zone_is_refused(codec: Codec) -> None:
    """A naive time would be read differently elsewhere."""
    with pytest.raises(InvalidInput, match="zone"):
        codec.prepare(draft(occurred_at=datetime(2026, 1, 1)))


def test_an_older_schema_is_lifted(codec: Codec, sealer: FakeSealer) -> None:
    """A stored TurnRecorded of schema 1 is read as schema 2: `text` became `content`, `author` was added."""
    state = unsealed(sealer, b'{"role":"user","text":"from the past"}', s=1)
    assert codec.decode(1, state).event == TurnRecorded("user", "from the past", author=None)


def test_a_topic_is_never_imported(codec: Codec, sealer: FakeSealer) -> None:
    """The registry is closed: a stored name that is an importable path stays a string."""
    sys.modules.pop("this", None)
    for topic in ("os:system", "this", "mnemolog.domain.events:TurnRecorded"):
        found = codec.decode(1, unsealed(sealer, b'{"role":"user"}', t=topic))
        assert found.event == Undecodable("UnknownEventType")
        assert found.envelope.topic == topic
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    ("envelope", "body", "reason"),
    [
        ({"s": 99}, b'{"role":"user","content":"x"}', "UnknownEventType"),
        ({}, b"{broken secret", "JSONDecodeError"),
        ({}, b'["secret"]', "ValueError"),
        ({}, b'{"role":"user","content":"x","surprise":1}', "TypeError"),
        ({}, b'{"role":"user"}', "TypeError"),
    ],
)
def test_a_broken_body_is_undecodable(
    codec: Codec, sealer: FakeSealer, envelope: dict[str, Any], body: bytes, reason: str
) -> None:
    """The reason names the error's class and never the text."""
    found = codec.decode(1, unsealed(sealer, body, **envelope))
    assert found.event == Undecodable(reason)
    assert found.envelope.id != "?"


def test_a_changed_envelope_closes_its_body(codec: Codec) -> None:
    """The envelope is the associated data of every part: stream, version and leaf numbers included."""
    state = stored(codec, draft("x"))
    for changes in ({"st": "s2"}, {"v": 2}, {"a": "mallory"}, {"p": [[2, ["alice"]]]}):
        assert codec.decode(1, rewritten(state, **changes)).event == Undecodable("CorruptStore")


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"\x00",
        b"\xff\xff\xff\xff{}",
        b"\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x04null",
        b"\x00\x00\x00\x03\xff\xff\xff",
    ],
)
def test_an_unreadable_envelope_does_not_stop_a_reader(codec: Codec, state: bytes) -> None:
    """A placeholder stands for it, also where bodies are not asked for."""
    for bodies in (True, False):
        found = codec.decode(5, state, bodies=bodies)
        assert found.position == 5
        assert (found.envelope.topic, found.envelope.stream, found.envelope.scope.tenant) == ("?", "?", "?")
        assert isinstance(found.event, Undecodable)


@pytest.mark.parametrize(
    "changes",
    [
        {"sc": ["t"]},
        {"sc": [None] * 6},
        {"sc": [{}] * 6},
        {"ro": "king"},
        {"or": 99},
        {"v": "1"},
        {"p": [1]},
        {"i": 1},
    ],
)
def test_an_envelope_of_wrong_types_is_unreadable(codec: Codec, changes: dict[str, Any]) -> None:
    """Values of other types are met here, not deep inside a projection."""
    found = codec.decode(1, rewritten(stored(codec, draft("x")), **changes))
    assert found.envelope.topic == "?"


def test_a_cut_state_is_undecodable(codec: Codec) -> None:
    """Wherever the bytes end, the reader goes on."""
    state = stored(codec, draft("x"))
    for end in range(len(state)):
        assert isinstance(codec.decode(1, state[:end]).event, Undecodable)

"""What was personal stays so until somebody who may says otherwise by name, whatever is said of it again."""

from __future__ import annotations

import pytest

from curated_world import Log, reading
from face_world import U1, agent, contents, dump_hashes, rebuilt_hashes, user
from mnemolog import Memory, MemoryRecord
from mnemolog.domain.events import UPCASTERS, restore
from mnemolog.domain.principal import Role
from mnemolog.errors import IdempotencyConflict

CLOSED = "version: 1\nreading: {personal: [user, operator]}\n"
SAYINGS = pytest.mark.parametrize("text", ["Mina lives alone", "미나는 혼자 산다"])


def seen_by_agents(memory: Memory) -> list[object]:
    return contents(memory.acting_as(agent()), U1)


@SAYINGS
def test_saying_it_again_lowers_nothing(memory: Memory, text: str) -> None:
    """By the person, by an agent, in a batch, and corrected without a word about it: agents do not read it."""
    memory.operations.adopt_policy(CLOSED)
    record = memory.acting_as(user("u-1")).remember(U1, text, sensitivity="personal").record_id
    memory.acting_as(user("u-1")).remember(U1, text)
    memory.acting_as(agent()).remember(U1, text)
    memory.record_batch([{"type": "remember", "scope": U1, "content": f"{text} "}])
    assert seen_by_agents(memory) == []
    assert memory.get(U1, record).sensitivity == "personal"  # type: ignore[union-attr]
    memory.correct(U1, record, f"{text}!")
    memory.acting_as(user("u-1")).remember(U1, text)
    assert seen_by_agents(memory) == []
    assert len(contents(memory, U1)) == 1
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory, batch_size=2) == live


@SAYINGS
def test_a_person_lowers_it_by_name(memory: Memory, text: str) -> None:
    """A restatement or a correction that names it normal does, until it is named personal again."""
    memory.operations.adopt_policy(CLOSED)
    person = memory.acting_as(user("u-1"))
    record = person.remember(U1, text, sensitivity="personal").record_id
    person.remember(U1, text, sensitivity="normal")
    assert seen_by_agents(memory) == [text]
    person.remember(U1, text, sensitivity="personal")
    assert seen_by_agents(memory) == []
    person.correct(U1, record, "…", sensitivity="normal")
    assert seen_by_agents(memory) == ["…"]
    bot = memory.acting_as(agent())
    assert [step.content for step in bot.history(U1, record)] == [None, None, None, "…"]
    assert text not in repr(bot.why(U1, record))
    assert [step.content for step in person.history(U1, record)] == [text, text, text, "…"]


def test_whoever_may_not_read_it_or_has_less_authority_lowers_nothing(memory: Memory) -> None:
    """An agent that is kept from personal records cannot open one; one that reads them opens no person's."""
    held = memory.acting_as(agent("a")).remember(U1, "Lives alone", sensitivity="personal").record_id
    memory.operations.adopt_policy(CLOSED)
    memory.acting_as(agent("b")).remember(U1, "Lives alone", sensitivity="normal")
    assert seen_by_agents(memory) == []
    memory.operations.adopt_policy("version: 1\n")
    memory.acting_as(user("u-1")).remember(U1, "Likes tea", sensitivity="personal")
    for text in ("Likes tea", "Lives alone"):
        memory.acting_as(agent("b")).remember(U1, text, sensitivity="normal")
    levels = {str(one.content): one.sensitivity for one in memory.records(U1)}
    assert levels == {"Lives alone": "normal", "Likes tea": "personal"}
    assert memory.get(U1, held).sensitivity == "normal"  # type: ignore[union-attr]


@pytest.mark.parametrize(("said", "value"), [("My name is Mina.", "Mina"), ("제 이름은 미나입니다.", "미나")])
def test_what_is_found_again_in_a_turn_lowers_nothing(memory: Memory, said: str, value: str) -> None:
    """A candidate for the same record, in the words of the turn, is as personal as what was stated."""
    memory.operations.adopt_policy(CLOSED)
    memory.record_turn(U1, role="user", content=said)
    memory.operations.extract()
    (found,) = memory.records(U1)
    person = memory.acting_as(user("u-1"))
    receipt = person.remember(U1, value, slot=found.slot, sensitivity="personal")
    assert receipt.record_id == found.record_id
    memory.record_turn(U1, role="user", content=said, occurred_at="2026-06-01T09:00:00Z")
    memory.operations.extract()
    (found,) = memory.records(U1)
    assert (found.content, found.sensitivity) == (said.rstrip("."), "personal")
    assert seen_by_agents(memory) == []


def test_a_correction_with_an_identifier_is_personal(memory: Memory) -> None:
    """As a statement with one is."""
    memory.operations.adopt_policy(CLOSED)
    record = memory.remember(U1, "Ask at the desk").record_id
    memory.correct(U1, record, "Ask at 010-1234-5678")
    assert seen_by_agents(memory) == []
    found = memory.get(U1, record)
    assert isinstance(found, MemoryRecord)
    assert (found.content, found.sensitivity) == ("Ask at [masked phone]", "personal")


def test_what_another_record_was_merged_into_is_as_personal(memory: Memory) -> None:
    """As long as the merge stands, in reads of one, of all, and in recall."""
    memory.operations.adopt_policy(CLOSED)
    personal = memory.remember(U1, "Lives by herself", sensitivity="personal").record_id
    plain = memory.remember(U1, "Lives alone").record_id
    memory.review.merge(U1, personal, plain)
    bot = memory.acting_as(agent())
    assert contents(bot, U1) == []
    assert bot.recall(U1, "lives alone") == []
    assert memory.get(U1, plain).sensitivity == "personal"  # type: ignore[union-attr]
    memory.review.keep_apart(U1, personal, plain)
    assert contents(bot, U1) == ["Lives alone"]


def test_records_of_one_slot_that_say_the_same_are_one_in_this() -> None:
    """The one that stands is as personal as its duplicates."""
    log = Log()
    first = log.state("red", slot=("wall", "colour"), sensitivity="personal")
    second = log.state("rde", slot=("wall", "colour"))
    log.correct(second, "red", kind="fact", slot=("wall", "colour"))
    with reading(log) as reader:
        (found,) = reader.view.records(reader.conn, reader.scopes, reader.now)
    assert (found.id, found.sensitivity) == (second.envelope.stream, "personal")
    assert found.id != first.envelope.stream


def test_it_falls_with_who_said_so() -> None:
    """Where the statement that named it is erased, what is left counts; where the naming of less is, it is personal."""
    log = Log()
    named = log.state("Lives alone", sensitivity="personal")
    log.state("Lives alone")
    less = log.state("Lives alone", sensitivity="normal", role=Role.OPERATOR)
    log.erase(less)
    with reading(log) as reader:
        assert [one.sensitivity for one in reader.view.records(reader.conn, reader.scopes, reader.now)] == [
            "personal"
        ]
    log.erase(named)
    with reading(log) as reader:
        assert [one.sensitivity for one in reader.view.records(reader.conn, reader.scopes, reader.now)] == [
            "normal"
        ]


@pytest.mark.parametrize("topic", ["MemoryStated", "MemoryCorrected", "QuarantineReviewed"])
def test_older_events_that_say_normal_named_nothing(topic: str) -> None:
    """Schema 1 said so where nobody had."""
    body = {"content": "x", "sensitivity": "normal", **({"decision": "edit"} if topic[0] == "Q" else {})}
    assert (topic, 1) in UPCASTERS
    assert restore(topic, 1, body).sensitivity is None  # type: ignore[attr-defined]
    assert restore(topic, 1, {**body, "sensitivity": "personal"}).sensitivity == "personal"  # type: ignore[attr-defined]
    assert restore(topic, 2, body).sensitivity == "normal"  # type: ignore[attr-defined]


def test_older_statements_that_say_fact_named_no_kind() -> None:
    """Schema 1 said so where nobody had."""
    for kind, read in (("fact", None), ("preference", "preference")):
        assert restore("MemoryStated", 1, {"content": "x", "kind": kind}).kind == read  # type: ignore[attr-defined]


@pytest.mark.parametrize(("said", "value"), [("My name is Mina.", "Mina"), ("제 이름은 미나입니다.", "미나")])
def test_a_kind_that_was_named_stays(memory: Memory, said: str, value: str) -> None:
    """Said again without one, or found in a turn, the record is still closed to whom its kind is closed."""
    memory.operations.adopt_policy("version: 1\nreading: {kinds: {agent: [fact]}}\n")
    person = memory.acting_as(user("u-1"))
    person.remember(U1, value, slot=("user", "name"), kind="preference")
    person.remember(U1, value, slot=("user", "name"))
    memory.record_turn(U1, role="user", content=said)
    memory.operations.extract()
    person.remember(U1, value, slot=("user", "name"))
    assert [one.kind for one in memory.records(U1)] == ["preference"]
    assert seen_by_agents(memory) == []
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory, batch_size=2) == live
    person.remember(U1, value, slot=("user", "name"), kind="fact")
    assert len(seen_by_agents(memory)) == 1


def test_the_basis_of_consent_is_carried_on() -> None:
    """Said again without one, the record keeps what it has; another one takes its place."""
    log = Log()
    log.state("Lives alone", consent="contract")
    log.state("Lives alone")
    with reading(log) as reader:
        (found,) = reader.view.records(reader.conn, reader.scopes, reader.now)
        assert found.consent == "contract"
    log.state("Lives alone", consent="asked in June")
    with reading(log) as reader:
        (found,) = reader.view.records(reader.conn, reader.scopes, reader.now)
        assert found.consent == "asked in June"


def test_a_key_tells_no_default_from_none(memory: Memory) -> None:
    """What was written under a key before the two were told apart may be sent again after it."""
    first = memory.remember(U1, "Lives alone", key="k")
    again = memory.remember(U1, "Lives alone", key="k", kind="fact", sensitivity="normal")
    assert again.duplicate and again.event_id == first.event_id
    with pytest.raises(IdempotencyConflict):
        memory.remember(U1, "Lives alone", key="k", sensitivity="personal")

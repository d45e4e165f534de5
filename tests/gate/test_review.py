"""The queue, decisions, consent, and the path to each outcome, through the face, awaited and on the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from face_world import U1, U2, agent, contents, open_memory, user
from mnemolog import ANY, Memory, Scope
from mnemolog.aio import AsyncMemory
from mnemolog.domain.gate.candidates import EXTRACTOR
from mnemolog.errors import AccessDenied, InvalidInput, NotFound, VersionConflict
from mnemolog.infra.cli.app import app

HEALTH = "version: 1\ntopics: {health: {rule: conditional, words: [allergy, 알레르기]}}\n"


def found(memory: Memory, text: str, scope: Scope = U1, tool: str = "web") -> str:
    """The id of an untrusted tool's output that the worker has looked at."""
    event = memory.record_tool_result(scope, output=text, name=tool).event_id
    memory.operations.extract()
    return event


def test_the_queue_is_of_the_scope(memory: Memory) -> None:
    """A person sees what waits in their own scope and nothing of a neighbour's; `ANY` is for who may read it."""
    found(memory, "We use vendor Z.")
    found(memory, "We use vendor Y.", U2)
    (mine,) = memory.acting_as(user("u-1")).review.list(U1)
    assert (mine.content, mine.status, mine.found_by) == ("We use vendor Z", "quarantined", EXTRACTOR)
    with pytest.raises(NotFound):
        memory.review.approve(U2, mine.record_id)
    assert len(memory.review.list(Scope("acme", user=ANY, project=ANY))) == 2


def test_an_agent_does_not_review(memory: Memory) -> None:
    """Who could let its own candidates in may not: neither see the queue nor decide; the refusal is recorded."""
    found(memory, "We use vendor Z.")
    record = memory.review.list(U1)[0].record_id
    bot = memory.acting_as(agent())
    for act in (lambda: bot.review.list(U1), lambda: bot.review.approve(U1, record)):
        with pytest.raises(AccessDenied, match="review"):
            act()
    assert len(memory.log(topics={"AccessRefused"})) == 2
    assert bot.why(U1, record).outcomes[0].content is None
    assert contents(memory, U1) == []


def test_two_who_decide_do_not_overwrite_each_other(memory: Memory) -> None:
    """The second decision on the version that both saw is refused."""
    found(memory, "We use vendor Z.")
    record = memory.review.list(U1)[0].record_id
    memory.review.approve(U1, record, expected_version=1)
    with pytest.raises(VersionConflict):
        memory.review.reject(U1, record, expected_version=1)


def test_what_may_not_be_kept_is_not_approved_as_it_is(memory: Memory) -> None:
    """A blocked secret cannot be approved; in other words it can be kept."""
    memory.record_turn(U1, role="user", content="My password is Zx9kQ2mL!7vRt4Wp")
    memory.operations.extract()
    (one,) = memory.review.list(U1, status=["log only"])
    with pytest.raises(InvalidInput, match="review edit"):
        memory.review.approve(U1, one.record_id)
    memory.review.edit(U1, one.record_id, "The password is in the safe")
    assert contents(memory, U1) == ["The password is in the safe"]


def test_consent_withdrawn_stops_reading_at_once(memory: Memory) -> None:
    """About a topic, then at all; what comes back comes back when the person agrees again."""
    memory.operations.adopt_policy(HEALTH)
    memory.record_turn(U1, role="user", content="땅콩 알레르기가 있다는 걸 기억해 줘.")
    memory.record_turn(U1, role="user", content="I live in Daejeon.")
    memory.operations.extract()
    (asked,) = memory.review.list(U1)
    assert asked.question is not None
    assert asked.question.startswith("“health”에 관한 내용입니다. 기억해도 될까요?")
    memory.acting_as(user("u-1")).grant_consent(U1, "health")
    assert len(contents(memory, U1)) == 2
    memory.withdraw_consent(U1, "health", reason="changed my mind")
    assert contents(memory, U1) == ["I live in Daejeon"]
    memory.withdraw_consent(U1)
    assert contents(memory, U1) == contents(memory, U1, history=True) == []
    assert (
        "Daejeon"
        not in memory.context(U1, "where?", budget=800, layers=["memory", "boot"]).text.split("<turns")[0]
    )
    memory.grant_consent(U1)
    assert contents(memory, U1) == ["I live in Daejeon"]
    with pytest.raises(InvalidInput, match="no topic 'sports'"):
        memory.grant_consent(U1, "sports")


def test_why_tells_the_path(memory: Memory) -> None:
    """Where it was found, what people did, and what it stands against; an event tells why it is no memory."""
    memory.record_turn(U1, role="user", content="I live in Daejeon.")
    later = memory.record_turn(U1, role="user", content="I moved to Jeju. Good morning!")
    chat = memory.record_turn(U1, role="user", content="Good morning!")
    assert memory.why_not(U1, chat.event_id).reason == "nobody has looked at it yet"
    memory.operations.extract()
    (record,) = memory.records(U1)
    why = memory.why(U1, record.record_id)
    assert why.record == record
    assert [(one.status, one.found_in) for one in why.outcomes] == [("admitted", later.event_id)]
    assert [(one.content, one.status) for one in why.competing] == [("I live in Daejeon", "superseded")]
    assert memory.why_not(U1, chat.event_id).reason == "nothing in it is stated for good"
    assert memory.why_not(U1, later.event_id).reason == "admitted: no objection"


def test_a_burst_is_held_and_reported(memory: Memory) -> None:
    """What one origin brings far beyond its usual rate waits, and the status says so."""
    memory.operations.adopt_policy("version: 1\nburst: {least: 5}\n")
    for at in range(8):
        memory.record_turn(U1, role="user", content=f"I prefer tea number {at}.")
    memory.operations.extract()
    assert len(contents(memory, U1)) == 5
    status = memory.operations.status()
    assert status.gate.candidates == {"admitted": 5, "quarantined": 3}
    assert any("3 candidates came in bursts" in one for one in status.warnings)


def test_the_worker_goes_on_where_it_was(tmp_path: Path) -> None:
    """After a restart nothing is looked at again; with its place lost, nothing is appended twice."""
    with open_memory(tmp_path / "data") as memory:
        memory.record_turn(U1, role="user", content="I live in Daejeon. Call 010-1234-5678.")
        memory.operations.extract()
        head, position = memory.operations.status().head, memory._store.gate.extracting[0].position
    with open_memory(tmp_path / "data") as memory:
        assert memory._store.gate.extracting[0].position == position
    (tmp_path / "data" / "workers.json").write_text("{}")
    with open_memory(tmp_path / "data") as memory:
        memory.operations.extract()
        assert memory.operations.status().head == head


def test_in_the_background_it_needs_no_call(tmp_path: Path) -> None:
    """With threads, what was said is memory soon after."""
    with open_memory(tmp_path / "data", background=True) as memory:
        memory.record_turn(U1, role="user", content="I live in Daejeon.")
        for _ in range(200):
            if contents(memory, U1):
                break
            memory.wait(memory.operations.status().head, 0.1)
        assert contents(memory, U1) == ["I live in Daejeon"]


def test_the_awaited_face_reviews(tmp_path: Path) -> None:
    """`AsyncMemory` has the same queue, decisions and explanations."""

    async def lived() -> object:
        async with AsyncMemory(open_memory(tmp_path / "data")) as memory:
            event = await memory.record_tool_result(U1, output="We use vendor Z.", name="web")
            await memory.operations.extract()
            (one,) = await memory.review.list(U1)
            await memory.review.approve(U1, one.record_id)
            why, why_not = await memory.why(U1, one.record_id), await memory.why_not(U1, event.event_id)
            await memory.withdraw_consent(U1)
            await memory.grant_consent(U1)
            return why.record.content, why_not.outcomes[0].status  # type: ignore[union-attr]

    assert asyncio.run(lived()) == ("We use vendor Z", "admitted")


def run(data: Path, *words: str) -> str:
    scope = ["--tenant", "acme", "--user", "u-1", "--project", "billing"]
    scoped = [] if words[0] == "extract" else scope
    done = CliRunner().invoke(app, [*words, *scoped, "--data", str(data)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_reviews(tmp_path: Path) -> None:
    """Labels are English, questions in the language of what they ask about; all of it is also there as JSON."""
    data = tmp_path / "data"
    with open_memory(data) as memory:
        event = memory.record_tool_result(U1, output="우리는 배포에 젠킨스를 씁니다.", name="web").event_id
    assert "candidates so far: 1" in run(data, "extract")
    listed = run(data, "review", "list")
    assert "quarantined" in listed
    assert "이 내용을 기억해도 될까요?" in listed
    (row,) = map(json.loads, run(data, "review", "list", "--json").splitlines())
    assert row["status"] == "quarantined"
    assert "quarantined" in run(data, "why-not", event, "--json")
    assert "comes from an origin that may not say this" in run(data, "why-not", event)
    assert "approved" in run(data, "review", "approve", row["record_id"])
    assert "우리는 배포에 젠킨스를 씁니다" in run(data, "why", row["record_id"])
    assert "Nothing waits" in run(data, "review", "list")
    assert "withdrawn: all memory of user u-1" in run(data, "consent", "withdraw")
    assert "No records here" in run(data, "records", "list")
    run(data, "consent", "grant", "--json")
    assert "젠킨스" in run(data, "records", "list")

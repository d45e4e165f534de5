"""Why memory holds something, or does not: the rule, the evidence and the competing record at each control point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from face_world import U1, agent, open_memory, user
from mnemolog import Memory, Principal, Role
from mnemolog.domain.controls import Control
from mnemolog.infra.cli import app

RED_BLUE = [("red", "blue", ("wall", "colour")), ("빨강", "파랑", ("벽", "색"))]
SERVICE = Principal("crm", Role.SERVICE, (U1,))
HEALTH = "version: 1\ntopics: {health: {rule: conditional, words: [allergy, 알레르기]}}\n"


def run(data: Path, *words: str) -> str:
    whose = ["--tenant", "acme", "--user", "u-1", "--project", "billing", "--data", str(data)]
    done = CliRunner().invoke(app, [*words, *whose], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def at(path: tuple[Control, ...], point: str) -> list[tuple[str, str]]:
    """The rules of one control point, each with what it came to."""
    return [(one.rule, one.result) for one in path if one.point == point]


def against(path: tuple[Control, ...]) -> Control:
    """The one comparison with another record."""
    (found,) = [one for one in path if one.against is not None]
    return found


@pytest.mark.parametrize(("first", "second", "slot"), RED_BLUE)
@pytest.mark.parametrize(
    ("voices", "minutes", "rule", "results"),
    [
        ((agent("a"), agent("b")), 0, "memory.contested_within: 10", ("open", "open")),
        ((agent("a"), agent("b")), 30, "more recent", ("lost", "won")),
        ((user("u-1"), agent("b")), 0, "higher authority", ("won", "lost")),
        ((user("u-1"), SERVICE), 0, "higher authority", ("lost", "won")),
    ],
)
def test_why_names_the_rule_between_two_values(
    memory: Memory,
    first: str,
    second: str,
    slot: tuple[str, str],
    voices: Any,
    minutes: int,
    rule: str,
    results: Any,
) -> None:
    """Which rule of revision decided, against which record, told from both sides."""
    ids = [
        memory.acting_as(voice).remember(U1, text, slot=slot, occurred_at=when).record_id
        for voice, text, when in zip(
            voices, (first, second), ("2026-01-01T09:00Z", f"2026-01-01T09:{minutes:02}Z"), strict=True
        )
    ]
    for one, other, result in zip(ids, reversed(ids), results, strict=True):
        why = memory.why(U1, one)
        found = against(why.path)
        assert (found.point, found.rule, found.result, found.against) == ("revise", rule, result, other)
        assert found.against == why.competing[0].record_id
        stands = {"won": why.record, "lost": why.competing[0]}.get(result)
        assert found.evidence == (() if stands is None else stands.evidence)


@pytest.mark.parametrize(("first", "second", "slot"), RED_BLUE)
@pytest.mark.parametrize("how", ["resolve", "confirm", "correct"])
def test_what_a_person_decided_is_named(
    memory: Memory, first: str, second: str, slot: tuple[str, str], how: str
) -> None:
    """The act and the person stand beside the rule, in `why` of either record."""
    one, other = (
        memory.acting_as(agent(name)).remember(U1, text, slot=slot).record_id
        for name, text in (("a", first), ("b", second))
    )
    person = memory.acting_as(user("u-1"))
    event = {
        "resolve": lambda: person.review.resolve(U1, one),
        "confirm": lambda: person.confirm(U1, one),
        "correct": lambda: person.correct(U1, one, f"{first}!"),
    }[how]()
    rule = "confirmed by a person" if how == "confirm" else "decided by a person"
    for record, result in ((one, "won"), (other, "lost")):
        found = against(memory.why(U1, record).path)
        assert (found.rule, found.result, found.event_id) == (rule, result, event.event_id)
        assert (
            found.detail == {"resolve": "resolved", "confirm": "confirmed"}.get(how, "corrected") + " by u-1"
        )


@pytest.mark.parametrize(
    ("said", "phone"),
    [
        ("I live in Busan.", "Remember that Kim takes calls on 010-2345-6789."),
        ("저는 부산에 살아요.", "김 대리 번호는 010-2345-6789라고 기억해 줘."),
    ],
)
def test_why_not_goes_through_the_gate(memory: Memory, said: str, phone: str) -> None:
    """Each thing that was found has its rule, its span and the threshold that it reached."""
    event = memory.record_turn(U1, role="user", content=f"{said} {phone}").event_id
    memory.operations.extract()
    path = memory.why_not(U1, event).path
    records = list(dict.fromkeys(one.record_id for one in path))
    assert len(records) == 2
    first = tuple(one for one in path if one.record_id == records[0])
    assert " ".join(one.point for one in first) == (
        "extract origin secrets evidence trust instructions topic burst duplicate revise read"
    )
    (span,) = first[0].evidence
    assert first[0].rule.startswith("rules-") and (span.event_id, span.start) == (event, 0)
    assert at(first, "trust") == [("trust.floors.fact: trusted_tool", "passed")]
    assert at(first, "origin") == [("trust.ceilings.user: user_stated", "passed")]
    second = tuple(one for one in path if one.record_id == records[1])
    assert at(second, "secrets") == [("personal.phone: redact", "masked")]
    assert memory.why(U1, records[0]).path == first


@pytest.mark.parametrize("said", ["We use vendor Zorblax.", "우리는 결제에 조르블락스를 사용합니다."])
def test_why_not_names_the_floor_that_was_not_reached(memory: Memory, said: str) -> None:
    """What an untrusted tool says is held by the floor of its kind; what a person decided then is told, too."""
    event = memory.record_tool_result(U1, name="web", output=said).event_id
    memory.operations.extract()
    held = memory.why_not(U1, event)
    assert ("trust.floors.fact: trusted_tool", "held") in at(held.path, "trust")
    assert at(held.path, "revise") == []
    (waits,) = memory.review.list(U1)
    memory.review.approve(U1, waits.record_id)
    path = memory.why_not(U1, event).path
    assert at(path, "people") == [("people decide", "admitted")]
    assert path == memory.why(U1, waits.record_id).path


@pytest.mark.parametrize("said", ["I have a peanut allergy.", "저는 땅콩 알레르기가 있어요."])
def test_topics_and_nothing_found(memory: Memory, said: str) -> None:
    """The topic that needs consent is named; where nothing was found, who looked, or that nobody did."""
    memory.operations.adopt_policy(HEALTH)
    stated = memory.remember(U1, said)
    assert at(memory.why(U1, stated.record_id).path, "topic") == [("topics.health.rule: conditional", "held")]
    memory.acting_as(user("u-1")).grant_consent(U1, "health")
    assert at(memory.why(U1, stated.record_id).path, "topic") == [
        ("topics.health.rule: conditional", "passed")
    ]
    event = memory.record_turn(U1, role="user", content="hello").event_id
    (waits,) = memory.why_not(U1, event).path
    assert (waits.point, waits.result) == ("extract", "waits")
    memory.operations.extract()
    (looked,) = memory.why_not(U1, event).path
    assert looked.rule.startswith("rules-") and looked.result == "nothing found"
    memory.operations.adopt_policy("version: 1\nmemory: {mode: window}\n")
    assert memory.why_not(U1, event).path[0].rule == "memory.mode: window"


def test_expiry_and_retraction_are_told(memory: Memory) -> None:
    """Whose time is over, by the policy or by itself, and what was taken back by whom."""
    memory.operations.adopt_policy("version: 1\nmemory: {expiry: {episode: 1}}\n")
    old = memory.remember(U1, "We met", kind="episode", occurred_at="2025-01-01T00:00Z").record_id
    own = memory.remember(U1, "A code", expires_at="2099-01-01T00:00Z").record_id
    assert at(memory.why(U1, old).path, "forget") == [("memory.expiry.episode: 1", "stopped")]
    assert at(memory.why(U1, own).path, "forget") == [("expires_at", "passed")]
    memory.acting_as(user("u-1")).retract(U1, own)
    found = [one for one in memory.why(U1, own).path if one.point == "forget"]
    assert (found[0].rule, found[0].detail) == ("retracted", "by u-1")


@pytest.mark.parametrize(("first", "second", "slot"), RED_BLUE)
def test_history_says_what_won_and_by_whom(
    memory: Memory, first: str, second: str, slot: tuple[str, str]
) -> None:
    """A resolved conflict: the record and the value that won, over which, by whom; as they were said then."""
    one, other = (
        memory.acting_as(agent(name)).remember(U1, text, slot=slot).record_id
        for name, text in (("a", first), ("b", second))
    )
    person = memory.acting_as(user("u-1"))
    person.review.resolve(U1, one, reason="she told me")
    person.correct(U1, one, f"{first}, dark")
    for record in (one, other):
        (step,) = [each for each in memory.history(U1, record) if each.act == "resolved"]
        assert (step.actor, step.reason) == ("u-1", "she told me")
        assert step.won is not None
        assert (step.won.record, step.won.content) == (one, first)
        assert [(side.record, side.content) for side in step.against] == [(other, second)]
    memory.erase(U1, record=other).apply()
    (step,) = [each for each in memory.history(U1, one) if each.act == "resolved"]
    assert [(side.record, side.content) for side in step.against] == [(other, None)]


@pytest.mark.parametrize(
    ("first", "second"),
    [("Parking is in the yard", "The parking is in the yard"), ("주차는 뒷마당", "주차는 뒷마당에")],
)
def test_history_says_what_was_merged(memory: Memory, first: str, second: str) -> None:
    """A merge is told in the history of both records, also where they stand in different slots; and its undoing."""
    one, other = memory.remember(U1, first).record_id, memory.remember(U1, second).record_id
    person = memory.acting_as(user("u-1"))
    person.review.merge(U1, one, other)
    for record in (one, other):
        (step,) = [each for each in memory.history(U1, record) if each.act == "merged"]
        assert step.won is not None
        assert (step.actor, step.won.record, step.won.content) == ("u-1", other, second)
        assert [(side.record, side.content) for side in step.against] == [(one, first)]
    found = against(memory.why(U1, one).path)
    assert (found.rule, found.result, found.against, found.detail) == (
        "merged by a person",
        "lost",
        other,
        "by u-1",
    )
    person.review.keep_apart(U1, one, other)
    (step,) = [each for each in memory.history(U1, one) if each.act == "kept apart"]
    assert step.won is None
    assert [(side.record, side.content) for side in step.against] == [(other, second)]


@pytest.mark.parametrize(("first", "second", "slot"), RED_BLUE)
def test_the_command_line_tells_the_same(
    tmp_path: Path, first: str, second: str, slot: tuple[str, str]
) -> None:
    """Tables and JSON of why, why-not and history name rule, evidence, record and person."""
    data = tmp_path / "data"
    with open_memory(data) as memory:
        one, other = (
            memory.acting_as(agent(name)).remember(U1, text, slot=slot)
            for name, text in (("a", first), ("b", second))
        )
        memory.acting_as(user("u-1")).review.resolve(U1, one.record_id)
    table = run(data, "why", one.record_id)
    assert "decided by a person" in table and "resolved by u-1" in table and other.record_id in table
    told = json.loads(run(data, "why", one.record_id, "--json"))["path"]
    assert [each["against"] for each in told if each["against"]] == [other.record_id]
    assert [each["rule"] for each in told if each["against"]] == ["decided by a person"]
    assert "decided by a person" in run(data, "why-not", other.event_id)
    lost = json.loads(run(data, "why-not", other.event_id, "--json"))["path"]
    assert [each["result"] for each in lost if each["against"]] == ["lost"]
    assert f"“{first}” won over “{second}”" in run(data, "records", "history", other.record_id)
    steps = [
        json.loads(line) for line in run(data, "records", "history", one.record_id, "--json").splitlines()
    ]
    assert steps[-1]["won"] == {"record": one.record_id, "content": first}
    assert steps[-1]["actor"] == "u-1"


def test_what_is_told_of_a_decision_is_what_may_be_read(memory: Memory) -> None:
    """The words of a record of a kind that a role may not read stay out of the history of the other one."""
    memory.operations.adopt_policy("version: 1\nreading: {kinds: {agent: [fact]}}\n")
    one = memory.remember(U1, "Tea in the morning").record_id
    other = memory.remember(U1, "Zorblax in the morning", kind="preference").record_id
    memory.review.merge(U1, other, one)
    bot = memory.acting_as(agent())
    assert "Zorblax" not in repr(bot.history(U1, one))
    memory.review.keep_apart(U1, one, other)
    steps = bot.history(U1, one)
    assert [side.record for side in steps[-1].against] == [other]
    assert "Zorblax" not in repr(steps) and "Zorblax" in repr(memory.history(U1, one))


@pytest.mark.parametrize("said", ["We use vendor Zorblax", "우리는 조르블락스를 쓴다"])
def test_nothing_is_told_of_what_was_erased(memory: Memory, said: str) -> None:
    """Neither rule nor evidence of a statement is left, by its record or by its event."""
    stated = memory.remember(U1, said)
    assert memory.why(U1, stated.record_id).path
    memory.erase(U1, record=stated.record_id).apply()
    assert memory.why(U1, stated.record_id).path == ()
    assert memory.why_not(U1, stated.event_id).path == ()

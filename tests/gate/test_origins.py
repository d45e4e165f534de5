"""Where a record comes from is named to who may look there; others read the record alone."""

from __future__ import annotations

import pytest

from face_world import agent, user
from mnemolog import Memory, Principal, Role, Scope

HERE = Scope("acme", user="u-1", project="billing", session="s-here")
THERE = Scope("acme", user="u-1", project="tumbleweed", session="s-there")
PERSON = Scope("acme", user="u-1")
TEXTS = pytest.mark.parametrize(
    ("text", "query"), [("Reports go out as PDF", "reports PDF"), ("보고서는 PDF로 보낸다", "보고서 PDF")]
)


def stated_there(memory: Memory, text: str) -> str:
    """A record of the person, of which all that happened, happened in another project."""
    bot, slot = memory.acting_as(agent("zorblax")), ("report", "format")
    bot.remember(THERE.at(("user", "project")), "as text", slot=slot, belongs_to=PERSON)
    record = bot.remember(THERE, text, slot=slot, belongs_to=PERSON).record_id
    bot.dispute(THERE, record, reason="unsure")
    memory.acting_as(user("u-1")).confirm(THERE, record)
    return record


def all_told(memory: Memory, scope: Scope, record: str, query: str) -> str:
    context = memory.context(scope, query, budget=2000)
    told = [memory.get(scope, record), memory.why(scope, record), memory.history(scope, record)]
    told += [memory.records(scope, history=True), memory.recall(scope, query, kinds=["fact"], history=True)]
    told += [memory.standing(scope, record)]
    return repr(told) + context.text


@TEXTS
def test_an_agent_of_this_project_hears_nothing_of_another(memory: Memory, text: str, query: str) -> None:
    """Neither session nor author of a record of the same person, in any read; the record itself it reads."""
    record = stated_there(memory, text)
    told = all_told(memory.acting_as(agent("mine", HERE.at(("user", "project")))), HERE, record, query)
    assert text in told
    assert [name for name in ("zorblax", "s-there", "tumbleweed") if name in told] == [], told
    assert "actor='somebody elsewhere'" in told and "actor='u-1'" in told


@TEXTS
@pytest.mark.parametrize(
    "principal",
    [agent("mine", THERE.at(("user", "project"))), agent("wide"), user("u-1")],
    ids=["of that project", "of the tenant", "the person"],
)
def test_who_may_look_there_is_told(memory: Memory, text: str, query: str, principal: Principal) -> None:
    """An agent of that project or of all of them, and the person."""
    told = all_told(memory.acting_as(principal), THERE, stated_there(memory, text), query)
    assert "zorblax" in told and "s-there" in told


def test_the_person_is_named_to_whoever_reads_for_them(memory: Memory) -> None:
    """What was said without a session is from anywhere that the record is read, so others are not named."""
    person, operator = memory.acting_as(user("u-1")), memory.acting_as(Principal("boss", Role.OPERATOR))
    record = operator.remember(PERSON, "Reports go out as PDF").record_id
    person.confirm(HERE, record)
    bot = memory.acting_as(agent("mine", HERE.at(("user", "project"))))
    assert [step.actor for step in bot.history(HERE, record)] == ["somebody elsewhere", "u-1"]
    assert [step.session for step in bot.history(HERE, record)] == [None, "s-here"]
    assert [step.actor for step in operator.history(HERE, record)] == ["boss", "u-1"]


def test_a_record_of_a_project_names_no_other_user(memory: Memory) -> None:
    """Who stated what all of a project read is named to that person, and to who sees all."""
    project = Scope("acme", project="billing")
    first, second = (Scope("acme", user=name, project="billing", session="s") for name in ("u-1", "u-2"))
    one, two = (
        memory.acting_as(Principal(name, Role.USER, (Scope("acme", user=name), project)))
        for name in ("u-1", "u-2")
    )
    record = one.remember(first, "Reports go out as PDF", belongs_to=project).record_id
    assert [step.actor for step in one.history(first, record)] == ["u-1"]
    assert [step.actor for step in two.history(second, record)] == ["somebody elsewhere"]
    assert "u-1" not in repr(two.why(second, record))
    assert [step.actor for step in memory.history(second, record)] == ["u-1"]

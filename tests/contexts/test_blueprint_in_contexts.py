"""Boot memory: rules, and the blueprint of the project, whatever the question is."""

from __future__ import annotations

import pytest

from face_world import U1, U2, agent
from mnemolog import ANY, Memory, Scope

SHARED = Scope("acme", project="billing")
STATED = (
    "The goal of Heron is to settle invoices within a day",
    "데이터베이스는 PostgreSQL로 결정했다",
    "Min owns the billing service",
    "제출 마감은 5월 3일",
)


def boot(memory: Memory, scope: Scope = U1, question: str = "점심", budget: int = 3_000) -> list[str]:
    """The lines of the blueprint."""
    text = memory.context(scope, question, budget=budget, layers=["boot"]).text
    if "<blueprint>" not in text:
        return []
    inside = text[text.index("<blueprint>") : text.index("</blueprint>")]
    return [line.partition(": ")[2] for line in inside.splitlines()[1:]]


@pytest.mark.parametrize("question", ["what is for lunch?", "점심은 뭐야?"])
def test_a_project_is_told_whatever_is_asked(memory: Memory, question: str) -> None:
    """Goal, decision, owner and deadline come in this order, in Korean and English; chatter does not."""
    for said in STATED[::-1]:
        memory.remember(U1, said)
    memory.remember(U1, "The office has a red door")
    assert boot(memory, question=question) == list(STATED)


def test_it_follows_the_records_at_once(memory: Memory) -> None:
    """A superseded, corrected, retracted or erased record is in no context a moment longer."""
    old = memory.remember(U1, "We decided to use MySQL", slot=("db", "engine"))
    memory.remember(U1, "We decided to use PostgreSQL", slot=("db", "engine"))
    owner = memory.remember(U1, "Min owns billing")
    assert boot(memory) == ["We decided to use PostgreSQL", "Min owns billing"]
    memory.correct(U1, owner.record_id, "Ana owns billing")
    assert boot(memory)[1:] == ["Ana owns billing"]
    memory.retract(U1, owner.record_id)
    assert boot(memory) == ["We decided to use PostgreSQL"]
    memory.erase(U1, record=old.record_id).apply()
    assert "MySQL" not in memory.context(U1, "db", budget=3_000).text


def test_it_is_the_project_s_alone(memory: Memory) -> None:
    """What is shared in the project is told to all of it; another person's, another project's, or nobody's is not."""
    memory.remember(SHARED, "We decided to use PostgreSQL")
    memory.remember(U2, "We decided to use MySQL")
    memory.remember(Scope("acme", user="u-1"), "We decided to use SQLite")
    memory.remember(Scope("acme", user="u-1", project="other"), "We decided to use Redis")
    assert boot(memory) == ["We decided to use PostgreSQL"]
    assert sorted(boot(memory, U2)) == ["We decided to use MySQL", "We decided to use PostgreSQL"]
    assert boot(memory, Scope("acme", user="u-1")) == []
    assert boot(memory, Scope("acme", user="u-1", project=ANY)) == []


def test_only_people_guide(memory: Memory) -> None:
    """What an agent decided, or read on a page, is memory with its origin and no part of the blueprint."""
    bot = memory.acting_as(agent())
    page = bot.record_tool_result(U1, name="web", output="we decided to pay x@y.test")
    bot.remember(U1, "We decided to use Redis")
    bot.remember(U1, "We decided to pay x@y.test", evidence=[page.event_id])
    assert boot(memory) == []
    assert "fact (agent): We decided to use Redis" in memory.context(U1, "Redis", budget=3_000).text


def test_what_has_no_room_is_memory(memory: Memory) -> None:
    """Boot memory keeps to its share; no record stands twice, and none that answers is lost to the blueprint."""
    for number in range(4):
        memory.remember(U1, f"We decided number {number}: {'the long reason ' * 12}")
        memory.remember(U1, f"Person {number} owns part {number} of it: {'and much besides ' * 12}")
    context = memory.context(U1, "number 2", budget=1_200)
    layers = [one["layer"] for one in context.receipt.entries]
    assert 0 < layers.count("blueprint") < 8 and layers.count("memory") > 0
    ids = [one["id"] for one in context.receipt.entries]
    assert len(ids) == len(set(ids))
    assert "number 2:" in memory.context(U1, "number 2", budget=400).text
    assert context.receipt.tokens <= 1_200

"""Complaints about isolation elsewhere, and what is right."""

from __future__ import annotations

import pytest

from face_world import ACME, U1, U2, contents, everything, texts
from mnemolog import ANY, Memory, Principal, Role, Scope
from mnemolog.errors import AccessDenied, InvalidInput, NotFound


def test_two_users_of_one_session_name_share_nothing(memory: Memory) -> None:
    """C01: two users whose runtimes both say session "s-1" see nothing of each other, in any read."""
    memory.record_turn(U1, role="user", content="my pet is walrus")
    memory.remember(U1, "The pet is walrus")
    memory.record_turn(U2, role="user", content="my pet is otter")
    assert "walrus" not in everything(memory, U2, "my pet is walrus otter")
    assert "otter" not in everything(memory, U1, "my pet is walrus otter")
    assert "walrus" in everything(memory, U1, "pet")


def test_every_surface_keeps_to_the_group(memory: Memory) -> None:
    """C02: hits, records, history, context and counts of one project hold nothing of another."""
    g1, g2 = (Scope("acme", user="u-1", project=name, session="s") for name in ("g1", "g2"))
    theirs = memory.remember(g2, "the g2 budget is 48M walrus", slot=("budget", "amount"))
    memory.correct(g2, theirs.record_id, "the g2 budget is 49M walrus")
    turn = memory.record_turn(g2, role="user", content="walrus budget in g2")
    mine = memory.remember(g1, "the g1 budget is 3M", slot=("budget", "amount"))
    found = everything(memory, g1, "walrus budget g2 48M 49M")
    assert "walrus" not in found and theirs.record_id not in found and turn.event_id not in found
    assert [hit.record_id for hit in memory.recall(g1, "budget walrus", k=50)] == [mine.record_id]
    assert len(memory.records(g1, history=True)) == 1
    assert len(memory.history(g1, mine.record_id)) == 1
    context = memory.context(g1, "walrus budget", budget=2000)
    assert {entry["id"] for entry in context.receipt.entries} == {mine.record_id}
    assert context.receipt.left_out == ()
    for read in (memory.get, memory.history, memory.read_output):
        for foreign in (theirs.record_id, turn.event_id):
            with pytest.raises(NotFound):
                read(g1, foreign)


def test_a_key_of_one_tenant_gets_nothing_of_another(memory: Memory) -> None:
    """C03: asking for another tenant is refused alike whether it exists or not, and the refusal is recorded."""
    memory.record_turn(Scope("t2", user="x"), role="user", content="t2 walrus")
    memory.remember(Scope("t1", user="u"), "ours")
    t1 = memory.acting_as(Principal("key-1", Role.AGENT, (Scope("t1"),)))
    messages = set()
    for tenant in ("t2", "t3"):
        for ask in (t1.recall, t1.records, t1.context):
            arguments = {"recall": ("walrus",), "context": ("walrus",), "records": ()}[ask.__name__]
            extra = {"budget": 500} if ask.__name__ == "context" else {}
            with pytest.raises(AccessDenied) as refused:
                ask(Scope(tenant, user="x"), *arguments, **extra)
            messages.add(str(refused.value))
    assert len(messages) == 1
    # Each is noted where it came from; where it was aimed at, too, if there is such a tenant.
    assert memory.operations.status().refused_access == 9
    assert {each.envelope.topic for each in memory.log(topics={"AccessRefused"})} == {"AccessRefused"}


def test_an_absent_level_is_asked_for_exactly_or_as_any(memory: Memory) -> None:
    """C05: without a project a read sees what has none; ANY sees all; exact tells the absent from the shared."""
    general, billing = Scope("acme", user="u-1"), Scope("acme", user="u-1", project="billing")
    memory.remember(general, "no project")
    memory.remember(billing, "of billing")
    assert contents(memory, general) == ["no project"]
    assert contents(memory, billing) == ["no project", "of billing"]
    assert contents(memory, Scope("acme", user="u-1", project=ANY)) == ["no project", "of billing"]
    assert contents(memory, billing, exact=["project"]) == ["of billing"]
    assert contents(memory, general, exact=True) == ["no project"]
    assert texts(memory, Scope("acme", user=ANY, project=ANY), "project billing", exact=False) != []
    assert contents(memory, ACME) == []


def test_any_stays_within_what_the_principal_may_see(memory: Memory) -> None:
    """C05: ANY of a principal with scopes reaches those scopes only, in recall, records and single reads."""
    memory.remember(U1, "first walrus")
    theirs = memory.remember(U2, "second walrus")
    turn = memory.record_turn(U2, role="user", content="third walrus")
    one = memory.acting_as(Principal("u-1", Role.USER, (Scope("acme", user="u-1"),)))
    everyone = Scope("acme", user=ANY, project=ANY, session=ANY)
    assert texts(one, everyone, "walrus") == ["first walrus"]
    assert contents(one, everyone) == ["first walrus"]
    assert len(texts(memory, everyone, "walrus")) == 3
    assert "second" not in one.context(everyone, "walrus", budget=1000).text
    for read in (one.get, one.history, one.read_output):
        for foreign in (theirs.record_id, turn.event_id):
            with pytest.raises(NotFound):
                read(everyone, foreign)


@pytest.mark.parametrize("tenant", [None, "", "  ", "\t"])
def test_a_write_without_a_tenant_is_refused(memory: Memory, tenant: str | None) -> None:
    """C08: there is no shared default: a scope without a tenant is refused, also as a mapping or as None."""
    with pytest.raises(InvalidInput):
        memory.record_turn(Scope(tenant, user="u-1"), role="user", content="x")
    with pytest.raises(InvalidInput):
        memory.record_turn(Scope.of({"tenant": tenant, "user": "u-1"}), role="user", content="x")
    with pytest.raises(InvalidInput):
        memory.record_turn(None, role="user", content="x")
    (result,) = memory.record_batch([{"type": "turn", "role": "user", "content": "x"}])
    assert isinstance(result, InvalidInput)
    assert memory.operations.status().head == 0


def test_what_user_and_agent_wrote_is_found_by_both(memory: Memory) -> None:
    """C09: a write that names user and agent is found by a read that names both, and by the user alone."""
    both = Scope("acme", user="u-1", agent="planner", session="s-1")
    memory.record_turn(both, role="user", content="the walrus eats at noon")
    memory.remember(both, "Walrus lunch is at noon")
    assert len(texts(memory, both, "walrus")) == 2
    assert len(texts(memory, Scope("acme", user="u-1"), "walrus")) == 2
    assert texts(memory, Scope("acme", agent="planner"), "walrus") == []

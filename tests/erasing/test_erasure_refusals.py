"""What an erasure refuses: no target, two targets, the wrong scope, unknown ids, and what is not the caller's."""

from __future__ import annotations

from typing import Any

import pytest

from face_world import ACME, U1, U2, agent, contents, user
from mnemolog import ANY, Memory, Principal, Role, Scope
from mnemolog.errors import AccessDenied, InvalidInput, MnemologError, NotFound

NO_ID = "0" * 32


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"event": NO_ID, "record": NO_ID},
        {"session": "s-1", "subject": "u-1"},
        {"subject": ""},
        {"session": "   "},
        {"event": 7},
        {"session": ANY},
        {"subject": ANY},
    ],
)
def test_an_erasure_has_exactly_one_target(memory: Memory, target: dict[str, Any]) -> None:
    """None, two, an empty one, ANY or something that is no text: InvalidInput, and nothing is written."""
    memory.record_turn(U1, role="user", content="stays")
    with pytest.raises(InvalidInput):
        memory.erase(U1, **target)
    assert memory.operations.status().head == 1


@pytest.mark.parametrize("scope", [None, "acme", Scope("acme", user=ANY), Scope(ANY)])
def test_an_erasure_has_a_scope_with_one_value_per_level(memory: Memory, scope: Any) -> None:
    """No scope, a text, or one with ANY is refused."""
    memory.record_turn(U1, role="user", content="stays")
    with pytest.raises(InvalidInput):
        memory.erase(scope, session="s-1")


def test_unknown_targets_are_not_found(memory: Memory) -> None:
    """Ids, sessions, persons and tenants that do not exist here are NotFound, as are those of another scope."""
    turn = memory.record_turn(U1, role="user", content="mine")
    note = memory.remember(U1, "mine")
    for scope, target in (
        (U1, {"event": NO_ID}),
        (U1, {"record": NO_ID}),
        (U1.at(("user", "project")), {"session": "s-404"}),
        (ACME, {"session": "s-1"}),
        (ACME, {"subject": "u-404"}),
        (Scope("nobody"), {"subject": "u-1"}),
        (Scope("nobody"), {"event": turn.event_id}),
        (U2, {"event": turn.event_id}),
        (U2, {"record": note.record_id}),
        (U1, {"event": note.record_id}),
        (U1, {"record": turn.event_id}),
    ):
        with pytest.raises(NotFound):
            memory.erase(scope, **target)
    with pytest.raises(InvalidInput):
        memory.erase(U1, session="s-2")
    assert contents(memory, U1) == ["mine"]
    assert memory.log(topics={"ErasureRequested"}) == []


def test_users_erase_their_own_and_nothing_else(memory: Memory) -> None:
    """A user may erase own events, records, sessions and the own person; a neighbour's or shared ones are refused."""
    one = memory.acting_as(user("u-1"))
    memory.remember(U2, "theirs")
    shared = memory.record_turn(Scope("acme", project="billing", session="p"), role="user", content="shared")
    own = one.record_turn(U1, role="user", content="own")
    note = one.remember(U1, "own fact")
    citing = one.remember(U1, "own, from a shared page", evidence=[shared.event_id])
    for scope, target in (
        (ACME, {"subject": "u-2"}),
        (Scope("acme", user="u-1"), {"subject": "u-2"}),
        (U2, {"session": "s-1"}),
        (U1, {"event": shared.event_id}),
        (U1, {"record": citing.record_id}),
    ):
        with pytest.raises(AccessDenied):
            one.erase(scope, **target)
    assert memory.operations.status().refused_access == 5
    assert one.erase(U1, record=citing.record_id, keep_evidence=True).apply().evidence_left == (
        shared.event_id,
    )
    assert one.erase(U1, event=own.event_id).apply().complete
    assert one.erase(U1, record=note.record_id).apply().complete
    assert one.erase(U1, session="s-1").apply().complete
    assert one.erase(ACME, subject="u-1").apply().complete
    assert contents(memory, U2) == ["theirs"]
    assert memory.get(Scope("acme", project="billing"), shared.event_id).text == "shared"


@pytest.mark.parametrize("role", [Role.AGENT, Role.SERVICE, Role.AUDITOR])
def test_machines_and_auditors_erase_nothing(memory: Memory, role: Role) -> None:
    """Agents, services and auditors may not erase, whatever the target."""
    turn = memory.record_turn(U1, role="user", content="stays")
    seen = memory.acting_as(Principal("x", role, (ACME,)))
    for target in ({"event": turn.event_id}, {"session": "s-1"}, {"subject": "u-1"}):
        with pytest.raises(AccessDenied):
            seen.erase(U1, **target)


def test_an_erased_record_takes_no_more_acts(memory: Memory) -> None:
    """What nothing is left of cannot be corrected, confirmed, disputed or retracted; it can be stated anew."""
    note = memory.remember(U1, "the code is 7741")
    memory.erase(U1, record=note.record_id).apply()
    with pytest.raises(NotFound):
        memory.correct(U1, note.record_id, "the code is 7742")
    for act in (memory.confirm, memory.dispute, memory.retract):
        with pytest.raises(NotFound):
            act(U1, note.record_id)
    again = memory.remember(U1, "the code is 7741")
    assert memory.get(U1, again.record_id).weakened is None


def test_an_agent_cannot_pass_a_plan_on(memory: Memory) -> None:
    """A plan acts as the principal that made it; a closed memory applies nothing."""
    memory.record_turn(U1, role="user", content="stays")
    plan = memory.erase(U1, session="s-1")
    with pytest.raises(AccessDenied):
        memory.acting_as(agent()).erase(U1, session="s-1")
    memory.close()
    with pytest.raises(MnemologError):
        plan.apply()

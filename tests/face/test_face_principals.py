"""Who may do what: every method of the face, for every role."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from face_world import ACME, U1, U2, open_memory, user
from mnemolog import ANY, Memory, Principal, Receipt, Role, Scope
from mnemolog.domain.principal import ALLOWED, Action
from mnemolog.errors import AccessDenied, InvalidInput, StoreClosed
from mnemolog.operations import Operations

Call = Callable[[Memory, str, str], Any]

CALLS: dict[str, tuple[Action, Call]] = {
    "open_session": (Action.RECORD, lambda m, e, r: m.open_session(U1)),
    "close_session": (Action.RECORD, lambda m, e, r: m.close_session(U1)),
    "record_turn": (Action.RECORD, lambda m, e, r: m.record_turn(U1, role="user", content="x")),
    "record_chunk": (
        Action.RECORD,
        lambda m, e, r: m.record_chunk(U1, role="user", content="x", utterance="u", index=0),
    ),
    "record_messages": (
        Action.RECORD,
        lambda m, e, r: m.record_messages(U1, [{"role": "user", "content": "new"}]),
    ),
    "record_tool_call": (Action.RECORD, lambda m, e, r: m.record_tool_call(U1, name="f", arguments={})),
    "record_tool_result": (Action.RECORD, lambda m, e, r: m.record_tool_result(U1, output="x")),
    "feedback": (Action.RECORD, lambda m, e, r: m.feedback(U1, e, "up")),
    "remember": (Action.STATE, lambda m, e, r: m.remember(U1, "x")),
    "correct": (Action.STATE, lambda m, e, r: m.correct(U1, r, "y")),
    "retract": (Action.STATE, lambda m, e, r: m.retract(U1, r)),
    "confirm": (Action.STATE, lambda m, e, r: m.confirm(U1, r)),
    "dispute": (Action.STATE, lambda m, e, r: m.dispute(U1, r)),
    "recall": (Action.READ, lambda m, e, r: m.recall(U1, "x")),
    "set_state": (Action.RECORD, lambda m, e, r: m.set_state(U1, "report", {"step": 1})),
    "state": (Action.READ, lambda m, e, r: m.state(U1, "report")),
    "states": (Action.READ, lambda m, e, r: m.states(U1)),
    "audit_record": (Action.INSPECT, lambda m, e, r: m.operations.audit_record(r)),
    "context": (Action.READ, lambda m, e, r: m.context(U1, "x", budget=500)),
    "get": (Action.READ, lambda m, e, r: m.get(U1, r)),
    "records": (Action.READ, lambda m, e, r: m.records(U1)),
    "history": (Action.READ, lambda m, e, r: m.history(U1, r)),
    "read_output": (Action.READ, lambda m, e, r: m.read_output(U1, e)),
    "log": (Action.INSPECT, lambda m, e, r: m.log()),
    "wait": (Action.INSPECT, lambda m, e, r: m.wait(0, 0.01)),
    "why": (Action.READ, lambda m, e, r: m.why(U1, r)),
    "standing": (Action.READ, lambda m, e, r: m.standing(U1, r)),
    "why_not": (Action.READ, lambda m, e, r: m.why_not(U1, e)),
    "grant_consent": (Action.REVIEW, lambda m, e, r: m.grant_consent(U1)),
    "withdraw_consent": (Action.REVIEW, lambda m, e, r: m.withdraw_consent(U1)),
    "erase": (Action.ERASE, lambda m, e, r: m.erase(U1, record=r)),
}
STORE_WIDE: dict[str, tuple[Action, Call]] = {
    "vectors": (Action.INSPECT, lambda m, e, r: m.operations.vectors()),
    "embed": (Action.OPERATE, lambda m, e, r: m.operations.embed()),
    "extract": (Action.OPERATE, lambda m, e, r: m.operations.extract()),
    "workers": (Action.INSPECT, lambda m, e, r: m.operations.workers()),
    "run_workers": (Action.OPERATE, lambda m, e, r: m.operations.run_workers()),
    "behind": (Action.INSPECT, lambda m, e, r: m.operations.behind()),
    "policy": (Action.INSPECT, lambda m, e, r: m.operations.policy()),
    "policy_document": (Action.INSPECT, lambda m, e, r: m.operations.policy_document()),
    "adopt_policy": (Action.OPERATE, lambda m, e, r: m.operations.adopt_policy("version: 1")),
    "status": (Action.INSPECT, lambda m, e, r: m.operations.status()),
    "health": (Action.INSPECT, lambda m, e, r: m.operations.health()),
    "partitions": (Action.INSPECT, lambda m, e, r: m.operations.partitions()),
    "projections": (Action.INSPECT, lambda m, e, r: m.operations.projections()),
    "parked": (Action.INSPECT, lambda m, e, r: m.operations.parked()),
    "verify_log": (Action.INSPECT, lambda m, e, r: m.operations.verify_log()),
    "catch_up": (Action.OPERATE, lambda m, e, r: m.operations.catch_up()),
    "rebuild": (Action.OPERATE, lambda m, e, r: m.operations.rebuild("catalog")),
    "rebuild_all": (Action.OPERATE, lambda m, e, r: m.operations.rebuild_all(["catalog"])),
    "dump_hash": (Action.OPERATE, lambda m, e, r: m.operations.dump_hash("catalog")),
    "rotate_root_key": (Action.OPERATE, lambda m, e, r: m.operations.rotate_root_key()),
    "paused": (Action.OPERATE, lambda m, e, r: m.operations.paused().__enter__()),
    "replay_parked": (Action.OPERATE, lambda m, e, r: m.operations.replay_parked("turns", 1)),
    "finish_erasures": (Action.OPERATE, lambda m, e, r: m.operations.finish_erasures()),
    "dismiss_parked": (Action.OPERATE, lambda m, e, r: m.operations.dismiss_parked("turns", 1)),
}
NEEDS_PARKED = {"replay_parked", "dismiss_parked"}


def test_the_matrix_has_every_method() -> None:
    """Every public method of Memory and Operations that does anything is in this file's matrix."""
    methods = {
        name
        for face in (Memory, Operations)
        for name in vars(face)
        if not name.startswith("_") and callable(getattr(face, name))
    } - {"open", "close", "acting_as", "record_batch", "names", "audit_context"}
    assert methods == set(CALLS) | set(STORE_WIDE)


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_what_its_actions_say_and_nothing_else(memory: Memory, role: Role) -> None:
    """For each role every method is allowed or refused as its table says; each refusal is recorded and counted."""
    event = memory.record_turn(U1, role="user", content="said").event_id
    record = memory.remember(U1, "stated").record_id
    seen = memory.acting_as(Principal(f"a {role}", role, (ACME,)))
    refused = 0
    for name, (action, call) in CALLS.items():
        if action in ALLOWED[role]:
            call(seen, event, record)
            continue
        with pytest.raises(AccessDenied, match=f"role {role.value} may not {action.value}"):
            call(seen, event, record)
        refused += 1
        assert memory.operations.status().refused_access == refused, name
    for name, (_, call) in STORE_WIDE.items():
        with pytest.raises(AccessDenied):
            call(seen, event, record)
        refused += 1
        assert memory.operations.status().refused_access == refused, name
    events = [each.event for each in memory.log(limit=1000, topics={"AccessRefused"})]
    assert len(events) == refused
    assert {event.action for event in events} <= {action.value for action in Action}


@pytest.mark.parametrize(
    "principal", [Principal("o", Role.OPERATOR), Principal("o", Role.OPERATOR, (Scope(ANY),))]
)
def test_an_operator_of_all_scopes_runs_the_store(memory: Memory, principal: Principal) -> None:
    """Without scopes, or with all of them, an operator may do everything."""
    event = memory.record_turn(U1, role="user", content="said").event_id
    record = memory.remember(U1, "stated").record_id
    seen = memory.acting_as(principal)
    for name, (_, call) in {**STORE_WIDE, **CALLS}.items():
        if name not in NEEDS_PARKED:
            call(seen, event, record)
    seen._store.runner.background.resume()
    assert memory.operations.status().refused_access == 0


def test_an_auditor_of_all_scopes_looks_at_the_store_and_changes_nothing(memory: Memory) -> None:
    """An auditor whose scopes are all of them sees status, lag and parked events, and may operate nothing."""
    seen = memory.acting_as(Principal("a", Role.AUDITOR, (Scope(ANY),)))
    memory.record_turn(U1, role="user", content="said")
    for action, call in STORE_WIDE.values():
        if action is Action.INSPECT:
            call(seen, "", "")
        else:
            with pytest.raises(AccessDenied, match="role auditor may not operate"):
                call(seen, "", "")


@pytest.mark.parametrize(
    "name", [name for name, (action, _) in CALLS.items() if action is not Action.INSPECT]
)
def test_a_principal_acts_only_in_its_scopes(memory: Memory, name: str) -> None:
    """Whatever the method, a scope that is not the principal's is refused, and the refusal tells nothing of it."""
    event = memory.record_turn(U1, role="user", content="said").event_id
    record = memory.remember(U1, "stated").record_id
    second = memory.acting_as(user("u-2"))
    with pytest.raises(AccessDenied) as refused:
        CALLS[name][1](second, event, record)
    assert "u-1" not in str(refused.value) and "billing" not in str(refused.value)
    assert memory.operations.status().refused_access == 1
    assert [record.content for record in memory.records(U1)] == ["stated"]


def test_a_batch_is_checked_item_by_item(memory: Memory) -> None:
    """In a batch the items of foreign scopes are refused in their place, and the others go in."""
    second = memory.acting_as(user("u-2"))
    item = {"type": "turn", "role": "user", "content": "x"}
    mine, theirs = second.record_batch([item | {"scope": U2}, item | {"scope": U1}])
    assert isinstance(mine, Receipt)
    assert isinstance(theirs, AccessDenied)
    assert memory.recall(U1, "x") == []


def test_any_is_for_reads(memory: Memory) -> None:
    """A write with ANY in its scope is refused; a read with ANY sees what the principal may see."""
    with pytest.raises(InvalidInput):
        memory.record_turn(Scope("acme", user=ANY), role="user", content="x")
    with pytest.raises(InvalidInput):
        memory.remember(Scope(ANY), "x")
    memory.remember(U1, "first")
    memory.remember(U2, "second")
    anyone = Scope("acme", user=ANY, project=ANY)
    assert len(memory.records(anyone)) == 2
    assert [r.content for r in memory.acting_as(user("u-2")).records(anyone)] == ["second"]
    with pytest.raises(AccessDenied):
        memory.acting_as(user("u-2")).records(Scope(ANY, user="u-2"))


def test_views_of_one_memory_share_it(memory: Memory) -> None:
    """`acting_as` is a second view of the same store: it sees writes at once and is closed with the first."""
    second = memory.acting_as(user("u-2"))
    memory.remember(U2, "shared")
    assert [record.content for record in second.records(U2)] == ["shared"]
    assert (second.path, second.principal.id) == (memory.path, "u-2")
    memory.close()
    for name, (_, call) in {**CALLS, **STORE_WIDE}.items():
        for each in (memory, second):
            with pytest.raises(StoreClosed):
                call(each, "", "")
        assert name
    with pytest.raises(StoreClosed):
        memory.acting_as(user("u-2"))
    with pytest.raises(StoreClosed):
        memory.record_batch([])
    memory.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_memory_refuses_and_the_parent_goes_on(tmp_path: Path) -> None:
    """In a forked child every method raises StoreClosed; the parent works, closes and reopens beside the child."""
    memory = open_memory(tmp_path / "data", background=True)
    memory.remember(U1, "before")
    reading, writing = os.pipe()
    staying, going = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(going)
        try:
            raised = 0
            for _, call in {**CALLS, **STORE_WIDE}.values():
                try:
                    call(memory, "", "")
                except StoreClosed:
                    raised += 1
            memory.close()
            os.write(writing, b"%d\n" % raised)
            os.read(staying, 1)
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 16) == b"%d\n" % (len(CALLS) + len(STORE_WIDE))
    memory.remember(U1, "after")
    memory.close()
    with open_memory(tmp_path / "data") as again:
        assert [record.content for record in again.records(U1)] == ["before", "after"]
    os.close(going)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(staying)

"""Every read leaves a note of ids, without a commit of its own, and an auditor finds it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from face_world import ACME, U1, U2, agent, open_memory, user
from mnemolog import Memory, Principal, Role, Scope
from mnemolog.consumers import accesses
from mnemolog.errors import AccessDenied, NotFound


def reads(memory: Memory) -> list[dict[str, object]]:
    """What the log holds of reads."""
    return [
        read
        for event in memory.log(limit=1000, topics={"MemoryAccessed"})
        for read in event.envelope.clear["reads"]
    ]


def test_reads_ride_along_with_the_next_append(memory: Memory) -> None:
    """A read appends nothing; the next write brings the notes into the log in its own commit."""
    note = memory.remember(U1, "The walrus sleeps")
    turn = memory.record_turn(U1, role="user", content="walrus said")
    head = memory.operations.status().head
    hits = memory.recall(U1, "walrus")
    memory.get(U1, note.record_id)
    memory.records(U1)
    memory.history(U1, note.record_id)
    memory.read_output(U1, turn.event_id)
    assert memory.operations.status().head == head
    groups = memory._store.log.stats()["groups"]
    receipt = memory.record_turn(U1, role="user", content="more")
    assert memory._store.log.stats()["groups"] == groups + 1
    assert receipt.position == memory.operations.status().head == head + 2
    found = {read["action"]: read["ids"] for read in reads(memory)}
    assert found == {
        "recall": [hit.record_id or hit.event_ids[0] for hit in hits],
        "get": [note.record_id],
        "records": [note.record_id],
        "history": [note.record_id],
        "read_output": [turn.event_id],
    }
    assert "walrus" not in repr(memory.log(topics={"MemoryAccessed"}))


def test_notes_go_at_the_close_and_where_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost at the close; so many ids that wait are appended at once, in events of bounded size."""
    monkeypatch.setattr(accesses, "IDS_AT_ONCE", 10)
    with open_memory(tmp_path / "data") as memory:
        for number in range(25):
            memory.remember(U1, f"fact {number}")
        memory.records(U1)
        assert sorted(len(read["ids"]) for read in reads(memory)) == [5, 10, 10]  # type: ignore[arg-type]
        memory.recall(U1, "fact", k=2)
        assert len(reads(memory)) == 3
    with open_memory(tmp_path / "data") as memory:
        assert len(reads(memory)) == 4


def test_a_refused_append_keeps_the_notes(memory: Memory) -> None:
    """Where a write fails, the notes that would have gone with it wait for the next one."""
    note = memory.remember(U1, "The walrus sleeps")
    memory.get(U1, note.record_id)
    with pytest.raises(Exception, match="version"):
        memory.retract(U1, note.record_id, expected_version=9)
    assert reads(memory) == []
    memory.record_turn(U1, role="user", content="more")
    assert [read["action"] for read in reads(memory)] == ["get"]


def test_nobody_is_made_known_by_a_question(memory: Memory) -> None:
    """A read of a tenant that nobody used leaves neither names nor notes."""
    memory.recall(Scope("nowhere"), "walrus")
    memory.record_turn(U1, role="user", content="more")
    assert reads(memory) == []
    assert memory._store.vault.resolve(Scope("nowhere"), create=False) is None


def test_an_audit_tells_where_a_record_went(memory: Memory) -> None:
    """Contexts and reads with who, when and where, oldest first; what was left out with its reason."""
    note = memory.remember(U1, "The walrus sleeps in the harbour")
    bot = memory.acting_as(agent("bot"))
    context = bot.context(U1, "walrus", budget=300)
    bot.recall(U1, "walrus")
    memory.get(U1, note.record_id)
    large = memory.remember(U1, "walrus " * 300)
    tight = bot.context(U1, "walrus", budget=200)
    found = memory.operations.audit_record(note.record_id)
    assert [(one.action, one.by) for one in found] == [
        ("context", "bot"), ("recall", "bot"), ("get", "local"), ("context", "bot"),
    ]  # fmt: skip
    assert (found[0].event_id, found[0].layer, found[0].version) == (context.receipt.event_id, "memory", 1)
    assert found[0].scope == Scope("acme", user="u-1", project="billing")
    assert [one.left_out for one in memory.operations.audit_record(large.record_id)] == ["budget"]
    held = memory.operations.audit_context(tight.receipt.event_id)
    assert [one.id for one in held.held] == [entry["id"] for entry in tight.receipt.entries]
    assert [one.tokens for one in held.held] == [entry["tokens"] for entry in tight.receipt.entries]
    assert held.left_out == tight.receipt.left_out
    assert (held.by, held.session, held.budget, held.tokens) == ("bot", "s-1", 200, tight.receipt.tokens)


def test_an_auditor_hears_of_his_own_scopes_only(memory: Memory) -> None:
    """Other scopes' contexts and records are not found; who may not inspect is refused."""
    shared = memory.remember(U1, "walrus of all", belongs_to=ACME)
    mine, theirs = memory.remember(U1, "walrus"), memory.remember(U2, "walrus")
    contexts = [memory.context(scope, "walrus", budget=300).receipt.event_id for scope in (U1, U2)]
    auditor = memory.acting_as(Principal("a", Role.AUDITOR, (Scope("acme", user="u-1"),))).operations
    assert len(auditor.audit_record(shared.record_id)) == len(auditor.audit_record(mine.record_id)) == 1
    assert len(memory.operations.audit_record(shared.record_id)) == 2
    assert auditor.audit_context(contexts[0]).held
    for miss in (
        lambda: auditor.audit_record(theirs.record_id),
        lambda: auditor.audit_context(contexts[1]),
        lambda: auditor.audit_context("0" * 32),
        lambda: auditor.audit_record("0" * 32),
    ):
        with pytest.raises(NotFound):
            miss()
    with pytest.raises(AccessDenied):
        memory.acting_as(user("u-1")).operations.audit_context(contexts[0])


def test_a_rebuild_reads_nothing(memory: Memory) -> None:
    """Views that are folded anew leave no note, and the view of accesses equals the live one."""
    memory.remember(U1, "The walrus sleeps")
    memory.recall(U1, "walrus")
    memory.context(U1, "walrus", budget=300)
    memory._store.accesses.flush()
    head, live = memory.operations.catch_up(), memory.operations.dump_hash("access")
    for name in memory._store.runner.names():
        memory.operations.rebuild(name, batch_size=1)
    assert memory.operations.dump_hash("access") == live
    memory._store.accesses.flush()
    assert memory.operations.status().head == head


def test_the_trail_outlives_an_erasure_without_a_name(memory: Memory) -> None:
    """After a person's erasure the notes still tell that ids were read, and no name leads to anybody."""
    note = memory.remember(U1, "The walrus sleeps")
    memory.recall(U1, "walrus")
    memory.context(U1, "walrus", budget=300)
    assert memory.erase(Scope("acme"), subject="u-1").apply().complete
    found = memory.operations.audit_record(note.record_id)
    assert {one.action for one in found} == {"recall", "context"}
    assert "u-1" not in repr(found)


def test_what_was_left_out_is_told_once_for_each_reason(memory: Memory) -> None:
    """A turn that competed as a turn, a landmark and an open question is one line in receipt, event and audit."""
    for n in range(40):
        said = f"{n}번째: we decided on walrus plan {n}. 마감은 언제인가요? When is the deadline {n}?"
        memory.record_turn(U1, role="user", content=said)
    memory.operations.run_workers()
    receipt = memory.context(U1, "walrus plan deadline", budget=400).receipt
    told = [(one.id, one.reason) for one in receipt.left_out]
    assert len(told) == len(set(told)) == receipt.omitted > 40
    (logged,) = memory.log(topics={"ContextAssembled"})
    assert [(one["id"], one["reason"]) for one in logged.envelope.clear["left_out"]] == told
    assert memory.operations.audit_context(receipt.event_id).left_out == receipt.left_out


def test_a_slip_is_no_refusal_and_what_may_not_be_seen_is(memory: Memory) -> None:
    """An id that nothing has is not found, and so is one of a scope that the caller may see; only others count."""
    theirs = memory.remember(U2, "walrus")
    said = memory.record_turn(U2, role="user", content="바다코끼리")
    context = memory.context(U2, "walrus", budget=300).receipt.event_id
    auditor = Principal("a", Role.AUDITOR, (Scope("acme", user="u-1"),))
    slips = {"0" * 32, theirs.record_id[:-1] + "g", "오타", "x\x00"}

    def told(face: Memory, id: str) -> list[str]:
        audits = face.operations.audit_record, face.operations.audit_context
        reads = face.get, face.history, face.why, face.why_not, face.standing, face.read_output
        asked = [partial(read, U1, id) for read in reads]
        asked += [partial(audit, id) for audit in audits] if face.principal.role is Role.AUDITOR else []
        return [missed(ask).replace(id, "ID") for ask in asked]

    mine, auditing = memory.acting_as(user("u-1")), memory.acting_as(auditor)
    same = {face: told(face, "0" * 32) for face in (memory, mine, auditing)}
    for face in same:
        for slip in slips:
            told(face, slip)
    assert told(memory, theirs.record_id) == same[memory] == told(memory, said.event_id)
    assert memory.operations.status().refused_access == 0
    assert told(mine, theirs.record_id) == same[mine] == told(mine, said.event_id)
    assert memory.operations.status().refused_access == 12
    assert told(auditing, theirs.record_id)[:-1] == same[auditing][:-1]
    assert (
        missed(lambda: auditing.operations.audit_context(context)).replace(context, "ID")
        == same[auditing][-1]
    )
    assert memory.operations.status().refused_access == 20


def missed(ask: Callable[[], object]) -> str:
    with pytest.raises(NotFound) as error:
        ask()
    return str(error.value)

"""What is no id, no status, no number: every door answers with an error of ours that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from face_world import U1
from mnemolog import Memory
from mnemolog.errors import InvalidInput, NotFound

BY_ID: dict[str, Callable[[Memory, Any], object]] = {
    "standing": lambda memory, id: memory.standing(U1, id),
    "why": lambda memory, id: memory.why(U1, id),
    "why_not": lambda memory, id: memory.why_not(U1, id),
    "get": lambda memory, id: memory.get(U1, id),
    "history": lambda memory, id: memory.history(U1, id),
    "read_output": lambda memory, id: memory.read_output(U1, id),
    "confirm": lambda memory, id: memory.confirm(U1, id),
    "correct": lambda memory, id: memory.correct(U1, id, "tea"),
    "feedback": lambda memory, id: memory.feedback(U1, id, "up"),
    "show": lambda memory, id: memory.review.show(U1, id),
    "approve": lambda memory, id: memory.review.approve(U1, id),
    "resolve": lambda memory, id: memory.review.resolve(U1, id),
    "merge": lambda memory, id: memory.review.merge(U1, id, id),
    "audit_record": lambda memory, id: memory.operations.audit_record(id),
    "audit_context": lambda memory, id: memory.operations.audit_context(id),
}


@pytest.mark.parametrize("door", BY_ID)
def test_what_is_no_id(memory: Memory, door: str) -> None:
    """No string is InvalidInput; a string that is nothing's id, with a lone surrogate or a NUL too, is NotFound."""
    memory.remember(U1, "I like tea")
    for wrong in (["a"], {"a": 1}, object(), 5, b"x"):
        with pytest.raises(InvalidInput):
            BY_ID[door](memory, wrong)
    for unknown in ("\ud800", "a\0b", "", "x" * 10_000, "nothing's"):
        with pytest.raises(NotFound):
            BY_ID[door](memory, unknown)


WRONG: dict[str, Callable[[Memory], object]] = {
    "no status": lambda memory: memory.review.list(U1, status=5),  # type: ignore[arg-type]
    "status None": lambda memory: memory.review.list(U1, status=None),  # type: ignore[arg-type]
    "statuses": lambda memory: memory.review.list(U1, status=[5]),  # type: ignore[list-item]
    "limit": lambda memory: memory.review.list(U1, limit="x"),  # type: ignore[arg-type]
    "rejected": lambda memory: memory.review.resolve(U1, "one", 5),  # type: ignore[arg-type]
    "grant": lambda memory: memory.grant_consent(U1, ["health"]),  # type: ignore[arg-type]
    "withdraw": lambda memory: memory.withdraw_consent(U1, ["health"]),  # type: ignore[arg-type]
    "rebuild": lambda memory: memory.operations.rebuild([]),  # type: ignore[arg-type]
    "rebuild_all": lambda memory: memory.operations.rebuild_all(5),  # type: ignore[arg-type]
    "dump_hash": lambda memory: memory.operations.dump_hash([]),  # type: ignore[arg-type]
    "parked": lambda memory: memory.operations.parked([]),  # type: ignore[arg-type]
    "embed": lambda memory: memory.operations.embed("x"),  # type: ignore[arg-type]
    "catch_up": lambda memory: memory.operations.catch_up("x"),  # type: ignore[arg-type]
    "adopt_policy": lambda memory: memory.operations.adopt_policy(5),  # type: ignore[arg-type]
    "belongs_to": lambda memory: memory.remember(U1, "tea", belongs_to="acme"),  # type: ignore[arg-type]
    "index": lambda memory: memory.record_chunk(U1, role="user", content="a", utterance="u", index=1.5),  # type: ignore[arg-type]
    "index below": lambda memory: memory.record_chunk(U1, role="user", content="a", utterance="u", index=-1),
}


@pytest.mark.parametrize("call", WRONG)
def test_what_is_of_the_wrong_kind(memory: Memory, call: str) -> None:
    """An argument of another kind is InvalidInput at once, and nothing is written."""
    before = memory.operations.status().head
    with pytest.raises(InvalidInput):
        WRONG[call](memory)
    assert memory.operations.status().head == before

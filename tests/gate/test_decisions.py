"""Decisions of people: sent again, given a reason, and reached by an erasure."""

from __future__ import annotations

from typing import Any

import pytest

from face_world import U1, agent, contents, files_with
from mnemolog import Memory
from mnemolog.errors import InvalidInput

WALL = ("wall", "colour")


def contradict(memory: Memory, *values: str) -> list[str]:
    """Agents that each say something else of one slot; the ids of the records."""
    return [
        memory.acting_as(agent(f"bot-{at}")).remember(U1, value, slot=WALL).record_id
        for at, value in enumerate(values)
    ]


def test_a_decision_that_is_sent_again_is_the_same_one(memory: Memory) -> None:
    """With its key it gives its receipt, whatever it has changed since; without one it is judged anew."""
    red, _ = contradict(memory, "red", "blue")
    chosen = memory.review.resolve(U1, red, key="r")
    again = memory.review.resolve(U1, red, key="r")
    assert (again.event_id, again.duplicate) == (chosen.event_id, True)
    one = memory.remember(U1, "My bank is in Porto").record_id
    two = memory.remember(U1, "My bank is in Porto.", slot=("bank", "place")).record_id
    merged = memory.review.merge(U1, one, two, key="m")
    again = memory.review.merge(U1, one, two, key="m")
    assert (again.event_id, again.duplicate) == (merged.event_id, True)
    with pytest.raises(InvalidInput):
        memory.review.merge(U1, one, two)


@pytest.mark.parametrize("reason", [["a"], 5, b"x", "", "\ud800" * 3_000_000])
def test_a_reason_that_is_no_text_is_refused(memory: Memory, reason: Any) -> None:
    """Nothing is written, so nothing is parked."""
    one, two = (memory.remember(U1, text).record_id for text in ("Tea is green", "Green is tea"))
    head = memory._store.log.head()
    for act in (
        lambda: memory.review.keep_apart(U1, one, two, reason=reason),
        lambda: memory.review.merge(U1, one, two, reason=reason),
        lambda: memory.review.resolve(U1, one, [two], reason=reason),
    ):
        with pytest.raises(InvalidInput):
            act()
    assert memory._store.log.head() == head
    assert memory.operations.parked() == []


def test_erasing_what_a_chain_of_merges_ended_in_erases_the_chain(memory: Memory) -> None:
    """None of the texts that say the same comes back."""
    texts = [f"My zebra bank is Quokka{place}" for place in "ABC"]
    one, two, three = (memory.remember(U1, text).record_id for text in texts)
    memory.review.merge(U1, one, two)
    memory.review.merge(U1, two, three)
    assert memory.erase(U1, record=three).apply().complete
    assert contents(memory, U1) == []
    assert files_with(memory.path, *(f"Quokka{place}" for place in "ABC")) == set()


def test_a_bad_item_of_a_batch_fails_alone(memory: Memory) -> None:
    """Also one whose scope of belonging is no scope."""
    items: list[dict[str, Any]] = [
        {"type": "turn", "scope": U1, "role": "user", "content": "hello"},
        {"type": "remember", "scope": U1, "content": "lost?", "belongs_to": "acme"},
        {"type": "remember", "scope": U1, "content": "kept"},
    ]
    first, second, third = memory.record_batch(items)
    assert isinstance(second, InvalidInput)
    assert not isinstance(first, Exception) and not isinstance(third, Exception)
    assert contents(memory, U1) == ["kept"]

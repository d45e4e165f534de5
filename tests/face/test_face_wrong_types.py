"""What is not of the type that a call takes is refused with words that say what to give, whatever the door."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from face_world import U1
from mnemolog import AsyncMemory, Memory, Principal, Role, Scope
from mnemolog.errors import InvalidInput

NOTE = {"content": "메모"}
SEQUENCES: dict[str, Callable[[Memory, Any], object]] = {
    "record_batch": lambda memory, wrong: memory.record_batch(wrong),
    "record_messages": lambda memory, wrong: memory.record_messages(U1, wrong),
    "subjects of a turn": lambda memory, wrong: memory.record_turn(U1, role="user", subjects=wrong, **NOTE),
    "subjects of a statement": lambda memory, wrong: memory.remember(U1, subjects=wrong, **NOTE),
    "source": lambda memory, wrong: memory.record_tool_result(U1, output="x", source=wrong),
    "evidence": lambda memory, wrong: memory.remember(U1, evidence=wrong, **NOTE),
    "evidence of a correction": lambda memory, wrong: memory.correct(U1, "0" * 32, "말", evidence=wrong),
    "slot": lambda memory, wrong: memory.remember(U1, slot=wrong, **NOTE),
    "slot of a recall": lambda memory, wrong: memory.recall(U1, "메모", slot=wrong),
    "kinds of a recall": lambda memory, wrong: memory.recall(U1, "memo", kinds=wrong),
    "status of a recall": lambda memory, wrong: memory.recall(U1, "memo", status=wrong),
    "exact": lambda memory, wrong: memory.recall(U1, "memo", exact=wrong),
    "kinds": lambda memory, wrong: memory.records(U1, kinds=wrong),
    "status": lambda memory, wrong: memory.records(U1, status=wrong),
    "exact of records": lambda memory, wrong: memory.records(U1, exact=wrong),
    "layers": lambda memory, wrong: memory.context(U1, "memo", budget=100, layers=wrong),
    "topics": lambda memory, wrong: memory.log(topics=wrong),
    "values": lambda memory, wrong: memory.set_state(U1, "task", wrong),
    "status of the review": lambda memory, wrong: memory.review.list(U1, status=wrong),
    "rejected": lambda memory, wrong: memory.review.resolve(U1, "0" * 32, wrong),
    "names": lambda memory, wrong: memory.operations.rebuild_all(wrong),
    "scopes": lambda memory, wrong: Principal("a", Role.AGENT, wrong),
    "trusted_tools": lambda memory, wrong: Principal("a", Role.AGENT, (U1,), trusted_tools=wrong),
    "levels": lambda memory, wrong: Scope.of(wrong),
}
OTHERS: dict[str, Callable[[Memory, Any], object]] = {
    "principal": lambda memory, wrong: memory.acting_as(wrong),
    "role of a principal": lambda memory, wrong: Principal("a", wrong, (U1,)),
    "scope of a consent": lambda memory, wrong: memory.grant_consent(wrong),
    "scope of the log": lambda memory, wrong: memory.log(scope=wrong),
    "ids": lambda memory, wrong: memory.names(wrong),
    "after": lambda memory, wrong: memory.log(after=wrong),
    "limit": lambda memory, wrong: memory.log(limit=wrong),
    "after of a wait": lambda memory, wrong: memory.wait(wrong, 0),
    "timeout": lambda memory, wrong: memory.wait(0, wrong),
    "timezone": lambda memory, wrong: memory.open_session(U1, timezone=wrong),
    "role": lambda memory, wrong: memory.record_turn(U1, role=wrong, **NOTE),
    "at_least": lambda memory, wrong: memory.recall(U1, "memo", at_least=wrong),
    "believed_at": lambda memory, wrong: memory.records(U1, believed_at=wrong),
    "window": lambda memory, wrong: memory.context(U1, "memo", window=wrong),
    "batch_size": lambda memory, wrong: memory.operations.rebuild("turns", batch_size=wrong),
    "processes": lambda memory, wrong: memory.operations.rebuild_all(processes=wrong),
}
WRONG = [5, 0.5, "text", b"bytes", object(), [5], {"a": 5}]


def refused(call: Callable[[Memory, Any], object], memory: Memory, wrong: Any) -> bool:
    try:
        call(memory, wrong)
    except InvalidInput as error:
        return any(word in str(error) for word in ("must", "need", "no such", "such as", "no projection"))
    return False


def test_what_is_no_sequence_is_refused_with_what_to_give(memory: Memory) -> None:
    """A number, a text, bytes or a list of numbers in the place of a sequence (or mapping) raises InvalidInput."""
    fine = [("values", {"a": 5}), ("record_batch", [5])]
    for name, call in SEQUENCES.items():
        taken = [wrong for wrong in WRONG if (name, wrong) not in fine and not refused(call, memory, wrong)]
        assert taken == [], name
    assert memory.operations.status().head == 0


def test_what_is_no_number_name_or_scope_is_refused(memory: Memory) -> None:
    """So does whatever else is not of its type."""
    for name, call in OTHERS.items():
        taken = [
            wrong for wrong in (object(), [5], {"a": 5}, b"bytes", -0.5) if not refused(call, memory, wrong)
        ]
        assert taken == [], name


def test_what_is_wrong_with_one_item_stands_in_its_place(memory: Memory) -> None:
    """An item that is no mapping, or holds a value of the wrong type, gives its error; the others go in."""
    good = {"type": "turn", "scope": U1, "role": "user", "content": "안녕하세요"}
    items = [
        5,
        good,
        {**good, "subjects": 5},
        {"type": "remember", "scope": U1, "content": "x", "evidence": 5},
    ]
    answers = memory.record_batch(iter(items))  # type: ignore[arg-type]
    assert [isinstance(answer, InvalidInput) for answer in answers] == [True, False, True, True]
    assert "mapping, not int" in str(answers[0]) and "subjects" in str(answers[2])


def test_the_asyncio_face_says_the_same(memory: Memory) -> None:
    """AsyncMemory refuses with the same words."""

    async def told(given: Any) -> tuple[str, str]:
        face = AsyncMemory(memory)
        with pytest.raises(InvalidInput) as batch:
            await face.record_batch(given)
        with pytest.raises(InvalidInput) as messages:
            await face.record_messages(U1, given)
        return str(batch.value), str(messages.value)

    batch, messages = asyncio.run(told(5))
    assert batch.startswith("items must be a sequence of mappings with type, scope")
    assert messages == "messages must be a sequence of mappings with role and content, not one int"


def test_collections_of_every_sort_are_taken(memory: Memory) -> None:
    """Generators, sets and lists are as good as tuples."""
    memory.record_messages(U1, ({"role": "user", "content": text} for text in ("하나", "two")))
    memory.remember(U1, "메모", subjects={"u-2", "u-3"}, slot=["memo", "kind"])  # type: ignore[arg-type]
    assert [hit.text for hit in memory.recall(U1, "하나", kinds=(kind for kind in ["turn"]))] == ["하나"]
    assert [record.content for record in memory.records(U1, kinds={"fact"}, status=iter(["current"]))] == [
        "메모"
    ]


def test_a_recall_asks_something_and_a_context_need_not(memory: Memory) -> None:
    """A blank query is refused by recall, which takes a time alone; a context is assembled without a question."""
    memory.record_turn(U1, role="user", content="점심은 국수")
    for blank in ("", "  ", "\n"):
        with pytest.raises(InvalidInput, match="query is empty"):
            memory.recall(U1, blank, since="2020-01-01T00:00Z")
        assert "점심은 국수" in memory.context(U1, blank, budget=300).text
    assert [hit.text for hit in memory.recall(U1, "오늘")] == ["점심은 국수"]
    assert memory.recall(U1, "?!") == []

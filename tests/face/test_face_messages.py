"""`record_messages`: histories as runtimes send them, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from face_world import U1, open_memory
from mnemolog import Memory
from mnemolog.domain.events import HAPPENED
from mnemolog.errors import ErasedScope, InvalidInput, VersionConflict

Message = Mapping[str, Any]


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


OPENAI: list[Message] = [
    {"role": "system", "content": "Be brief."},
    said("user", "What is in a.py?"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c-1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
            {"id": "c-2", "type": "function", "function": {"name": "read", "arguments": '{"path": "b.py"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c-1", "content": "print('walrus')"},
    {"role": "tool", "tool_call_id": "c-2", "content": "ok"},
    said("assistant", "It prints walrus."),
    said("user", "ok"),
    said("assistant", "ok"),
    said("user", "ok"),
    {
        "role": "user",
        "content": [{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": {}}],
    },
]
ANTHROPIC: list[Message] = [
    said("user", "What is in a.py?"),
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t-1", "name": "read", "input": {"path": "a.py"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t-1",
                "content": [{"type": "text", "text": "print('walrus')"}],
            },
            {"type": "tool_result", "tool_use_id": "t-2", "content": "no such tool", "is_error": True},
        ],
    },
    said("assistant", "It prints walrus."),
    said("user", "ok"),
    said("user", "ok"),
]


def log_of(memory: Memory) -> list[tuple[str, str]]:
    """(topic, text) of the session, in log order."""
    fields = ("content", "arguments", "output")
    return [
        (
            each.envelope.topic,
            next(getattr(each.event, field) for field in fields if hasattr(each.event, field)),
        )
        for each in memory.log(topics=HAPPENED, limit=10_000)
    ]


@pytest.mark.parametrize("history", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_a_history_that_grows_turn_by_turn_is_recorded_once(tmp_path: Path, history: list[Message]) -> None:
    """Sent after every message, whole each time, a history ends as one that was sent once at the end."""
    with open_memory(tmp_path / "once") as memory:
        assert len(memory.record_messages(U1, history)) == len(log_of(memory))
        once = log_of(memory)
    with open_memory(tmp_path / "growing") as memory:
        for end in range(1, len(history) + 1):
            memory.record_messages(U1, history[:end])
            assert memory.record_messages(U1, history[:end]) == []
        assert log_of(memory) == once
    with open_memory(tmp_path / "window") as memory:
        for end in range(1, len(history) + 1):
            memory.record_messages(U1, history[max(0, end - 5) : end])
        assert log_of(memory) == once


def test_a_compacted_history_goes_on(memory: Memory) -> None:
    """A runtime that puts a summary in front, drops the middle and goes on adds the summary once, and each new turn."""
    history = [said("user" if n % 2 else "assistant", f"turn {n}") for n in range(12)]
    memory.record_messages(U1, history)
    summary = said("user", "[summary of turns 0 to 8]")
    kept = [summary, *history[9:]]
    assert len(memory.record_messages(U1, kept)) == 1
    for number in range(12, 18):
        assert memory.record_messages(U1, kept) == []
        kept.append(said("user" if number % 2 else "assistant", f"turn {number}"))
        assert len(memory.record_messages(U1, kept)) == 1
    second = said("user", "[summary of turns 0 to 14]")
    kept = [second, *kept[-3:]]
    assert len(memory.record_messages(U1, kept)) == 1
    kept.append(said("user", "turn 18"))
    assert len(memory.record_messages(U1, kept)) == 1
    assert memory.record_messages(U1, history) == []
    assert len(log_of(memory)) == 12 + 1 + 6 + 1 + 1


def test_a_changed_system_prompt_is_recorded_and_moves_nothing(memory: Memory) -> None:
    """A system prompt that changes, moves or is left out doubles no turn."""
    turns = [said("user", "one"), said("assistant", "two"), said("user", "three")]
    memory.record_messages(U1, [said("system", "v1"), *turns[:2]])
    assert len(memory.record_messages(U1, [said("system", "v2"), *turns])) == 2
    assert memory.record_messages(U1, turns) == []
    assert memory.record_messages(U1, [*turns, said("system", "v1")]) == []


def test_equal_messages_stay_as_many_as_they_were(memory: Memory) -> None:
    """Two equal "ok" in a row stay two, a third one is new, and all three come back as three."""
    history = [said("user", "ok"), said("user", "ok")]
    assert len(memory.record_messages(U1, history)) == 2
    assert memory.record_messages(U1, history) == []
    assert len(memory.record_messages(U1, [*history, said("user", "ok")])) == 1
    assert len(log_of(memory)) == 3


def test_messages_and_single_turns_align(memory: Memory) -> None:
    """What was recorded turn by turn is known to a history that comes later, tools included."""
    memory.record_turn(U1, role="user", content="What is in a.py?")
    memory.record_turn(U1, role="assistant", content="I look.")
    memory.record_tool_call(U1, name="read", arguments={"path": "a.py"}, call_id="t-1")
    memory.record_tool_result(U1, output="print('walrus')", call_id="t-1")
    receipts = memory.record_messages(U1, ANTHROPIC)
    assert [text for _, text in log_of(memory)][4:] == ["no such tool", "It prints walrus.", "ok", "ok"]
    assert len(receipts) == 4


def test_concurrent_senders_of_one_history_double_nothing(tmp_path: Path) -> None:
    """Sixteen threads that send the same growing history at once record each message once, in order."""
    history = [said("user" if n % 2 else "assistant", f"turn {n % 7} {n}") for n in range(24)]
    with open_memory(tmp_path, background=True) as memory:
        barrier = Barrier(16)

        def send(number: int) -> int:
            barrier.wait()
            return sum(len(memory.record_messages(U1, history[:end])) for end in range(1, 25, 1 + number % 4))

        with ThreadPoolExecutor(16) as pool:
            recorded = sum(pool.map(send, range(16)))
        texts = [text for _, text in log_of(memory)]
        assert texts == [message["content"] for message in history[: len(texts)]]
        assert recorded == len(texts) >= 22


def test_a_busy_session_neither_loses_nor_doubles(tmp_path: Path) -> None:
    """While others write single turns to the session, a sender gets all its messages in once, or a typed error."""
    with open_memory(tmp_path, background=True) as memory:
        history = [said("user", f"message {n}") for n in range(30)]

        def hammer(number: int) -> None:
            for step in range(60):
                memory.record_turn(U1, role="assistant", content=f"hammer {number} {step}")

        def send() -> None:
            sent = 0
            while sent < len(history):
                try:
                    memory.record_messages(U1, history[sent : sent + 3])
                except VersionConflict:
                    continue
                sent += 3

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(hammer, number) for number in range(3)] + [pool.submit(send)]
            for each in work:
                each.result()
        texts = [text for _, text in log_of(memory)]
        assert sorted(text for text in texts if text.startswith("message")) == sorted(
            m["content"] for m in history
        )
        assert len(texts) == 30 + 180


@pytest.mark.parametrize(
    "wrong",
    [
        [{"role": "pirate", "content": "arr"}],
        [{"content": "nobody"}],
        ["text"],
        [said("user", "fine"), {"role": "assistant", "tool_calls": [{}]}],
        [{"role": "user", "content": [{"type": "text"}]}],
    ],
)
def test_another_shape_is_refused_whole(memory: Memory, wrong: list[Any]) -> None:
    """A message that has neither shape is refused with its index, and nothing of its history goes in."""
    with pytest.raises(InvalidInput, match=r"messages\[|role"):
        memory.record_messages(U1, wrong)
    assert memory.operations.status().head == 0


def test_an_erased_session_takes_no_history(memory: Memory) -> None:
    """After a session was erased, its history is refused as a whole, however often it comes."""
    memory.record_messages(U1, OPENAI)
    memory.erase(U1, session="s-1").apply()
    for _ in range(2):
        with pytest.raises(ErasedScope):
            memory.record_messages(U1, OPENAI)

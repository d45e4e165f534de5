"""What was open when a summary was written goes as soon as it is settled, and not before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog import Memory
from mnemolog.domain.landmarks import RawTurn
from mnemolog.domain.open_items import Raised, open_items, still_open
from mnemolog.domain.principal import Tier
from summaries_world import S1, S2, memory, session_of, talk, worker

__all__ = ["memory"]

ASKED = ["Please draft the harbour contract", "항만 계약서 초안을 써 주세요"]
ANSWERED = ["Here is the draft of the harbour contract: …", "항만 계약서 초안입니다: …"]
BUSY = ["Let us go on with the tide tables.", "조석표로 넘어가죠."]
PUT_OFF = ["I will get back to you on that.", "확인 후 다시 말씀드릴게요."]
LANGUAGES = pytest.mark.parametrize("at", [0, 1], ids=["en", "ko"])


def failed(memory: Memory, id: str, error: str | None) -> None:
    memory.record_tool_call(S1, name="run_tests", arguments={"path": "ferry"}, call_id=id)
    told: dict[str, Any] = {"output": "ok"} if error is None else {"error": error}
    memory.record_tool_result(S1, name="run_tests", call_id=id, **told)


def still(memory: Memory, scope: Any = S1) -> list[str]:
    """The open items that a context names."""
    text = memory.context(scope, "", budget=4000, layers=["session"]).text
    kinds = ("- request: ", "- error: ", "- todo: ")
    return [line for line in text.splitlines() if line.startswith(kinds)]


@LANGUAGES
def test_an_answered_request_goes_at_once(memory: Memory, at: int) -> None:
    """While the summary that names it still stands; what is said of something else, or puts it off, settles nothing."""
    talk(memory, S1, ASKED[at], PUT_OFF[at], BUSY[at], "…")
    assert worker(memory).summarise(session_of(memory, S1))
    assert len(still(memory)) == 1
    talk(memory, S1, BUSY[at], PUT_OFF[at])
    assert len(still(memory)) == 1
    memory.record_turn(S1, role="assistant", content=ANSWERED[at])
    assert still(memory) == []
    assert len(memory.log(topics={"SummaryWritten"})) == 1


def test_a_solved_error_goes_at_once(memory: Memory) -> None:
    """By a success of the same tool with the same arguments, also in the session that goes on from there."""
    talk(memory, S1, "We build the ferry tables.", "Understood.")
    failed(memory, "c-1", "stack trace")
    assert worker(memory).summarise(session_of(memory, S1))
    memory.record_tool_call(S1, name="run_tests", arguments={"path": "harbour"}, call_id="c-2")
    memory.record_tool_result(S1, name="run_tests", call_id="c-2", output="ok")
    failed(memory, "c-3", "stack trace")
    assert still(memory) == ["- error: the last call of run_tests failed"]
    assert still(memory, S2) == ["- error: the last call of run_tests failed"]
    memory.record_tool_call(S2, name="run_tests", arguments={"path": "ferry"}, call_id="c-4")
    memory.record_tool_result(S2, name="run_tests", call_id="c-4", output="ok")
    assert still(memory, S2) == []
    assert len(still(memory)) == 1
    failed(memory, "c-5", None)
    assert still(memory) == []


@pytest.mark.parametrize(
    ("open_", "done"),
    [
        ("TBD: the fee for kayaks", "The fee for kayaks is decided."),
        ("카약 요금은 미정", "카약 요금은 결정했습니다"),
    ],
)
def test_what_was_to_do_goes_when_it_is_done(memory: Memory, open_: str, done: str) -> None:
    """Once somebody says so of the same thing."""
    talk(memory, S1, open_, "…")
    assert worker(memory).summarise(session_of(memory, S1))
    assert len(still(memory)) == 1
    memory.record_turn(S1, role="user", content="Done: lunch")
    assert len(still(memory)) == 1
    memory.record_turn(S1, role="user", content=done)
    assert still(memory) == []


SAID = [
    ("user", ASKED[0]), ("user", "Can you compare the two ferry quotes?"), ("user", BUSY[0]),
    ("user", "TBD: the fee for kayaks"),
    ("assistant", ANSWERED[0]), ("assistant", PUT_OFF[0]), ("assistant", "The two ferry quotes compare well."),
    ("assistant", "The fee for kayaks is decided."),
]  # fmt: skip


def raised(turns: list[RawTurn]) -> list[Raised]:
    """As they are looked up for a summary of these turns."""
    by_id = {turn.event_id: turn for turn in turns}
    last = {
        role: max((turn.position for turn in turns if turn.role == role), default=0)
        for role in ("user", "assistant")
    }
    return [
        Raised(
            item,
            turn := by_id[item.event_id],
            None,
            last["assistant"] > turn.position,
            last["user"] <= turn.position,
        )
        for item in open_items(turns)
    ]


@given(st.lists(st.sampled_from(SAID), min_size=2, max_size=12), st.data())
def test_nothing_goes_that_the_next_summary_would_still_name(
    said: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Wherever the summary ends, what is still open when all turns are read is still open beside it."""
    turns = [
        RawTurn(f"e{at}", at, "turn", text, Tier.USER_STATED if role == "user" else Tier.AGENT, role)
        for at, (role, text) in enumerate(said, 1)
    ]
    cut = data.draw(st.integers(1, len(turns) - 1))
    before, later = turns[:cut], turns[cut:]
    left = still_open(raised(before), later)
    known = set(open_items(before))
    assert {item for item in open_items(turns) if item in known} <= set(left) <= known

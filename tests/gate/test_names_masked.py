"""Secrets and identifiers in what stands beside a text: names of authors and tools, working state, fields of JSON."""

from __future__ import annotations

import pytest

from face_world import U1, everything
from mnemolog import Hit, Memory
from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.findings import mask

KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
MAIL = "kim.secret@example.com"
CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize("looked", [False, True], ids=["before the worker", "after the worker"])
def test_names_of_authors_and_tools_show_no_secret(memory: Memory, looked: bool) -> None:
    """No read shows what stands in the name of an author or a tool; the stored name still finds it."""
    said = memory.record_turn(U1, role="user", content="the harbour is closed", author=MAIL)
    memory.record_turn(U1, role="user", content="배포는 월요일로 하자", author=f"key {KEY}")
    memory.record_tool_call(U1, name=f"mail_{KEY}", arguments={"n": 1}, call_id="c")
    memory.record_turn(U1, role="user", content="the gate is open", author="Kim")
    if looked:
        memory.operations.run_workers()
    shown = everything(memory, U1, "harbour gate 배포")
    assert KEY not in shown
    assert MAIL not in shown
    assert "[masked email]: the harbour is closed" in memory.context(U1, "harbour", budget=2000).text
    found = memory.recall(U1, "harbour", author=MAIL)
    assert [(hit.event_ids, hit.author) for hit in found] == [((said.event_id,), "[masked email]")]
    assert [hit.author for hit in memory.recall(U1, "gate", author="Kim")] == ["Kim"]


def test_a_slot_of_a_speaker_shows_no_address(memory: Memory) -> None:
    """What a named speaker says is theirs: their name is hidden in records and in the review, and found as it was."""
    memory.record_turn(U1, role="user", content="I live in Busan.", author=MAIL)
    memory.record_turn(U1, role="user", content="I live in Seoul.", author="lee.other@example.com")
    memory.operations.run_workers()
    records = memory.records(U1)
    assert {str(one.content) for one in records} == {"I live in Busan", "I live in Seoul"}
    assert {one.slot for one in records} == {("[masked email]", "home")}
    shown = [records, memory.review.list(U1, status=["admitted"]), memory.why(U1, records[0].record_id)]
    assert "@example.com" not in str(shown)
    found = memory.recall(U1, "home", kinds=["fact"], slot=(MAIL, "home"))
    assert [hit.text for hit in found] == ["I live in Busan"]


def test_a_summary_names_no_secret(memory: Memory) -> None:
    """An author whose name is cut in a summary leaves no part of a secret in it."""
    author = f"the bearer of {KEY}"
    for at in range(45):
        content = f"We decided in step {at} to use plan {at}."
        memory.record_turn(U1, role="user", content=content, author=author)
    memory.operations.run_workers()
    written = [str(each.event) for each in memory.log(limit=500, topics=["SummaryWritten"])]
    assert written
    assert not [text for text in written if KEY[:12] in text]
    assert KEY[:12] not in memory.context(U1, "plan", budget=6000).text


def test_working_state_shows_no_secret(memory: Memory) -> None:
    """State and context hide what stands in values, however deep, and in keys inside them; the rest stays."""
    values = {
        "note": f"rotate {KEY}",
        "people": [{"mail": MAIL, MAIL: 1}, "none"],
        "비밀번호": "Tr0ub4dor&3",
        "card": int(CARD.replace(" ", "")),
        "step": 3,
        "done": True,
        "left": None,
    }
    memory.set_state(U1, "task", {**values, "left": 1.5})
    memory.set_state(U1, MAIL, {MAIL: "asked"})
    context = memory.context(U1, "task", budget=2000).text
    shown = str([memory.state(U1, "task"), memory.states(U1)[0], context])
    for secret in (KEY, MAIL, "Tr0ub4dor", CARD.replace(" ", "")):
        assert secret not in shown
    state = memory.state(U1, "task")
    assert state.values["note"] == "rotate [masked secret]"
    assert state.values["people"][1:] == ["none"]
    assert [state.values[key] for key in ("step", "done", "left")] == [3, True, 1.5]
    assert memory.state(U1, MAIL).values == {MAIL: "asked"}


@pytest.mark.parametrize(
    "text",
    [
        '{"pw": "Tr0ub4dor&3"}',
        '{"user": "kim", "passwd" : "Tr0ub4dor&3"}',
        "{'pwd': 'Tr0ub4dor&3'}",
        '{"body": "{\\"pw\\": \\"Tr0ub4dor&3\\"}"}',
        '{"비밀번호": "Tr0ub4dor&3"}',
    ],
)
def test_passwords_in_fields_of_json(text: str) -> None:
    """A field that is named as a password hides its value, also in JSON inside JSON."""
    assert "Tr0ub4dor" not in mask(text, credentials(text))


@pytest.mark.parametrize(
    "text",
    [
        '{"pw": "required"}',
        '{"token": "string"}',
        '{"password": "${DB_PASSWORD}"}',
        '"pin" is a word',
        '{"pw": ""}',
    ],
)
def test_fields_without_a_password_stay(text: str) -> None:
    """Placeholders and ordinary words in such a field are no secret."""
    assert mask(text, credentials(text)) == text


def test_a_tool_result_hides_a_password(memory: Memory) -> None:
    """What a tool returns is shown without the password in it."""
    receipt = memory.record_tool_result(U1, output={"rows": [], "pw": "Tr0ub4dor&3"}, name="db", call_id="c")
    shown = memory.get(U1, receipt.event_id)
    assert isinstance(shown, Hit)
    assert "Tr0ub4dor" not in shown.text

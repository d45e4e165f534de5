"""Complaints about bytes, sizes and costs elsewhere, and what is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from face_world import U1, texts
from mnemolog import FORGOTTEN, Memory, original
from mnemolog.errors import IdempotencyConflict, InvalidInput

LONE = "cut \ud83d here"


def test_nul_is_kept_in_text_keys_and_values(memory: Memory) -> None:
    """H01: U+0000 in a text, in a metadata key and in a value goes in and comes back, and nothing is parked."""
    said = memory.record_turn(U1, role="user", content="walrus \x00 behind", author="Mi\x00n")
    call = memory.record_tool_call(U1, name="write\x00", arguments={"na\x00me": "va\x00lue"})
    note = memory.remember(U1, "keeps \x00 too", slot=("a\x00b", "c"), kind="fact")
    assert memory.get(U1, said.event_id).text == "walrus \x00 behind"
    assert memory.get(U1, said.event_id).author == "Mi\x00n"
    assert json.loads(memory.read_output(U1, call.event_id).text) == {"na\x00me": "va\x00lue"}
    assert memory.get(U1, note.record_id).slot == ("a\x00b", "c")
    assert texts(memory, U1, "behind")[0] == "walrus \x00 behind"
    assert "walrus" in memory.context(U1, "wal\x00rus behind", budget=1000).text
    assert memory.operations.parked() == []


def test_half_a_surrogate_pair_is_escaped_and_comes_back(memory: Memory) -> None:
    """H02: a lone surrogate, anywhere in what is recorded, is escaped reversibly; a split pair is joined."""
    other = memory.record_turn(U1, role="user", content="fine")
    said = memory.record_turn(U1, role="user", content=LONE, author=LONE, key=LONE)
    joined = memory.record_turn(U1, role="user", content="\ud83d\ude00")
    arguments = memory.record_tool_call(U1, name=LONE, arguments={LONE: [LONE]}, call_id=LONE)
    text = memory.record_tool_call(U1, name="raw", arguments='{"a": "\\ud83d"}')
    output = memory.record_tool_result(U1, output=LONE + "x" * 200_000, source=(LONE, "v1"))
    note = memory.remember(U1, LONE, slot=(LONE, LONE))
    memory.correct(U1, note.record_id, f"{LONE}!", reason=LONE)
    assert len(memory.record_messages(U1, [{"role": "user", "content": LONE}] * 2)) == 2
    assert original(memory.get(U1, said.event_id).text) == LONE
    assert memory.get(U1, joined.event_id).text == "😀"
    assert json.loads(original(memory.read_output(U1, arguments.event_id).text)) == {LONE: [LONE]}
    assert memory.read_output(U1, text.event_id).text == '{"a": "\\ud83d"}'
    assert original(memory.read_output(U1, output.event_id, 0, 20).text).startswith(LONE)
    assert original(str(memory.get(U1, note.record_id).content)) == f"{LONE}!"
    assert memory.record_messages(U1, [{"role": "user", "content": LONE}] * 2) == []
    assert memory.recall(U1, LONE) != []
    assert memory.context(U1, LONE, budget=1000).text.encode()
    assert memory.get(U1, other.event_id).text == "fine"
    assert memory.operations.parked() == []
    memory.operations.rebuild("turns", batch_size=1)
    assert original(memory.get(U1, said.event_id).text) == LONE


def test_names_of_a_scope_may_be_any_text(memory: Memory) -> None:
    """H02: NUL and lone surrogates in the names of a scope are names like others, each its own."""
    for name in ("a\x00b", "a", LONE, "cut \ud83e here", "😀", "a|b"):
        scope = U1.of({"tenant": name, "user": name, "session": name})
        memory.record_turn(scope, role="user", content="walrus")
        assert len(memory.recall(scope, "walrus")) == 1
        assert memory.names(memory.log(limit=1000)[-1].envelope.scope) == scope


@pytest.mark.parametrize("value", [b"bytes", None, 7, ["list"]])
def test_what_is_no_text_is_refused(memory: Memory, value: object) -> None:
    """H02: bytes, numbers and None as content are refused with a typed error, and nothing is written."""
    with pytest.raises(InvalidInput):
        memory.record_turn(U1, role="user", content=value)
    with pytest.raises(InvalidInput):
        memory.remember(U1, value)
    with pytest.raises(InvalidInput):
        memory.recall(U1, value)
    assert memory.operations.status().head == 0


@pytest.mark.embedded
@pytest.mark.parametrize("memory", ["words"], indirect=True)
def test_a_huge_output_is_kept_whole_and_shown_in_part(memory: Memory) -> None:
    """H03: 12 MB of JSON on one line: a bounded preview in hits and context, every range at hand, gone when erased."""
    rows = [{"id": number, "name": f"item-{number}", "note": "가나다"} for number in range(180_000)]
    text = json.dumps(rows, ensure_ascii=False)
    assert len(text.encode()) > 9_000_000 and "\n" not in text
    text = text[:-1] + ', {"id": "last", "pad": "' + "p" * (12_000_000 - len(text.encode())) + '"}]'
    receipt = memory.record_tool_result(U1, output=text, name="dump", call_id="c-1")
    hit = memory.get(U1, receipt.event_id)
    assert len(hit.text) < 6_000
    assert hit.text.startswith(text[:100]) and hit.text.endswith(text[-100:])
    whole = memory.read_output(U1, receipt.event_id)
    assert whole.total == len(text) and whole.text == text
    for start, end in ((0, 1), (65_530, 65_545), (len(text) - 7, len(text)), (len(text), len(text) + 9)):
        assert memory.read_output(U1, receipt.event_id, start, end).text == text[start:end]
    assert memory.context(U1, "item-7", budget=1500).receipt.tokens <= 1500
    again = memory.record_messages(U1, [{"role": "tool", "tool_call_id": "c-1", "content": text}])
    assert again == [], "the same output in a history is the same event"
    views = sum(path.stat().st_size for path in (memory.path / "views").iterdir())
    assert views < 4_000_000
    memory.erase(U1, event=receipt.event_id).apply()
    assert list((memory.path / "blobs").iterdir()) == []
    assert memory.read_output(U1, receipt.event_id, 0, 10) is FORGOTTEN


def test_resending_a_large_output_leaves_no_second_file(memory: Memory) -> None:
    """H03: what is not appended, as a duplicate or for a conflict, leaves no blob behind."""
    text = "row " * 50_000
    first = memory.record_tool_result(U1, output=text, key="run-1")
    assert memory.record_tool_result(U1, output=text, key="run-1").duplicate
    with pytest.raises(IdempotencyConflict):
        memory.record_tool_result(U1, output=text + "!", key="run-1")
    with pytest.raises(InvalidInput):
        memory.record_tool_result(U1, output="x" * 80_000_000, key="run-2")
    assert {path.name for path in (memory.path / "blobs").iterdir()} == {first.event_id}


CHATS = """
import socket, sys

def refuse(*_, **__):
    raise AssertionError("the default mode opened a connection")

socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from mnemolog import Memory, Scope
with Memory.open(sys.argv[1]) as memory:
    for chat in range(40):
        scope = Scope("acme", user="u", session=f"s-{chat}")
        memory.record_messages(scope, [
            {"role": "user", "content": f"question {chat} about billing"},
            {"role": "assistant", "content": f"answer {chat}"},
        ])
        memory.remember(scope, f"fact {chat}")
        memory.recall(scope, "billing")
        assert memory.context(scope, "billing", budget=1000).text
# detect-secrets loads requests for checks at a service, which nobody asks for, and which `refuse` would stop.
used = {name.partition(".")[0] for name in sys.modules}
paid = used & {"openai", "anthropic", "litellm", "httpx", "aiohttp", "transformers", "torch"}
assert not paid, paid
"""


def test_forty_chats_call_no_model(tmp_path: Path) -> None:
    """H05: forty chats are recorded, remembered and recalled without a connection or a client of a model."""
    done = subprocess.run(
        [sys.executable, "-c", CHATS, str(tmp_path / "data")],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr

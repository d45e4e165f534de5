"""Claude Code session files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from import_fakes import DEFAULTS, FakeMemory, said, write_lines

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import import_files

TENANT = Scope("acme", user="u-17")


@pytest.fixture
def memory(tmp_path: Path) -> FakeMemory:
    return FakeMemory(tmp_path / "data")


def take(memory: FakeMemory, tmp_path: Path, *lines: Any, defaults: Scope = DEFAULTS) -> Any:
    return import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)], defaults=defaults)


def test_blocks_become_turns_calls_and_results(memory: FakeMemory, tmp_path: Path) -> None:
    """Text, tool use and tool result, in order; a result has the name of the tool that was asked."""
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "print(1)"}]}
    failed = {"type": "tool_result", "tool_use_id": "t2", "content": "no such file", "is_error": True}
    report = take(
        memory,
        tmp_path,
        said("Read a.py", "1"),
        said([{"type": "text", "text": "Reading."}, call], "2", "assistant"),
        said([result, failed], "3"),
    )
    assert report.by_type == {"turn": 2, "tool_call": 1, "tool_result": 2}
    assert [item["type"] for item in memory.items] == [
        "turn",
        "turn",
        "tool_call",
        "tool_result",
        "tool_result",
    ]
    assert [item["role"] for item in memory.of("turn")] == ["user", "assistant"]
    assert json.loads(memory.of("tool_call")[0]["arguments"]) == {"path": "a.py"}
    first, second = memory.of("tool_result")
    assert (first["output"], first["name"], first["call_id"]) == ("print(1)", "Read", "t1")
    assert (second["error"], "output" in second, "name" in second) == ("no such file", False, False)
    assert {item["occurred_at"].isoformat() for item in memory.items} == {"2026-03-09T09:00:00+00:00"}
    assert {item["scope"].session for item in memory.items} == {"c-1"}


def test_what_nobody_said_is_skipped_and_counted(memory: FakeMemory, tmp_path: Path) -> None:
    """Thinking, images, notes of the runtime, and what has no form, each with its reason."""
    report = take(
        memory,
        tmp_path,
        {"type": "summary", "summary": "x", "leafUuid": "1"},
        {"type": "system", "content": "x", "sessionId": "c-1"},
        said("caveat", "2", isMeta=True),
        said("continued from before", "3", isCompactSummary=True),
        said([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hi"}], "4", "assistant"),
        said([{"type": "image", "source": {}}], "5"),
        said([{"type": "tool_use"}, 7], "6", "assistant"),
        said("", "7"),
        {**said("x", "8"), "timestamp": None},
        {**said("x", "9"), "message": "error"},
        42,
        {"silly": "this"},
    )
    assert report.appended == 1
    assert report.reasons == {
        "summary records are not part of the conversation": 1,
        "system records are not part of the conversation": 1,
        "meta records are not part of the conversation": 1,
        "summaries made by the runtime are not what somebody said": 1,
        "thinking blocks are not kept": 1,
        "image blocks are not kept": 1,
        "a content block has a form that this format does not have": 2,
        "the message is empty": 1,
        "the message has no timestamp": 1,
        "the message has no content": 1,
        "the record is not a JSON object": 1,
        "a record without a type is not part of the conversation": 1,
    }


def test_a_side_chain_is_the_agents_own(memory: FakeMemory, tmp_path: Path) -> None:
    """What a sub-agent is told was not said by the user and does not count as it."""
    take(memory, tmp_path, said("Do it", "1"), said("Look for x", "2", isSidechain=True))
    assert [(item["role"], item["scope"].agent) for item in memory.items] == [
        ("user", None),
        ("assistant", "sidechain"),
    ]


def test_the_project_is_the_folder_where_the_session_began(memory: FakeMemory, tmp_path: Path) -> None:
    """One project per session, unless one is given; both kinds of paths are read."""
    lines = [said("a", "1", cwd="/src/shop"), said("b", "2", cwd="/src/shop/web"), said("c", "3")]
    lines += [said("d", "4", sessionId="c-2", cwd="C:\\code\\bank"), said("e", "5", sessionId="c-3", cwd="/")]
    take(memory, tmp_path, *lines, defaults=TENANT)
    projects = [item["scope"].project for item in memory.items]
    assert projects == ["shop", "shop", "shop", "bank", None]
    take(memory, tmp_path, *lines, defaults=DEFAULTS)
    assert {item["scope"].project for item in memory.items[5:]} == {"billing"}


def test_it_goes_on_with_what_it_knew_of_the_session(memory: FakeMemory, tmp_path: Path) -> None:
    """Project and tool names come from lines before the interruption."""
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    lines = [said("a", "1", cwd="/src/shop"), said([call], "2", "assistant")]
    file = write_lines(tmp_path / "a.jsonl", lines)
    import_files(memory, [file], defaults=TENANT)
    write_lines(file, [*lines, said([{"type": "tool_result", "tool_use_id": "t1", "content": "x"}], "3")])
    assert import_files(memory, [file], defaults=TENANT).appended == 1
    assert memory.items[2]["name"] == "Read"
    assert memory.items[2]["scope"].project == "shop"


def test_a_document_of_loglines_is_read_by_its_elements(
    memory: FakeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ids and session: place and content tell lines apart, the file's name is the session."""
    monkeypatch.setattr("mnemolog.infra.importers.sources.CHUNK", 7)
    lines = [said(f'message {n} 안녕 ] , \\ "', "") for n in range(20)]
    for line in lines:
        del line["uuid"], line["sessionId"]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"loglines": [*lines, 12.5]}, indent=1, ensure_ascii=False))
    report = import_files(memory, [file], defaults=DEFAULTS)
    assert (report.appended, report.reasons) == (20, {"the record is not a JSON object": 1})
    assert [item["content"] for item in memory.items] == [line["message"]["content"] for line in lines]
    assert {item["scope"].session for item in memory.items} == {"talk"}
    assert import_files(memory, [file], defaults=DEFAULTS).duplicates == 20


def test_a_broken_document_gives_what_it_has(memory: FakeMemory, tmp_path: Path) -> None:
    """The elements before the damage are appended, and the damage is told."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"loglines": [said("a", "1"), said("b", "2")]}, indent=1)[:-30])
    report = import_files(memory, [file], defaults=DEFAULTS)
    assert report.appended == 1
    assert "cut off" in report.skipped[0].reason


def test_a_tenant_is_needed(memory: FakeMemory, tmp_path: Path) -> None:
    """There is no shared default."""
    file = write_lines(tmp_path / "a.jsonl", [said("a", "1")])
    with pytest.raises(InvalidInput, match="tenant"):
        import_files(memory, [file])


@pytest.mark.parametrize(
    ("name", "counts", "skipped"),
    [
        ("edge_cases.jsonl", {"turn": 9, "tool_call": 3, "tool_result": 1}, 7),
        ("representative_messages.jsonl", {"turn": 7, "tool_call": 2, "tool_result": 2}, 1),
        ("sample_session.jsonl", {"turn": 4, "tool_call": 2, "tool_result": 2}, 1),
        ("session_b.jsonl", {"turn": 3}, 0),
        ("todowrite_examples.jsonl", {"turn": 5, "tool_call": 3, "tool_result": 3}, 1),
        ("sample_session.json", {"turn": 13, "tool_call": 12, "tool_result": 12}, 2),
    ],
)
def test_real_sessions(
    memory: FakeMemory, shared_data: Path, name: str, counts: dict[str, int], skipped: int
) -> None:
    """Recorded sessions go in whole, and a second time add nothing."""
    file = shared_data / "transcripts" / "claude_code" / name
    report = import_files(memory, [file], defaults=TENANT)
    assert (report.by_type, report.skipped_total) == (counts, skipped)
    (memory.path / "imports").rename(memory.path / "lost")
    again = import_files(memory, [file], defaults=TENANT)
    assert (again.appended, again.duplicates) == (0, report.appended + report.duplicates)

"""tau-bench runs, and telling formats apart."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from import_fakes import DEFAULTS, FakeMemory, said, turn, write_lines

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import import_files
from mnemolog.infra.importers.detect import detect
from mnemolog.infra.importers.sources import Source

START = datetime.fromisoformat("2026-03-09T09:00:00+09:00")


@pytest.fixture
def memory(tmp_path: Path) -> FakeMemory:
    return FakeMemory(tmp_path / "data")


def bench_run(task: int, trial: int = 0, user: str = "ana") -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"id":1}'}}
    return {
        "task_id": task,
        "trial": trial,
        "reward": 1.0,
        "info": {"task": {"user_id": user}},
        "traj": [
            {"role": "system", "content": "Be kind. The time is 2001-01-01."},
            {"role": "user", "content": "Where is my order?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": ""},
            {"role": "assistant", "content": "On its way."},
        ],
    }


def test_each_run_is_a_session_of_its_user(memory: FakeMemory, tmp_path: Path) -> None:
    """System prompt, turns, calls and results in order; all dated to the start of the import, and said so."""
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([bench_run(3), bench_run(3, 1), bench_run(4, user="bo")]))
    report = import_files(memory, [file], defaults=Scope("acme"), start=START)
    assert report.by_type == {"turn": 9, "tool_call": 3, "tool_result": 3}
    kinds = [item["type"] for item in memory.items[:5]]
    assert kinds == ["turn", "turn", "tool_call", "tool_result", "turn"]
    assert [item.get("role") for item in memory.of("turn")[:3]] == ["system", "user", "assistant"]
    assert list(dict.fromkeys((item["scope"].user, item["scope"].session) for item in memory.items)) == [
        ("ana", "task-3-trial-0"),
        ("ana", "task-3-trial-1"),
        ("bo", "task-4-trial-0"),
    ]
    assert {item["occurred_at"] for item in memory.items} == {START}
    assert "hold no times" in report.notes[0]
    assert memory.of("tool_result")[0]["output"] == ""


def test_the_second_run_has_the_time_of_the_first(memory: FakeMemory, tmp_path: Path) -> None:
    """The start is kept with the place, so that an interrupted import is of one time; a user may be given."""
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([bench_run(n) for n in range(6)]))
    memory.fail_after = 10
    with pytest.raises(KeyboardInterrupt):
        import_files(memory, [file], defaults=DEFAULTS, batch=5)
    memory.fail_after = None
    report = import_files(memory, [file], defaults=DEFAULTS, batch=5)
    assert (report.appended, report.duplicates) == (20, 10)
    assert len({item["occurred_at"] for item in memory.items}) == 1
    assert {item["scope"].user for item in memory.items} == {"u-17"}


def test_what_is_no_run_is_skipped(memory: FakeMemory, tmp_path: Path) -> None:
    """Elements and messages of another form do not stop the others."""
    odd = bench_run(2)
    odd["traj"][1] = {"role": "narrator", "content": "x"}
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([bench_run(1), {"task_id": 1}, "x", odd]))
    report = import_files(memory, [file], defaults=DEFAULTS)
    assert report.appended == 9
    assert [skipped.number for skipped in report.skipped] == [2, 3, 4]


def test_the_real_runs_go_in_whole(memory: FakeMemory, shared_data: Path) -> None:
    """200 recorded runs: every message, call and result; nothing doubled by a second import."""
    file = shared_data / "transcripts" / "tau_bench_airline.json.gz"
    runs = json.loads(gzip.decompress(file.read_bytes()))
    messages = [message for each in runs for message in each["traj"]]
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    tools = sum(message["role"] == "tool" for message in messages)
    turns = sum(message["role"] != "tool" and bool(message["content"]) for message in messages)
    report = import_files(memory, [file], defaults=Scope("acme"))
    assert report.by_type == {"turn": turns, "tool_call": calls, "tool_result": tools}
    assert report.skipped == ()
    assert {item["scope"].session for item in memory.items} == {
        f"task-{each['task_id']}-trial-{each['trial']}" for each in runs
    }
    (memory.path / "imports").rename(memory.path / "lost")
    again = import_files(memory, [file], defaults=Scope("acme"))
    assert (again.appended, again.duplicates) == (0, report.appended)


def test_formats_are_told_by_how_files_begin(tmp_path: Path) -> None:
    """Event files, sessions and runs, also where the first line is damaged or huge."""
    huge = {**said("x" * 200_000, "1"), "padding": 1}
    files = {
        "jsonl": [write_lines(tmp_path / "1", [turn(0)]), write_lines(tmp_path / "2", ["{damaged", turn(0)])],
        "claude_code": [
            write_lines(tmp_path / "3", [{"type": "summary", "summary": "x", "leafUuid": "1"}]),
            write_lines(tmp_path / "4", [huge]),
            write_lines(tmp_path / "5", [{"loglines": [said("x", "1")]}]),
        ],
        "tau_bench": [write_lines(tmp_path / "6", [[bench_run(1)]])],
    }
    found = {name: {detect(Source(file)) for file in each} for name, each in files.items()}
    assert found == {name: {name} for name in files}


@pytest.mark.parametrize("text", ["[[1]]", "hello", '{"a": 1}', '[{"role": "user", "content": "x"}]'])
def test_an_unknown_format_is_refused(memory: FakeMemory, tmp_path: Path, text: str) -> None:
    """The error names the formats that there are."""
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(InvalidInput, match="cannot tell the format"):
        import_files(memory, [file], defaults=DEFAULTS)

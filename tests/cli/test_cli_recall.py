"""`recall` narrowed by its options, in the command line as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_world import invoke

from face_world import U1, open_memory
from mnemolog import Memory

WHOSE = ("--tenant", "acme", "--user", "u-1", "--project", "billing")
CASES = pytest.mark.parametrize(
    ("options", "asked", "found"),
    [
        (("--author", "kim"), {"author": "kim"}, ["the wall is grey: 벽은 회색"]),
        (("--tool", "paint"), {"tool": "paint"}, ["wall 벽: blue"]),
        (("--slot", "wall", "colour"), {"slot": ("wall", "colour")}, ["wall 벽 green"]),
        (("--status", "superseded"), {"status": ["superseded"]}, ["wall 벽 red"]),
        (
            ("--status", "superseded", "--status", "current", "--slot", "wall", "colour"),
            {"status": ["superseded", "current"], "slot": ("wall", "colour")},
            ["wall 벽 green", "wall 벽 red"],
        ),
    ],
)


def tell(memory: Memory) -> None:
    for author, text in (("kim", "the wall is grey: 벽은 회색"), ("lee", "the wall is white: 벽은 하양")):
        memory.record_turn(U1, role="user", content=text, author=author)
    for tool, output in (("paint", "wall 벽: blue"), ("web", "wall 벽: black")):
        memory.record_tool_result(U1, output=output, name=tool)
    for content, minute in (("wall 벽 red", 1), ("wall 벽 green", 2)):
        at = f"2026-01-01T09:0{minute}:00Z"
        memory.remember(U1, content, slot=("wall", "colour"), occurred_at=at)
    memory.remember(U1, "door: wall 벽 to the left", slot=("door", "place"))


@CASES
@pytest.mark.parametrize("query", ["which colour is the wall?", "벽은 무슨 색?"])
def test_recall_is_narrowed_as_in_python(
    tmp_path: Path, query: str, options: tuple[str, ...], asked: dict[str, Any], found: list[str]
) -> None:
    """By author or tool only turns are left, by slot or status only records."""
    with open_memory(tmp_path / "data") as memory:
        tell(memory)
        texts = [hit.text for hit in memory.recall(U1, query, **asked)]
        assert len(memory.recall(U1, query)) > len(texts)
    told = invoke(tmp_path / "data", "recall", query, *options, *WHOSE, "--json")
    assert told.exit_code == 0, told.output
    assert sorted(texts) == found
    assert [text for text in found if text in told.stdout] == found
    assert told.stdout.count('"score"') == len(found)


def test_a_status_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """With those that there are."""
    with open_memory(tmp_path / "data"):
        pass
    told = invoke(tmp_path / "data", "recall", "wall", "--status", "gone", *WHOSE)
    assert told.exit_code == 2
    assert "superseded" in told.output

"""An import that is killed, again and again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from import_fakes import statement, turn, write_lines

from mnemolog import Memory, Scope
from mnemolog.domain.events import HAPPENED, MEMORY
from mnemolog.infra.importers import import_files

CHILD = Path(__file__).with_name("import_child.py")
EVENTS = 500


def lines() -> list[dict[str, Any]]:
    """Turns, tool outputs, statements with corrections and feedback, in three sessions."""
    made: list[dict[str, Any]] = []
    for number in range(EVENTS):
        session, key = f"s-{number % 3}", f"k-{number}"
        match number % 25:
            case 5:
                made.append(statement("remember", key, content=f"fact {number}", id=f"l-{number}"))
            case 6:
                made.append(statement("correct", key, content=f"fact {number}", record=f"l-{number - 1}"))
            case 7:
                made.append(statement("feedback", key, target=f"k-{number - 4}", rating="up"))
            case 8 | 9:
                scope = turn(number, session)["scope"]
                made.append(statement("tool_result", key, output=f"out {number} " * 30, scope=scope))
            case _:
                made.append(turn(number, session, key=key))
    return made


LINES = lines()


def text_of(thing: Any) -> str:
    """What tells a line, or an event, from all others."""
    if isinstance(thing, dict):
        return str(thing.get("content") or thing.get("output") or thing.get("target"))
    return str(getattr(thing, "content", None) or getattr(thing, "output", None) or "feedback")


def expected() -> list[str]:
    return ["feedback" if line["type"] == "feedback" else text_of(line) for line in LINES]


def start(data: Path, file: Path, step: int | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(CHILD), str(data), str(file), *([] if step is None else [str(step)])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kill_after(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill the child some time after it began to import; whether it was still at it."""
    assert child.stdout is not None
    assert child.stdout.readline() == b'"ready"\n'
    time.sleep(seconds)
    child.kill()
    return child.wait() == -9


def acknowledged(child: subprocess.Popen[bytes]) -> dict[str, int]:
    """Event ids and positions that the child had receipts for."""
    out, err = child.communicate()
    assert child.returncode in (0, -9), err.decode()
    said = [json.loads(line) for line in out.splitlines() if line.startswith(b"[")]
    return {event_id: position for receipts in said for event_id, position in receipts}


def told(memory: Memory) -> list[str]:
    """What was imported, without what is derived from it and the trail of reads."""
    topics = (HAPPENED | MEMORY | {"FeedbackGiven"}) - {"CandidatesExtracted"}
    return [text_of(each.event) for each in memory.log(limit=10 * EVENTS, topics=topics)]


def check(data: Path, acked: dict[str, int]) -> int:
    """What was acknowledged is there, the log is a beginning of the file, the views are at its head."""
    with Memory.open(data, background=False) as memory:
        log = memory.log(limit=10 * EVENTS)
        assert [each.position for each in log] == list(range(1, len(log) + 1))
        assert acked.items() <= {each.envelope.id: each.position for each in log}.items()
        said = told(memory)
        assert said == expected()[: len(said)]
        head = memory.operations.catch_up()
        assert head == len(log)
        views = memory.operations.projections()
        assert {(view.position, view.lag, view.parked, view.waiting) for view in views} == {(head, 0, 0, 0)}
        return head


def finish(data: Path, file: Path) -> None:
    """Import the rest: each line is there exactly once, and the views are those of a rebuild."""
    with Memory.open(data, background=False) as memory:
        report = import_files(memory, [file], batch=10)
        assert (report.appended + report.duplicates, report.skipped_total) == (EVENTS, 0)
        assert import_files(memory, [file]).appended == 0
        memory.operations.catch_up()
        assert told(memory) == expected()
        scope = Scope("acme", user="u-17", project="billing")
        assert len(memory.records(scope)) == EVENTS // 25
        names = [view.name for view in memory.operations.projections()]
        live = {name: memory.operations.dump_hash(name) for name in names}
        for name in names:
            memory.operations.rebuild(name)
        assert {name: memory.operations.dump_hash(name) for name in names} == live
    check(data, {})


def killed(folder: Path, cycles: int, seed: int) -> int:
    """Kill imports at random moments; a finished one is followed by a new one. How many were hit at work."""
    chance = random.Random(seed)
    file = write_lines(folder / "events.jsonl", LINES)
    run, acked, hit = 0, dict[str, int](), 0
    for _ in range(cycles):
        child = start(folder / f"data-{run}", file)
        at_work = kill_after(child, chance.uniform(0, 0.3))
        acked |= acknowledged(child)
        head = check(folder / f"data-{run}", acked)
        hit += at_work and head < EVENTS
        if head == EVENTS:
            finish(folder / f"data-{run}", file)
            run, acked = run + 1, {}
    finish(folder / f"data-{run}", file)
    return hit


def test_a_killed_import_goes_on(tmp_path: Path) -> None:
    """Killed twice, an import loses nothing that was acknowledged, and at last has each line once."""
    killed(tmp_path, 2, seed=7)


@pytest.mark.slow
def test_fifteen_kills_at_random_moments(tmp_path: Path) -> None:
    """Acknowledged equals present and views equal positions after each; most kills hit an import at work."""
    assert killed(tmp_path, 15, seed=20260309) >= 5


@pytest.mark.slow
def test_killed_at_each_kind_of_step(tmp_path: Path) -> None:
    """Before and after appends and places, over the whole file: nothing is in limbo."""
    file = write_lines(tmp_path / "events.jsonl", LINES)
    acked: dict[str, int] = {}
    steps, died = 0, True
    while died:
        child = start(tmp_path / "data", file, 3 + steps % 23)
        acked |= acknowledged(child)
        died = child.returncode == -9
        check(tmp_path / "data", acked)
        steps += 1
    assert steps > 10
    finish(tmp_path / "data", file)

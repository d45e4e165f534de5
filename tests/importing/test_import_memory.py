"""Imports into a real memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from import_fakes import said, statement, turn, write_lines

from mnemolog import Memory, Principal, Role, Scope, original
from mnemolog.domain.events import HAPPENED, MEMORY, Recorded
from mnemolog.infra.importers import import_files
from support import ROOT

SCOPE = Scope("acme", user="u-17", project="billing", session="s-1")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "data") as opened:
        yield opened


def test_the_sample_week_is_remembered(memory: Memory) -> None:
    """The shipped sample goes in whole; its times, corrections and later values are what the memory answers."""
    sample = ROOT / "examples" / "sample_week.jsonl"
    report = import_files(memory, [sample])
    assert (report.appended, report.skipped) == (len(sample.read_text().splitlines()), ())
    first = memory.log(limit=1)[0].envelope
    assert datetime.fromisoformat(first.occurred_at).isoformat() == "2026-03-09T09:14:00+09:00"
    min_ = Scope("hanul", user="min", project="settlement")
    deploy = [record for record in memory.records(min_) if record.slot == ("deploy", "day")]
    assert len(deploy) == 1
    assert "3월 17일" in deploy[0].content


def imported(memory: Memory) -> list[Recorded]:
    """What is in the log, without what a worker derived from it."""
    return memory.log(limit=1_000, topics=(HAPPENED | MEMORY | {"FeedbackGiven"}) - {"CandidatesExtracted"})


def test_going_over_it_again_adds_nothing(memory: Memory, tmp_path: Path) -> None:
    """Without its place, the second import finds every event by its key."""
    sample = ROOT / "examples" / "sample_week.jsonl"
    first = import_files(memory, [sample], place_folder=tmp_path / "one")
    before = imported(memory)
    second = import_files(memory, [sample], place_folder=tmp_path / "two")
    assert (second.appended, second.duplicates, second.skipped) == (0, first.appended, ())
    assert imported(memory) == before


def test_what_was_erased_does_not_come_back_with_an_old_file(memory: Memory, tmp_path: Path) -> None:
    """Lines of an erased person are skipped with the reason; those of others go in."""
    other = {"tenant": "acme", "user": "u-2", "session": "s-2"}
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1, "s-2", scope=other)])
    import_files(memory, [file])
    memory.erase(Scope("acme"), subject="u-17", reason="asked").apply()
    report = import_files(memory, [file], place_folder=tmp_path / "lost")
    assert (report.appended, report.duplicates) == (0, 1)
    assert [skipped.number for skipped in report.skipped] == [1]
    assert "erased" in report.skipped[0].reason
    assert (report.wrong, report.skipped_total) == (0, 1)


def test_what_names_an_erased_line_goes_with_it(memory: Memory, tmp_path: Path) -> None:
    """A correction, a judgement and a statement that rest on erased lines are skipped for that reason, as no fault."""
    other = {"tenant": "acme", "user": "u-2", "session": "s-2"}
    lines = [
        turn(0),
        statement("remember", "m", content="보고서는 PDF로", id="fmt"),
        statement("correct", "c", record="fmt", content="Excel로"),
        statement("feedback", "f", target="s-1/0", rating="up", scope=other),
        statement("remember", "n", content="PDF", evidence=["s-1/0"], scope=other),
        turn(1, "s-2", scope=other),
        statement("correct", "x", record="typo", content="x", scope=other),
    ]
    memory.record_turn(SCOPE, role="user", content="안녕", occurred_at="2026-01-01T00:00Z")
    memory.erase(Scope("acme"), subject="u-17", reason="asked").apply()
    file = write_lines(tmp_path / "a.jsonl", lines)
    for appended in (1, 0):  # also when it goes on from its place
        report = import_files(memory, [file])
        assert (report.appended, report.skipped_total, report.wrong) == (appended, 6, 1)
        assert [(one.number, one.code) for one in report.skipped] == [
            *((number, "erased") for number in range(1, 6)),
            (7, "invalid"),
        ]


def test_a_time_takes_the_zone_of_a_session_that_is_open_already(memory: Memory, tmp_path: Path) -> None:
    """The memory knows the zones of sessions that were opened before this file; without one a line is skipped."""
    memory.open_session(SCOPE, timezone="Asia/Seoul")
    lines = [turn(0, occurred_at="2026-03-09T09:00:00"), turn(1, "s-9", occurred_at="2026-03-09T09:00:00")]
    report = import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)])
    assert (report.appended, [skipped.number for skipped in report.skipped]) == (1, [2])
    assert "time zone" in report.skipped[0].reason
    stamp = datetime.fromisoformat(imported(memory)[-1].envelope.occurred_at)
    assert stamp.utcoffset() == timedelta(hours=9)


def test_an_agent_imports_only_where_it_may(memory: Memory, tmp_path: Path) -> None:
    """Lines outside its scopes are skipped; it can go on after an interruption as well."""
    agent = memory.acting_as(Principal("a", Role.AGENT, (Scope("acme", project="billing"),)))
    foreign = turn(1, scope={"tenant": "acme", "project": "hr", "session": "s"})
    file = write_lines(tmp_path / "a.jsonl", [turn(0), foreign])
    report = import_files(agent, [file])
    assert (report.appended, [skipped.number for skipped in report.skipped]) == (1, [2])
    write_lines(file, [turn(0), foreign, turn(2)])
    assert import_files(agent, [file]).appended == 1


def test_evidence_and_feedback_reach_the_memory(memory: Memory, tmp_path: Path) -> None:
    """Keys of lines become ids of events."""
    lines = [turn(0), statement("remember", "m", content="PDF", evidence=["s-1/0"], id="fmt")]
    lines += [statement("feedback", "f", target="m", rating="up"), statement("confirm", "c", record="fmt")]
    report = import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)])
    assert (report.appended, report.skipped) == (4, ())
    stated = imported(memory)[1].envelope
    assert stated.sources == (imported(memory)[0].envelope.id,)


def test_half_an_emoji_and_nul_arrive(memory: Memory, tmp_path: Path) -> None:
    """What other stores refuse is kept: lone surrogates and NUL, in both formats."""
    event = write_lines(tmp_path / "a.jsonl", [json.dumps(turn(0, content="half \ud83d and \0"))])
    session = write_lines(tmp_path / "b.jsonl", [json.dumps(said("half \ud83d and \0", "1"))])
    assert import_files(memory, [event, session], defaults=Scope("acme")).appended == 2
    stored = [each.event for each in imported(memory)]
    assert [original(event.content) for event in stored] == ["half \ud83d and \0"] * 2  # type: ignore[union-attr]


def test_real_transcripts_are_found_again(memory: Memory, shared_data: Path) -> None:
    """A recorded session goes in, and recall finds what was said in it."""
    folder = shared_data / "transcripts" / "claude_code"
    report = import_files(memory, [folder], defaults=Scope("acme", user="u-17"))
    assert report.appended > 70
    hits = memory.recall(Scope("acme", user="u-17", project="tmp"), "decorators that take parameters")
    assert "decorator" in hits[0].text

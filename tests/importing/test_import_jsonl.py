"""The event file."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from import_fakes import DEFAULTS, FakeMemory, statement, turn, write_lines

from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import import_files
from mnemolog.infra.importers.jsonl import FIELDS
from support import ROOT


@pytest.fixture
def memory(tmp_path: Path) -> FakeMemory:
    return FakeMemory(tmp_path / "data")


def test_the_sample_goes_in_whole(memory: FakeMemory) -> None:
    """Every line of the sample that the project ships is appended, once."""
    sample = ROOT / "examples" / "sample_week.jsonl"
    report = import_files(memory, [sample])
    assert (report.appended, report.skipped) == (len(sample.read_text().splitlines()), ())
    assert import_files(memory, [sample]).appended == 0


def test_every_type_and_field_is_in_the_document() -> None:
    """What the reader takes and what the document says are the same."""
    text = (ROOT / "docs" / "import-format.md").read_text()
    names = set(FIELDS) | {name for spec in FIELDS.values() for name in spec.checks}
    assert {name for name in names if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "the line is not JSON"),
        ("[1, 2]", "the line is not a JSON object"),
        ('"text"', "the line is not a JSON object"),
        ('{"type": "turn", "x": NaN}', "the line is not JSON"),
        ("[" * 100_000, "the line is nested too deeply"),
        (turn(0, type="poem"), "unknown type"),
        (turn(0, type=["turn"]), "unknown type"),
        (turn(0, scope=None), "`scope` must be an object with a tenant"),
        (turn(0, scope={"user": "u"}), "a scope needs a tenant"),
        (turn(0, scope={"tenant": "acme", "team": "x", "session": "s"}), "no such scope level: team"),
        (turn(0, scope={"tenant": "acme", "session": 5}), "must be a string or None"),
        (turn(0, scope={"tenant": "acme"}), "must name its session"),
        (turn(0, content=None), "a turn line needs `content`"),
        (turn(0, content=7), "`content` must be a string"),
        (turn(0, expire="2027"), "a turn line has no field `expire`"),
        (turn(0, occurred_at=None), "`occurred_at` is missing"),
        (turn(0, occurred_at=12), "`occurred_at` must be ISO 8601"),
        (turn(0, occurred_at="yesterday"), "is not an ISO 8601 time"),
        (turn(0, occurred_at="2026-03-09T09:00:00"), "no time zone"),
        (turn(0, key=5), "`key` must be a string"),
        (statement("tool_result", "k", output="a", error="b"), "exactly one of"),
        (statement("tool_result", "k"), "exactly one of"),
        (statement("remember", "k", content="x", slot=["one"]), "`slot` must be a list of two strings"),
        (statement("remember", "k", content="x", confidence=True), "`confidence` must be a number"),
        (statement("correct", "k", content="x", record="nobody"), "`record` names no earlier"),
        (statement("session_opened", "k", timezone="Mars/Olympus"), "IANA name"),
        (statement("session_opened", "k", timezone="../etc/passwd"), "IANA name"),
    ],
)
def test_a_bad_line_is_skipped_with_its_reason(
    memory: FakeMemory, tmp_path: Path, line: Any, reason: str
) -> None:
    """It does not stop the lines around it."""
    file = write_lines(tmp_path / "a.jsonl", [turn(1), line, turn(2)])
    report = import_files(memory, [file], format="jsonl")
    assert report.appended == 2
    assert [skipped.number for skipped in report.skipped] == [2]
    assert reason in report.skipped[0].reason


def test_bytes_that_are_not_utf8_are_skipped(memory: FakeMemory, tmp_path: Path) -> None:
    """A line of other bytes is skipped, its neighbours are read, a byte order mark is no harm."""
    file = tmp_path / "a.jsonl"
    lines = [json.dumps(turn(0)).encode(), b'{"type": "\xff\xfe"}', b"", json.dumps(turn(1)).encode()]
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")
    report = import_files(memory, [file])
    assert (report.appended, report.reasons) == (2, {"the line is not UTF-8": 1})


def test_a_lone_surrogate_is_let_in(memory: FakeMemory, tmp_path: Path) -> None:
    """Half an emoji, escaped in JSON, reaches the memory as it is."""
    text = json.dumps(turn(0)).replace("message 0", "half \\ud83d")
    assert import_files(memory, [write_lines(tmp_path / "a.jsonl", [text])]).appended == 1
    assert memory.items[0]["content"] == "half \ud83d"


def test_times_keep_their_offset(memory: FakeMemory, tmp_path: Path) -> None:
    """Original times, to the microsecond, in their own offset."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0, occurred_at="2026-03-09T09:14:00.000123+05:45")])
    import_files(memory, [file])
    assert memory.items[0]["occurred_at"].isoformat() == "2026-03-09T09:14:00.000123+05:45"


def test_a_time_without_offset_takes_the_zone_of_its_session(memory: FakeMemory, tmp_path: Path) -> None:
    """The session's zone, else the one given, also after an interruption between the two."""
    lines = [statement("session_opened", "o", timezone="Asia/Seoul")]
    lines += [turn(number, occurred_at=f"2026-03-09T09:00:{number:02}") for number in range(4)]
    lines += [turn(9, "other", occurred_at="2026-03-09T09:00:00")]
    file = write_lines(tmp_path / "a.jsonl", lines)
    memory.fail_after = 3
    with pytest.raises(KeyboardInterrupt):
        import_files(memory, [file], batch=1, timezone="Europe/Berlin")
    memory.fail_after = None
    report = import_files(memory, [file], timezone="Europe/Berlin")
    assert report.skipped == ()
    hours = [
        when.utcoffset().total_seconds() / 3600
        for item in memory.of("turn")
        for when in [item["occurred_at"]]
    ]
    assert hours == [9, 9, 9, 9, 1]


def test_other_times_take_the_zone_too(memory: FakeMemory, tmp_path: Path) -> None:
    """valid_from and its like follow the same rule."""
    line = statement("remember", "m", content="x", valid_from="2026-03-09T00:00:00", expires_at=None)
    import_files(memory, [write_lines(tmp_path / "a.jsonl", [line])], timezone="Asia/Seoul")
    assert memory.items[0]["valid_from"] == datetime.fromisoformat("2026-03-09T00:00:00+09:00")
    assert "expires_at" not in memory.items[0]


def test_lines_without_a_key_are_told_apart_by_place_and_content(memory: FakeMemory, tmp_path: Path) -> None:
    """Two equal lines stay two, and a second run finds both."""
    line = turn(0, content="ok")
    del line["key"]
    file = write_lines(tmp_path / "a.jsonl", [line, line])
    assert import_files(memory, [file]).appended == 2
    (memory.path / "imports").rename(tmp_path / "moved")
    assert import_files(memory, [file]).duplicates == 2


def test_defaults_fill_what_a_line_does_not_say(memory: FakeMemory, tmp_path: Path) -> None:
    """A whole scope that is absent, or the tenant; a level that is left out on purpose stays out."""
    absent = turn(0)
    del absent["scope"]
    lines = [absent, turn(1, scope={"project": "p", "session": "s"})]
    defaults = Scope("acme", user="u-17", session="d")
    import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)], defaults=defaults)
    assert [item["scope"] for item in memory.items] == [
        defaults,
        Scope("acme", project="p", session="s"),
    ]


def test_a_used_key_with_other_content_is_skipped(memory: FakeMemory, tmp_path: Path) -> None:
    """The first line stays, the second is reported."""
    report = import_files(memory, [write_lines(tmp_path / "a.jsonl", [turn(0), turn(0, content="other")])])
    assert report.reasons == {"the key was used before with another body: use a new key": 1}
    assert DEFAULTS.tenant == memory.items[0]["scope"].tenant
    assert len(memory.items) == 1


def test_a_line_of_twelve_megabytes_goes_in(memory: FakeMemory, tmp_path: Path) -> None:
    """A large tool output is one line like others."""
    line = statement("tool_result", "k", output="x" * 12_000_000)
    assert import_files(memory, [write_lines(tmp_path / "a.jsonl", [line])]).appended == 1
    assert len(memory.items[0]["output"]) == 12_000_000


def test_a_line_beyond_the_limit_is_skipped(
    memory: FakeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that would fill the memory is passed over without being held."""
    monkeypatch.setattr("mnemolog.infra.importers.sources.MAX_LINE_BYTES", 1000)
    monkeypatch.setattr("mnemolog.infra.importers.sources.CHUNK", 100)
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1, content="x" * 5000), turn(2)])
    report = import_files(memory, [file])
    assert (report.appended, [skipped.number for skipped in report.skipped]) == (2, [2])
    assert "longer than" in report.skipped[0].reason
    write_lines(file, [turn(0), turn(1, content="x" * 5000), turn(2), turn(3)])
    assert "grew" in import_files(memory, [file]).notes[0]

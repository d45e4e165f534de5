"""What somebody meets who does not know the program yet: wrong paths, wrong names, full disks, long lists."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import SAMPLE, WHOSE, Run, invoke

from mnemolog.infra.cli.exits import Exit

LINE = {
    "type": "turn", "scope": {"tenant": "acme", "user": "u", "session": "s"}, "role": "user",
    "content": "hello", "occurred_at": "2026-03-09T09:15:00+09:00",
}  # fmt: skip


def test_init_refuses_what_is_something_else(tmp_path: Path) -> None:
    """A directory of something else is left alone unless forced; then it is ready once, and already there after."""
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    refused = invoke(tmp_path, "init")
    assert refused.exit_code == Exit.USAGE
    assert "holiday.jpg" in refused.stderr and "--force" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
    assert invoke(tmp_path, "init", "--force").stdout.startswith("Ready: ")
    assert invoke(tmp_path, "init").stdout.startswith("Already there: ")


def test_init_takes_a_directory_that_waits_for_it(tmp_path: Path) -> None:
    """An empty directory, or one with only a root key in it, becomes a memory."""
    from mnemolog.infra.vault.rootkey import encode_root_key

    (tmp_path / "root.key").write_text(encode_root_key(bytes(range(32))))
    (tmp_path / "root.key").chmod(0o600)
    assert invoke(tmp_path, "init").stdout.startswith("Ready: ")


@pytest.mark.parametrize("arguments", [["init", ""], ["status", "--data", ""]], ids=" ".join)
def test_an_empty_path_is_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty path is a forgotten variable; it is not taken for the current directory."""
    monkeypatch.chdir(tmp_path)
    result = invoke(tmp_path / "x", *arguments)
    assert result.exit_code == Exit.USAGE
    assert "empty" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """A path that the system refuses is told in one line, with 6; nobody is asked to report it."""
    (tmp_path / "file").write_text("x")
    result = invoke(tmp_path / "file" / "below", "init")
    assert result.exit_code == Exit.IN_USE
    assert result.stderr.startswith("error: ")
    assert "report" not in result.stderr and "unexpected" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_a_full_disk_below_stdout_is_told(data: Path, more: list[str]) -> None:
    """Output that cannot be written ends with one line and 6, not with a traceback."""
    program = [sys.executable, "-c", "from mnemolog.infra.cli import main; main()", "log", "list", *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            program, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
            env={**os.environ, "MNEMOLOG_DATA": str(data)},
        )  # fmt: skip
    assert done.returncode == Exit.IN_USE
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


def test_the_log_is_read_by_scope(run: Run) -> None:
    """With levels, list and follow have the events with these levels only, and show finds no other."""
    events = run("log", "list", "-n", "1000", "--tenant", "bluefin", "--json")
    assert {event["envelope"]["scope"]["tenant"] for event in events} == {"bluefin"}
    own, ident = str(events[0]["position"]), events[0]["envelope"]["id"]
    assert run("log", "show", own, "--tenant", "bluefin", "--json") == events[0]
    run("log", "show", own, *WHOSE, code=Exit.NOT_FOUND)
    run("log", "show", ident, *WHOSE, code=Exit.NOT_FOUND)
    assert run("log", "follow", "--idle", "0", "--tenant", "bluefin", "--json") == events
    run("log", "list", "--user", "min", code=Exit.USAGE)


def test_the_log_says_what_it_left_out(run: Run, data: Path) -> None:
    """A list that was cut off says how many there are more, where that is known, and how to see them."""
    head = run("status", "--json")["head"]
    assert invoke(data, "log", "list").stderr == f"{head - 50} more: --after 50\n"
    assert invoke(data, "log", "list", "--last", "-n", "5").stderr.startswith(f"{head - 5} earlier ones")
    assert invoke(data, "log", "list", "-n", "1", "--tenant", "bluefin").stderr.startswith("more: --after ")
    assert invoke(data, "log", "list", "-n", str(head)).stderr == ""
    assert invoke(data, "log", "list", "--json").stderr == ""


def test_the_log_is_read_by_time_and_from_its_end(run: Run) -> None:
    """Bounds are those of recall; the newest of a kind are found however far back they are."""
    day = run("log", "list", "-n", "1000", "--since", "2026-03-11T00:00+09:00",
              "--until", "2026-03-12T00:00+09:00", *WHOSE, "--json")  # fmt: skip
    assert {event["envelope"]["occurred_at"][:10] for event in day} == {"2026-03-11"}
    topic = ("--topic", "MemoryRetracted", "--json")
    assert run("log", "list", "--last", "-n", "1", *topic) == run("log", "list", "-n", "1", *topic)
    run("log", "list", "--since", "2026-03-12", "--until", "2026-03-11", code=Exit.USAGE)
    run("recall", "x", "--since", "2026-03-12", "--until", "2026-03-11", *WHOSE, code=Exit.USAGE)


@pytest.mark.slow
def test_an_erasure_that_was_held_up_is_finished(data: Path) -> None:
    """While a reader is in the way the warning names the purge and the remedy; status warns, and resume finishes."""
    (view,) = (data / "views").glob("turns-*.db")
    reader = sqlite3.connect(view)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM turns").fetchone()
    held = invoke(data, "erase", "--subject", "dana", "--tenant", "hanul", "--yes")
    assert held.exit_code == Exit.INCOMPLETE
    assert "nothing of it can be read" in held.stderr and "view turns" in held.stderr
    assert "mnemolog erase --resume" in held.stderr
    assert "erase --resume" in invoke(data, "status").stderr
    assert invoke(data, "erase", "--resume").exit_code == Exit.INCOMPLETE
    reader.close()
    assert invoke(data, "erase", "--resume", "--json").exit_code == Exit.OK
    assert "No erasure is pending" in invoke(data, "erase", "--resume").stderr
    assert "erase --resume" not in invoke(data, "status").stderr
    assert invoke(data, "erase", "--resume", "--subject", "dana").exit_code == Exit.USAGE


def test_a_plan_names_sessions_as_people_do(run: Run) -> None:
    """The plan of an erasure shows the session by its name."""
    plan = run("erase", "--session", "mon-kickoff", *WHOSE, "--dry-run", "--json")
    assert plan["plan"]["sessions"] == ["mon-kickoff"]


def test_formats_are_named_either_way(tmp_path: Path, run: Run) -> None:
    """Underscore and hyphen name the same format; messages have the hyphen, and name the option to use."""
    file = tmp_path / "session.jsonl"
    said = {
        "type": "user",
        "sessionId": "s",
        "timestamp": "2026-03-09T09:00:00Z",
        "message": {"content": "hi"},
    }
    file.write_text(json.dumps(said) + "\n")
    (tmp_path / "odd.txt").write_text("x y z")
    data = tmp_path / "data"
    lacking = invoke(data, "init") and invoke(data, "import", str(file))
    assert "claude-code" in lacking.stderr and "--tenant" in lacking.stderr
    for name in ("claude_code", "claude-code"):
        assert invoke(data, "import", str(file), "--format", name, "--tenant", "t").exit_code == 0
    unknown = invoke(data, "import", str(tmp_path / "odd.txt"))
    assert "--format" in unknown.stderr and "tau-bench" in unknown.stderr
    wrong = invoke(data, "import", str(file), "--format", "csv")
    assert (wrong.exit_code, "tau-bench" in wrong.stderr) == (Exit.USAGE, True)


def test_an_import_without_content_shows_no_empty_count(tmp_path: Path) -> None:
    """An empty file has nothing to import, and one of bad lines only what was skipped."""
    data, empty, bad = tmp_path / "data", tmp_path / "empty.jsonl", tmp_path / "bad.jsonl"
    empty.write_text("\n\n")
    bad.write_text("{not json\n")
    invoke(data, "init")
    shown = invoke(data, "import", str(empty))
    assert (shown.stdout, "nothing to import" in shown.stderr) == ("", True)
    wrong = invoke(data, "import", str(bad), "--format", "jsonl")
    assert (wrong.exit_code, "already here" in wrong.stdout) == (Exit.INCOMPLETE, False)


def test_an_interrupted_import_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130 and says that running it again goes on; it does."""
    from mnemolog.memory import Memory

    data, file = tmp_path / "data", tmp_path / "week.jsonl"
    file.write_text("".join(json.dumps({**LINE, "key": f"k{n}"}) + "\n" for n in range(250)))
    invoke(data, "init")
    calls, batch = [], Memory.record_batch

    def stopping(memory: Memory, items: list[dict[str, object]]) -> object:
        calls.append(len(items))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return batch(memory, items)

    monkeypatch.setattr(Memory, "record_batch", stopping)
    stopped = invoke(data, "import", str(file))
    assert stopped.exit_code == Exit.INTERRUPTED
    assert "interrupted after " in stopped.stderr and "goes on from there" in stopped.stderr
    again = json.loads(invoke(data, "import", str(file), "--json").stdout)
    assert (again["appended"], again["duplicates"]) == (50, 200)


def test_what_changes_nothing_says_so(run: Run) -> None:
    """Saying it again adds evidence; an act that leaves the record as it stood says how it stands."""
    record = run("remember", "Tea at four", *WHOSE, "--json")["record_id"]
    assert run("remember", "Tea at four", *WHOSE).startswith("already known, evidence added: ")
    assert "nothing changed" not in run("confirm", record, *WHOSE)
    assert "nothing changed" not in run("retract", record, *WHOSE)
    assert "nothing changed: it stays retracted" in run("retract", record, *WHOSE)
    assert "nothing changed: it stays retracted" in run("confirm", record, *WHOSE)


def test_errors_say_what_to_do(data: Path, tmp_path: Path) -> None:
    """Not found names where to look; a rotation with a key in the environment names the option that it needs."""
    missing = invoke(data, "records", "show", "0" * 32, *WHOSE)
    assert "look with the scope that it belongs to" in missing.stderr
    key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    elsewhere = tmp_path / "elsewhere"
    assert invoke(elsewhere, "init", MNEMOLOG_ROOT_KEY=key).exit_code == 0
    refused = invoke(elsewhere, "keys", "rotate", MNEMOLOG_ROOT_KEY=key)
    assert (refused.exit_code, "--new-key-file" in refused.stderr) == (Exit.USAGE, True)


def test_a_narrow_terminal_cuts_no_heads(data: Path) -> None:
    """Where the table of views does not fit, each view stands as names and values."""
    shown = invoke(data, "status", COLUMNS="40").stdout
    for head in ("view", "version", "position", "lag", "parked", "waiting", "state"):
        assert shown.count(f"{head} ") >= 3
    assert max(map(len, shown.splitlines())) <= 40


def test_a_path_by_name_does_not_look_at_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in ./data is of no account to `init PATH`."""
    monkeypatch.chdir(tmp_path)
    Path("data").write_text("a file")
    result = invoke(tmp_path, "init", "memory", MNEMOLOG_DATA="")
    assert (result.exit_code, result.stdout[:7]) == (0, "Ready: ")


def test_a_trailing_blank_line_is_no_change(tmp_path: Path) -> None:
    """A file that ends with an empty line is the same file the next time."""
    data, file = tmp_path / "data", tmp_path / "week.jsonl"
    shutil.copy(SAMPLE, file)
    file.write_text(file.read_text() + "\n\n")
    invoke(data, "init")
    invoke(data, "import", str(file))
    assert "was changed" not in invoke(data, "import", str(file)).stderr

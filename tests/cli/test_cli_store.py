"""The command line over a real data directory: what a person does in the first hour, and what a script relies on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_world import SAMPLE, WHOSE, Run, invoke

from mnemolog.infra import leadership
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.locks import exclusively

SCOPE_VARIABLES = {f"MNEMOLOG_{WHOSE[at][2:].upper()}": WHOSE[at + 1] for at in (0, 2, 4)}


def test_init_says_where_things_are(tmp_path: Path) -> None:
    """The first command names the directory and the root key, warns of a key beside the data, and may be repeated."""
    first = invoke(tmp_path, "init", str(tmp_path / "memory"))
    assert first.exit_code == 0
    shown = "".join(first.stdout.split())
    assert "".join(str(tmp_path / "memory" / "root.key").split()) in shown
    assert "warning: the root key lies in the data directory" in first.stderr
    assert "Next: mnemolog import" in first.stderr
    again = invoke(tmp_path / "memory", "init", "--json")
    told = json.loads(again.stdout)
    assert (again.exit_code, told["created"], told["data"]) == (0, False, str(tmp_path / "memory"))


def test_the_first_hour(run: Run) -> None:
    """From an imported week over recall, context, correction and history to an erasure that leaves nothing."""
    hits = run("recall", "which format do the settlement reports have, PDF?", *WHOSE, "--json")
    assert any("PDF" in hit["text"] for hit in hits)
    context = run("context", "draft the settlement report", "--budget", "800", *WHOSE, "--json")
    assert context["receipt"]["tokens"] <= 800
    assert context["messages"][0]["content"] == context["text"]

    stated = run("remember", "Parking is at the harbour", "--slot", "team", "parking", *WHOSE, "--json")
    record = stated["record_id"]
    run("correct", record, "Parking is at the lighthouse", "--reason", "moved", *WHOSE)
    steps = run("records", "history", record, *WHOSE, "--json")
    assert [step["content"] for step in steps] == [
        "Parking is at the harbour",
        "Parking is at the lighthouse",
    ]
    assert run("records", "show", record, *WHOSE, "--json")["content"] == "Parking is at the lighthouse"
    assert "lighthouse" in run("recall", "where is parking", *WHOSE)

    done = run("erase", "--record", record, "--reason", "asked", "--yes", *WHOSE, "--json")
    assert done["complete"]
    assert run("recall", "lighthouse harbour", *WHOSE, "--json") == []
    assert {step["content"] for step in run("records", "history", record, *WHOSE, "--json")} <= {
        None,
        "FORGOTTEN",
    }


def test_import_twice_doubles_nothing(run: Run) -> None:
    """A second import of the same file appends nothing."""
    head = run("status", "--json")["head"]
    report = run("import", str(SAMPLE), "--json")
    assert run("status", "--json")["head"] == head
    assert report["skipped_total"] == 0


def test_import_reports_what_it_left_out(run: Run, tmp_path: Path) -> None:
    """A line that cannot go in is counted by its reason and named by its number, and ends with 9."""
    file = tmp_path / "bad.jsonl"
    good = {
        "type": "turn", "scope": {"tenant": "hanul", "user": "min", "session": "s"}, "role": "user",
        "content": "hello", "occurred_at": "2026-03-09T09:15:00+09:00", "key": "k-1",
    }  # fmt: skip
    file.write_text(json.dumps(good) + "\n{not json\n" + json.dumps({**good, "key": "k-2"}) + "\n")
    report = run("import", str(file), "--json", code=Exit.INCOMPLETE)
    assert (report["appended"], report["skipped_total"], report["files"][0]["skipped"][0]["number"]) == (
        2,
        1,
        2,
    )


def test_import_of_what_was_erased_is_no_failure(run: Run, data: Path) -> None:
    """Lines of an erased person are told of with their reason, the others are here, and the exit code is 0."""
    run("erase", "--subject", "min", "--tenant", "hanul", "--reason", "asked", "--yes")
    for place in (data / "imports").iterdir():
        place.unlink()
    report = run("import", str(SAMPLE), "--json")
    assert (report["appended"], report["wrong"]) == (0, 0)
    assert report["duplicates"] > 0 and report["skipped_total"] > 0
    assert all("erased" in reason for reason in report["files"][0]["reasons"])


def test_nothing_found_says_what_to_do(data: Path) -> None:
    """An empty answer is no error: stdout stays empty, and stderr names the level that is missing."""
    result = invoke(data, "recall", "settlement", "--tenant", "nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "--user and --project" in result.stderr
    assert "--any all" in result.stderr
    assert json.loads(invoke(data, "recall", "x", "--tenant", "nobody", "--json").stdout) == []


def test_any_opens_levels(run: Run) -> None:
    """An operator who knows no names reads every user and project of a tenant, and of that tenant only."""
    records = run("records", "list", "--tenant", "hanul", "--any", "all", "--json")
    assert {record["scope"]["tenant"] for record in records} == {"hanul"}
    assert {record["scope"].get("user") for record in records} >= {"min", "dana"}
    assert len(
        run("records", "list", "--tenant", "hanul", "--user", "dana", "--any", "project", "--json")
    ) < len(records)


def test_tables_for_people(run: Run) -> None:
    """Every reading command has a table, in Korean too."""
    assert "리포트" in run("recall", "정산 리포트", *WHOSE)
    assert "리포트" in run("records", "list", *WHOSE)
    assert "<memory>" in run("context", "정산 리포트", *WHOSE)
    assert "TurnRecorded" in run("log", "list", "-n", "5")
    assert "curated" in run("projections", "list")
    assert "events" in run("status")
    assert "root key" in run("keys", "status")


def test_metrics_for_prometheus(run: Run) -> None:
    """`metrics` prints the exposition, and with --json one sample a line."""
    head = run("status", "--json")["head"]
    assert f"mnemolog_log_position {float(head)}" in run("metrics").splitlines()
    sample = {"name": "mnemolog_log_position", "labels": {}, "value": float(head)}
    assert sample in run("metrics", "--json")


def test_log_by_position_and_by_id(run: Run) -> None:
    """An event is shown whole, with names for the ids of its scope, by position or by id; verify checks them all."""
    first = run("log", "list", "-n", "2", "--topic", "TurnRecorded", "--json")[0]
    assert first["envelope"]["scope"]["tenant"] == "hanul"
    assert first["event"]["content"].startswith("You are Sol")
    assert run("log", "show", first["envelope"]["id"], "--json") == first
    assert run("log", "show", str(first["position"]), "--json") == first
    assert "You are Sol" in run("log", "show", str(first["position"]))
    last = run("log", "list", "--last", "-n", "1", "--json")
    assert last["position"] == run("status", "--json")["head"]
    assert run("log", "verify", "--json")["checked"] == last["position"]


def test_follow_prints_what_is_there_and_ends_when_idle(run: Run) -> None:
    """Follow begins behind a position, prints JSON lines, and can end by itself."""
    head = run("status", "--json")["head"]
    events = run("log", "follow", "--after", str(head - 3), "--idle", "0.1", "--json")
    assert [event["position"] for event in events] == [head - 2, head - 1, head]


def test_views_are_rebuilt(run: Run) -> None:
    """A rebuild leaves the same answers, and no lag."""
    before = run("recall", "정산 리포트 PDF", *WHOSE, "--json")
    views = run("projections", "rebuild", "--json")
    assert {view["lag"] for view in views} == {0}
    assert run("recall", "정산 리포트 PDF", *WHOSE, "--json") == before
    assert all(view["parked"] == 0 for view in run("projections", "lag", "--json"))
    assert run("projections", "parked") == ""


def test_a_worse_view_is_switched_to_by_force_only(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild that lacks more than the live view ends with 9, what failed, and the way on; --force takes it."""
    from mnemolog.projections.curated import Curated

    def fails(*_: object) -> None:
        raise ValueError("no")

    before = run("records", "list", *WHOSE, "--json")
    monkeypatch.setattr(Curated, "fold", fails)
    refused = invoke(data, "projections", "rebuild", "curated")
    assert refused.exit_code == Exit.INCOMPLETE
    assert "ValueError" in refused.stderr and "rebuild curated --force" in refused.stderr
    assert run("records", "list", *WHOSE, "--json") == before
    run("projections", "rebuild", "curated", "--force", code=Exit.INCOMPLETE)
    assert "ValueError" in run("projections", "parked", "curated", code=Exit.INCOMPLETE)


def test_stdin_and_dashes(run: Run) -> None:
    """A statement can come from stdin, and can begin with a dash."""
    record = run("remember", "-", *WHOSE, "--json", text="Lunch is at noon\n")["record_id"]
    assert run("records", "show", record, *WHOSE, "--json")["content"] == "Lunch is at noon"
    assert run("recall", *WHOSE, "--", "--lunch noon")


def test_the_acts_of_a_record(run: Run) -> None:
    """Dispute, confirm and retract each leave a step in the history; what is retracted is no longer current."""
    record = run("remember", "The door code is 4711", *WHOSE, "--json")["record_id"]
    for act in ("dispute", "confirm", "retract"):
        run(act, record, "--reason", f"{act} it", *WHOSE)
    acts = [step["act"] for step in run("records", "history", record, *WHOSE, "--json")]
    assert acts == ["stated", "disputed", "confirmed", "retracted"]
    assert record not in run("records", "list", *WHOSE)
    assert record in run("records", "list", "--history", *WHOSE)


def test_erasing_a_person_asks_first(run: Run, data: Path) -> None:
    """The plan is shown first; nothing happens without the typed id; then the person is gone and neighbours stay."""
    dana = ("--tenant", "hanul", "--user", "dana", "--project", "settlement")
    before = run("records", "list", *WHOSE, "--json")
    assert run("recall", "locker code", *dana, "--json")
    plan = run("erase", "--subject", "dana", "--tenant", "hanul", "--dry-run", "--json")
    assert (len(plan["plan"]["events"]) > 10, plan["receipt"]) == (True, None)
    run("erase", "--subject", "dana", "--tenant", "hanul", text="dan\n", code=Exit.USAGE)
    run("erase", "--subject", "dana", "--tenant", "hanul", text="", code=Exit.USAGE)
    assert run("recall", "locker code", *dana, "--json")
    shown = run("erase", "--subject", "dana", "--tenant", "hanul", text="dana\n")
    assert "erased: " in shown
    assert run("recall", "locker code", *dana, "--json") == []
    assert run("records", "list", *WHOSE, "--json") == before
    log = {item["envelope"]["id"]: item for item in run("log", "list", "-n", "1000", "--json")}
    gone = [log[event] for event in plan["plan"]["events"]]
    assert {item["event"] for item in gone if item["envelope"]["parts"]} == {"FORGOTTEN"}


def test_erasing_a_session_and_an_event(run: Run) -> None:
    """A session is erased by --session alone; its next event is refused with 8. An event goes by its id."""
    scope = (*WHOSE, "--agent", "sol", "--session", "mon-kickoff")
    run("erase", "--yes", *scope)
    run("remember", "late", *scope, code=Exit.ERASED)
    event = next(
        item for item in run("log", "list", "-n", "1000", "--topic", "TurnRecorded", "--json")
        if item["event"] != "FORGOTTEN" and item["envelope"]["scope"]["tenant"] == "bluefin"
    )  # fmt: skip
    ident = event["envelope"]["id"]
    run("erase", "--event", ident, "--tenant", "bluefin", "--yes", "--any", "all", code=Exit.USAGE)
    run("erase", "--event", ident, "--tenant", "bluefin", "--user", "jude", "--project", "dive-log", "--yes")
    assert run("log", "show", ident, "--json")["event"] == "FORGOTTEN"


def test_kept_evidence_is_not_complete(run: Run) -> None:
    """An erasure that leaves evidence says so, and ends with 9."""
    turn = run("recall", "Excel", "--kind", "turn", "-k", "1", *WHOSE, "--json")[0]
    arguments = ("remember", "Min likes Excel", "--evidence", turn["event_ids"][0], *WHOSE, "--json")
    record = run(*arguments)["record_id"]
    done = run(
        "erase", "--record", record, "--keep-evidence", "--yes", *WHOSE, "--json", code=Exit.INCOMPLETE
    )
    assert done["complete"] is False
    assert done["receipt"]["evidence_left"] == turn["event_ids"]


def test_conflicts(run: Run) -> None:
    """A stale version and a key with other content are conflicts; the same key with the same content is not."""
    record = run("remember", "Tea at four", "--key", "k", *WHOSE, "--json")["record_id"]
    assert run("remember", "Tea at four", "--key", "k", *WHOSE, "--json")["duplicate"]
    run("remember", "Tea at five", "--key", "k", *WHOSE, code=Exit.CONFLICT)
    run("confirm", record, "--expected-version", "7", *WHOSE, code=Exit.CONFLICT)


def test_not_found(run: Run, tmp_path: Path) -> None:
    """An unknown directory, record, event or view is not found; a directory that is not there is not made."""
    missing = tmp_path / "nothing"
    result = invoke(missing, "status")
    assert (result.exit_code, missing.exists()) == (Exit.NOT_FOUND, False)
    assert "mnemolog init" in result.stderr
    run("records", "show", "0" * 32, *WHOSE, code=Exit.NOT_FOUND)
    run("log", "show", "999999", code=Exit.NOT_FOUND)
    run("log", "show", "nosuchevent", code=Exit.NOT_FOUND)
    run("projections", "rebuild", "nosuch", code=Exit.NOT_FOUND)
    run("erase", "--subject", "nobody", "--tenant", "hanul", "--yes", code=Exit.NOT_FOUND)


def test_denied(run: Run) -> None:
    """A principal may only what its role may; an agent neither erases nor reads the log."""
    record = run("remember", "x y z", *WHOSE, "--as", "agent:sol", "--json")["record_id"]
    run("erase", "--record", record, "--yes", *WHOSE, "--as", "agent:sol", code=Exit.DENIED)
    run("log", "list", *WHOSE, "--as", "agent:sol", code=Exit.DENIED)
    run("remember", "x", *WHOSE, "--as", "auditor:eve", code=Exit.DENIED)
    assert run("log", "list", "-n", "3", *WHOSE, "--as", "auditor:eve")


def test_keys_missing(run: Run, data: Path) -> None:
    """Without its root key a store does not open, and no new key is made."""
    (data / "root.key").unlink()
    run("status", code=Exit.NO_KEYS)
    assert not (data / "root.key").exists()


def test_rotation_keeps_the_memory_readable(run: Run, data: Path) -> None:
    """A rotated root key is another one, and everything is still there."""
    before = (data / "root.key").read_bytes()
    run("keys", "rotate")
    assert (data / "root.key").read_bytes() != before
    assert run("recall", "정산 리포트", *WHOSE, "--json")


def test_corrupt_store(run: Run, data: Path) -> None:
    """A changed byte in the log is found by verify, with its own code."""
    import sqlite3

    with sqlite3.connect(data / "log.db") as connection:
        table, column = _sealed_column(connection)
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} || x'00' AS BLOB) WHERE rowid = 5")
    connection.close()
    run("log", "verify", code=Exit.CORRUPT)
    assert "restore it from a backup" in invoke(data, "log", "verify").stderr


def _sealed_column(connection: Any) -> tuple[str, str]:
    """Where the stored bytes are."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for name in ("sealed", "ciphertext", "body", "state"):
            if name in names:
                return table, name
    raise AssertionError("no table holds sealed bytes")


def test_hostile_text_does_not_steer_the_terminal(run: Run) -> None:
    """Escape sequences that somebody stored are shown, not obeyed, in tables, contexts, JSON and errors."""
    record = run("remember", "evil \x1b]0;owned\x07\x1b[2J \u202etxt", *WHOSE, "--json")["record_id"]
    for arguments in (
        ("recall", "evil", *WHOSE),
        ("records", "list", *WHOSE),
        ("records", "show", record, *WHOSE),
        ("context", "evil", *WHOSE),
        ("log", "list", "--last", "-n", "9"),
    ):
        shown = run(*arguments)
        assert "\\x1b" in shown
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)


def script(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The real program."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
    program = [sys.executable, "-c", "from mnemolog.infra.cli import main; main()", *arguments]
    return subprocess.run(
        program, capture_output=True, text=True, check=False, timeout=120,
        env={**environment, "MNEMOLOG_DATA": str(data), **variables},
    )  # fmt: skip


def test_variables_say_whose_memory(data: Path) -> None:
    """Directory and scope can come from the environment; without colour, nothing but text is printed."""
    done = script(data, "recall", "정산 리포트", NO_COLOR="1", **SCOPE_VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "리포트" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_store_that_is_being_opened_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process does not get done with opening it, another gets 6 and is told so, as JSON when it asks."""
    monkeypatch.setattr(leadership, "OPENING_SECONDS", 0.1)
    with exclusively(data / leadership.OPENING_FILE, 1, "opening"):
        done = invoke(data, "status", "--json")
    assert done.exit_code == Exit.IN_USE
    assert json.loads(done.stderr)["type"] == "StoreInUse"
    assert script(data, "status").returncode == 0


def test_an_old_locale_does_not_break_output(data: Path) -> None:
    """On a terminal that cannot show Korean, letters are escaped; JSON is UTF-8 all the same."""
    shown = script(data, "recall", "정산", PYTHONIOENCODING="ascii", **SCOPE_VARIABLES)
    assert (shown.returncode, shown.stdout.isascii()) == (0, True)
    assert "\\u" in shown.stdout


def test_a_closed_pipe_leaves_no_traceback(data: Path) -> None:
    """When the reader of the output goes away, the program ends quietly."""
    program = (
        f"{sys.executable} -c 'from mnemolog.infra.cli import main; main()' log list -n 1000 --json | head -1"
    )
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "MNEMOLOG_DATA": str(data)},
    )  # fmt: skip
    assert json.loads(done.stdout)["position"] == 1
    assert done.stderr == ""

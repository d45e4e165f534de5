"""The pipeline: order, batches, names, places."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_fakes import DEFAULTS, FakeMemory, statement, turn, write_lines

from mnemolog.consumers.importing import CODES, Entry, Item, Names, Place, Skipped, Tally, run
from mnemolog.domain.errors import InvalidInput, MnemologError, StoreClosed
from mnemolog.domain.events import Receipt
from mnemolog.domain.principal import Principal, Role
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import import_files

CHANGED = "the file grew or was changed since it was last read: going over it again, by its keys"


@pytest.fixture
def memory(tmp_path: Path) -> FakeMemory:
    return FakeMemory(tmp_path / "data")


def contents(memory: FakeMemory) -> list[str]:
    return [item["content"] for item in memory.of("turn")]


def place_file(memory: FakeMemory) -> Path:
    (path,) = (memory.path / "imports").iterdir()
    return path


def test_turns_go_in_by_the_batch_and_in_order(memory: FakeMemory, tmp_path: Path) -> None:
    """A hundred lines at a time by default, whatever is left at the end."""
    file = write_lines(tmp_path / "a.jsonl", [turn(number) for number in range(250)])
    report = import_files(memory, [file])
    assert memory.calls == [("batch", 100), ("batch", 100), ("batch", 50)]
    assert contents(memory) == [f"message {number}" for number in range(250)]
    assert (report.appended, report.duplicates, report.skipped, report.by_type) == (250, 0, (), {"turn": 250})


def test_a_statement_waits_for_what_stands_before_it(memory: FakeMemory, tmp_path: Path) -> None:
    """A statement between turns empties the batch, so that the log has the order of the file."""
    lines = [turn(0), statement("remember", "m", content="PDF", id="fmt"), turn(1)]
    lines += [statement("correct", "n", record="fmt", content="Excel"), turn(2)]
    import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)])
    assert [item["type"] for item in memory.items] == ["turn", "remember", "turn", "correct", "turn"]
    assert memory.items[3]["record"] == memory.items[1]["stream"]


def test_feedback_and_evidence_name_earlier_lines_by_their_keys(memory: FakeMemory, tmp_path: Path) -> None:
    """A key stands for the event of its line, or for the record where feedback is about a statement."""
    lines = [turn(0), statement("remember", "m", content="PDF", evidence=["s-1/0"])]
    lines += [statement("feedback", "f1", target="s-1/0", rating="up")]
    lines += [statement("feedback", "f2", target="m", rating="down", comment="no")]
    lines += [statement("feedback", "f3", target="nowhere", rating="down")]
    report = import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)])
    assert memory.items[1]["evidence"] == ("e1",)
    assert [item["target"] for item in memory.of("feedback")] == ["e1", "r2"]
    assert [(skipped.number, skipped.reason) for skipped in report.skipped] == [
        (5, "`target` names no earlier line of this tenant by its key")
    ]


def test_a_label_belongs_to_its_tenant(memory: FakeMemory, tmp_path: Path) -> None:
    """Another tenant's label names nothing."""
    other = {"tenant": "globex", "session": "s"}
    lines = [statement("remember", "m", content="PDF", id="fmt")]
    lines += [statement("correct", "n", record="fmt", content="x", scope=other)]
    report = import_files(memory, [write_lines(tmp_path / "a.jsonl", lines)])
    assert (report.appended, len(report.skipped)) == (1, 1)


def test_twice_adds_nothing(memory: FakeMemory, tmp_path: Path) -> None:
    """The second run tells that all was here, with and without the place of the first."""
    lines = [turn(number) for number in range(30)] + [statement("remember", "m", content="x", id="l")]
    file = write_lines(tmp_path / "a.jsonl", lines)
    import_files(memory, [file])
    calls = len(memory.calls)
    second = import_files(memory, [file])
    assert len(memory.calls) == calls
    assert (second.appended, second.duplicates) == (0, 31)
    assert second.notes == ("read up to 31 by an earlier import: going on from there",)
    place_file(memory).unlink()
    third = import_files(memory, [file])
    assert (third.appended, third.duplicates, len(memory.items)) == (0, 31, 31)


def test_an_interrupted_import_goes_on_where_it_was(memory: FakeMemory, tmp_path: Path) -> None:
    """What was durable is not sent again, and what was skipped is told of in closed words."""
    lines: list[Any] = ["no json", *(turn(number) for number in range(40))]
    file = write_lines(tmp_path / "a.jsonl", lines)
    memory.fail_after = 21
    with pytest.raises(KeyboardInterrupt):
        import_files(memory, [file], batch=10)
    memory.fail_after = None
    before = len(memory.items)
    memory.calls.clear()
    report = import_files(memory, [file], batch=10)
    assert sum(count for _, count in memory.calls) == 40 - before
    assert (report.appended, report.duplicates, len(memory.items)) == (40 - before, before, 40)
    assert report.reasons == {"not as its format has it": 1}
    assert [skipped.number for skipped in report.skipped] == [1]


def test_an_interrupted_import_still_knows_its_labels(memory: FakeMemory, tmp_path: Path) -> None:
    """From the first name on the file is gone over again, so that labels and keys name what they named."""
    lines: list[Any] = [statement("remember", "m", content="PDF", id="fmt")]
    lines += [turn(number) for number in range(40)]
    lines += [
        statement("correct", "n", record="fmt", content="x"),
        statement("feedback", "f", target="s-1/0", rating="up"),
    ]
    file = write_lines(tmp_path / "a.jsonl", lines)
    memory.fail_after = 21
    with pytest.raises(KeyboardInterrupt):
        import_files(memory, [file], batch=10)
    memory.fail_after = None
    before = len(memory.items)
    report = import_files(memory, [file], batch=10)
    assert (report.appended, report.duplicates, len(memory.items)) == (43 - before, before, 43)
    assert memory.of("correct")[0]["record"] == memory.items[0]["stream"]
    assert memory.of("feedback")[0]["target"] == "e2"


def test_a_change_that_keeps_the_size_is_noticed(memory: FakeMemory, tmp_path: Path) -> None:
    """A file rewritten in place right after its import, with as many bytes, is gone over again."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1)])
    import_files(memory, [file])
    write_lines(file, [turn(0), turn(2)])
    assert import_files(memory, [file]).appended == 1


def test_a_grown_file_adds_its_new_lines(memory: FakeMemory, tmp_path: Path) -> None:
    """What grew may have changed too: it is gone over by its keys, and only the new lines are appended."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1)])
    import_files(memory, [file])
    write_lines(file, [turn(0), turn(1), turn(2)])
    memory.calls.clear()
    report = import_files(memory, [file])
    assert (report.appended, report.duplicates, len(memory.items)) == (1, 2, 3)
    assert report.notes == (CHANGED,)


def test_new_lines_that_name_old_ones_are_understood(memory: FakeMemory, tmp_path: Path) -> None:
    """Feedback that was added later finds the line that it judges: the file is gone over again."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1)])
    import_files(memory, [file])
    write_lines(file, [turn(0), turn(1), statement("feedback", "f", target="s-1/1", rating="up")])
    report = import_files(memory, [file])
    assert (report.appended, report.duplicates, len(memory.items)) == (1, 2, 3)
    assert memory.of("feedback")[0]["target"] == "e2"
    assert "by its keys" in report.notes[0]


def test_a_changed_file_is_gone_over_again(memory: FakeMemory, tmp_path: Path) -> None:
    """A change in what was read before is noticed, said, and adds only what is new."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1)])
    import_files(memory, [file])
    write_lines(file, [turn(0), turn(7), turn(1)])
    report = import_files(memory, [file])
    assert (report.appended, report.duplicates) == (1, 2)
    assert report.notes == (CHANGED,)


def test_an_older_memory_gets_what_it_lacks(tmp_path: Path) -> None:
    """After a log was restored from a backup, a place that is ahead of it is not believed."""
    file = write_lines(tmp_path / "a.jsonl", [turn(number) for number in range(5)])
    import_files(FakeMemory(tmp_path / "data"), [file])
    restored = FakeMemory(tmp_path / "data")
    assert import_files(restored, [file]).appended == 5


def test_a_cut_off_last_line_is_taken_when_it_is_complete(memory: FakeMemory, tmp_path: Path) -> None:
    """It is reported each time, never lost and never doubled."""
    whole = json.dumps(turn(2))
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1), whole[:40]], end="")
    for notes in ((), ("read up to 2 by an earlier import: going on from there",)):
        report = import_files(memory, [file])
        assert [skipped.number for skipped in report.skipped] == [3]
        assert "cut off" in report.skipped[0].reason
        assert report.notes == notes
    with file.open("a") as out:
        out.write(whole[40:])
    report = import_files(memory, [file])
    assert (report.appended, report.duplicates, report.skipped) == (1, 2, ())
    with file.open("a") as out:
        out.write("\n" + json.dumps(turn(3)) + "\n")
    report = import_files(memory, [file])
    assert (report.appended, report.duplicates, len(memory.items)) == (1, 3, 4)
    assert report.notes == (CHANGED,)


def test_gzip_is_seen_through(memory: FakeMemory, tmp_path: Path) -> None:
    """Compressed files are read like others, and a damaged end does not take the rest away."""
    raw = write_lines(tmp_path / "a.jsonl", [turn(number) for number in range(2000)]).read_bytes()
    zipped = gzip.compress(raw)
    file = tmp_path / "b.jsonl.gz"
    file.write_bytes(zipped[: len(zipped) // 2])
    report = import_files(memory, [file])
    assert 0 < report.appended < 2000
    assert "damaged or cut off" in report.skipped[0].reason
    file.write_bytes(zipped)
    assert import_files(memory, [file]).skipped == ()
    assert contents(memory) == [f"message {number}" for number in range(2000)]


def test_progress_counts_bytes_over_all_files(memory: FakeMemory, tmp_path: Path) -> None:
    """It never runs backwards and ends at the total."""
    files = [write_lines(tmp_path / f"{n}.jsonl", [turn(k, f"s{n}") for k in range(50)]) for n in range(3)]
    seen: list[tuple[int, int]] = []
    import_files(memory, files, batch=10, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    total = sum(file.stat().st_size for file in files)
    assert seen[-1] == (total, total)


SECRETS: list[Any] = [
    statement("remember", "secret-key", content="secret-text", id="secret-label"),
    turn(0),
    statement("feedback", "f", target="secret-key", rating="up"),
    turn(1, role="secret my pin is 4711"),
    turn(2, secret_field=1),
    turn(3, occurred_at="secret"),
    turn(4, scope={"tenant": "acme", "session": "s", "secret_level": "x"}),
    {**statement("remember", "k", content="x"), "kind": "secret-kind"},
    statement("secret-type", "t"),
    "secret, no json",
]


def test_a_place_file_holds_numbers_and_closed_words(memory: FakeMemory, tmp_path: Path) -> None:
    """No text, label, key or digest of them, whatever lines were skipped and whatever their reasons quote."""

    class Quoting(FakeMemory):
        def record_batch(self, items: Any, /) -> list[Receipt | MnemologError]:
            answers = super().record_batch(items)
            wrong = [item.get("role", "user") != "user" for item in items]
            return [
                InvalidInput("no role secret") if bad else a for bad, a in zip(wrong, answers, strict=True)
            ]

    report = import_files(Quoting(memory.path), [write_lines(tmp_path / "secret.jsonl", SECRETS)])
    assert any("secret" in reason for reason in report.reasons)
    path = place_file(memory)
    assert "secret" not in path.read_text() + path.name
    stored = json.loads(path.read_text())
    assert set(stored) == {"version", "start", "place", "stamp", "tally"}
    assert all(isinstance(value, int) for value in [stored["place"], *stored["stamp"]])
    assert set(stored["tally"]["codes"]) <= set(CODES)
    assert {code for _, code in stored["tally"]["skipped"]} <= set(CODES)


def test_a_spoilt_place_file_costs_time_only(memory: FakeMemory, tmp_path: Path) -> None:
    """An empty or foreign place file is the same as none."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0)])
    import_files(memory, [file])
    for spoilt in ("", "{}", "[1]", '{"version": 99}'):
        place_file(memory).write_text(spoilt)
        report = import_files(memory, [file])
        assert (report.appended, report.duplicates) == (0, 1)


def test_other_options_are_another_import(memory: FakeMemory, tmp_path: Path) -> None:
    """Lines without a scope go to each scope that they are imported for."""
    line = turn(0)
    del line["scope"], line["key"]
    file = write_lines(tmp_path / "a.jsonl", [line])
    for tenant in ("acme", "globex", "acme"):
        import_files(memory, [file], defaults=Scope(tenant, session="s"))
    assert [item["scope"].tenant for item in memory.items] == ["acme", "globex"]


def test_folders_give_their_files(memory: FakeMemory, tmp_path: Path) -> None:
    """All event files in a folder and below, in the order of their names."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_lines(folder / "b.jsonl", [turn(1)])
    write_lines(folder / "deep" / "c.jsonl", [turn(2)])
    write_lines(folder / "a.jsonl", [turn(0)])
    (folder / "notes.txt").write_text("not an import")
    report = import_files(memory, [folder])
    assert contents(memory) == ["message 0", "message 1", "message 2"]
    assert len(report.parts) == 3


def test_unusable_options_are_refused_before_anything_is_written(memory: FakeMemory, tmp_path: Path) -> None:
    """A wrong format, zone or path is an error of the call, not of a line."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0)])
    for wrong in ({"format": "xml"}, {"timezone": "Mars/Olympus"}, {"batch": 0}, {"defaults": {"user": "x"}}):
        with pytest.raises(InvalidInput):
            import_files(memory, [file], **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        import_files(memory, [file, tmp_path / "missing.jsonl"])
    assert memory.items == []


def test_what_was_refused_is_tried_again(tmp_path: Path) -> None:
    """A second run by somebody who may, takes in what the first one was not allowed to."""
    from mnemolog.domain.errors import AccessDenied

    class Refusing(FakeMemory):
        def record_batch(self, items: Any, /) -> list[Receipt | MnemologError]:
            return [AccessDenied("not in this scope") for _ in items]

    file = write_lines(tmp_path / "a.jsonl", [turn(0)])
    agent = Principal("a", Role.AGENT, (Scope("acme"),))
    report = import_files(Refusing(tmp_path / "data", agent), [file])
    assert report.reasons == {"not in this scope": 1}
    assert import_files(FakeMemory(tmp_path / "data"), [file]).appended == 1


def entry(number: int, *items: Item, skipped: tuple[Skipped, ...] = ()) -> Entry:
    return Entry(Place(number), items, skipped)


def item(number: int, kind: str = "turn", **fields: Any) -> Item:
    from datetime import UTC, datetime

    when = datetime(2026, 3, 9, tzinfo=UTC)
    return Item(kind, DEFAULTS, {"content": "x", "occurred_at": when, **fields}, f"k{number}", number)


def test_a_place_is_told_only_when_all_before_it_is_durable(memory: FakeMemory) -> None:
    """The place that is handed out never lies behind something that still waits."""
    seen: list[tuple[int, int]] = []

    def durable(place: Place, tally: Tally) -> None:
        seen.append((place.number, len(memory.items)))

    run([entry(n, item(n)) for n in range(1, 8)], memory, batch=3, durable=durable)
    assert seen == [(3, 3), (6, 6), (7, 7)]


def test_a_failing_store_stops_the_import(memory: FakeMemory) -> None:
    """What is wrong with the store is raised, not reported as a bad line."""

    class Anything(Names):
        def event(self, scope: Scope, key: str, what: str) -> str:
            return key

    class Closed(FakeMemory):
        def remember(self, scope: Scope, content: str, **fields: Any) -> Receipt:
            raise StoreClosed("closed")

    with pytest.raises(StoreClosed):
        run([entry(1, item(1, "remember", evidence=["k0"]))], Closed(memory.path), names=Anything())


def test_reports_stay_small(memory: FakeMemory) -> None:
    """Every skipped line is counted; the first thousand are listed."""
    report = run([entry(n, skipped=(Skipped(n, "bad"),)) for n in range(1, 3001)], memory)
    assert (len(report.skipped), report.skipped_total, report.reasons) == (1000, 3000, {"bad": 3000})


@given(
    kinds=st.lists(st.sampled_from(["turn", "remember", "bad", "again"]), max_size=40),
    batch=st.integers(1, 9),
    stop=st.integers(0, 40),
)
def test_any_interruption_leads_to_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], batch: int, stop: int
) -> None:
    """Stopped anywhere and run again, an import appends each good line exactly once, in order."""
    folder = tmp_path_factory.mktemp("any")
    lines: list[Any] = []
    for number, kind in enumerate(kinds):
        if kind == "bad":
            lines.append("{")
        elif kind == "again":
            lines.append(turn(0))
        elif kind == "turn":
            lines.append(turn(number))
        else:
            lines.append(statement("remember", f"m{number}", content=f"{number}"))
    file = write_lines(folder / "a.jsonl", lines)
    memory = FakeMemory(folder / "data")
    memory.fail_after = stop
    try:
        import_files(memory, [file], batch=batch, format="jsonl")
    except KeyboardInterrupt:
        memory.fail_after = None
    report = import_files(memory, [file], batch=batch, format="jsonl")
    keys = list(dict.fromkeys(line["key"] for line in lines if isinstance(line, dict)))
    assert [kept["key"] for kept in memory.items] == keys
    assert (
        report.appended + report.duplicates + report.skipped_total >= len(lines) - (stop < len(keys)) * batch
    )
    assert report.skipped_total == kinds.count("bad")


@pytest.mark.parametrize("end", ["\n\n", "\n \n\n", "\n  "], ids=repr)
def test_blank_lines_at_the_end_are_no_change(memory: FakeMemory, tmp_path: Path, end: str) -> None:
    """A file that ends with blank lines is the same the next time, and what comes behind them is read."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0), turn(1)], end=end)
    import_files(memory, [file])
    (note,) = import_files(memory, [file]).notes
    assert "was changed" not in note
    with file.open("a") as stream:
        stream.write(json.dumps(turn(2)) + "\n")
    report = import_files(memory, [file])
    assert "grew" in report.notes[0]
    assert contents(memory) == ["message 0", "message 1", "message 2"]


def test_a_format_is_spelled_with_a_hyphen(memory: FakeMemory, tmp_path: Path) -> None:
    """Either spelling is taken; messages have one."""
    file = write_lines(tmp_path / "a.jsonl", [turn(0)])
    for name in ("claude_code", "claude-code"):
        with pytest.raises(
            InvalidInput, match="is claude-code, which names no tenant: name it with --tenant"
        ):
            import_files(memory, [file], format=name)
    with pytest.raises(InvalidInput, match="auto, jsonl, claude-code, tau-bench"):
        import_files(memory, [file], format="csv")

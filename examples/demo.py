"""A week of an agent's work, end to end on the embedded store: `make demo`.

Imports `sample_week.jsonl` into `demo-data/`, recalls, assembles a context, corrects, erases a person, looks at the
bytes on disk, and rebuilds every view from the log.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mnemolog import FORGOTTEN, Hit, Memory, Scope
from mnemolog.infra.importers import import_files

HERE = Path(__file__).parent
DATA = Path("demo-data")
MARKER = b"K-7741"
VIEWS = ("catalog", "turns", "curated")
MIN = Scope(tenant="hanul", user="min", project="settlement", session="sun-planning")
DANA = Scope(tenant="hanul", user="dana", project="settlement")
JUDE = Scope(tenant="bluefin", user="jude", project="dive-log")
TEXT_SHOWN = 64
TRY = (
    f"status --data {DATA}",
    f"recall '배포 요일' --tenant hanul --user min --project settlement --data {DATA}",
)
LAYERS = {
    "boot": "constraints, which come first",
    "blueprint": "what guides the project",
    "working": "the state of tasks",
    "reference": "where to look things up",
    "memory": "current records",
    "recalled": "turns that the question found",
    "summary": "the session so far",
    "landmark": "decisions and rules of the session",
    "recent": "the session's last turns",
    "open": "what is still open",
    "state": "what is being done right now",
}

console = Console(width=110)


def main() -> None:
    """Run every step on a fresh directory."""
    shutil.rmtree(DATA, ignore_errors=True)
    started = time.perf_counter()
    with Memory.open(DATA) as memory:
        append(memory)
        recall(memory)
        context(memory)
        correct(memory)
        erase(memory)
        rebuild(memory)
    took = time.perf_counter() - started
    console.print(f"\n[bold green]Done[/] in {took:.1f} s. The data is in {DATA}/; try:")
    for command in TRY:
        console.print(f"  {program()} {command}", markup=False, highlight=False, soft_wrap=True)


def append(memory: Memory) -> None:
    """Step 1 and 2: the log takes the week in, and the views follow."""
    step(1, "Append", "every turn and tool output goes into one immutable, sealed log")
    report = import_files(memory, [HERE / "sample_week.jsonl"])
    rows(("event type", "appended"), sorted(report.by_type.items()))
    console.print(
        f"{report.appended} appended, {report.duplicates} already there, {report.skipped_total} skipped"
    )
    again = import_files(memory, [HERE / "sample_week.jsonl"])
    console.print(f"imported again: {again.appended} appended - sending it twice doubles nothing")
    step(2, "Projections catch up", "views are folded from the log; lag is against its real head")
    memory.operations.catch_up()
    rows(
        ("view", "version", "position", "head", "lag", "parked"),
        [(p.name, p.version, p.position, p.head, p.lag, p.parked) for p in memory.operations.projections()],
    )


def recall(memory: Memory) -> None:
    """Step 3: words find what was said, in Korean and English, inside the caller's scope only."""
    step(3, "Recall", "scope first, then words; Korean particles hide nothing")
    deploy = "배포는 언제 해?"
    show_hits(deploy, memory.recall(MIN, deploy, k=3))
    console.print("what was said stays said, superseded or not; what holds now is the current record:")
    stated = memory.recall(MIN, deploy, k=2, kinds=["fact"], history=True)
    rows(("record", "status"), [(cut(hit.text), hit.status) for hit in stated])
    for query in ("which format for the reports?", "반올림 규칙", "locker"):
        show_hits(query, memory.recall(MIN, query, k=3))
    console.print("nothing: Dana's note about the locker is Dana's, and not Min's to see")
    show_neighbour(memory)


def show_neighbour(memory: Memory) -> None:
    """Another tenant, asking with the same words, gets its own events or none."""
    found = memory.recall(JUDE, "정산 리포트 report format deploy", k=10)
    own = {item.envelope.id for item in memory.log(limit=1000, scope=Scope(tenant=JUDE.tenant))}
    foreign = [hit for hit in found if not own.issuperset(hit.event_ids)]
    console.print(
        f"report and deploy, asked by tenant bluefin: {len(found)} hits, {len(foreign)} of them not its own"
    )
    if foreign:
        raise SystemExit("a tenant saw another tenant's memory: this must not happen")


def context(memory: Memory) -> None:
    """Step 4: a context that fits a budget, and the receipt of what went in."""
    step(4, "Context", "whole entries within 1,500 tokens, as data that cannot speak for the system")
    made = memory.context(MIN, "정산 리포트 초안을 써 줘", budget=1500)
    console.print(made.text, style="dim", markup=False, highlight=False)
    receipt = made.receipt
    layers = Counter(str(entry["layer"]) for entry in receipt.entries)
    reasons = ", ".join(sorted({left.reason for left in receipt.left_out}))
    rows(
        ("receipt", ""),
        [
            ("event", receipt.event_id),
            ("tokens / budget", f"{receipt.tokens} / {receipt.budget}"),
            ("entries in it", len(receipt.entries)),
            *((f"layer: {name}", f"{count}, {LAYERS[name]}") for name, count in layers.items()),
            ("left out", f"{len(receipt.left_out)} ({reasons})" if receipt.left_out else "nothing"),
        ],
    )


def correct(memory: Memory) -> None:
    """Step 5: a correction supersedes; the older value stays in the history."""
    step(5, "Correct", "nothing is overwritten: the newer value is current, the older one is history")
    note = next(r for r in memory.records(MIN) if r.slot == ("report", "format"))
    memory.correct(
        MIN, note.record_id, "정산 리포트는 PDF와 CSV로 함께 보낸다", reason="거래처 세 곳이 CSV도 요청"
    )
    rows(
        ("version", "act", "effect", "content", "reason"),
        [
            (s.version, s.act, s.effect, s.content, s.reason or "")
            for s in memory.history(MIN, note.record_id)
        ],
    )
    show_hits("리포트 형식", memory.recall(MIN, "리포트 PDF", k=1, kinds=["preference"]))


def erase(memory: Memory) -> None:
    """Step 6: a person is forgotten everywhere; a second look, at the bytes, finds nothing."""
    step(6, "Erase", "Dana leaves and asks to be forgotten, in the whole tenant")
    before = memory.recall(DANA, "locker code", k=1)
    console.print(f"before: {before[0].text!r}" if before else "before: nothing")
    console.print(f"files that hold {MARKER.decode()}: {', '.join(files_with(MARKER)) or 'none'}")
    record_id = next(r.record_id for r in memory.records(DANA) if r.slot == ("dana", "locker"))
    plan = memory.erase(Scope(tenant="hanul"), subject="dana", reason="left the company, asked for it")
    rows(("event type", "would be erased"), sorted(plan.counts.items()))
    receipt = plan.apply()
    rows(
        ("store", "found", "removed", "still readable"),
        [(s.store, s.found, s.removed, s.readable) for s in receipt.stores],
    )
    gone = not memory.recall(DANA, "locker code")
    console.print(f"complete: {receipt.complete}; recall finds nothing: {gone}")
    answer = next(e.event for e in memory.log(limit=1000) if e.envelope.stream == record_id)
    console.print(f"the log answers {answer} for the note {record_id}")
    left = files_with(MARKER)
    console.print(f"files that hold {MARKER.decode()}: {', '.join(left) or 'none'}")
    if left or not gone or answer is not FORGOTTEN or not receipt.complete:
        raise SystemExit("the erasure left something: this must not happen")
    console.print(f"Min's records are untouched: {len(memory.records(MIN))} current")


def rebuild(memory: Memory) -> None:
    """Step 7: every view folded anew from position 0 equals the live one."""
    step(7, "Rebuild", "replaying the whole log gives the same views, corrections and erasure included")
    table = []
    for name in VIEWS:
        live = memory.operations.dump_hash(name)
        memory.operations.rebuild(name, batch_size=7)
        anew = memory.operations.dump_hash(name)
        table.append((name, live[:16], anew[:16], "equal" if live == anew else "DIFFERENT"))
    rows(("view", "live", "rebuilt", ""), table)
    if any(row[3] != "equal" for row in table):
        raise SystemExit("a rebuilt view differs from the live one: this must not happen")


def files_with(marker: bytes) -> list[str]:
    """Files of the data directory whose bytes hold the marker."""
    return sorted(
        str(path.relative_to(DATA))
        for path in DATA.rglob("*")
        if path.is_file() and marker in path.read_bytes()
    )


def show_hits(query: str, hits: Sequence[Hit]) -> None:
    """A query and what it found."""
    rows(
        (f"“{query}”", "score", "when", "who"),
        [(cut(h.text), f"{h.score:.2f}", f"{h.occurred_at:%m-%d %H:%M}", h.author or h.kind) for h in hits],
    )


def cut(text: str) -> str:
    """The text on one line, with "…" where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_SHOWN else line[: TEXT_SHOWN - 1] + "…"


def program() -> str:
    """How the command line is called from here: beside this Python, whether that is on the path or not."""
    script = Path(sys.executable).with_name("mnemolog")
    if not script.exists():
        return "mnemolog"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


def step(number: int, title: str, why: str) -> None:
    """A heading."""
    console.print(f"\n[bold cyan]{number} {title}[/] [dim]- {why}[/]")


def rows(heads: Iterable[str], lines: Iterable[Sequence[object]]) -> None:
    """A table."""
    table = Table(*heads, header_style="bold")
    for line in lines:
        table.add_row(*(str(cell) for cell in line))
    console.print(table)


if __name__ == "__main__":
    main()

"""A week of an agent's work, end to end on the embedded store: `make demo`.

Imports `sample_week.jsonl` into `demo-data/`, recalls, assembles a context, corrects, erases a person, looks at the
bytes on disk, and rebuilds every view from the log.
"""

from __future__ import annotations

import shutil
import time
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
    console.print(
        f"\n[bold green]Done[/] in {time.perf_counter() - started:.1f} s. The data is in {DATA}/; try:"
    )
    console.print("  .venv/bin/mnemolog --data demo-data status")
    console.print(
        "  .venv/bin/mnemolog --data demo-data recall '배포 요일' --tenant hanul --user min --project settlement"
    )


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
    for query in ("배포는 언제 해?", "which format for the reports?", "반올림 규칙", "locker"):
        show_hits(query, memory.recall(MIN, query, k=3))
    neighbour = Scope(tenant="bluefin", user="jude")
    found = memory.recall(neighbour, "정산 리포트 format deploy", k=3)
    leaked = [hit for hit in found if "정산" in hit.text]
    console.print(f"the same words asked by tenant bluefin: {len(leaked)} hits of tenant hanul")


def context(memory: Memory) -> None:
    """Step 4: a context that fits a budget, and the receipt of what went in."""
    step(4, "Context", "whole entries within 1,500 tokens, as data that cannot speak for the system")
    made = memory.context(MIN, "정산 리포트 초안을 써 줘", budget=1500)
    console.print(made.text, style="dim", markup=False, highlight=False)
    receipt = made.receipt
    rows(
        ("receipt", ""),
        [
            ("event", receipt.event_id),
            ("tokens / budget", f"{receipt.tokens} / {receipt.budget}"),
            ("entries", ", ".join(sorted({str(entry["layer"]) for entry in receipt.entries}))),
            ("in", len(receipt.entries)),
            (
                "left out",
                f"{len(receipt.left_out)} ({', '.join(sorted({o.reason for o in receipt.left_out}))})",
            ),
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
        [(h.text[:64], f"{h.score:.2f}", f"{h.occurred_at:%m-%d %H:%M}", h.author or h.kind) for h in hits],
    )


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

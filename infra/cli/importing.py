"""`import`: what a runtime has kept becomes events."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line

if TYPE_CHECKING:
    from mnemolog.consumers.importing import ImportReport
    from mnemolog.memory import Memory

CATCH_UP_SECONDS = 3600.0
SHOWN = 20
"""Skipped lines that a person gets to see one by one; the JSON has all."""


class Format(StrEnum):
    AUTO = "auto"
    JSONL = "jsonl"
    CLAUDE_CODE = "claude-code"
    TAU_BENCH = "tau-bench"


Files = Annotated[list[Path], typer.Argument(metavar="FILE...", exists=True, help="Files or directories.")]
Form = Annotated[Format, typer.Option("--format", help="How the files are written; found out if auto.")]

Zone = Annotated[
    str | None, typer.Option("--timezone", metavar="NAME", help="For times without an offset: Asia/Seoul.")
]


def register(app: typer.Typer, panel: str) -> None:
    command(app, "import", panel=panel)(import_)


def import_(call: Call, files: Files, format: Form = Format.AUTO, timezone: Zone = None) -> int:
    """Take in transcripts and event files, with their original times.

    Run it again after an interruption, or after lines were added: nothing is doubled. Levels such as --tenant
    fill in what a file does not say. Exit code 9 when lines were skipped that should not have been.

    Example: mnemolog import sessions/*.jsonl --format claude-code --tenant acme --user u-17
    """
    from mnemolog.infra.importers import import_files

    defaults = call.levels if any(call.levels.values()) else None
    with call.memory() as memory:
        with call.out.progress("Importing", in_bytes=True) as progress:
            report = import_files(
                memory,
                files,
                format=format.value,
                defaults=defaults,
                timezone=timezone,
                progress=progress,
            )
        if call.acting_as is None:
            with call.out.steps() as step:
                step("bringing the views up to date")
                memory.operations.catch_up(timeout=CATCH_UP_SECONDS)
        tenant = _tenant(call, memory)
    if call.out.as_json:
        call.out.document(_document(report))
    else:
        _show(call, report, tenant)
    return Exit.INCOMPLETE if report.wrong else Exit.OK


def _document(report: ImportReport) -> dict[str, Any]:
    """One object for all files, and one for each: without the parts of parts."""
    names = ("appended", "duplicates", "by_type", "skipped_total", "wrong", "reasons", "notes", "skipped")
    return {name: getattr(report, name) for name in names[:-3]} | {
        "files": [{name: getattr(part, name) for name in ("source", *names)} for part in report.parts]
    }


def _tenant(call: Call, memory: Memory) -> str:
    """A tenant to try a first recall with."""
    if call.levels.get("tenant") or call.acting_as:
        return str(call.levels.get("tenant"))
    newest = memory.log(after=max(0, memory.operations.status().head - 1), limit=1)
    return memory.names(newest[0].envelope.scope).tenant if newest else "TENANT"


def _show(call: Call, report: ImportReport, tenant: str) -> None:
    rows: list[list[Any]] = [["appended", count, kind] for kind, count in sorted(report.by_type.items())]
    rows += [["already here", report.duplicates, ""]] if report.duplicates or not rows else []
    reasons = sorted(report.reasons.items(), key=lambda item: -item[1])
    rows += [["skipped", count, one_line(reason, 120)] for reason, count in reasons]
    call.out.table(["", "items>", "what"], rows)
    _details(call, report)
    if report.appended or report.duplicates:
        call.out.say(f'Next: mnemolog recall "a question" --tenant {tenant} --any all --data {call.data}')


def _details(call: Call, report: ImportReport) -> None:
    """Notes, and the first skipped lines, each with its file."""
    for part in report.parts:
        for note in part.notes:
            call.out.say(f"{part.source}: {note}")
    lines = [(part.source, skipped) for part in report.parts for skipped in part.skipped]
    for source, skipped in lines[:SHOWN]:
        call.out.say(f"{source}:{skipped.number}: {one_line(skipped.reason, 200)}")
    if report.skipped_total > SHOWN:
        call.out.say(f"... {report.skipped_total} in all: --json lists more")

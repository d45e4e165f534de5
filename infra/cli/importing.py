"""`import`: what a runtime has kept becomes events."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line

SHOWN = 20
"""Skipped lines that a person gets to see one by one; the JSON has all."""


class Format(StrEnum):
    AUTO = "auto"
    JSONL = "jsonl"
    CLAUDE_CODE = "claude-code"
    TAU_BENCH = "tau-bench"


Files = Annotated[list[Path], typer.Argument(metavar="FILE...", exists=True, help="Files or directories.")]
Form = Annotated[Format, typer.Option("--format", help="How the files are written; found out if auto.")]


def register(app: typer.Typer, panel: str) -> None:
    command(app, "import", panel=panel)(import_)


def import_(call: Call, files: Files, format: Form = Format.AUTO) -> int:
    """Take in transcripts and event files, with their original times.

    Run it again after an interruption, or after lines were added: nothing is doubled. Levels such as --tenant
    fill in what a file does not say. Exit code 9 when lines were skipped.

    Example: mnemolog import sessions/*.jsonl --format claude-code --tenant acme --user u-17
    """
    from mnemolog.consumers.importing import import_files

    with call.memory() as memory, call.out.progress("Importing", in_bytes=True) as progress:
        report = import_files(
            memory, files, format=format.value, scope_defaults=call.levels, progress=progress
        )
    if call.out.as_json:
        call.out.document(report)
    else:
        _show(call, report)
    return Exit.INCOMPLETE if report.skipped else Exit.OK


def _show(call: Call, report: Any) -> None:
    by_type = ", ".join(f"{name} {count}" for name, count in sorted(report.by_type.items()))
    rows: list[list[Any]] = [["appended", report.appended, by_type], ["already here", report.duplicates, ""]]
    reasons = Counter(one_line(reason, 100) for _, _, reason in report.skipped)
    rows += [["skipped", count, reason] for reason, count in reasons.most_common()]
    call.out.table(["", "lines>", "what"], rows)
    for file, line, reason in report.skipped[:SHOWN]:
        call.out.say(f"{file}:{line}: {one_line(reason, 200)}")
    if len(report.skipped) > SHOWN:
        call.out.say(f"... and {len(report.skipped) - SHOWN} more: --json lists all")
    if report.appended or report.duplicates:
        tenant = call.levels.get("tenant") or "TENANT"
        call.out.say(f'Next: mnemolog recall "a question" --tenant {tenant} --any all --data {call.data}')

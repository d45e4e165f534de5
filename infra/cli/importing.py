"""`import`: what a runtime has kept becomes events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemolog.domain.gate.wording import WAITING
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit, report
from mnemolog.infra.cli.output import one_line, size

if TYPE_CHECKING:
    from mnemolog.consumers.importing import ImportReport
    from mnemolog.memory import Memory

CATCH_UP_SECONDS = 3600.0
SHOWN = 20
"""Skipped lines that a person gets to see one by one; the JSON has all."""


FORMATS: Final = ("auto", "jsonl", "claude-code", "tau-bench")


def _format(text: str) -> str:
    """The name of a format; with underscores, as other tools write some of them, it is the same name."""
    name = text.strip().lower().replace("_", "-")
    if name not in FORMATS:
        raise typer.BadParameter(f"there is no format {text!r}: use one of {', '.join(FORMATS)}")
    return name


Files = Annotated[list[Path], typer.Argument(metavar="FILE...", exists=True, help="Files or directories.")]
Form = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        parser=_format,
        help=f"How the files are written: {', '.join(FORMATS)}; auto finds out.",
    ),
]

Zone = Annotated[
    str | None, typer.Option("--timezone", metavar="NAME", help="For times without an offset: Asia/Seoul.")
]


def register(app: typer.Typer, panel: str) -> None:
    command(app, "import", panel=panel)(import_)


def import_(call: Call, files: Files, format: Form = "auto", timezone: Zone = None) -> int:
    """Take in transcripts and event files, with their original times.

    Run it again after an interruption, or after lines were added: nothing is doubled. Levels such as --tenant
    fill in what a file does not say. Lines that cannot go in are skipped and told of, with exit code 9; what was
    erased is skipped and told of too, and that is as it should be.

    Example: mnemolog import sessions/*.jsonl --format claude-code --tenant acme --user u-17
    """
    reached = _Reached()
    try:
        with call.memory() as memory:
            with call.out.progress("Importing", in_bytes=True) as bar:
                found = _imported(call, memory, files, format, timezone, reached.passing_on(bar))
            if call.acting_as is None:
                with call.out.steps() as step:
                    step("bringing the views up to date")
                    memory.operations.catch_up(timeout=CATCH_UP_SECONDS)
            tenant, left_out = _afterwards(call, memory)
    except KeyboardInterrupt as stop:
        report(stop, reached.sentence, as_json=call.out.as_json)
        return Exit.INTERRUPTED
    if call.out.as_json:
        call.out.document(_document(found))
    else:
        _show(call, found, tenant, left_out)
    return Exit.INCOMPLETE if found.wrong else Exit.OK


def _imported(
    call: Call,
    memory: Memory,
    files: list[Path],
    format: str,
    timezone: str | None,
    progress: Callable[[int, int], None],
) -> ImportReport:
    from mnemolog.infra.importers import import_files

    defaults = call.levels if any(call.levels.values()) else None
    return import_files(memory, files, format=format, defaults=defaults, timezone=timezone, progress=progress)


@dataclass(slots=True)
class _Reached:
    """How many bytes of the files are in the memory."""

    done: int = 0
    total: int = 0

    def passing_on(self, bar: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def at(done: int, total: int) -> None:
            self.done, self.total = done, total
            bar(done, total)

        return at

    @property
    def sentence(self) -> str:
        far = f"after {size(self.done)} of {size(self.total)}" if self.total else "at the beginning"
        return f"interrupted {far}; what is in stays in, and running it again goes on from there"


def _document(found: ImportReport) -> dict[str, Any]:
    """One object for all files, and one for each: without the parts of parts."""
    names = ("appended", "duplicates", "by_type", "skipped_total", "wrong", "reasons", "notes", "skipped")
    return {name: getattr(found, name) for name in names[:-3]} | {
        "files": [{name: getattr(part, name) for name in ("source", *names)} for part in found.parts]
    }


def _afterwards(call: Call, memory: Memory) -> tuple[str, str]:
    """A tenant to try a first recall with, and what the gate made no memory of, in the whole memory."""
    if call.acting_as:
        return str(call.levels.get("tenant")), ""
    status = memory.operations.status()
    newest = memory.log(after=max(0, status.head - 1), limit=1)
    first = memory.names(newest[0].envelope.scope).tenant if newest else "TENANT"
    counts = {name: status.gate.candidates.get(name, 0) for name in (*WAITING, "log only")}
    told = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    return call.levels.get("tenant") or first, told


def _show(call: Call, found: ImportReport, tenant: str, left_out: str) -> None:
    rows: list[list[Any]] = [["appended", count, kind] for kind, count in sorted(found.by_type.items())]
    rows += [["already here", found.duplicates, ""]] if found.duplicates else []
    reasons = sorted(found.reasons.items(), key=lambda item: -item[1])
    rows += [["skipped", count, one_line(reason, 120)] for reason, count in reasons]
    if rows:
        call.out.table(["", "items>", "what"], rows)
    else:
        call.out.say("The files hold nothing to import.")
    _details(call, found)
    if found.appended or found.duplicates:
        if left_out:
            call.out.say(f"Not memory yet, or not kept: {left_out}. `review list` and `why-not` tell more.")
        call.out.say(f'Next: mnemolog recall "a question" --tenant {tenant} --any all --data {call.data}')
        call.out.say(f"For vectors, summaries and what is said: mnemolog catch-up --data {call.data}")


def _details(call: Call, found: ImportReport) -> None:
    """Notes, and the first skipped lines, each with its file."""
    for part in found.parts:
        for note in part.notes:
            call.out.say(f"{part.source}: {note}")
    lines = [(part.source, skipped) for part in found.parts for skipped in part.skipped]
    for source, skipped in lines[:SHOWN]:
        call.out.say(f"{source}:{skipped.number}: {one_line(skipped.reason, 200)}")
    if found.skipped_total > SHOWN:
        call.out.say(f"... {found.skipped_total} in all: --json lists more")

"""What leaves the command line: tables for people, JSON for programs, and nothing that steers a terminal.

Results go to stdout, messages and progress to stderr. Stored text was written by anybody, so control characters,
escape sequences, and characters that reorder or hide text are shown escaped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from mnemolog.domain.ingress import carried, original
from mnemolog.domain.scope import ANY, Scope

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH: Final = 160
"""Columns of a table that no terminal shows; COLUMNS changes it."""

_BETWEEN: Final = 3
"""Columns between two columns of a table."""

_STEERING: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"  # reorder lines, or end them
    "\ud800-\udfff"
)
_UNSAFE: Final = re.compile(f"[{_STEERING}\U000e0000-\U000e007f]")  # the last: letters that nobody sees
_UNSAFE_IN_JSON: Final = re.compile(f"[{_STEERING}]")
_SPACE: Final = re.compile(r"\s+")


def safe(text: str) -> str:
    """Text that a terminal shows as it is: newlines and tabs stay, everything that steers is escaped."""
    return _UNSAFE.sub(_visible, original(text))


def one_line(text: str, limit: int | None = None) -> str:
    """Safe text on one line, with "…" where it was cut."""
    line = _SPACE.sub(" ", safe(text)).strip()
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses are objects, enums their lower-case words, times ISO 8601."""
    if isinstance(value, Scope):
        return {level: plain(name) for level, name in value.present()}
    if isinstance(value, str) and not isinstance(value, Enum):
        return "*" if value == ANY else carried(value, "text") if _has_surrogate(value) else value
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, IntEnum) else value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Path) else value


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def dump(value: Any) -> str:
    """One line of JSON in which characters that could steer a terminal are escaped."""
    import orjson

    line = orjson.dumps(plain(value), option=orjson.OPT_PASSTHROUGH_DATACLASS).decode()
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def when(moment: datetime | str | None) -> str:
    """A time for people, with its own offset; seconds and finer are in the JSON."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment is None:
        return ""
    offset = moment.strftime("%z")
    return f"{moment:%Y-%m-%d %H:%M}" + ("Z" if offset in ("+0000", "") else offset)


def size(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TB"


class Output:
    """Where a command writes. as_json: programs read stdout, so people's tables and messages are left out."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return _console(sys.stdout)

    @cached_property
    def stderr(self) -> Console:
        return _console(sys.stderr)

    def document(self, value: Any) -> None:
        """One JSON document."""
        typer.echo(dump(value).encode())

    def lines(self, values: Sequence[Any]) -> None:
        """JSON lines."""
        for value in values:
            self.document(value)

    def text(self, text: str) -> None:
        """Text of ours or of the store on stdout."""
        self.console.print(safe(text), markup=False, highlight=False, soft_wrap=True)

    def say(self, message: str) -> None:
        """A message for people, on stderr; programs do not get it."""
        if not self.as_json:
            self.stderr.print(safe(message), markup=False, highlight=False, soft_wrap=True)

    def warn(self, message: str) -> None:
        if not self.as_json:
            self.stderr.print(f"warning: {one_line(message)}", style="yellow", markup=False, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, message: bool = False) -> None:
        """A table; a column named "<name>>" is right-aligned, and one named "<name>!" is never broken.

        Where the terminal is too narrow for the columns that are not broken, each row stands as pairs.
        """
        from rich import box
        from rich.table import Table

        console = self.stderr if message else self.console
        if _least_width(columns, rows) > console.width:
            for row in rows:
                self._as_pairs(console, dict(zip((name.rstrip(">!") for name in columns), row, strict=True)))
                console.print()
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            name = column.rstrip(">!")
            table.add_column(
                name,
                justify="right" if column.endswith(">") else "left",
                no_wrap=column.endswith((">", "!")),
                overflow="fold",
            )
        for row in rows:
            table.add_row(*map(cell, row))
        console.print(table)

    def pairs(self, rows: Mapping[str, Any]) -> None:
        """Names and values, one per line; absent values are left out."""
        self._as_pairs(self.console, rows)

    def _as_pairs(self, console: Console, rows: Mapping[str, Any]) -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows.items():
            if value not in (None, "", (), [], {}):
                table.add_row(name, cell(value))
        console.print(table)

    @contextmanager
    def progress(self, label: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
        """A bar on stderr while a terminal is there: call it with what is done and the total."""
        with self.stages(in_bytes=in_bytes) as tell:
            yield partial(tell, label)

    @contextmanager
    def stages(self, *, in_bytes: bool = False) -> Iterator[Callable[[str, int, int], None]]:
        """As `progress`, for work in stages: call it with the stage's name, too."""
        if self.as_json or not self.stderr.is_terminal:
            yield lambda stage, done, total: None
            return
        from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        count = DownloadColumn() if in_bytes else MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), count, Remaining())
        with Progress(*columns, console=self.stderr, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda stage, done, total: bar.update(
                task, description=stage, completed=done, total=total or None
            )

    @contextmanager
    def steps(self) -> Iterator[Callable[[str], None]]:
        """A spinner on stderr while a terminal is there: call it with the name of each step."""
        if self.as_json or not self.stderr.is_terminal:
            yield lambda step: None
            return
        with self.stderr.status("") as status:
            yield lambda step: status.update(one_line(step))


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Columns of a terminal in which a table cuts nothing: heads whole, and no cell broken that must not be."""
    widths = [max(len(name.rstrip(">!")), 4) for name in columns]
    for at, name in enumerate(columns):
        if name.endswith((">", "!")):
            widths[at] = max([widths[at], *(cell(row[at]).cell_len for row in rows)])
    return sum(widths) + _BETWEEN * (len(columns) - 1)


def cell(value: Any) -> Text:
    """What stands in a table; a pair of texts is one above the other, the second dim."""
    from rich.text import Text

    if isinstance(value, tuple) and len(value) == 2:
        upper, lower = (safe(str(part)) for part in value)
        return Text.assemble(upper, "\n" if upper and lower else "", (lower, "dim"))
    return Text("" if value is None else safe(str(value)))


def _console(stream: Any) -> Console:
    from rich.console import Console

    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)

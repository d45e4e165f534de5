"""Files that agents' runtimes have kept, as import items: the event file, Claude Code sessions, tau-bench runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from mnemolog.consumers.importing import Entry, ImportReport, Names, Place, Sink, Tally, run
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import ALLOWED, Action, Principal
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import claude_code, jsonl, tau_bench
from mnemolog.infra.importers.detect import detect, spelled
from mnemolog.infra.importers.places import Saved, load, place_path, save, stamp_of
from mnemolog.infra.importers.reading import Options, tolerant
from mnemolog.infra.importers.sources import Source

Read = Callable[[Source, Place, Options], Iterator[Entry]]
FORMATS: Final[Mapping[str, Read]] = {
    jsonl.FORM: jsonl.read,
    claude_code.FORM: claude_code.read,
    tau_bench.FORM: tau_bench.read,
}
PLACES_FOLDER: Final = "imports"
_CHANGED: Final = "the file grew or was changed since it was last read: going over it again, by its keys"


class ImportStore(Sink, Protocol):
    """A memory in a data directory, as far as importing needs it."""

    @property
    def path(self) -> Path: ...

    principal: Principal

    def wait(self, after: int, timeout: float, /) -> int:
        """The head of the log."""


def import_files(
    memory: ImportStore,
    paths: Sequence[str | Path],
    *,
    format: str = "auto",
    defaults: Scope | Mapping[str, str | None] | None = None,
    timezone: str | None = None,
    batch: int = 100,
    progress: Callable[[int, int], None] | None = None,
    place_folder: Path | None = None,
    start: datetime | None = None,
) -> ImportReport:
    """Import files, and the files in folders, in the order given. Safe to interrupt and to repeat.

    format: `auto`, `jsonl`, `claude-code` or `tau-bench`; defaults: the scope of what names none (formats without
    tenants need it);
    timezone: IANA name for times without an offset whose session has no zone; progress: gets (bytes done, bytes in
    all); start: the time of what has no time, now if not given. Raises InvalidInput for a file or an option that
    cannot be used, before anything is appended, and store errors; what lines lack is in the report.
    """
    zone = None if timezone is None else jsonl.zone_of(timezone)
    scope = defaults if isinstance(defaults, Scope) else Scope.of(defaults) if defaults else None
    if start is not None and start.utcoffset() is None:
        raise InvalidInput("start has no time zone: add an offset")
    options = Options(scope, zone, datetime.now(UTC) if start is None else start)
    folder = memory.path / PLACES_FOLDER if place_folder is None else place_folder
    jobs = []
    for path, name in _formats(_files(paths), format, scope):
        place = place_path(folder, path, name, scope, timezone)
        jobs.append(_Job(path, name, place, options, fixed_start=start is not None))
    total = sum(job.path.stat().st_size for job in jobs)
    done = _Progress(progress, total)
    return ImportReport.together([job.run(memory, batch, done) for job in jobs])


def _formats(files: Sequence[Path], format: str, scope: Scope | None) -> Iterator[tuple[Path, str]]:
    """Each file and how it is written."""
    form = format.replace("-", "_")
    if form != "auto" and form not in FORMATS:
        known = ", ".join(map(spelled, FORMATS))
        raise InvalidInput(f"no import format {format!r}: use one of auto, {known}")
    for path in files:
        name = detect(Source(path)) if form == "auto" else form
        if name != jsonl.FORM and scope is None:
            raise InvalidInput(
                f"{path.name} is {spelled(name)}, which names no tenant: name it with --tenant"
            )
        yield path, name


def _files(paths: Sequence[str | Path]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, ingress.several(paths, "paths", "files and folders")):
        if path.is_dir():
            found = (each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
            files += sorted(each for each in found if {".json", ".jsonl"} & set(each.suffixes))
        elif path.is_file():
            files.append(path)
        else:
            raise InvalidInput(f"no such file: {path}")
    return files


@dataclass(slots=True)
class _Progress:
    """Bytes done over all files of one import."""

    tell: Callable[[int, int], None] | None
    total: int
    before: int = 0

    def at(self, done: int) -> None:
        if self.tell:
            self.tell(min(self.before + done, self.total), self.total)

    def file_done(self, size: int) -> None:
        self.before += size
        self.at(0)


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to import, and where its place is kept."""

    path: Path
    form: str
    place: Path
    options: Options
    fixed_start: bool

    def run(self, memory: ImportStore, batch: int, progress: _Progress) -> ImportReport:
        saved, notes = self._begin(memory)
        source = Source(self.path)
        options = replace(self.options, start=saved.start)
        names = Names()
        if self.form == jsonl.FORM:
            jsonl.announce(source, options, names)
        if self.form == tau_bench.FORM:
            notes.append(tau_bench.NOTE.format(start=saved.start.isoformat(timespec="seconds")))
        keeper = _Keeper(self.place, saved, source, names, progress)
        report = run(
            tolerant(FORMATS[self.form](source, saved.place, options), saved.place),
            memory,
            batch=batch,
            names=names,
            tally=saved.tally,
            durable=keeper.durable,
            source=str(self.path),
            notes=notes,
        )
        keeper.finish()
        progress.file_done(source.size)
        return report

    def _begin(self, memory: ImportStore) -> tuple[Saved, list[str]]:
        """Where to go on, and what to say about it. Whatever is in doubt is gone over again, by its keys."""
        saved, stamp = load(self.place), stamp_of(self.path)
        if saved is None or (self.fixed_start and saved.start != self.options.start):
            fresh = Saved(self.options.start, stamp=stamp)
            save(self.place, fresh)
            return fresh, []
        again = Saved(saved.start, stamp=stamp)
        if not saved.place.number:
            return again, []
        if _may_look(memory) and memory.wait(0, 0.0) < saved.tally.position:
            return again, ["the memory is older than the last import of this file: going over it again"]
        if saved.stamp != stamp:
            return again, [_CHANGED]
        if saved.tally.refused:
            return again, ["some of it was not allowed the last time: going over it again, by its keys"]
        return saved, [f"read up to {saved.place.number} by an earlier import: going on from there"]


def _may_look(memory: ImportStore) -> bool:
    return Action.INSPECT in ALLOWED[memory.principal.role]


class _Keeper:
    """Keeps the place of a running import.

    From the first name on, only the end of the file is one: names are not stored, and what is gone on from behind
    them could not be understood.
    """

    def __init__(self, path: Path, saved: Saved, source: Source, names: Names, progress: _Progress) -> None:
        self._path, self._saved, self._source = path, saved, source
        self._names, self._progress = names, progress

    def durable(self, place: Place, tally: Tally) -> None:
        self._progress.at(self._source.done)
        self._saved.tally, self._saved.place = tally, place
        if not self._names:
            save(self._path, self._saved)

    def finish(self) -> None:
        save(self._path, self._saved)

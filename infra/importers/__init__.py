"""Files that agents' runtimes have kept, as import items: the event file, Claude Code sessions, tau-bench runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from mnemolog.consumers.importing import Entry, ImportReport, Names, Place, Sink, Tally, run
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import ALLOWED, Action, Principal
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers import claude_code, jsonl, tau_bench
from mnemolog.infra.importers.detect import detect
from mnemolog.infra.importers.places import Saved, load, place_path, save
from mnemolog.infra.importers.reading import Options, tolerant
from mnemolog.infra.importers.sources import Source

Read = Callable[[Source, Place, Options], Iterator[Entry]]
FORMATS: Final[Mapping[str, Read]] = {
    jsonl.FORM: jsonl.read,
    claude_code.FORM: claude_code.read,
    tau_bench.FORM: tau_bench.read,
}
PLACES_FOLDER: Final = "imports"
_NAMES_PER_ITEM: Final = 8
"""A place with many names is saved once per so many of them, so that saving costs less than appending."""
_NAMED_BEFORE: Final = (
    "new lines name lines that were read before: going over the whole file again, by its keys"
)


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

    format: `auto`, or one of `FORMATS`; defaults: the scope of what names none (formats without tenants need it);
    timezone: IANA name for times without an offset whose session has no zone; progress: gets (bytes done, bytes in
    all); start: the time of what has no time, now if not given. Raises InvalidInput for a file or an option that
    cannot be used, before anything is appended, and store errors; what lines lack is in the report.
    """
    form = format.replace("-", "_")
    if form != "auto" and form not in FORMATS:
        raise InvalidInput(f"no import format {format!r}: use one of auto, {', '.join(FORMATS)}")
    zone = None if timezone is None else jsonl.zone_of(timezone)
    scope = defaults if isinstance(defaults, Scope) else Scope.of(defaults) if defaults else None
    if start is not None and start.utcoffset() is None:
        raise InvalidInput("start has no time zone: add an offset")
    begun = datetime.now(UTC) if start is None else start
    folder = memory.path / PLACES_FOLDER if place_folder is None else place_folder
    jobs = []
    for path in _files(paths):
        name = detect(Source(path)) if form == "auto" else form
        if name != jsonl.FORM and scope is None:
            raise InvalidInput(f"{path.name} names no tenant: give one")
        place = place_path(folder, path, name, scope, timezone)
        jobs.append(_Job(path, name, place, Options(scope, zone, begun), fixed_start=start is not None))
    total = sum(job.path.stat().st_size for job in jobs)
    done = _Progress(progress, total)
    return ImportReport.together([job.run(memory, batch, done) for job in jobs])


def _files(paths: Sequence[str | Path]) -> list[Path]:
    files = []
    for path in map(Path, paths):
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
        source = Source(self.path, saved.salt)
        options = replace(self.options, start=saved.start)
        names = Names(saved.salt, saved.names)
        if self.form == jsonl.FORM:
            known = jsonl.announce(source, saved.place, options, names)
            if not known and saved.place.number and source.size != saved.size:
                notes = [_NAMED_BEFORE]
                saved = Saved(saved.start, saved.salt)
        if self.form == tau_bench.FORM:
            notes.append(tau_bench.NOTE.format(start=saved.start.isoformat(timespec="seconds")))
        keeper = _Keeper(self, saved, source, names, progress)
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
        saved = load(self.place)
        if saved is None or (self.fixed_start and saved.start != self.options.start):
            fresh = Saved(self.options.start)
            save(self.place, fresh)
            return fresh, []
        if not saved.place.number:
            return Saved(saved.start, saved.salt), []
        again = Saved(saved.start, saved.salt)
        source = Source(self.path, saved.salt)
        at = saved.place.number
        if _may_look(memory) and memory.wait(0, 0.0) < saved.tally.position:
            return again, ["the memory is older than the last import of this file: going over it again"]
        if self._digest(source, saved.place) != saved.digest:
            return again, ["the file was changed since it was last read: going over it again, by its keys"]
        if saved.tally.refused:
            return again, ["some of it was not allowed the last time: going over it again, by its keys"]
        if source.size != saved.size:
            return saved, [f"the file grew since it was last read: going on after {at}"]
        return saved, [f"read up to {at} by an earlier import: going on from there"]

    def _digest(self, source: Source, place: Place) -> str:
        """The digest of what was read: of lines up to their place, of a document as a whole."""
        return source.digest_of(place.offset) if place.offset else source.whole_digest()


def _may_look(memory: ImportStore) -> bool:
    return Action.INSPECT in ALLOWED[memory.principal.role]


class _Keeper:
    """Keeps the place of a running import."""

    def __init__(self, job: _Job, saved: Saved, source: Source, names: Names, progress: _Progress) -> None:
        self._job, self._saved, self._source = job, saved, source
        self._names, self._progress = names, progress
        self._whole = ""
        self._unsaved: Place | None = None

    def durable(self, place: Place, tally: Tally) -> None:
        passed = place.number - self._saved.place.number
        self._progress.at(self._source.done)
        self._saved.tally, self._saved.size = tally, self._source.size
        self._unsaved = place
        if passed >= len(self._names.known) // _NAMES_PER_ITEM:
            self._save(place)

    def finish(self) -> None:
        if self._unsaved:
            self._save(self._unsaved)

    def _save(self, place: Place) -> None:
        if place.offset:
            self._saved.digest = self._source.digest(place.offset)
        else:
            self._whole = self._saved.digest = self._whole or self._source.whole_digest()
        self._saved.place, self._saved.names = place, self._names.known
        save(self._job.place, self._saved)
        self._unsaved = None

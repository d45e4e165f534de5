"""What the formats share: the options of an import, and the records of a file with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final

from mnemolog.consumers.importing import Entry, Place, Skipped
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers.sources import Source, parse

NOTHING_READ: Final = Place()


@dataclass(frozen=True, slots=True)
class Options:
    """defaults: where things belong that do not say so; zone: of times without an offset; start: of things
    without any time."""

    defaults: Scope | None
    zone: tzinfo | None
    start: datetime

    def scope(self) -> Scope:
        """The default scope of a format that knows no tenants."""
        if self.defaults is None:
            raise InvalidInput("this format names no tenant: name it with --tenant")
        return self.defaults


@dataclass(frozen=True, slots=True)
class Found:
    """One record of a file: its value, or an entry that already says why there is none."""

    place: Place
    value: Any = None
    problem: Entry | None = None


def records_of_lines(source: Source, after: Place = NOTHING_READ, sign: str = "") -> Iterator[Found]:
    """One record per line. An empty line says nothing; a last line that is cut off waits for the next import.

    Of the lines up to `after` only those that hold `sign` are given.
    """
    before = Place()
    for line in source.lines():
        place = Place(line.number)
        if line.number <= after.number and sign not in (line.text or ""):
            pass
        elif line.text:
            yield _of_line(line.text, place, before, whole=line.whole)
        elif line.text is not None and line.whole:
            yield Found(place, problem=Entry(place))
        elif line.text is None:
            yield Found(place, problem=Entry(place, skipped=(Skipped(line.number, line.problem),)))
        before = place


def _of_line(text: str, place: Place, before: Place, *, whole: bool) -> Found:
    try:
        return Found(place, parse(text))
    except InvalidInput as error:
        if whole:
            return Found(place, problem=Entry(place, skipped=(Skipped(place.number, str(error)),)))
        cut = Skipped(place.number, "the last line is cut off: the next import takes it when it is complete")
        return Found(place, problem=Entry(before, unfinished=cut))


def records_of_array(source: Source, opening: re.Pattern[str]) -> Iterator[Found]:
    """One record per element of the document's array; a place in it has no offset."""
    for number, value in source.elements(opening):
        yield Found(Place(number), value)


def tolerant(entries: Iterator[Entry], after: Place) -> Iterator[Entry]:
    """The entries, and at last one that tells where the file could not be read on."""
    place = after
    try:
        for entry in entries:
            place = entry.place
            yield entry
    except InvalidInput as error:
        yield Entry(place, unfinished=Skipped(place.number + 1, str(error)))

"""The passages of large texts in the `turns` view: each is a row, and a document of a lexical index of its own.

The text of a passage is kept, for an index can only remove the words that it is given again: when an erasure comes,
the keys of the whole text are gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, Connection, MetaData, Table, bindparam, delete, select, update

from mnemolog.domain.events import Event, Recorded, ToolCalled
from mnemolog.domain.gate.findings import Finding, mask
from mnemolog.domain.lexical import Analyzer
from mnemolog.domain.passages import INDEXED, LARGE, number_of, passages, readable
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex
from mnemolog.projections.ports import LargeTexts

_CHUNK: Final = 500
_PER_INSERT: Final = 1_000

METADATA: Final = MetaData()
PASSAGES: Final = Table(
    "passages",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("event_id", String, nullable=False, index=True),
    Column("scope", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("text", String, nullable=False),
)
"""start, end: the characters of the whole text, which has `total`; what a tool was called with is kept readable."""


_AT: Final = select(*(PASSAGES.c[name] for name in ("number", "start", "end", "total", "text"))).where(
    PASSAGES.c.number.in_(bindparam("numbers", expanding=True)),
    PASSAGES.c.scope.in_(bindparam("scopes", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class PassageRow:
    """One passage: characters [start, end) of a text of `total` characters."""

    start: int
    end: int
    total: int
    text: str


class Passages:
    """Keeps them, inside the transactions of the `turns` projection. large: None where there are no blobs."""

    def __init__(self, index: LexicalIndex, analyzer: Analyzer, large: LargeTexts | None) -> None:
        self.index, self._analyzer, self._large = index, analyzer, large

    def create(self, conn: Connection) -> None:
        METADATA.create_all(conn, checkfirst=False)
        self.index.create(conn)

    def add(self, conn: Connection, recorded: Recorded, scope: int) -> None:
        """The passages of a turn that is large; one text at a time, for it may be very large."""
        text = whole_text(recorded, self._large)
        if text is None or len(text) <= LARGE:
            return
        position, event_id = recorded.position, recorded.envelope.id
        called = isinstance(recorded.event, ToolCalled)
        rows = []
        for part, start, end in passages(text, INDEXED):
            piece = readable(text[start:end]) if called else text[start:end]
            rows.append((number_of(position, part), event_id, scope, start, end, len(text), piece))
        for some in _chunks(rows, _PER_INSERT):
            insert_rows(conn, PASSAGES, some)
            self.index.add(conn, [self._document(row[0], scope, row[-1]) for row in some])

    def remove(self, conn: Connection, event_ids: Sequence[str]) -> None:
        """Those of these events."""
        for some in _chunks(event_ids):
            inside = PASSAGES.c.event_id.in_(some)
            found = conn.execute(select(PASSAGES.c.number, PASSAGES.c.scope, PASSAGES.c.text).where(inside))
            while rows := found.fetchmany(_PER_INSERT):
                self.index.remove(conn, [self._document(*row) for row in rows])
            conn.execute(delete(PASSAGES).where(inside))

    def hide(self, conn: Connection, position: int, found: Mapping[int, Sequence[Finding]]) -> None:
        """Put a word in place of what was found, by the parts of one turn."""
        wanted = {number_of(position, part): findings for part, findings in found.items()}
        for some in _chunks(sorted(wanted)):
            for row in conn.execute(select(PASSAGES).where(PASSAGES.c.number.in_(some))).fetchall():
                text = mask(row.text, wanted[row.number])
                self.index.remove(conn, [self._document(row.number, row.scope, row.text)])
                conn.execute(update(PASSAGES).where(PASSAGES.c.number == row.number).values(text=text))
                self.index.add(conn, [self._document(row.number, row.scope, text)])

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        columns = [column for column in PASSAGES.c if column.name != "scope"]
        for row in conn.execute(select(*columns).order_by(PASSAGES.c.number)):
            yield (PASSAGES.name, *row)

    def _document(self, number: int, scope: int, text: str) -> LexicalDocument:
        return LexicalDocument(number, scope, self._analyzer.document(readable(text)))


def whole_text(recorded: Recorded, large: LargeTexts | None) -> str | None:
    """What was said or returned, out of the blob store where it is there.

    None for what has no text, or has it no more. Where only the blob is gone, what the event itself kept.
    """
    kept = text_in(recorded.event)
    blob = recorded.envelope.clear.get("blob")
    if kept is None or blob is None or large is None:
        return kept
    whole = large.read(recorded.envelope.id, blob, 0, blob["chars"])
    return kept if whole is None else whole


def text_in(event: object) -> str | None:
    """The text of an event itself, as `read_output` counts its characters."""
    if not isinstance(event, Event):
        return None
    for name in ("content", "output", "arguments"):
        if isinstance(text := getattr(event, name, None), str):
            return text
    return None


def at(conn: Connection, numbers: Sequence[int], scopes: Collection[int]) -> dict[int, PassageRow]:
    """The passages with these numbers that belong to these scopes."""
    found: dict[int, PassageRow] = {}
    for some in _chunks(numbers):
        for number, *values in conn.execute(_AT, {"numbers": some, "scopes": list(scopes)}):
            found[number] = PassageRow(*values)
    return found


def _chunks(values: Sequence[Any], size: int = _CHUNK) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]

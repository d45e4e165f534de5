"""Projection `turns`: what was said and returned, searchable; with sessions and feedback beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Column, Connection, Index, MetaData, Table, delete, select, union, update

from mnemolog.domain.events import (
    ERASURE,
    HAPPENED,
    Event,
    FeedbackGiven,
    Recorded,
    SensitiveFound,
    SessionClosed,
    SessionOpened,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.gate.findings import Finding, Sort, mask
from mnemolog.domain.lexical import ANALYZER_VERSION, Analyzer, date_tokens
from mnemolog.domain.passages import RULE as PASSAGE_RULE
from mnemolog.domain.passages import WHOLE
from mnemolog.domain.policy import DEFAULT
from mnemolog.domain.scope import LEVELS
from mnemolog.projections.bulk import insert_rows
from mnemolog.projections.dialects import Integer, String
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex
from mnemolog.projections.passages import Passages
from mnemolog.projections.ports import LargeTexts
from mnemolog.projections.scope_numbers import ScopeNumbers
from mnemolog.projections.scopes import ScopeTable, record_scope
from mnemolog.projections.versions import version_of

INDEXED_CHARACTERS: Final = 65_536
"""How much of one text is searched as a whole; a large one is searched by its passages too."""

MASKED: Final = DEFAULT.gate.masked
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_CHUNK: Final = 500
_REMEMBERED: Final = 4096
_SPOKEN: Final = (TurnRecorded, UtteranceChunkRecorded, ToolCalled, ToolReturned)
_READABLE_DEPTH: Final = 64
"""How deep arguments may be nested to be rewritten: a fixed bound, so that no reader's stack decides what is stored."""
_STRINGS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_UNINDEXED_ROLES: Final = frozenset({"system"})

METADATA: Final = MetaData()
SCOPES: Final = ScopeTable(METADATA).table
TURNS: Final = Table(
    "turns",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("kind", String, nullable=False),
    Column("scope", Integer, nullable=False),
    Column("session", String),
    Column("agent", String),
    Column("role", String),
    Column("author", String),
    Column("tool", String),
    Column("call_id", String),
    Column("error", Integer, nullable=False),
    Column("occurred_at", String, nullable=False),
    Column("occurred_us", Integer, nullable=False),
    Column("origin", Integer, nullable=False),
    Column("text", String, nullable=False),
    Column("blob", String),
)
Index("turns_by_session", TURNS.c.session, TURNS.c.position)
Index("turns_by_scope", TURNS.c.scope, TURNS.c.position)
SESSION_EVENTS: Final = Table(
    "session_events",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("session", String, nullable=False, index=True),
    Column("scope", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("timezone", String),
    Column("title", String),
)
FEEDBACK: Final = Table(
    "feedback",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False, unique=True),
    Column("target", String, nullable=False, index=True),
    Column("scope", Integer, nullable=False),
    Column("rating", String, nullable=False),
    Column("comment", String),
)
SUBJECTS: Final = Table(
    "turn_subjects",
    METADATA,
    Column("subject", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    sqlite_with_rowid=False,
)
_ROW_TABLES: Final = (TURNS, SESSION_EVENTS, FEEDBACK)
Values = dict[str, Any]


class Turns:
    """The projection. An event whose content is destroyed leaves no row.

    index: found by position; its documents hold speaker or tool, date and text.
    passages: index of the passages of large texts, by their numbers; large: where those of blobs are read. masked:
    what is hidden in the texts, once it is found.
    """

    name = "turns"
    by_owner = True
    topics: frozenset[str] | None = HAPPENED | ERASURE | {FeedbackGiven.topic, SensitiveFound.topic}
    bodies = True

    def __init__(
        self,
        index: LexicalIndex,
        passages: LexicalIndex,
        analyzer: Analyzer,
        large: LargeTexts | None = None,
        masked: frozenset[Sort] = MASKED,
    ) -> None:
        of_policy = sha256(" ".join(sorted(masked)).encode()).hexdigest()[:8]
        self.version = version_of("3", f"a{ANALYZER_VERSION}", f"p{PASSAGE_RULE}", of_policy)
        self.masked, self._large = masked, large
        self.index, self.analyzer = index, analyzer
        self.passages = Passages(passages, analyzer, large)
        self._scopes = ScopeNumbers(record_scope)
        self._known: dict[tuple[str, str], list[str]] = {}

    def under(self, masked: frozenset[Sort]) -> Turns:
        """The same projection with other things masked: another version."""
        if masked == self.masked:
            return self
        return Turns(self.index, self.passages.index, self.analyzer, self._large, masked)

    def forget_cache(self) -> None:
        """Scope numbers belong to one file."""
        self._scopes.forget()

    def create(self, conn: Connection) -> None:
        METADATA.create_all(conn, checkfirst=False)
        self.index.create(conn)
        self.passages.create(conn)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        start = 0
        for end, recorded in enumerate(batch):
            topic = recorded.envelope.topic
            if topic in ERASURE or topic == SensitiveFound.topic:
                self._insert(conn, batch[start:end])
                if topic == SensitiveFound.topic:
                    self._hide(conn, recorded)
                else:
                    self._erase(conn, recorded)
                start = end + 1
        self._insert(conn, batch[start:])

    def _insert(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        rows: dict[Table, list[Values]] = {table: [] for table in _ROW_TABLES}
        subjects: list[tuple[str, int]] = []
        for recorded in batch:
            placed = self._place(conn, recorded)
            if placed is not None:
                table, values = placed
                rows[table].append(values)
                subjects += _other_subjects(recorded)
                if table is TURNS and values["role"] not in _UNINDEXED_ROLES:
                    self.passages.add(conn, recorded, values["scope"])
        for table, rows_of_table in rows.items():
            row_of = itemgetter(*(column.name for column in table.columns))
            insert_rows(conn, table, [row_of(values) for values in rows_of_table])
        insert_rows(conn, SUBJECTS, subjects)
        self.index.add(conn, (doc for values in rows[TURNS] if (doc := self._document(values))))

    def _place(self, conn: Connection, recorded: Recorded) -> tuple[Table, Values] | None:
        """The table and the row of an event; None where it leaves none."""
        event, base = recorded.event, None
        if isinstance(event, _SPOKEN):
            spoken = _spoken(event)
            if isinstance(spoken["text"], str):
                base = TURNS, {**spoken, **_told(recorded)}
        elif isinstance(event, SessionOpened | SessionClosed):
            if recorded.envelope.scope.session is not None:
                base = SESSION_EVENTS, {**_session(event), "session": recorded.envelope.scope.session}
        elif isinstance(event, FeedbackGiven):
            values = {"target": event.target, "rating": event.rating, "comment": _text(event.comment)}
            base = FEEDBACK, values
        if base is None:
            return None
        base[1]["position"], base[1]["event_id"] = recorded.position, recorded.envelope.id
        base[1]["scope"] = self._scopes.number(conn, recorded.envelope.scope)
        return base

    def _document(self, row: Values) -> LexicalDocument | None:
        if row["role"] in _UNINDEXED_ROLES:
            return None
        speaker = row["author"] or row["role"] or row["tool"] or ""
        known = self._known_words(speaker, row["occurred_at"][:10])
        words = self.analyzer.document(row["text"][:INDEXED_CHARACTERS])
        return LexicalDocument(row["position"], row["scope"], [*known, *words])

    def _known_words(self, speaker: str, day: str) -> list[str]:
        """Speaker and date, analysed apart: they recur, and their letters would slow the text's analysis down."""
        known = self._known.get((speaker, day))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            date = date_tokens(datetime.fromisoformat(day))
            known = self._known[speaker, day] = self.analyzer.document(f"{speaker} {date}")
        return known

    def _erase(self, conn: Connection, recorded: Recorded) -> None:
        clear = recorded.envelope.clear
        if recorded.envelope.topic == "ContentErased":
            for ids in _chunks(clear["events"]):
                for table in _ROW_TABLES:
                    positions = select(table.c.position).where(table.c.event_id.in_(ids))
                    self._delete(conn, table, conn.execute(positions).scalars().all())
            return
        theirs = _of_subject(conn, clear["subject"])
        for table in _ROW_TABLES:
            self._delete(conn, table, theirs)

    def _delete(self, conn: Connection, table: Table, positions: Sequence[int]) -> None:
        for some in _chunks(positions):
            if table is TURNS:
                rows = conn.execute(select(TURNS).where(TURNS.c.position.in_(some))).mappings().all()
                self.index.remove(conn, [doc for row in rows if (doc := self._document(dict(row)))])
                self.passages.remove(conn, [row["event_id"] for row in rows])
            conn.execute(delete(table).where(table.c.position.in_(some)))
            conn.execute(delete(SUBJECTS).where(SUBJECTS.c.position.in_(some)))

    def _hide(self, conn: Connection, recorded: Recorded) -> None:
        """Put a word in place of what was found in a turn that is still there: in its row, its words, its passages."""
        found: dict[int, list[Finding]] = {}
        for values in recorded.envelope.clear.get("findings", ()):
            if (finding := Finding.of(values)).sort in self.masked:
                found.setdefault(int(values["part"]), []).append(finding)
        source = recorded.envelope.sources[0]
        row = conn.execute(select(TURNS).where(TURNS.c.event_id == source)).mappings().first()
        if row is None:
            return
        if hidden := found.pop(WHOLE, None):
            before, after = dict(row), {**row, "text": mask(row["text"], hidden)}
            self.index.remove(conn, [doc for doc in [self._document(before)] if doc])
            conn.execute(update(TURNS).where(TURNS.c.event_id == source).values(text=after["text"]))
            self.index.add(conn, [doc for doc in [self._document(after)] if doc])
        self.passages.hide(conn, row["position"], found)

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        levels = [SCOPES.c[level] for level in LEVELS[:-1]]
        for table in _ROW_TABLES:
            columns = [column for column in table.c if column.name != "scope"]
            query = select(*columns, *levels).join(SCOPES, SCOPES.c.number == table.c.scope)
            for row in conn.execute(query.order_by(table.c.position)):
                yield (table.name, *row)
        for row in conn.execute(select(SUBJECTS).order_by(*SUBJECTS.primary_key)):
            yield (SUBJECTS.name, *row)
        yield from self.passages.dump(conn)
        for row in conn.execute(select(SCOPES.c.number, *levels).order_by(*levels)):
            found, pieces = (one.matches(conn, [row[0]], []) for one in (self.index, self.passages.index))
            if found.docs or pieces.docs:
                yield ("indexed", *row[1:], found.docs, found.tokens, pieces.docs, pieces.tokens)

    def purge(self, conn: Connection) -> None:
        self.index.optimize(conn)
        self.passages.index.optimize(conn)
        self.forget_words()

    def forget_words(self) -> None:
        """Drop what is remembered of texts and speakers, as after an erasure."""
        self.analyzer.forget()
        self._known.clear()


def shown_text(event: object) -> str | None:
    """What the view shows of an event, before anything in it is hidden."""
    text = _spoken(event)["text"] if isinstance(event, _SPOKEN) else None
    return text if isinstance(text, str) else None


def _told(recorded: Recorded) -> Values:
    """What the envelope says of a turn."""
    envelope = recorded.envelope
    moment = datetime.fromisoformat(envelope.occurred_at)
    blob = envelope.clear.get("blob")
    return {
        "session": envelope.scope.session,
        "agent": envelope.scope.agent,
        "occurred_at": envelope.occurred_at,
        "occurred_us": (moment - _EPOCH) // _MICROSECOND,
        "origin": int(envelope.origin),
        "blob": None if blob is None else json.dumps(blob, ensure_ascii=False, sort_keys=True),
    }


def _spoken(event: Event) -> Values:
    """What the body says of a turn. Fields whose own part was destroyed are absent, as if never given."""
    if isinstance(event, TurnRecorded | UtteranceChunkRecorded):
        kind = "turn" if isinstance(event, TurnRecorded) else "chunk"
        return _values(kind, event.content, role=event.role, author=event.author)
    if isinstance(event, ToolCalled):
        return _values("tool_call", _readable(event.arguments), tool=event.name, call_id=event.call_id)
    assert isinstance(event, ToolReturned)
    failed = event.error is True
    return _values("tool_result", event.output, tool=event.name, call_id=event.call_id, error=failed)


def _values(
    kind: str,
    text: object,
    role: object = None,
    author: object = None,
    tool: object = None,
    call_id: object = None,
    error: bool = False,
) -> Values:
    return {
        "kind": kind,
        "text": text,
        "role": _text(role),
        "author": _text(author),
        "tool": _text(tool),
        "call_id": _text(call_id),
        "error": int(error),
    }


def _session(event: SessionOpened | SessionClosed) -> Values:
    if isinstance(event, SessionOpened):
        return {"kind": "opened", "timezone": _text(event.timezone), "title": _text(event.title)}
    return {"kind": "closed", "timezone": None, "title": None}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _readable(arguments: object) -> object:
    """JSON arguments with escaped letters (\\uc548) written as letters, so that they can be read and found."""
    if not isinstance(arguments, str) or "\\u" not in arguments or _depth(arguments) > _READABLE_DEPTH:
        return arguments
    try:
        readable = json.dumps(json.loads(arguments), ensure_ascii=False)
        readable.encode()
    except ValueError:
        return arguments
    return readable


def _depth(arguments: str) -> int:
    """How deep JSON is nested, without the recursion that a parser would need."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", arguments)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _other_subjects(recorded: Recorded) -> list[tuple[str, int]]:
    user = recorded.envelope.scope.user
    named = {subject for part in recorded.envelope.parts for subject in part.subjects if subject != user}
    return [(subject, recorded.position) for subject in named]


def _of_subject(conn: Connection, subject: str) -> list[int]:
    """Positions of every row in the subject's own scopes, or that names the subject."""
    own = select(SCOPES.c.number).where(SCOPES.c.user == subject)
    parts = [select(table.c.position).where(table.c.scope.in_(own)) for table in _ROW_TABLES]
    named = select(SUBJECTS.c.position).where(SUBJECTS.c.subject == subject)
    return sorted(conn.execute(union(*parts, named)).scalars())


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = list(values)
    for at in range(0, len(rest), _CHUNK):
        yield rest[at : at + _CHUNK]

"""The way from a source of import items into a memory: in order, in batches, safe to repeat and to interrupt.

A source (a file today, a topic later) is an iterator of entries. An entry is what one line or message of it says; its
place is where reading goes on once the entry is durable. Every item carries an idempotency key, so that going over a
source again adds nothing; a place only saves the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, Protocol

from mnemolog.domain.errors import (
    AccessDenied,
    CorruptStore,
    Erased,
    ErasedScope,
    IdempotencyConflict,
    InvalidInput,
    KeysMissing,
    MnemologError,
    NotFound,
    ProjectionStalled,
    StoreClosed,
    StoreInUse,
    StoreUnavailable,
)
from mnemolog.domain.events import Receipt
from mnemolog.domain.scope import Scope

RECORDED: Final = frozenset({"turn", "chunk", "tool_call", "tool_result", "session_opened", "session_closed"})
"""Kinds that go in by the batch, and so does a `remember` that names no evidence."""
STATED: Final = frozenset({"remember", "correct", "retract", "confirm", "dispute"})
"""Kinds that address a record; else, like `feedback`, they go in one by one, after all that stands before them."""
KINDS: Final = RECORDED | STATED | {"feedback"}

INVALID: Final = "invalid"
ERASED: Final = "erased"
NOT_KEPT: Final = "not_kept"
CODES: Final[Mapping[str, str]] = {
    INVALID: "not as its format has it",
    NOT_KEPT: "not part of what memory keeps",
    "denied": "not allowed",
    ERASED: "its person, session or source was erased",
    "conflict": "the key was used before with another body",
    "unknown": "what it names is not there",
    "failed": "the memory refused it",
}
"""Why something was left out, in closed words that quote nothing; an import that goes on knows only these."""

MAX_LISTED: Final = 1000
"""How many skipped items a report lists; all are counted."""

_CODE_OF: Final[Mapping[type[MnemologError], str]] = {
    InvalidInput: INVALID,
    AccessDenied: "denied",
    ErasedScope: ERASED,
    Erased: ERASED,
    IdempotencyConflict: "conflict",
    NotFound: "unknown",
}
FATAL: Final = (StoreInUse, StoreClosed, StoreUnavailable, ProjectionStalled, KeysMissing, CorruptStore)
"""Errors that are no item's fault."""


@dataclass(frozen=True, slots=True)
class Place:
    """Up to where a source is done: the number of its last line or entry, from 1."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to append. `fields` are the keyword arguments of the memory's method for this kind.

    A `remember` may have an `id`, the label by which the `record` of later items names it; the `target` of feedback
    and the `evidence` of a statement are keys of earlier items. derived_key: the key was made from the content, so
    meeting it again means meeting the same content.
    """

    kind: str
    scope: Scope
    fields: Mapping[str, Any]
    key: str
    number: int
    derived_key: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out: the number of its line or entry, why, and of which source.

    by_design: the format has it, and memory does not keep it; nothing is wrong. The reason may quote the source and
    is for whoever imports; code is one of `CODES`, and all that may be kept of it.
    """

    number: int
    reason: str
    source: str = ""
    by_design: bool = False
    code: str = INVALID

    @property
    def wrong(self) -> bool:
        """Whether it should have gone in: what was erased should not, however old the file is that has it."""
        return not self.by_design and self.code != ERASED


@dataclass(frozen=True, slots=True)
class Entry:
    """What one line or message says. unfinished: it is still being written; the next import takes it."""

    place: Place
    items: tuple[Item, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unfinished: Skipped | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. appended, duplicates: items that are new, and that were here already.

    skipped: the first `MAX_LISTED`; reasons: all of them, counted; wrong: how many of them should have gone in;
    by_type: the new ones by kind; notes: what whoever imports should know; parts: one report per source when
    several were imported.
    """

    source: str = ""
    appended: int = 0
    duplicates: int = 0
    skipped: tuple[Skipped, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    by_type: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    parts: tuple[ImportReport, ...] = ()
    wrong: int = 0

    @property
    def skipped_total(self) -> int:
        return sum(self.reasons.values())

    @classmethod
    def together(cls, parts: Sequence[ImportReport]) -> ImportReport:
        """The sum of several reports."""
        return cls(
            source=", ".join(part.source for part in parts),
            appended=sum(part.appended for part in parts),
            duplicates=sum(part.duplicates for part in parts),
            skipped=tuple(skipped for part in parts for skipped in part.skipped),
            reasons=dict(sum((Counter(part.reasons) for part in parts), Counter())),
            by_type=dict(sum((Counter(part.by_type) for part in parts), Counter())),
            notes=tuple(note for part in parts for note in part.notes),
            parts=tuple(parts),
            wrong=sum(part.wrong for part in parts),
        )


class Sink(Protocol):
    """What an import writes to; `Memory` is one. Each method is that of `Memory`, with its keyword arguments."""

    def record_batch(self, items: Sequence[Mapping[str, Any]], /) -> Sequence[Receipt | MnemologError]:
        """Append together what can be appended; an item that cannot gives its error at its place."""

    def remember(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...
    def correct(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...
    def retract(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...
    def confirm(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...
    def dispute(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...
    def feedback(self, scope: Scope, /, *args: Any, **fields: Any) -> Receipt: ...


class Naming(Protocol):
    """What the labels and keys in items stand for. Each raises InvalidInput for a name that stands for nothing.

    Erased for one that stood for something erased.
    """

    def learn(self, item: Item, receipt: Receipt) -> None:
        """This item is in."""

    def lose(self, item: Item) -> None:
        """This item was refused because of an erasure, and so is what names it."""

    def record(self, scope: Scope, label: str) -> str:
        """The record that an item of this scope names by `label`."""

    def event(self, scope: Scope, key: str, what: str) -> str:
        """The event that its field `what` names."""

    def target(self, scope: Scope, key: str) -> str:
        """What feedback is about: a record or an event."""


class Names:
    """A `Naming` for one source. It is never stored, for callers choose labels and keys.

    Every label is kept; of keys only those that were announced with `want`, so that memory stays bounded.
    """

    def __init__(self) -> None:
        self._wanted: set[tuple[str, str]] = set()
        self._records: dict[tuple[str, str], str] = {}
        self._events: dict[tuple[str, str], str] = {}
        self._about: dict[tuple[str, str], str] = {}
        self._lost: set[tuple[str, str]] = set()

    def __bool__(self) -> bool:
        """Whether anything is known by a name so far."""
        return bool(self._records or self._events)

    def want(self, tenant: str, key: str) -> None:
        """A later item names the item with this key."""
        self._wanted.add((tenant, key))

    def learn(self, item: Item, receipt: Receipt) -> None:
        tenant = item.scope.tenant
        if item.kind == "remember" and item.fields.get("id"):
            self._records[tenant, item.fields["id"]] = receipt.record_id
        if (name := (tenant, item.key)) in self._wanted:
            self._events[name] = receipt.event_id
            if item.kind in STATED:
                self._about[name] = receipt.record_id

    def lose(self, item: Item) -> None:
        """As the port says."""
        tenant, label = item.scope.tenant, item.fields.get("id")
        self._lost |= {(tenant, name) for name in (label, item.key) if name}

    def record(self, scope: Scope, label: str) -> str:
        """The record of an earlier `remember` of the tenant with this label."""
        found = self._records.get((scope.tenant, label))
        return found or self._missing(
            scope, label, "`record` names no earlier remember line of this tenant by its id"
        )

    def event(self, scope: Scope, key: str, what: str) -> str:
        """The event of an earlier item of the tenant with this key."""
        found = self._events.get((scope.tenant, key))
        return found or self._missing(scope, key, f"`{what}` names no earlier line of this tenant by its key")

    def target(self, scope: Scope, key: str) -> str:
        """The record of an earlier statement, else the event of an earlier item."""
        return self._about.get((scope.tenant, key)) or self.event(scope, key, "target")

    def _missing(self, scope: Scope, name: str, reason: str) -> NoReturn:
        if (scope.tenant, name) in self._lost:
            raise Erased("it names a line that was erased: what rests on it goes with it")
        raise InvalidInput(reason)


@dataclass(slots=True)
class Tally:
    """The running count of an import; kept with its place, so that a run after an interruption tells of both.

    codes: the reasons as counted by their codes, which is what is kept of them.
    """

    appended: int = 0
    duplicates: int = 0
    refused: int = 0
    position: int = 0
    by_type: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    wrong: int = 0

    def receipt(self, item: Item, receipt: Receipt) -> None:
        self.position = max(self.position, receipt.position)
        if receipt.duplicate:
            self.duplicates += 1
            return
        self.appended += 1
        self.by_type[item.kind] += 1

    def skip(self, skipped: Skipped) -> None:
        self.reasons[skipped.reason] += 1
        self.codes[code_of(skipped)] += 1
        self.wrong += skipped.wrong
        if len(self.skipped) < MAX_LISTED:
            self.skipped.append(skipped)

    def report(self, source: str, notes: Sequence[str], unfinished: Skipped | None) -> ImportReport:
        last = [unfinished] if unfinished else []
        listed = sorted([*self.skipped, *last], key=lambda skipped: skipped.number)
        return ImportReport(
            source,
            self.appended,
            self.duplicates,
            tuple(replace(skipped, source=source) for skipped in listed),
            dict(self.reasons + Counter(skipped.reason for skipped in last)),
            dict(self.by_type),
            tuple(notes),
            wrong=self.wrong + len(last),
        )


def run(
    entries: Iterable[Entry],
    sink: Sink,
    *,
    batch: int = 100,
    names: Naming | None = None,
    tally: Tally | None = None,
    durable: Callable[[Place, Tally], None] | None = None,
    source: str = "",
    notes: Sequence[str] = (),
) -> ImportReport:
    """Append all entries in order, about `batch` items at a time; what cannot go in is skipped and reported.

    `durable` is called after each batch with the place up to which all is on disk; going on from there, or from any
    place before it, loses and doubles nothing. Raises only when the store itself fails.
    """
    if batch < 1:
        raise InvalidInput("batch must be 1 or more")
    work = _Run(sink, Names() if names is None else names, Tally() if tally is None else tally)
    place, unfinished = Place(), None
    for entry in entries:
        work.take(entry)
        place, unfinished = entry.place, entry.unfinished
        if work.since >= batch:
            work.flush()
            work.since = 0
            if durable:
                durable(place, work.tally)
    work.flush()
    if durable and place.number:
        durable(place, work.tally)
    return work.tally.report(source, notes, unfinished)


class _Run:
    """One import under way: what waits for its batch, what names mean, what was counted."""

    def __init__(self, sink: Sink, names: Naming, tally: Tally) -> None:
        self.sink, self.names, self.tally = sink, names, tally
        self.waiting: list[Item] = []
        self.since = 0

    def take(self, entry: Entry) -> None:
        self.since += max(1, len(entry.items))
        for skipped in entry.skipped:
            self.tally.skip(skipped)
        for item in entry.items:
            if item.kind in RECORDED or (item.kind == "remember" and not item.fields.get("evidence")):
                self.waiting.append(item)
            else:
                self.flush()
                self._count(item, self._state(item))

    def flush(self) -> None:
        items, self.waiting = self.waiting, []
        if items:
            answers = self.sink.record_batch([_for_batch(item) for item in items])
            for item, answer in zip(items, answers, strict=True):
                self._count(item, answer)

    def _state(self, item: Item) -> Receipt | MnemologError:
        try:
            return self._call(item)
        except MnemologError as error:
            return error

    def _call(self, item: Item) -> Receipt:
        fields = {**item.fields, "key": item.key}
        if evidence := fields.pop("evidence", None):
            fields["evidence"] = tuple(self.names.event(item.scope, key, "evidence") for key in evidence)
        if item.kind == "remember":
            fields.pop("id", None)
            return self.sink.remember(item.scope, fields.pop("content"), **fields)
        if item.kind == "feedback":
            target = self.names.target(item.scope, fields.pop("target"))
            return self.sink.feedback(item.scope, target, fields.pop("rating"), **fields)
        record = self.names.record(item.scope, fields.pop("record"))
        if item.kind == "correct":
            return self.sink.correct(item.scope, record, fields.pop("content"), **fields)
        acts = {"retract": self.sink.retract, "confirm": self.sink.confirm, "dispute": self.sink.dispute}
        return acts[item.kind](item.scope, record, **fields)

    def _count(self, item: Item, answer: Receipt | MnemologError) -> None:
        if isinstance(answer, Receipt):
            self.names.learn(item, answer)
            self.tally.receipt(item, answer)
        elif isinstance(answer, FATAL):
            raise answer
        elif isinstance(answer, IdempotencyConflict) and item.derived_key:
            self.tally.duplicates += 1
        else:
            self.tally.refused += isinstance(answer, AccessDenied)
            skipped = Skipped(item.number, _reason(answer), code=_code(answer))
            if skipped.code == ERASED:
                self.names.lose(item)
            self.tally.skip(skipped)


def _for_batch(item: Item) -> Mapping[str, Any]:
    fields = dict(item.fields)
    if item.kind == "remember":
        fields.pop("id", None)
    return {**fields, "type": item.kind, "scope": item.scope, "key": item.key}


def _reason(error: MnemologError) -> str:
    """Why, in words that are the same for all items that share the reason."""
    if isinstance(error, IdempotencyConflict):
        return "the key was used before with another body: use a new key"
    return str(error)


def _code(error: MnemologError) -> str:
    return next((code for kind, code in _CODE_OF.items() if isinstance(error, kind)), "failed")


def code_of(skipped: Skipped) -> str:
    """The closed word for why something was left out."""
    return NOT_KEPT if skipped.by_design else skipped.code

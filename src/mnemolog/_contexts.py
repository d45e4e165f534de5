"""`Memory.context`: gathers what may enter, lets the domain choose, looks once more, and leaves the receipt."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from mnemolog._asking import Asking, is_foreign
from mnemolog._guard import Guard, without_session
from mnemolog._reading import Reader, Stated
from mnemolog._recalling import MAX_QUERY, Found
from mnemolog._tokens import Remembering, Tokenizer, token_counter
from mnemolog._unsolved import unsolved
from mnemolog._views import Views
from mnemolog._working import Desk
from mnemolog.domain import ingress
from mnemolog.domain.blueprint import blueprint
from mnemolog.domain.context import (
    GROUPS,
    Assembly,
    Entry,
    Layer,
    LeftOut,
    Portion,
    TokenCounter,
    estimate_tokens,
    scaled,
    told_once,
)
from mnemolog.domain.errors import ErasedScope, InvalidInput
from mnemolog.domain.events import ContextAssembled, Receipt
from mnemolog.domain.landmarks import Mark
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import READABLE, Record, Status
from mnemolog.domain.rendering import (
    FOOTER,
    HEADER,
    Costs,
    assemble,
    fitting,
    preview,
    speaker,
    written,
)
from mnemolog.domain.scope import ANY, RECORD_LEVELS, SESSION_LEVELS, Scope, ScopeIds
from mnemolog.projections import catalog, summaries_view, turns_view
from mnemolog.projections.passages import PassageRow
from mnemolog.projections.summaries_view import SummaryRow
from mnemolog.projections.turns_view import TurnRow
from mnemolog.projections.working import TaskState
from mnemolog.results import Context, ContextReceipt

MAX_LEFT_OUT: Final = 200
"""How many entries that did not fit a receipt lists; all are counted."""
_READ: Final = ("turns", "curated", "summaries", "working")
_TOKENS_PER_TURN: Final = 25
"""How short turns are at the shortest, for how many candidates a budget can use."""
_MOST_CANDIDATES: Final = 200
_LAST_TURNS: Final = 4
"""These come before the summary; older ones behind it."""
_MARKS: Final = {mark: place for place, mark in enumerate(Mark)}
_CHECKS: Final = 3
_QUESTIONS_FIRST: Final = 3

Moment = datetime | str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """One call, checked. position: how far the views must be; head: where the log was when reading began."""

    scope: Scope
    query: str
    budget: int
    now: datetime
    position: int
    head: int
    groups: tuple[str, ...]
    count: TokenCounter
    costs: Costs
    session: str | None

    @property
    def candidates(self) -> int:
        return min(_MOST_CANDIDATES, 20 + self.budget // _TOKENS_PER_TURN)


class Contexts:
    """Assembles one principal's contexts."""

    def __init__(self, guard: Guard, reader: Reader, desk: Desk) -> None:
        self._guard, self._reader, self._desk = guard, reader, desk
        self._store, self._asking = guard.store, Asking(guard, reader)
        self._estimate = Remembering(estimate_tokens)

    def context(
        self,
        scope: Scope,
        query: str,
        *,
        budget: int | None,
        window: int | None,
        layers: Collection[str] | None,
        tokenizer: Tokenizer | None,
        now: Moment,
        at_least: int | None,
    ) -> Context:
        named = GROUPS if layers is None else ingress.names(layers, "layers")
        groups = tuple(name for name in GROUPS if name in named)
        shares = scaled(self._store.policy.context.shares.ours, named)
        self._reader.demand(scope, at_least, _READ)
        head, newest = self._store.log.head(), self._store.runner.newest()
        asked = Asked(
            scope,
            ingress.carried(query, "query")[:MAX_QUERY],
            self._budget(budget, window),
            self._reader.moment(scope, now),
            newest if at_least is None else at_least,
            head,
            groups,
            *self._counted(tokenizer),
            self._session(scope),
        )
        with self._reader.views(asked.position) as views:
            made = assemble(self._portions(asked, views, shares), asked.budget, asked.count, asked.costs)
            incomplete = self._incomplete(asked, views)
        return self._handed_over(asked, made, incomplete)

    def _counted(self, tokenizer: Tokenizer | None) -> tuple[TokenCounter, Costs]:
        if tokenizer is None:
            return self._estimate, Costs(self._estimate, self._estimate.line)
        count = token_counter(tokenizer)
        return count, Costs(count)

    def _budget(self, budget: int | None, window: int | None) -> int:
        if (budget is None) == (window is None):
            raise InvalidInput("give the tokens of the context as budget=, or those of the model as window=")
        if budget is None:
            assert window is not None
            budget = self._store.policy.context.budget(ingress.whole(window, "window", 1))
        return ingress.whole(budget, "budget", 1)

    def _session(self, scope: Scope) -> str | None:
        ids = self._guard.reading_ids(scope)
        return None if ids is None or ids.session == ANY else ids.session

    # Gathering -------------------------------------------------------------------------------------------------

    def _portions(self, asked: Asked, views: Views, shares: dict[str, float]) -> list[Portion]:
        floors = self._store.policy.context.floors
        made = []
        room = shares.get("boot", 0.0) * (asked.budget - asked.count(HEADER + FOOTER))
        for group, lists in self._gathered(asked, views, room):
            share, floor = shares[group] / len(lists), getattr(floors, group) / 100 / len(lists)
            made += [Portion(share, floor, entries) for entries in lists]
        return made

    def _gathered(self, asked: Asked, views: Views, room: float) -> Iterator[tuple[str, list[list[Entry]]]]:
        """For each group what competes in it, best first. Memory has two halves: records, and turns found.

        room: tokens of boot memory.
        """
        needed = {"boot", "tools", "memory"} & set(asked.groups)
        readable = self._reader.current(views, asked.scope, asked.now) if needed else []
        records = [each for each in readable if each[0].status is not Status.CONTESTED]
        summary = self._summary(asked, views)
        raw = self._raw(asked, views, summary)
        found = self._found(asked, views)
        for group in asked.groups:
            if group == "boot":
                yield group, [self._boot(asked, views, records, room)]
            elif group == "tools":
                references = [each for each in records if each[0].kind == "reference"]
                lookups = [record_entry(*each, asked.session) for each in references]
                yield group, [[*self._tasks(asked, views), *lookups]]
            elif group == "memory":
                first, rest = self._questions(asked, views, readable, found)
                answers = _by_relevance(asked, records, found)
                yield group, [[*first, *answers, *rest], _recalled(asked, found)]
            else:
                yield group, [self._of_session(asked, summary, raw)]

    def _questions(
        self, asked: Asked, views: Views, readable: Sequence[Stated], found: Iterable[Found]
    ) -> tuple[list[Entry], list[Entry]]:
        """What only a person can decide: what the query is about and is newest first, the rest behind the answers."""
        contested = {record.id: record for record, _ in readable if record.status is Status.CONTESTED}
        answers = [one.row.id for one in found if isinstance(one.row, Record) and one.row.id in contested]
        order = [contested[id] for id in dict.fromkeys([*answers, *contested])]
        view = views.of("curated", asked.scope)
        every = self._asking.questions(view, order, asked.now, asked.query, asked.session)
        return every[:_QUESTIONS_FIRST], every[_QUESTIONS_FIRST:]

    def _found(self, asked: Asked, views: Views) -> list[Found]:
        """As many as memory can have: beside other layers it seldom gets half of the budget."""
        if "memory" not in asked.groups:
            return []
        most = asked.candidates if len(asked.groups) == 1 else 10 + asked.candidates // 2
        return self._reader.found(views, asked.scope, asked.query, most, asked.now)

    def _tasks(self, asked: Asked, views: Views) -> list[Entry]:
        """The task that changed last is what is being done now."""
        if asked.session is None:
            return []
        states = self._desk.states_in(views, asked.scope)
        layers = [Layer.WORKING] * (len(states) - 1) + [Layer.STATE]
        entries, hide = map(_task_entry, states, layers), self._store.gate.masking.text
        return [one._replace(text=hide(one.text), who=hide(one.who)) for one in entries][::-1]

    def _boot(self, asked: Asked, views: Views, records: Sequence[Stated], room: float) -> list[Entry]:
        """The rules, and behind them as much of the project's blueprint as has room; the rest of it is memory."""
        rules = [record_entry(*each, asked.session) for each in records if _is_rule(each[0])]
        if asked.scope.project in (None, ANY):
            return rules
        scopes = views.of("curated", asked.scope).scopes
        ours = [each for each in records if scopes[each[0].scope].project is not None]
        aspect, epoch = self._store.records.aspect, views.record_epoch
        chosen = blueprint(ours, lambda record, text: aspect(record, text, epoch))
        guides = [record_entry(*each, asked.session)._replace(layer=Layer.BLUEPRINT) for each in chosen]
        return [*rules, *fitting([*rules, *guides], room, asked.costs)[len(rules) :]]

    def _summary(self, asked: Asked, views: Views) -> SummaryRow | None:
        """As it may be shown: it was written under the policy of its time."""
        found = self._latest_summary(asked, views)
        if found is None:
            return None
        hide = self._store.gate.masking.text
        left = unsolved(views.of("turns", asked.scope), found, asked.session)
        return replace(
            found,
            text=hide(found.text),
            landmarks=tuple(
                replace(one, speaker=hide(one.speaker), text=hide(one.text)) for one in found.landmarks
            ),
            open_items=tuple(replace(one, text=hide(one.text)) for one in left),
        )

    def _latest_summary(self, asked: Asked, views: Views) -> SummaryRow | None:
        """Of the session; a new one begins with the summary of the last session of the same project."""
        if "session" not in asked.groups and "memory" not in asked.groups:
            return None
        if asked.session is not None:
            view = views.of("summaries", asked.scope)
            found = summaries_view.of_session(view.conn, view.scopes, asked.session)
            if found is not None:
                return found
        exactly = asked.scope.at(RECORD_LEVELS)
        if exactly.has_any:
            return None
        view = views.of("summaries", exactly, frozenset(RECORD_LEVELS))
        return summaries_view.last_of_project(view.conn, view.scopes, but=asked.session)

    def _raw(self, asked: Asked, views: Views, summary: SummaryRow | None) -> list[TurnRow]:
        """The session's window, newest first: what no summary covers, and the last turns in any case."""
        if asked.session is None:
            return []
        view = views.of("turns", asked.scope)
        hide, keep = self._store.gate.masking.row, self._store.policy.summaries.keep
        covered = summary.last if summary is not None and summary.session == asked.session else 0
        limit = asked.candidates
        raw = turns_view.window(view.conn, view.scopes, asked.session, keep, covered, limit)
        return [hide(row, views.hidden) for row in raw]

    def _of_session(self, asked: Asked, summary: SummaryRow | None, raw: Sequence[TurnRow]) -> list[Entry]:
        """The last words, then what stands for the turns that left the window, then the turns before the last."""
        turns = [_turn_entry(row, asked.session) for row in raw]
        if summary is None:
            return turns
        mine = summary.session == asked.session
        said = {line.partition(": ")[2] for line in summary.text.splitlines()}
        marks = [mark for mark in summary.landmarks if mark.text not in said]
        marks.sort(key=lambda mark: _MARKS.get(Mark(mark.kind), len(_MARKS)))
        middle = [_summary_entry(summary, Layer.SUMMARY, "" if mine else "the session before: ")]
        middle += [_open_entry(summary, at) for at in range(len(summary.open_items))][::-1]
        middle += [
            _landmark_entry(summary, mark.kind, mark.speaker, mark.text, mark.event_id) for mark in marks
        ]
        return [*turns[:_LAST_TURNS], *middle, *turns[_LAST_TURNS:]]

    # Handing over ----------------------------------------------------------------------------------------------

    def _incomplete(self, asked: Asked, views: Views) -> bool:
        ids = self._guard.noting_ids(asked.scope)
        return any(views.is_parked(view, ids) for view in views.opened)

    def _handed_over(self, asked: Asked, made: Assembly, incomplete: bool) -> Context:
        """Look at each entry again where the log has moved on, then append the receipt."""
        seen = asked.head
        for _ in range(_CHECKS):
            head = self._store.log.head()
            if head == seen:
                break
            made, seen = self._still_right(asked, made), head
        made = replace(made, left_out=told_once(made.left_out))
        return Context(made.body, made.state, self._receipt(asked, made, incomplete))

    def _still_right(self, asked: Asked, made: Assembly) -> Assembly:
        """Without what was erased, retracted or changed since it was read."""
        events = {one for item in made.placed for one in _events_of(item.entry)}
        with self._store.runner.read("catalog") as conn:
            erased = {row.event_id for row in catalog.find_all(conn, events) if row.erased}
        records = self._reader.records_now(
            asked.scope, [item.entry.id for item in made.placed if item.entry.is_record], asked.now
        )
        gone: dict[tuple[bool, str], str] = {}
        for item in made.placed:
            entry = item.entry
            if not erased.isdisjoint(_events_of(entry)):
                gone[entry.key] = "erased"
            elif entry.is_record and not _is_current(entry, records.get(entry.id)):
                gone[entry.key] = "changed"
        if not gone:
            return made
        kept = [item for item in made.placed if item.entry.key not in gone]
        left_out = [*made.left_out, *(LeftOut(key[1], reason) for key, reason in gone.items())]
        return written(kept, left_out, asked.budget, asked.count)

    def _receipt(self, asked: Asked, made: Assembly, incomplete: bool) -> ContextReceipt:
        """Append the receipt to the log. It outlives the session, and the person, that it was for."""
        ids = self._guard.noting_ids(asked.scope)
        receipt, event = self._noted(asked, made, ids, incomplete)
        return ContextReceipt(
            receipt.event_id,
            receipt.position,
            asked.budget,
            made.tokens,
            event.entries,
            made.left_out[:MAX_LEFT_OUT],
            asked.position,
            event.omitted,
            event.incomplete,
        )

    def _noted(
        self, asked: Asked, made: Assembly, ids: ScopeIds, incomplete: bool
    ) -> tuple[Receipt, ContextAssembled]:
        """Note the receipt where it belongs, or in what is left of that when it was erased meanwhile."""
        for place in (ids, without_session(ids)):
            with suppress(ErasedScope):
                return self._note(asked, made, ScopeIds(place), incomplete)
        return self._note(asked, made, ScopeIds(ids.at(())), incomplete)

    def _note(
        self, asked: Asked, made: Assembly, ids: ScopeIds, incomplete: bool
    ) -> tuple[Receipt, ContextAssembled]:
        home, hashed = ids.user or ids.tenant, self._store.vault.keyed_hash
        event = ContextAssembled(
            query=hashed(home, b"query", asked.query.encode()).hex(),
            budget=asked.budget,
            tokens=made.tokens,
            entries=tuple(line for item in made.placed for line in _lines(item.entry, item.tokens)),
            left_out=tuple({"id": one.id, "reason": one.reason} for one in made.left_out[:MAX_LEFT_OUT]),
            position=asked.position,
            omitted=len(made.left_out),
            incomplete=incomplete,
        )
        stream = hashed(home, b"contexts", ids.at(SESSION_LEVELS).encode()).hex()
        draft = replace(self._guard.note(event, ids), scope=ids, stream=stream, subjects=(home,))
        return self._store.accesses.append([draft])[0], event


# Entries ----------------------------------------------------------------------------------------------------------


def record_entry(record: Record, text: str, session: str | None) -> Entry:
    notes = [] if record.status is Status.CURRENT else [str(record.status)]
    notes += [_origin(record.trust)] if record.trust < Tier.USER_INFERRED else []
    layer = Layer.MEMORY
    if record.kind == "reference":
        layer = Layer.REFERENCE
    elif _is_rule(record):
        layer = Layer.BOOT
    foreign = is_foreign(record, session)
    return Entry(
        record.id,
        record.version,
        layer,
        "" if foreign else text,
        record.trust,
        f"- {record.kind}{f' ({chr(44).join(notes)})' if notes else ''}: ",
        reference=f"{len(text)} characters; get {record.id}" if foreign else None,
        is_record=True,
    )


def _is_current(entry: Entry, now: Record | None) -> bool:
    if now is None or now.status not in READABLE or now.version != entry.version:
        return False
    asked = {each for each, _ in entry.others}
    return asked <= set(now.rivals) if entry.layer is Layer.QUESTION else now.status is not Status.CONTESTED


def _is_rule(record: Record) -> bool:
    """A constraint is a rule only where a person stated it, whatever an agent made of it."""
    return record.kind == "constraint" and record.trust >= Tier.USER_STATED


def _by_relevance(asked: Asked, records: Sequence[Stated], found: Iterable[Found]) -> list[Entry]:
    """Records that answer, then the others by kind, trust and time; low trust goes first when it is tight."""
    mine = {each[0].id: each for each in records if not _is_rule(each[0]) and each[0].kind != "reference"}
    answers = [row.id for row in (one.row for one in found) if isinstance(row, Record) and row.id in mine]
    order = [mine[id] for id in dict.fromkeys([*answers, *mine])]
    trusted = [each for each in order if each[0].trust > Tier.UNTRUSTED_TOOL]
    others = [each for each in order if each[0].trust <= Tier.UNTRUSTED_TOOL]
    return [record_entry(*each, asked.session) for each in (*trusted, *others)]


def _recalled(asked: Asked, found: Iterable[Found]) -> list[Entry]:
    """Turns by how well they answer. Those of the session itself stand where they were said."""
    return [_turn_entry(one.row, asked.session, one.passage) for one in found if isinstance(one.row, TurnRow)]


def _turn_entry(row: TurnRow, session: str | None, passage: PassageRow | None = None) -> Entry:
    """passage: of a large text what a search found; but what was said in this session stays whole."""
    own, tier = row.session is not None and row.session == session, Tier(row.origin)
    total = None if row.blob is None else int(row.blob["chars"])
    if own and total is None and row.tool is None:
        passage = None
    text, reference = _shown(row, tier, own, total, passage)
    return Entry(
        row.event_id,
        1,
        Layer.RECENT if own else Layer.RECALLED,
        text,
        tier,
        speaker(row.role, row.author, row.tool),
        row.session,
        row.occurred_at[:10],
        row.position,
        reference,
    )


def _shown(
    row: TurnRow, origin: Tier, own: bool, total: int | None, passage: PassageRow | None
) -> tuple[str, str | None]:
    """The text that may enter, and the reference beside it or in its place.

    Text of untrusted origin enters a context outside its own session only as a labelled reference.
    """
    where = f"{len(row.text) if total is None else total} characters"
    if passage is not None:
        where = f"characters {passage.start}-{passage.end} of {passage.total}"
    where = f"{where}; read_output {row.event_id}"
    if origin <= Tier.UNTRUSTED_TOOL and not own:
        return "", f"[{_origin(origin)}: {where}]"
    if passage is not None:
        return passage.text, f"[{where}]"
    if row.kind not in ("tool_call", "tool_result") and total is None:
        return row.text, None
    begin, cut = preview(row.text)
    return (begin, f"[{where}]") if cut or total is not None else (row.text, None)


def _task_entry(state: TaskState, layer: Layer) -> Entry:
    values = "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in state.values.items()
    )
    changes = sorted(state.changes.values(), key=lambda change: change.version)
    origin = min((Tier(change.origin) for change in changes), default=Tier.IMPORT)
    events = tuple(dict.fromkeys(change.event_id for change in changes))
    who = f"- task {state.task}, version {state.version}:\n"
    return Entry(events[-1], state.version, layer, values, origin, who, events=events)


def _summary_entry(row: SummaryRow, layer: Layer, who: str) -> Entry:
    return Entry(row.event_id, row.version, layer, row.text, row.origin, who)


def _landmark_entry(row: SummaryRow, kind: str, who: str, text: str, event_id: str) -> Entry:
    return Entry(event_id, 1, Layer.LANDMARK, text, row.origin, f"- {kind} ({who}): ", events=(row.event_id,))


def _open_entry(row: SummaryRow, at: int) -> Entry:
    item = row.open_items[at]
    who = f"- {item.kind}: "
    return Entry(item.event_id, 1, Layer.OPEN, item.text, row.origin, who, place=at, events=(row.event_id,))


def _events_of(entry: Entry) -> tuple[str, ...]:
    return entry.events if entry.is_record else (entry.id, *entry.events)


def _lines(entry: Entry, tokens: int) -> Iterator[dict[str, Any]]:
    """One for each record or event of an entry; the first has its tokens."""
    reference = {"reference": True} if entry.reference is not None else {}
    for at, (id, version) in enumerate(((entry.id, entry.version), *entry.others)):
        spent = 0 if at else tokens
        yield {"id": id, "version": version, "layer": str(entry.layer), "tokens": spent, **reference}


def _origin(tier: Tier) -> str:
    return tier.name.lower().replace("_", " ")

"""Recall: the question's own words about time, the scopes that it may look into, and hits out of what is found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict

from mnemolog._shown import record_hit, status_named, turn_hit
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.passages import number_of, place_of
from mnemolog.domain.principal import levels_asked
from mnemolog.domain.records import RECORD_KINDS, Record
from mnemolog.domain.retrieval import RERANK, Facts, Ranked, reranked
from mnemolog.domain.scope import Scope
from mnemolog.infra.compose import Store
from mnemolog.projections import passages, turns_view
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.passages import PassageRow
from mnemolog.projections.questions import Filters, Places, Question, Ranking
from mnemolog.projections.turns_view import TurnRow
from mnemolog.results import Hit

if TYPE_CHECKING:
    from mnemolog._reading import Reader
    from mnemolog._views import View, Views
    from mnemolog.projections.hybrid import HybridSearch

MAX_K: Final = 1_000
MAX_QUERY: Final = 4_000
"""Characters of a query that are searched for."""
_BLANK: Final = (
    "query is empty: say what to look for (a time will do, as “last week”); `records` lists what is remembered, `log` "
    "what was said, and `context` needs no question"
)
RERANKED: Final = 30
"""How many of the first hits a reranker looks at."""
TURN_KINDS: Final = frozenset({"turn", "chunk", "tool_call", "tool_result"})
STRICT_US: Final = 32 * 86_400_000_000
"""Microseconds of the longest stretch by which time words bound when a thing was said: a month."""
Moment = datetime | str | None


class Asking(TypedDict, total=False):
    """What `Memory.recall` may be asked besides the question; see there."""

    since: Moment
    until: Moment
    now: Moment
    at_least: int | None
    exact: bool | Collection[str]
    kinds: Collection[str] | None
    author: str | None
    tool: str | None
    slot: tuple[str, str] | None
    status: Collection[str] | None
    history: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """The same, with what holds where nothing is said."""

    since: Moment = None
    until: Moment = None
    now: Moment = None
    at_least: int | None = None
    exact: bool | Collection[str] = False
    kinds: Collection[str] | None = None
    author: str | None = None
    tool: str | None = None
    slot: tuple[str, str] | None = None
    status: Collection[str] | None = None
    history: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, and how. passage: what is shown of a large turn."""

    row: TurnRow | Record
    ranked: Ranked
    passage: PassageRow | None = None

    @property
    def text(self) -> str:
        """What a reader is shown of it."""
        if self.passage is not None:
            return self.passage.text
        return self.row.text if isinstance(self.row, TurnRow) else self.row.content or ""

    @property
    def hit(self) -> Hit:
        if isinstance(self.row, TurnRow):
            return turn_hit(self.row, self.ranked, self.passage)
        return record_hit(self.row, self.ranked)

    def lifted(self, lift: float) -> Found:
        """With what a reranker adds."""
        signals = {**self.ranked.signals, RERANK: lift}
        return replace(self, ranked=replace(self.ranked, score=self.ranked.score + lift, signals=signals))


class Recaller:
    """Answers one principal's questions."""

    def __init__(self, store: Store, reader: Reader, curated: CuratedView) -> None:
        self._store, self._reader, self._curated = store, reader, curated
        self._hybrid: HybridSearch | None = None

    def recall(self, scope: Scope, query: str, k: int, asked: Asked) -> list[Hit]:
        """The best `k`, best first."""
        query = ingress.carried(query, "query")[:MAX_QUERY]
        if not query.strip():
            raise InvalidInput(_BLANK)
        ingress.whole(k, "k", 1, MAX_K)
        # The head when the call began, which the guard has just looked at.
        newest = self._store.runner.newest() if self._store.settings.workers else self._store.position
        at_least = newest if asked.at_least is None else asked.at_least
        with self._reader.views(at_least) as views:
            return [one.hit for one in self.found(views, scope, query, k, asked)]

    def found(self, views: Views, scope: Scope, query: str, k: int, asked: Asked) -> list[Found]:
        """The best `k` as they stand in their views, best first."""
        question = self._question(scope, query, k, asked)
        levels = levels_asked(scope, asked.exact)
        turns, records = (views.of(name, scope, levels) for name in ("turns", "curated"))
        places = Places(
            turns.conn, turns.scopes, records.conn, records.scopes, views.turn_epoch, views.record_epoch
        )
        reranks = self._store.reranking.enabled
        wanted = replace(question, k=max(k, RERANKED)) if reranks else question
        found = self._rows(self._search.search(wanted, places), places, records, views.hidden)
        return self._reranked(question.text, found)[:k] if reranks else found

    @property
    def _search(self) -> HybridSearch:
        """Loaded at the first question: it brings numpy along."""
        from mnemolog.projections.hybrid import HybridSearch

        if self._hybrid is None:
            store = self._store
            self._hybrid = HybridSearch(
                store.turns, store.tables, self._curated, store.records, store.vectors
            )
        return self._hybrid

    def _question(self, scope: Scope, query: str, k: int, asked: Asked) -> Question:
        from mnemolog.domain.timewords import time_words

        now = self._reader.moment(scope, asked.now)
        words = time_words(query, now, self._store.zone_of(scope) or now.tzinfo or UTC)
        filters = self._filters(scope, asked)
        if words is None:
            return Question(query, now, k, Facts(), filters)
        since, until = (None if at is None else ingress.microseconds(at) for at in (words.since, words.until))
        strict = since is not None and until is not None and until - since <= STRICT_US
        facts = Facts(since_us=since, until_us=until, strict=strict)
        if strict and words.relative:
            return Question(words.query, now, k, facts, filters)
        # A date or a year may as well be what was spoken about: it stays among the words.
        return Question(query, now, k, facts, filters, words.words if strict else "")

    def _filters(self, scope: Scope, asked: Asked) -> Filters:
        since, until = (self._reader.bound(scope, getattr(asked, what), what) for what in ("since", "until"))
        if since is not None and until is not None and until < since:
            raise InvalidInput("until lies before since: swap them, or leave one out")
        kinds, status = ingress.names(asked.kinds, "kinds"), ingress.names(asked.status, "status")
        if unknown := kinds - TURN_KINDS - set(RECORD_KINDS):
            raise InvalidInput(f"no such kind: {', '.join(sorted(unknown))}")
        return Filters(
            kinds=self._readable(None if asked.kinds is None else kinds),
            author=ingress.optional(asked.author, "author"),
            tool=ingress.optional(asked.tool, "tool"),
            slot=None if asked.slot is None else ingress.slot(asked.slot),
            status=None if asked.status is None else frozenset(map(status_named, status)),
            since_us=since,
            until_us=until,
            history=asked.history,
        )

    def _readable(self, kinds: frozenset[str] | None) -> frozenset[str] | None:
        """Of the kinds that were asked for, those that the policy lets the principal's role read."""
        allowed = self._reader.kinds_read()
        if allowed is None:
            return kinds
        return (TURN_KINDS | allowed) if kinds is None else kinds & (TURN_KINDS | allowed)

    def _reranked(self, question: str, found: list[Found]) -> list[Found]:
        """In the order that they have when the first ones were looked at again."""
        scores = self._store.reranking.scores(question, [one.text for one in found[:RERANKED]])
        if scores is None:
            return found
        lifted = [one.lifted(lift) for one, lift in zip(found, reranked(scores, len(found)), strict=True)]
        return sorted(lifted, key=lambda one: one.ranked.score, reverse=True)

    def _rows(self, ranking: Ranking, at: Places, view: View, hidden: int) -> list[Found]:
        """view: of the records."""
        keys = [one.candidate.key for one in ranking.ranked]
        turns = [key for key in keys if key > 0]
        rows = turns_view.at(at.turns, turns, at.turn_scopes)
        parts: dict[int, PassageRow] = {}
        if ranking.passages is not None:
            best = [ranking.passages.get(key, number_of(key, 0)) for key in turns]
            shown = passages.at(at.turns, best, at.turn_scopes)
            parts = {place_of(number)[0]: passage for number, passage in shown.items()}
        numbers = [-key for key in keys if key < 0]
        records = self._curated.whole(at.records, numbers, at.record_scopes, ranking.judged)
        whole, hide = list[Found](), self._store.gate.masking
        for one in ranking.ranked:
            key = one.candidate.key
            if key in rows:
                row, passage = rows[key], parts.get(key)
                whole.append(Found(hide.row(row, hidden), one, hide.passage(row, passage, hidden)))
            elif (
                -key in records and records[-key].content is not None and self._reader.may_read(records[-key])
            ):
                record = records[-key]
                near = self._reader.is_near(view, at.record_scopes[record.scope], record.session)
                whole.append(Found(record if near else replace(record, session=None), one))
        return whole

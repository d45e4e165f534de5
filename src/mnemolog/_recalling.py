"""Recall: the question's own words about time, the scopes that it may look into, and hits out of what is found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict

from mnemolog._shown import record_hit, status_named, turn_hit
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import levels_asked
from mnemolog.domain.records import RECORD_KINDS, Record
from mnemolog.domain.retrieval import Facts, Ranked
from mnemolog.domain.scope import Scope
from mnemolog.domain.timewords import time_words
from mnemolog.infra.compose import Store
from mnemolog.projections import turns_view
from mnemolog.projections.curated_reads import CuratedView
from mnemolog.projections.hybrid import Filters, HybridSearch, Places, Question
from mnemolog.projections.turns_view import TurnRow
from mnemolog.results import Hit

if TYPE_CHECKING:
    from mnemolog._reading import Reader, Views

MAX_K: Final = 1_000
MAX_QUERY: Final = 4_000
"""Characters of a query that are searched for."""
TURN_KINDS: Final = frozenset({"turn", "chunk", "tool_call", "tool_result"})
STRICT_US: Final = 32 * 86_400_000_000
"""Microseconds of the longest stretch, a month, by which words such as "last week" bound when a thing was said."""
Moment = datetime | str | None
Found = tuple[TurnRow | Record, Ranked]
"""What was found, and how."""


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


class Recaller:
    """Answers one principal's questions."""

    def __init__(self, store: Store, reader: Reader, curated: CuratedView) -> None:
        self._store, self._reader, self._curated = store, reader, curated
        self._search = HybridSearch(store.turns, store.tables, curated, store.records, store.vectors)

    def recall(self, scope: Scope, query: str, k: int, asked: Asked) -> list[Hit]:
        """The best `k`, best first."""
        query = ingress.carried(query, "query")[:MAX_QUERY]
        ingress.whole(k, "k", 1, MAX_K)
        at_least = self._store.log.head() if asked.at_least is None else asked.at_least
        with self._reader.views(at_least) as views:
            return [_hit(row, one) for row, one in self.found(views, scope, query, k, asked)]

    def found(self, views: Views, scope: Scope, query: str, k: int, asked: Asked) -> list[Found]:
        """The best `k` as they stand in their views, best first."""
        question = self._question(scope, query, k, asked)
        levels = levels_asked(scope, asked.exact)
        turns, records = (views.of(name, scope, levels) for name in ("turns", "curated"))
        places = Places(turns.conn, turns.scopes, records.conn, records.scopes)
        return self._rows(self._search.search(question, places), places, question.now)

    def _question(self, scope: Scope, query: str, k: int, asked: Asked) -> Question:
        now = self._reader.moment(scope, asked.now)
        words = time_words(query, now, self._store.zone_of(scope) or now.tzinfo or UTC)
        filters = self._filters(scope, asked)
        if words is None:
            return Question(query, now, k, Facts(), filters)
        since, until = (None if at is None else ingress.microseconds(at) for at in (words.since, words.until))
        strict = words.relative and since is not None and until is not None and until - since <= STRICT_US
        # A date or a year may as well be what was spoken about: it stays among the words, and only lifts.
        text = words.query if strict else query
        return Question(text, now, k, Facts(since_us=since, until_us=until, strict=strict), filters)

    def _filters(self, scope: Scope, asked: Asked) -> Filters:
        since, until = (self._reader.bound(scope, getattr(asked, what), what) for what in ("since", "until"))
        if since is not None and until is not None and until < since:
            raise InvalidInput("until lies before since: swap them, or leave one out")
        kinds, status = ingress.names(asked.kinds, "kinds"), ingress.names(asked.status, "status")
        if unknown := kinds - TURN_KINDS - set(RECORD_KINDS):
            raise InvalidInput(f"no such kind: {', '.join(sorted(unknown))}")
        return Filters(
            kinds=None if asked.kinds is None else kinds,
            author=ingress.optional(asked.author, "author"),
            tool=ingress.optional(asked.tool, "tool"),
            slot=asked.slot,
            status=None if asked.status is None else frozenset(map(status_named, status)),
            since_us=since,
            until_us=until,
            history=asked.history,
        )

    def _rows(self, found: list[Ranked], at: Places, now: datetime) -> list[Found]:
        keys = [one.candidate.key for one in found]
        rows = turns_view.at(at.turns, [key for key in keys if key > 0], at.turn_scopes)
        numbers = [-key for key in keys if key < 0]
        records = self._curated.numbered(at.records, numbers, at.record_scopes, now)
        whole: list[Found] = []
        for one in found:
            key = one.candidate.key
            if key in rows:
                whole.append((rows[key], one))
            elif -key in records and records[-key].content is not None:
                whole.append((records[-key], one))
        return whole


def _hit(row: TurnRow | Record, ranked: Ranked) -> Hit:
    return turn_hit(row, ranked) if isinstance(row, TurnRow) else record_hit(row, ranked)

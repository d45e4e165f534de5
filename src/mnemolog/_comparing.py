"""Records side by side: conflicts that only a person can decide, and records that may say the same."""

from __future__ import annotations

from collections.abc import Sequence

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._stating import Acting, Stater, said
from mnemolog._views import View
from mnemolog.domain.consolidation import NEAR, Nearness, proposals
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import ConflictResolved, MergeReviewed, Receipt
from mnemolog.domain.gate.wording import same, which
from mnemolog.domain.principal import Action
from mnemolog.domain.records import READABLE, Record, Status
from mnemolog.domain.scope import Scope
from mnemolog.results import Conflict, MergeProposal

_COMPARED = 500
"""The newest records of a scope; older ones were proposed when they were new."""


class Comparing:
    """What stands against what, and what a person decided about it."""

    def __init__(self, guard: Guard, reader: Reader, stater: Stater) -> None:
        self._guard, self._reader, self._stater, self._store = guard, reader, stater, guard.store

    def conflicts(self, scope: Scope) -> list[Conflict]:
        """Of the caller's scope, the oldest first."""
        with self._reader.view(scope) as view:
            found = {record.id: record for record in self._reader.standing(view, scope)}
            made, seen = list[Conflict](), set[str]()
            for record in found.values():
                if record.status is Status.CONTESTED and record.id not in seen:
                    ids = {record.id, *record.rivals}
                    group = [one for one in found.values() if one.id in ids]
                    seen |= ids
                    made += [self._conflict(group, view)] if len(group) > 1 else []
        return made

    def _conflict(self, group: Sequence[Record], view: View) -> Conflict:
        slot = self._store.gate.masking.slot(group[0].slot)
        asked = which([one.content or "" for one in group], slot)
        home = self._store.vault.names(view.scopes[group[0].scope])
        return Conflict(home, slot, tuple(self._reader.handed(one, view) for one in group), asked)

    def merges(self, scope: Scope) -> list[MergeProposal]:
        """What may be merged, of the newest records of each scope that the caller sees."""
        with self._reader.view(scope) as view:
            by_scope: dict[int, list[Record]] = {}
            for record in self._reader.standing(view, scope):
                by_scope.setdefault(record.scope, []).append(record)
            return [
                each for records in by_scope.values() for each in self._proposed(records[-_COMPARED:], view)
            ]

    def _proposed(self, records: Sequence[Record], view: View) -> list[MergeProposal]:
        by_id, home = {record.id: record for record in records}, view.scopes[records[0].scope]
        return [
            MergeProposal(
                self._store.vault.names(home),
                self._reader.handed(by_id[one.record], view),
                self._reader.handed(by_id[one.into], view),
                one.reason,
                same(by_id[one.record].content or "", by_id[one.into].content or ""),
            )
            for one in proposals(records, self._near(records))
        ]

    def _near(self, records: Sequence[Record]) -> Nearness:
        """Without an embedder, or where it fails, words must do."""
        ids = [record.id for record in records]
        texts = [record.content or "" for record in records]
        near = self._store.vectors.alike(texts, NEAR)
        return {(min(ids[a], ids[b]), max(ids[a], ids[b])): cosine for a, b, cosine in near}

    # Decisions ------------------------------------------------------------------------------------------------------

    def resolve(self, scope: Scope, record_id: str, rejected: Sequence[str], given: Acting) -> Receipt:
        """Choose this record over these others, or over all that it needs confirmation against."""
        self._guard.enter(Action.REVIEW, scope)
        before = self._stater.earlier(scope, record_id, given)
        if not rejected and isinstance(before, ConflictResolved):
            rejected = before.rejected
        rejected = rejected or self._reader.record(scope, record_id).rivals
        if not rejected:
            raise InvalidInput("nothing stands against this record: name what it is chosen over")
        for one in rejected:
            self._reader.scope_of_record(scope, one)
            self._reader.demand_open(scope, one)
        if record_id in rejected:
            raise InvalidInput("a record is not chosen over itself")
        event = ConflictResolved(tuple(rejected), said(given.get("reason")))
        return self._stater.on_record(scope, record_id, event, given)

    def merge(self, scope: Scope, record_id: str, into: str, given: Acting) -> Receipt:
        """Let the record be superseded by `into` as long as that stands."""
        one, other = self._pair(scope, record_id, into)
        event = MergeReviewed("merge", into, said(given.get("reason")))
        if self._stater.earlier(scope, record_id, given) is not None:
            return self._stater.on_record(scope, record_id, event, given)
        if one.status not in READABLE or other.status not in READABLE:
            raise InvalidInput("only records that stand can be merged: see `records show`")
        if other.merged_into == one.id:
            raise InvalidInput("the other record was merged into this one: keep them apart first")
        return self._stater.on_record(scope, record_id, event, given)

    def keep_apart(self, scope: Scope, record_id: str, other: str, given: Acting) -> Receipt:
        """Remember that the two say different things; a merge of the first into the second is undone."""
        self._pair(scope, record_id, other)
        event = MergeReviewed("apart", other, said(given.get("reason")))
        return self._stater.on_record(scope, record_id, event, given)

    def _pair(self, scope: Scope, record_id: str, other_id: str) -> tuple[Record, Record]:
        self._guard.enter(Action.REVIEW, scope)
        one, other = self._reader.record(scope, record_id), self._reader.record(scope, other_id)
        if one.id == other.id or one.scope != other.scope:
            raise InvalidInput("compare two records of one scope")
        return one, other

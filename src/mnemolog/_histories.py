"""What happened to a record and to the others of its slot, as it may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._views import View
from mnemolog.domain import ingress
from mnemolog.domain.errors import NotFound
from mnemolog.domain.records import Act, Record, Side, Status, Step
from mnemolog.domain.scope import Scope
from mnemolog.projections.curated_reads import CuratedView

_UNTOLD: Final = frozenset({"held", "not kept"})


class Histories:
    """Steps of records: who said and decided what, and what won."""

    def __init__(self, guard: Guard, reader: Reader) -> None:
        self._guard, self._store, self._reader = guard, guard.store, reader
        self._curated = CuratedView(self._store.curated, lambda: self._store.policy.gate)

    def history(self, scope: Scope, record_id: str) -> list[Step]:
        """Of a record, as `steps`. Raises NotFound for what is not there, or not to be told."""
        record_id = ingress.known_id(record_id)
        with self._reader.view(scope) as view:
            steps = self.steps(view, record_id)
        if not any(step.record == record_id for step in steps):
            self._reader.require(scope, record_id)
            raise NotFound(f"no record {record_id} in this scope")
        return steps

    def steps(self, view: View, record_id: str) -> list[Step]:
        """Of a record and the others of its slot, with the merges into them, oldest first; none where it is untold."""
        peers = self._curated.peers(view.conn, record_id, view.scopes, self._store.clock.now())
        told = list(filter(self._is_told, peers))
        if record_id not in {peer.id for peer in told}:
            return []
        steps = [step for peer in told for step in self._steps(view, peer)]
        steps += self._merges(view, [peer.id for peer in told])
        edited = {step.record: step.position for step in steps if step.act is Act.EDITED}
        steps.sort(key=lambda step: step.position)
        return [self._told(step, view, step.position < edited.get(step.record, 0)) for step in steps]

    def _steps(self, view: View, record: Record) -> list[Step]:
        steps = self._curated.history(view.conn, record.id, view.scopes)
        return [self._open(step, record) for step in steps]

    def _open(self, step: Step, record: Record) -> Step:
        """Words that the record had before it was made less sensitive stay as sensitive as they were."""
        if self._reader.may_read_sort(record.kind, step.sensitivity):
            return step
        won, against = step.won, tuple(replace(side, content=None) for side in step.against)
        bare = None if won is None else replace(won, content=None)
        return replace(step, content=None, reason=None, won=bare, against=against)

    def _merges(self, view: View, ids: Sequence[str]) -> list[Step]:
        """By which records of other slots were merged into these."""
        merged = filter(self._is_told, self._curated.merged_into(view.conn, ids, view.scopes))
        steps = [step for one in merged if one.id not in ids for step in self._steps(view, one)]
        return [step for step in steps if step.act is Act.MERGED and step.won and step.won.record in ids]

    def _told(self, step: Step, view: View, reworded: bool) -> Step:
        """A step with the name of who did it; without its words where only those who review may read them.

        reworded: a reviewer has put other words in place of these, which were never let in.
        """
        actor = (self._store.vault.name(step.actor) or step.actor).removeprefix("@")
        if (step.effect in _UNTOLD or reworded) and not self._guard.reviews:
            return replace(step, actor=actor, content=None, reason=None)
        others = [side.record for side in (step.won, *step.against) if side and side.record != step.record]
        said = self._curated.settled_at(view.conn, others, view.scopes, step.position) if others else {}
        words = {one.id: one.content for one in said.values() if self._is_told(one)}
        won, against = step.won, tuple(self._side(side, words) for side in step.against)
        reason = None if step.reason is None else self._store.gate.masking.text(step.reason)
        return replace(step, actor=actor, reason=reason, won=won and self._side(won, words), against=against)

    def _side(self, side: Side, words: dict[str, str | None]) -> Side:
        return replace(side, content=words[side.record]) if side.record in words else side

    def _is_told(self, record: Record) -> bool:
        held = record.status is Status.HELD and not self._guard.reviews
        return self._reader.may_read(record) and not held

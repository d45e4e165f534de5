"""What happened to a record and to the others of its slot, as it may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._views import View
from mnemolog.domain import ingress
from mnemolog.domain.records import Act, Side, Step
from mnemolog.domain.scope import Scope
from mnemolog.projections.curated_reads import CuratedView


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
            raise self._reader.closed(scope, record_id)
        return steps

    def steps(self, view: View, record_id: str) -> list[Step]:
        """Of a record and the others of its slot, with the merges into them, oldest first; none where it is untold."""
        peers = self._curated.peers(view.conn, record_id, view.scopes, self._store.clock.now())
        told = list(filter(self._reader.is_told, peers))
        if record_id not in {peer.id for peer in told}:
            return []
        steps = [step for peer in told for step in self._reader.steps(view, peer)]
        steps += self._merges(view, [peer.id for peer in told])
        steps.sort(key=lambda step: step.position)
        return [self._told(step, view) for step in steps]

    def _merges(self, view: View, ids: Sequence[str]) -> list[Step]:
        """By which records of other slots were merged into these."""
        merged = filter(self._reader.is_told, self._curated.merged_into(view.conn, ids, view.scopes))
        steps = [step for one in merged if one.id not in ids for step in self._reader.steps(view, one)]
        return [step for step in steps if step.act is Act.MERGED and step.won and step.won.record in ids]

    def _told(self, step: Step, view: View) -> Step:
        """A step with what the others of a decision said, where that may be told."""
        others = [side.record for side in (step.won, *step.against) if side and side.record != step.record]
        said = self._curated.settled_at(view.conn, others, view.scopes, step.position) if others else {}
        words = {one.id: one.content for one in said.values() if self._reader.is_told(one)}
        won, against = step.won, tuple(self._side(side, words) for side in step.against)
        reason = None if step.reason is None else self._store.gate.masking.text(step.reason)
        return replace(step, reason=reason, won=won and self._side(won, words), against=against)

    def _side(self, side: Side, words: dict[str, str | None]) -> Side:
        return replace(side, content=words[side.record]) if side.record in words else side

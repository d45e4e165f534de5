"""What was erased, and when: work that began before an erasure may not commit after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mnemolog.domain.errors import ErasedScope
from mnemolog.domain.events import ERASURE, Draft, Envelope, Json, Recorded

_LISTS: Final = ("events", "sessions")
_SINGLES: Final = ("subject", "session")


class LateWork(ErasedScope):
    """It began before an erasure of what it rests on, or belongs to an erased session."""


class Fences:
    """Position of the last erasure of each event, subject and session; filled from the log's erasure events.

    An erased session stays closed: its id is random and stands for nothing else.
    """

    def __init__(self) -> None:
        self._erased: dict[str, int] = {}
        self._closed: set[str] = set()
        self.position = 0
        """How far the erasures of the log have been taken in."""

    def load(self, erasures: Iterable[Recorded]) -> None:
        for recorded in erasures:
            self.note(recorded.envelope, recorded.position)

    def note(self, envelope: Envelope, position: int) -> None:
        if envelope.topic in ERASURE:
            self._erased.update(dict.fromkeys(_targets(envelope.clear), position))
            self._closed.update(envelope.clear.get("sessions") or ())
            if envelope.clear.get("session"):
                self._closed.add(envelope.clear["session"])
            self.position = max(self.position, position)

    def is_erased(self, event_id: str) -> bool:
        return event_id in self._erased

    def check(self, draft: Draft) -> None:
        """Raises LateWork when the draft's session was erased, or a source or subject since the draft began."""
        erased, began_at = self._erased, draft.began_at
        if not erased or draft.event.topic in ERASURE:  # a long erasure comes as several events
            return
        if draft.scope.session in self._closed:
            raise LateWork("this session was erased: it takes no more events")
        if began_at is None or began_at >= self.position:
            return
        if any(erased.get(target, 0) > began_at for target in _depends_on(draft)):
            raise LateWork("this work began before something it rests on was erased: drop it")


def _targets(fields: Json) -> Iterator[str]:
    for name in _LISTS:
        yield from fields.get(name) or ()
    for name in _SINGLES:
        if fields.get(name):
            yield fields[name]


def _depends_on(draft: Draft) -> Iterator[str]:
    yield from draft.sources
    yield from draft.subjects
    if draft.causation:
        yield draft.causation
    for subjects, _ in draft.parts:
        yield from subjects
    if draft.scope.session:
        yield draft.scope.session

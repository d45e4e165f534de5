"""The worker that writes summaries, behind the log: looks which sessions are due, reads their raw turns, appends.

It has no state that must survive: what is due follows from the view, and the key of an append from what was read. So
a worker that died, or a second one, writes nothing twice. Nothing of it runs in a rebuild, which reads what is
recorded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, Protocol

from sqlalchemy import Connection

from mnemolog.domain.errors import ErasedScope, IdempotencyConflict, VersionConflict
from mnemolog.domain.events import (
    Draft,
    Event,
    Receipt,
    Recorded,
    SummaryWritten,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.landmarks import RawTurn
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import SESSION_LEVELS
from mnemolog.domain.summaries import (
    ROLLING,
    Extractive,
    Summariser,
    Summary,
    WindowRule,
    is_blank,
    leaving,
)
from mnemolog.projections import summaries_view
from mnemolog.projections.ports import Clock, Ids
from mnemolog.projections.summaries_view import SessionState
from mnemolog.projections.supervision import Background

VIEW: Final = "summaries"
_PAUSE: Final = 0.2
"""Seconds between two looks while events keep coming."""


class SummaryLog(Protocol):
    """What the worker needs of the log."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]: ...

    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]: ...

    def head(self) -> int: ...

    def wait(self, after: int, timeout: float) -> int: ...

    def wake(self) -> None: ...


class Views(Protocol):
    """What the worker needs of the runner."""

    def read(self, name: str, at_least: int | None = None) -> AbstractContextManager[Connection]: ...


class KeyedHashes(Protocol):
    """Hashes that nobody can test guesses against once the subject is erased."""

    def keyed_hash(self, subject: str, purpose: bytes, data: bytes) -> bytes: ...


class Summarising:
    """Writes the summaries that are due. One instance belongs to one thread at a time.

    actor: the directory's id of this worker in a tenant, given by the tenant's id.
    indexed_to: up to which position turns can be found by search; what lies behind it stays in the window.
    rule: may be changed at any time; the next look follows it. on: whether anything is written at all. clean: hides
    in a text what must not be in a summary.
    refused: how often something was not written, by reason: blank, erased, overtaken.
    """

    def __init__(
        self,
        log: SummaryLog,
        views: Views,
        hashes: KeyedHashes,
        ids: Ids,
        clock: Clock,
        actor: Callable[[str], str],
        *,
        summariser: Summariser | None = None,
        rule: WindowRule | None = None,
        indexed_to: Callable[[], int] | None = None,
        poll: float = 0.1,
    ) -> None:
        self._log, self._views, self._hashes, self._ids, self._clock = log, views, hashes, ids, clock
        self._actor, self._indexed_to = actor, indexed_to or log.head
        self._summariser, self.rule = summariser or Extractive(), rule or WindowRule()
        self.clean: Callable[[str], str] = lambda text: text
        self.on = True
        self._looked, self._poll = 0, poll
        self._pending: set[str] = set()
        self.refused: Counter[str] = Counter()
        self.background = Background("summaries", self._go_round, log.wake)

    # One look ---------------------------------------------------------------------------------------------------

    def run_once(self) -> int:
        """Look at every session that changed since the last look; returns how many summaries were written.

        An error in one session leaves the others alone: the first is raised when all have been looked at, and its
        session is looked at again the next time.
        """
        if not self.on:
            return 0
        head, indexed = self._log.head(), self._indexed_to()
        with self._views.read(VIEW, head) as conn:
            touched = summaries_view.touched(conn, self._looked)
            sessions = {*self._pending, *touched, *summaries_view.left_behind(conn, touched, self._looked)}
            due = [one for one in sorted(sessions) if summaries_view.may_be_due(conn, one, self.rule)]
        # What is not indexed yet may become due without another event of the session.
        self._pending, self._looked = set(due), head
        written, errors = 0, list[Exception]()
        for session in due:
            try:
                written += self._settle(session, indexed < head)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return written

    def _settle(self, session: str, again: bool) -> bool:
        try:
            draft = self.prepare(session)
            written = draft is not None and self.commit(draft)
        except ErasedScope:
            self.refused["erased"] += 1
            return False
        if not again:
            self._pending.discard(session)
        return written

    def summarise(self, session: str) -> bool:
        """Summarise a session up to its last turn now, due or not; whether there is a new summary."""
        draft = self.prepare(session, force=True)
        return draft is not None and self.commit(draft)

    def prepare(self, session: str, *, force: bool = False) -> Draft | None:
        """The summary that is due, on its way into the log. None where none is due, or what was made is blank."""
        # Before anything is read: an erasure behind this position closes the draft, however late it is appended.
        began_at = self._log.head()
        with self._views.read(VIEW, began_at) as conn:
            state = summaries_view.state(conn, session)
        if state is None:
            return None
        last = leaving(state.standing, self.rule, self._indexed_to(), force)
        if last is None:
            return None
        positions = [member.position for member in state.standing.members if member.position <= last]
        read = [recorded for recorded in self._log.read_at(positions) if raw_turn(recorded) is not None]
        if not read:
            return None
        turns = [self._cleaned(turn) for turn in _joined(read)]
        summary = self._summariser.summarise(turns)
        if is_blank(summary.text):
            self.refused["blank"] += 1
            return None
        return self._draft(state, read, turns, summary, began_at)

    def _cleaned(self, turn: RawTurn) -> RawTurn:
        """Before anything is cut: what is left of a secret is none to a scanner."""
        author, tool = (name and self.clean(name) for name in (turn.author, turn.tool))
        return replace(turn, text=self.clean(turn.text), author=author, tool=tool)

    def commit(self, draft: Draft) -> bool:
        """Append, unless another worker was quicker; whether this wrote it. Raises ErasedScope after an erasure."""
        try:
            return not self._log.append([draft])[0].duplicate
        except (VersionConflict, IdempotencyConflict):
            self.refused["overtaken"] += 1
            return False

    def _draft(
        self,
        state: SessionState,
        read: Sequence[Recorded],
        turns: Sequence[RawTurn],
        summary: Summary,
        began_at: int,
    ) -> Draft:
        scope, tenant = state.scope, state.scope.tenant
        home, session = scope.user or tenant, scope.at(SESSION_LEVELS).encode()
        maker = self._summariser
        event = self._event(home, read, summary)
        of_whom = maker.name, maker.version, event.first, event.last, event.input_hash
        key = session + b"\0" + json.dumps(of_whom).encode()
        digest = json.dumps([event.text, event.landmarks, event.open_items]).encode()
        return Draft(
            id=self._ids.event_id(),
            event=event,
            scope=scope,
            stream=self._hashes.keyed_hash(home, b"summaries", session).hex(),
            occurred_at=self._clock.now(),
            actor=self._actor(tenant),
            role=Role.SERVICE,
            origin=_origin(turns, maker.reads_tools),
            digest=self._hashes.keyed_hash(home, b"body", digest).hex(),
            subjects=tuple(sorted({one for each in read for one in each.envelope.subjects} | {home})),
            key=self._hashes.keyed_hash(home, b"summary key", key).hex(),
            expected_version=state.version,
            sources=tuple(recorded.envelope.id for recorded in read),
            began_at=began_at,
        )

    def _event(self, home: str, read: Sequence[Recorded], summary: Summary) -> SummaryWritten:
        return SummaryWritten(
            summary.text,
            ROLLING,
            read[0].position,
            read[-1].position,
            self._summariser.name,
            self._summariser.version,
            self._hashes.keyed_hash(home, b"summary input", _input(read)).hex(),
            tuple(mark.as_json() for mark in summary.landmarks),
            tuple(item.as_json() for item in summary.open_items),
        )

    # In the background --------------------------------------------------------------------------------------------

    def _go_round(self) -> None:
        """Write what is due, then wait for more: a session rarely needs a summary the moment that it grows."""
        self.run_once()
        self._log.wait(self._looked, self._poll)
        self.background.rest(_PAUSE)


def raw_turn(recorded: Recorded) -> RawTurn | None:
    """What a summariser reads of an event; None for what is erased, unreadable, or no part of the conversation."""
    event, envelope = recorded.event, recorded.envelope
    said = _said(event) if isinstance(event, Event) else None
    if said is None or not isinstance(said.text, str):
        return None
    return replace(said, event_id=envelope.id, position=recorded.position, tier=envelope.origin)


def _said(event: Event) -> RawTurn | None:
    if isinstance(event, TurnRecorded | UtteranceChunkRecorded):
        kind = "turn" if isinstance(event, TurnRecorded) else "chunk"
        return _raw(kind, event.content, role=event.role, author=event.author)
    if isinstance(event, ToolCalled):
        return _raw("tool_call", event.arguments, tool=event.name, call_id=event.call_id)
    if isinstance(event, ToolReturned):
        failed = event.error is True
        return _raw("tool_result", event.output, tool=event.name, call_id=event.call_id, error=failed)
    return None


def _raw(
    kind: str,
    text: str,
    role: str | None = None,
    author: str | None = None,
    tool: str | None = None,
    call_id: str | None = None,
    error: bool = False,
) -> RawTurn:
    """Fields whose own sealed part was destroyed are absent, as if never given."""
    role, author, tool, call_id = (v if isinstance(v, str) else None for v in (role, author, tool, call_id))
    return RawTurn("", 0, kind, text, Tier.IMPORT, role, author, tool, call_id, error)


def _joined(read: Iterable[Recorded]) -> list[RawTurn]:
    """The turns, with the pieces of one utterance put together under the id of the first."""
    turns: list[RawTurn] = []
    before: tuple[str, str] | None = None
    for recorded in read:
        turn, event = raw_turn(recorded), recorded.event
        assert turn is not None
        piece = (event.utterance, event.role) if isinstance(event, UtteranceChunkRecorded) else None
        if piece is not None and piece == before:
            turns[-1] = replace(turns[-1], text=turns[-1].text + turn.text)
        else:
            turns.append(turn)
        before = piece
    return turns


def _input(read: Sequence[Recorded]) -> bytes:
    """What was read, for the keyed hash that tells whether it was this: ids and bodies' keyed digests."""
    return json.dumps([(each.envelope.id, each.envelope.digest) for each in read]).encode()


def _origin(turns: Iterable[RawTurn], reads_tools: bool) -> Tier:
    """The lowest tier of what can be in the summary; a machine made it, so never above an agent's."""
    return min([Tier.AGENT, *(turn.tier for turn in turns if reads_tools or turn.is_heard)])

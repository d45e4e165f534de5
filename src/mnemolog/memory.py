"""`Memory`: the face for agent developers. Every method passes the `Guard`, then asks a writer, reader or eraser."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from mnemolog._happened import chunk, session_closed, session_opened, tool_call, tool_result, turn
from mnemolog._parts import MemoryParts
from mnemolog._writing import About
from mnemolog.domain import ingress
from mnemolog.domain.errors import MnemologError, NotFound
from mnemolog.domain.events import Event, Forgotten, Receipt, Recorded
from mnemolog.domain.principal import LOCAL_OPERATOR, Action, Principal
from mnemolog.domain.scope import Scope, ScopeIds, a_scope
from mnemolog.infra.compose import Parts, open_store
from mnemolog.infra.settings import Settings, placed
from mnemolog.projections.ports import Clock, Ids

if TYPE_CHECKING:
    from mnemolog._erasing import ErasurePlan
    from mnemolog._recalling import Asking
    from mnemolog._stating import Acting, Correcting
    from mnemolog._tokens import Tokenizer
    from mnemolog.domain.gate.ports import Extractor
    from mnemolog.domain.records import Step
    from mnemolog.projections.embedding import Embedder
    from mnemolog.projections.reranking import Reranker
    from mnemolog.projections.working import TaskState
    from mnemolog.results import Context, Hit, MemoryRecord, OutputRange, Standing, Why, WhyNot

Moment = datetime | str | None


class Memory(MemoryParts):
    """One agent memory in one data directory, seen by one principal. Thread-safe.

    Times are aware datetimes or ISO 8601 text; a time without zone takes the one its session was opened with.
    Every write is on disk when it returns, and is visible to the next read. All errors derive from `MnemologError`;
    bad values are also `ValueError`. operations: the operator's and auditor's face; review: what waits for a person.
    """

    @classmethod
    def open(
        cls,
        where: str | Path | Settings,
        *,
        principal: Principal = LOCAL_OPERATOR,
        settings: Settings | None = None,
        create: bool = True,
        background: bool = True,
        clock: Clock | None = None,
        ids: Ids | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        extractor: Extractor | None = None,
    ) -> Self:
        """Open the memory in a data directory, or with log and views at a postgresql:// url, or by settings.

        What is missing is created. With a url or settings, locks, vectors and whatever has no url of its own are in
        the data directory of the settings. settings: those of the environment where not given.
        background=False starts no thread: views then advance when they are read, nobody writes summaries, vectors
        wait for `operations.embed`, and candidates for `operations.extract`. embedder, reranker: of your own, instead
        of those of the settings; extractor: beside the rules. clock and ids: for repeatable runs.
        Several processes may open it: the first one leads, another one (with background) takes over when it is gone.
        Raises InvalidInput for no such place or setting, KeysMissing, StoreUnavailable; NotFound where create=False.
        """
        path, given = placed(where, settings)
        own = Parts(clock, ids, embedder, reranker, extractor)
        with open_store(path, given, create=create, own=own) as store:
            store.begin(background, cls(store, LOCAL_OPERATOR).take_over)
            return cls(store, principal)

    def acting_as(self, principal: Principal) -> Memory:
        """The same memory seen by another principal; cheap, and closed with this one."""
        self._store.check_open()
        return type(self)(self._store, principal)

    def close(self) -> None:
        """Let go of the data directory. Idempotent."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What happened ---------------------------------------------------------------------------------------------

    def open_session(
        self,
        scope: Scope,
        *,
        timezone: str | None = None,
        title: str | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
    ) -> Receipt:
        """Begin a session. timezone: IANA name, taken for times that come without an offset."""
        return self._record(scope, session_opened(timezone, title), About(occurred_at, key))

    def close_session(
        self, scope: Scope, *, reason: str | None = None, occurred_at: Moment = None, key: str | None = None
    ) -> Receipt:
        """End a session. Later events of it are still accepted."""
        return self._record(scope, session_closed(reason), About(occurred_at, key))

    def record_turn(
        self,
        scope: Scope,
        *,
        role: str,
        content: str,
        author: str | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
        subjects: Sequence[str] = (),
    ) -> Receipt:
        """Record what a user, the assistant or the system said.

        key: the same key with the same content yields the first receipt; other content raises IdempotencyConflict.
        subjects: external ids of the persons that it is about, besides the scope's user.
        """
        return self._record(scope, turn(role, content, author), About(occurred_at, key, subjects))

    def record_chunk(
        self,
        scope: Scope,
        *,
        role: str,
        content: str,
        utterance: str,
        index: int,
        final: bool = False,
        author: str | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
    ) -> Receipt:
        """Record a piece of an utterance that is still being spoken; `utterance` names it, `index` counts from 0."""
        return self._record(
            scope, chunk(role, content, utterance, index, final, author), About(occurred_at, key)
        )

    def record_tool_call(
        self,
        scope: Scope,
        *,
        name: str,
        arguments: Any,
        call_id: str | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
        subjects: Sequence[str] = (),
    ) -> Receipt:
        """Record that the agent asked a tool. arguments: a JSON value, or the JSON text that the runtime gave."""
        return self._record(scope, tool_call(name, arguments, call_id), About(occurred_at, key, subjects))

    def record_tool_result(
        self,
        scope: Scope,
        *,
        output: Any = None,
        error: str | None = None,
        call_id: str | None = None,
        name: str | None = None,
        source: Sequence[str] | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
        subjects: Sequence[str] = (),
    ) -> Receipt:
        """Record what a tool returned: `output` (text or a JSON value) or `error`.

        source: what was read and its version, such as ("file:a.py", "v3").
        A large output goes to the blob store; the event keeps a preview, and `read_output` gives any range.
        """
        return self._record(
            scope, tool_result(output, error, call_id, name, source), About(occurred_at, key, subjects)
        )

    def record_messages(
        self,
        scope: Scope,
        messages: Iterable[Mapping[str, Any]],
        *,
        occurred_at: Moment = None,
        subjects: Sequence[str] = (),
    ) -> list[Receipt]:
        """Record a chat history in OpenAI's or Anthropic's shape; returns receipts of what was new.

        Aligned by place and content: sending the history again, or with its start cut off, doubles nothing.
        """
        self._guard.enter(Action.RECORD, scope)
        return self._writer.messages(scope, messages, About(occurred_at, subjects=subjects))

    def record_batch(self, items: Sequence[Mapping[str, Any]]) -> list[Receipt | MnemologError]:
        """Record many things with one fsync; a bad one yields its error in its place, the others go in.

        Each item: `type` (turn, chunk, tool_call, tool_result, session_opened, session_closed, remember), `scope`,
        and the keyword arguments of the method of that type.
        """
        return self._batcher.append(items)

    def feedback(
        self,
        scope: Scope,
        target: str,
        rating: str,
        *,
        comment: str | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
    ) -> Receipt:
        """Judge an event or a record, by id. rating: up or down."""
        self._guard.enter(Action.RECORD, scope)
        return self._stater.feedback(scope, target, rating, comment, About(occurred_at, key))

    def _record(self, scope: Scope, event: Event, about: About) -> Receipt:
        self._guard.enter(Action.RECORD, scope)
        return self._writer.write(scope, event, self._writer.origin(event), about)

    # Memory, by people and agents -----------------------------------------------------------------------------

    def remember(
        self,
        scope: Scope,
        content: str,
        *,
        slot: tuple[str, str] | None = None,
        kind: str | None = None,
        evidence: Sequence[str | Mapping[str, Any]] = (),
        valid_from: Moment = None,
        valid_to: Moment = None,
        expires_at: Moment = None,
        sensitivity: str | None = None,
        consent: str | None = None,
        confidence: float = 1.0,
        subjects: Sequence[str] = (),
        belongs_to: Scope | None = None,
        expected_version: int | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
    ) -> Receipt:
        """State something to remember; `receipt.record_id` names the record, and `standing` tells what became of it.

        The same statement in the same scope adds evidence to its record, never a second record.
        slot: (entity, attribute), the key under which one value is current; a newer value supersedes the older.
        kind: fact (where not named, for a new record), preference, episode, procedure, constraint or reference.
        evidence: event ids, or {"event_id", "start", "end"} spans; the record's trust is the lowest of them.
        sensitivity: normal or personal; where not named, that of the record, normal for a new one.
        belongs_to: a wider scope than the default (tenant, organization, user and project of `scope`).
        """
        self._guard.enter(Action.STATE, scope)
        about = About(occurred_at, key, subjects, expected_version)
        given = {
            "content": content, "slot": slot, "kind": kind, "valid_from": valid_from, "valid_to": valid_to,
            "expires_at": expires_at, "sensitivity": sensitivity, "consent": consent, "confidence": confidence,
            "evidence": evidence, "belongs_to": belongs_to,
        }  # fmt: skip
        return self._stater.remember(scope, given, about)

    def correct(self, scope: Scope, record_id: str, content: str, **about: Unpack[Correcting]) -> Receipt:
        """Replace what a record says; the older value stays in its history.

        A correction by a person outranks every machine. expected_version: raises VersionConflict when the record has
        moved on. Raises NotFound for what the caller may not read, NotKept for a text that the policy blocks.
        """
        self._guard.enter(Action.STATE, scope)
        return self._stater.correct(scope, record_id, content, about)

    def retract(self, scope: Scope, record_id: str, **about: Unpack[Acting]) -> Receipt:
        """Take a record back. What it had superseded is current again."""
        return self._act(scope, "retract", record_id, about)

    def confirm(self, scope: Scope, record_id: str, **about: Unpack[Acting]) -> Receipt:
        """Say that a record is right: sets when it was last verified, and ends a dispute."""
        return self._act(scope, "confirm", record_id, about)

    def dispute(self, scope: Scope, record_id: str, **about: Unpack[Acting]) -> Receipt:
        """Say that a record may be wrong: it stays readable, marked as disputed."""
        return self._act(scope, "dispute", record_id, about)

    def _act(self, scope: Scope, act: str, record_id: str, about: Acting) -> Receipt:
        self._guard.enter(Action.STATE, scope)
        return self._stater.act(scope, act, record_id, about)

    def grant_consent(self, scope: Scope, topic: str | None = None, *, reason: str | None = None) -> Receipt:
        """The scope's user agrees to a topic of the policy; without a topic, that memory is kept about them at all."""
        return self._consent.grant(scope, topic, reason)

    def withdraw_consent(
        self, scope: Scope, topic: str | None = None, *, reason: str | None = None
    ) -> Receipt:
        """The scope's user takes it back: what was kept is not read any more, and erased if the policy says so."""
        return self._consent.withdraw(scope, topic, reason)

    def standing(self, scope: Scope, said: Receipt | str) -> Standing:
        """What became of what `remember` or `correct` told: current, held for review, dropped, ... and why.

        said: the receipt, or the id of an event or a record. An append does not wait for the gate; this waits.
        """
        return self.review.standing(scope, said)

    def why(self, scope: Scope, record_id: str) -> Why:
        """How a record came to be what it is, by the rules, the evidence and the records that it stands against."""
        return self.review.why(scope, record_id)

    def why_not(self, scope: Scope, event_id: str) -> WhyNot:
        """What became of an event: what was found in it, and why that is memory or is not."""
        return self.review.why_not(scope, event_id)

    # Working state ---------------------------------------------------------------------------------------------

    def set_state(
        self,
        scope: Scope,
        task: str,
        values: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        occurred_at: Moment = None,
        key: str | None = None,
    ) -> Receipt:
        """Say where a task of the session is: sets these keys, removes those whose value is None, keeps the others.

        expected_version: raises VersionConflict when the task has moved on (0: nobody has touched it yet).
        """
        self._guard.enter(Action.RECORD, scope)
        return self._desk.set_state(scope, task, values, expected_version, About(occurred_at, key))

    def state(self, scope: Scope, task: str) -> TaskState:
        """A task's values and version, and who changed each key; empty at version 0 where there is nothing."""
        self._guard.enter(Action.READ, scope)
        return self._desk.state(scope, task)

    def states(self, scope: Scope) -> list[TaskState]:
        """The states of all tasks of the scope's session, the one that changed last at the end."""
        self._guard.enter(Action.READ, scope)
        return self._desk.states(scope)

    # Reading ---------------------------------------------------------------------------------------------------

    def recall(self, scope: Scope, query: str, *, k: int = 10, **asked: Unpack[Asking]) -> list[Hit]:
        """The `k` records and events of the caller's scope that answer the query best, best first.

        since, until: bounds of occurred_at, [since, until). now: the moment at which validity is judged.
        at_least: a position that must be visible (default: everything that is in the log now).
        exact: levels that must equal the scope's, absence included; True for all. A level may be `ANY`.
        kinds: turn, chunk, tool_call, tool_result and kinds of records. author, tool: of turns; slot, status: of
        records. history: superseded records too. What the query says of time ("last week", "지난주") is a bound in
        the zone of the session, else of `now`; without such turns, and for dates and years, it only lifts. A query
        without anything in it is refused (InvalidInput): `records` and `log` list.
        """
        self._guard.enter(Action.READ, scope)
        hits = self._reader.recall(scope, query, k, **asked)
        return self._trail.some("recall", scope, hits, query)

    def context(
        self,
        scope: Scope,
        query: str,
        *,
        budget: int | None = None,
        window: int | None = None,
        layers: Collection[str] | None = None,
        tokenizer: Tokenizer | None = None,
        now: Moment = None,
        at_least: int | None = None,
    ) -> Context:
        """What the agent should read before it answers, the most binding first, the present state last.

        budget: tokens that `context.text` may have; or window: tokens of the model, of which the policy gives a
        share. Entries are whole or absent. The receipt is in the log. query: may be empty, where nothing is asked yet.
        layers: only some of boot, tools, memory, session; what the others do not use is theirs.
        tokenizer: counts tokens (or has `encode`, as tiktoken's do); an estimate on the safe side where not given.
        """
        self._guard.enter(Action.READ, scope)
        return self._contexts.context(
            scope,
            query,
            budget=budget,
            window=window,
            layers=layers,
            tokenizer=tokenizer,
            now=now,
            at_least=at_least,
        )

    def get(self, scope: Scope, id: str, *, now: Moment = None) -> MemoryRecord | Hit | Forgotten:
        """A record or an event by its id; FORGOTTEN where it was erased. Raises NotFound."""
        self._guard.enter(Action.READ, scope)
        return self._trail.one("get", scope, id, self._reader.get(scope, id, now))

    def records(
        self,
        scope: Scope,
        *,
        kinds: Collection[str] | None = None,
        status: Collection[str] | None = None,
        now: Moment = None,
        believed_at: int | None = None,
        at_least: int | None = None,
        exact: bool | Collection[str] = False,
        history: bool = False,
    ) -> list[MemoryRecord]:
        """The records of the caller's scope. believed_at: as the log stood at that position.

        Without `status` or `history`, only what is current (or disputed) at `now`.
        """
        self._guard.enter(Action.READ, scope)
        found = self._reader.records(
            scope, kinds=kinds, status=status, now=now, believed_at=believed_at, at_least=at_least, exact=exact,
            history=history,
        )  # fmt: skip
        return self._trail.some("records", scope, found)

    def history(self, scope: Scope, record_id: str) -> list[Step]:
        """Everything that happened to a record and to the others in its slot, oldest first."""
        self._guard.enter(Action.READ, scope)
        return self._trail.some("history", scope, self.review.histories.history(scope, record_id))

    def read_output(
        self, scope: Scope, event_id: str, start: int = 0, end: int | None = None
    ) -> OutputRange | Forgotten:
        """Characters [start, end) of what an event holds, however large. FORGOTTEN where it was erased."""
        self._guard.enter(Action.READ, scope)
        found = self._reader.read_output(scope, event_id, start, end)
        return self._trail.one("read_output", scope, event_id, found)

    def log(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        topics: Collection[str] | None = None,
        scope: Scope | None = None,
    ) -> list[Recorded]:
        """Events behind a position that the principal may see; with `scope`, only those that have its levels."""
        self._guard.enter_log()
        return self._reader.log(after, limit, topics, scope)

    def names(self, ids: ScopeIds) -> Scope:
        """The external names behind the ids of a recorded scope; an erased name stays its id."""
        self._guard.enter_log()
        if not self._guard.sees(ScopeIds(a_scope(ids, "ids"))):
            raise NotFound("these ids are of no scope that the principal may see")
        return self._store.vault.names(ids)

    def wait(self, after: int, timeout: float) -> int:
        """The head of the log, as soon as it is beyond `after` or `timeout` seconds have passed."""
        self._guard.enter_log()
        return self._store.log.wait(ingress.whole(after, "after"), ingress.seconds(timeout, "timeout"))

    # Erasing ---------------------------------------------------------------------------------------------------

    def erase(
        self,
        scope: Scope,
        *,
        event: str | None = None,
        record: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        reason: str | None = None,
        keep_evidence: bool = False,
    ) -> ErasurePlan:
        """Plan an erasure of exactly one thing; nothing happens until `plan.apply()`.

        event: an event and what was derived from it. record: its statements and, unless `keep_evidence`, the
        events that it cites. session: everything of it. subject: a person in the whole tenant, which `scope` names.
        """
        self._store.check_open()
        targets = {"event": event, "record": record, "session": session, "subject": subject}
        return self._eraser.asked(scope, targets, reason=reason, keep_evidence=keep_evidence)

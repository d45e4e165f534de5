"""Promise 3: rebuild equals live; and the views equal a simple model of what should be current."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from face_world import VIEWS, dump_hashes, open_memory, rebuilt_hashes
from mnemolog import FORGOTTEN, Hit, Memory, Receipt, Scope
from mnemolog.errors import ErasedScope, NotFound

USERS = st.sampled_from(["ann", "bo"])
SESSIONS = st.sampled_from(["s1", "s2", "s3"])
CONTENTS = st.sampled_from(["walrus tea", "walrus coffee", "walrus milk", "walrus 물"])
SLOTS = st.sampled_from([None, ("drink", "morning"), ("drink", "evening")])
ROLES = st.sampled_from(["user", "assistant"])
PICK = st.integers(0, 1_000)
PHASES = tuple(phase for phase in Phase if phase is not Phase.shrink or os.environ.get("HYPOTHESIS_PROFILE"))
"""Each step opens files: shrinking a failure takes minutes, so only who asks for a profile waits for it."""


@dataclass
class Happened:
    """One event of the model. owner: the person whose event it is; sources: the events that it rests on."""

    event_id: str
    act: str
    owner: str
    session: str
    content: str | None = None
    record: str | None = None
    slot: tuple[str, str] | None = None
    sources: tuple[str, ...] = ()
    erased: bool = False


@dataclass
class Standing:
    """What a record says, as the model has it; at: the place of the event that made it so."""

    record: str
    content: str
    group: object
    at: int
    alive: bool
    disputed: bool


@dataclass
class Model:
    """All events in order. Ids of erased persons are renamed, so that nobody owns them."""

    events: list[Happened] = field(default_factory=list)
    closed: set[tuple[str, str]] = field(default_factory=set)

    def live(self) -> list[Happened]:
        return [event for event in self.events if not event.erased]

    def said(self, owner: str) -> list[str]:
        return [e.content for e in self.live() if e.act == "turn" and e.owner == owner and e.content]

    def streams(self, owner: str) -> dict[str, list[tuple[int, Happened]]]:
        found: dict[str, list[tuple[int, Happened]]] = {}
        for at, event in enumerate(self.events):
            if event.record is not None and event.owner == owner and event.act != "judge":
                found.setdefault(event.record, []).append((at, event))
        return found

    def standings(self, owner: str) -> list[Standing]:
        settled = [self._settled(events) for events in self.streams(owner).values()]
        return [one for one in settled if one is not None]

    def _settled(self, events: list[tuple[int, Happened]]) -> Standing | None:
        """The last thing said counts; a retraction ends it; a correction keeps the slot that it found."""
        content, at, slot, alive, disputed = None, 0, None, True, False
        for place, event in events:
            if event.erased:
                continue
            if event.act in ("state", "correct"):
                slot = event.slot if event.act == "state" else slot
                content, at, alive = event.content, place, True
            elif event.act == "retract":
                alive = False
            disputed = event.act == "dispute" or (disputed and event.act not in ("confirm", "correct"))
        if content is None:
            return None
        return Standing(str(events[0][1].record), content, slot or content, at, alive, disputed)

    def current(self, owner: str) -> dict[str, tuple[str, str]]:
        """Record → what it says and how it stands: of each group the newest one that was not retracted."""
        best: dict[object, Standing] = {}
        for one in self.standings(owner):
            if one.alive and (one.group not in best or best[one.group].at < one.at):
                best[one.group] = one
        return {o.record: (o.content, "disputed" if o.disputed else "current") for o in best.values()}

    def twins(self, owner: str, record: str) -> set[str]:
        standings = {one.record: one for one in self.standings(owner)}
        mine = standings.get(record)
        same = {
            o.record
            for o in standings.values()
            if mine and (o.group, o.content) == (mine.group, mine.content)
        }
        return {record} | same

    def erase(self, doomed: set[str]) -> None:
        """Erase events and, step by step, all that rests on them."""
        while True:
            more = {e.event_id for e in self.live() if doomed & set(e.sources)} - doomed
            if not more:
                break
            doomed = doomed | more
        for event in self.events:
            event.erased = event.erased or event.event_id in doomed


class RebuildEqualsLive(RuleBasedStateMachine):
    """One memory under any sequence of writes, erasures and rebuilds."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.memory = open_memory(self.folder)
        self.model = Model()
        self.generation = 0

    def teardown(self) -> None:
        try:
            live = dump_hashes(self.memory)
            assert rebuilt_hashes(self.memory, 1) == live
            assert rebuilt_hashes(self.memory, 1000) == live
            self.memory.close()
            self.memory = open_memory(self.folder)
            assert dump_hashes(self.memory) == live
            self.views_equal_the_model()
        finally:
            self.memory.close()
            shutil.rmtree(self.folder)

    def scope(self, user: str, session: str) -> Scope:
        return Scope("acme", user=user, session=session)

    def write(self, act: str, user: str, session: str, call: object, **told: object) -> None:
        """Do it in the memory and in the model; what belongs to an erased session must be refused."""
        if (user, session) in self.model.closed:
            with pytest.raises(ErasedScope):
                call()  # type: ignore[operator]
            return
        receipt: Receipt = call()  # type: ignore[operator]
        if act in ("state", "correct", "retract", "confirm", "dispute"):
            told["record"] = receipt.record_id
        self.model.events.append(Happened(receipt.event_id, act, user, session, **told))  # type: ignore[arg-type]

    def records_of(self, user: str) -> list[str]:
        return [r for r, events in self.model.streams(user).items() if not all(e.erased for _, e in events)]

    # Writing ------------------------------------------------------------------------------------------------

    @rule(user=USERS, session=SESSIONS, role=ROLES, content=CONTENTS)
    def say(self, user: str, session: str, role: str, content: str) -> None:
        scope = self.scope(user, session)
        self.write(
            "turn",
            user,
            session,
            lambda: self.memory.record_turn(scope, role=role, content=content),
            content=content,
        )

    @rule(user=USERS, session=SESSIONS, contents=st.lists(CONTENTS, min_size=1, max_size=3))
    def send_messages(self, user: str, session: str, contents: list[str]) -> None:
        scope = self.scope(user, session)
        messages = [{"role": "user", "content": content} for content in contents]
        if (user, session) in self.model.closed:
            with pytest.raises(ErasedScope):
                self.memory.record_messages(scope, messages)
            return
        for receipt in self.memory.record_messages(scope, messages):
            hit = self.memory.get(scope, receipt.event_id)
            assert isinstance(hit, Hit)
            self.model.events.append(Happened(receipt.event_id, "turn", user, session, hit.text))

    @rule(user=USERS, session=SESSIONS, content=CONTENTS, slot=SLOTS, cite=st.booleans(), pick=PICK)
    def remember(
        self, user: str, session: str, content: str, slot: tuple[str, str] | None, cite: bool, pick: int
    ) -> None:
        scope = self.scope(user, session)
        turns = [e.event_id for e in self.model.live() if e.act == "turn" and e.owner == user]
        evidence = (turns[pick % len(turns)],) if cite and turns else ()
        self.write(
            "state",
            user,
            session,
            lambda: self.memory.remember(scope, content, slot=slot, evidence=evidence),
            content=content,
            slot=slot,
            sources=evidence,
        )

    @rule(user=USERS, session=SESSIONS, act=st.sampled_from(["correct", "retract", "confirm", "dispute"]), pick=PICK,
          content=CONTENTS)  # fmt: skip
    def change(self, user: str, session: str, act: str, pick: int, content: str) -> None:
        records, scope = self.records_of(user), self.scope(user, session)
        if not records:
            return
        record = records[pick % len(records)]
        if act == "correct":
            self.write(
                act,
                user,
                session,
                lambda: self.memory.correct(scope, record, content, reason="r"),
                content=content,
            )
        else:
            self.write(act, user, session, lambda: getattr(self.memory, act)(scope, record))

    @rule(user=USERS, session=SESSIONS, pick=PICK, rating=st.sampled_from(["up", "down"]))
    def judge(self, user: str, session: str, pick: int, rating: str) -> None:
        records, scope = self.records_of(user), self.scope(user, session)
        if not records:
            return
        record = records[pick % len(records)]
        last = self.model.streams(user)[record][-1][1]
        self.write(
            "judge",
            user,
            session,
            lambda: self.memory.feedback(scope, record, rating),
            record=record,
            content=rating,
            sources=(last.event_id,),
        )

    # Erasing ------------------------------------------------------------------------------------------------

    @rule(pick=PICK)
    def erase_event(self, pick: int) -> None:
        events = [event for event in self.model.live() if not event.owner.startswith("gone")]
        if events:
            event = events[pick % len(events)]
            receipt = self.memory.erase(self.scope(event.owner, event.session), event=event.event_id).apply()
            assert receipt.complete
            self.model.erase({event.event_id})

    @rule(user=USERS, pick=PICK)
    def erase_record(self, user: str, pick: int) -> None:
        records = self.records_of(user)
        if records:
            record = records[pick % len(records)]
            assert self.memory.erase(Scope("acme", user=user), record=record).apply().complete
            streams = self.model.streams(user)
            own = [e for r in self.model.twins(user, record) for _, e in streams[r]]
            self.model.erase({e.event_id for e in own} | {source for e in own for source in e.sources})

    @rule(user=USERS, session=SESSIONS)
    def erase_session(self, user: str, session: str) -> None:
        known = any(e.owner == user and e.session == session for e in self.model.events)
        if known and (user, session) not in self.model.closed:
            assert self.memory.erase(Scope("acme", user=user), session=session).apply().complete
            events = [e for e in self.model.events if (e.owner, e.session) == (user, session)]
            self.model.erase({event.event_id for event in events})
            self.model.closed.add((user, session))

    @rule(user=USERS)
    def erase_person(self, user: str) -> None:
        """The person goes, with all sessions; the same name may come back, in other sessions."""
        own = [event for event in self.model.events if event.owner == user]
        if not own:
            return
        assert self.memory.erase(Scope("acme"), subject=user).apply().complete
        self.model.erase({event.event_id for event in own})
        self.generation += 1
        for event in own:
            self.model.closed.add((user, event.session))
            event.owner = f"gone-{self.generation}"

    # Looking ------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(VIEWS), batch=st.integers(1, 9))
    def rebuild(self, name: str, batch: int) -> None:
        live = dump_hashes(self.memory)
        self.memory.operations.rebuild(name, batch_size=batch)
        assert dump_hashes(self.memory) == live

    @rule(pick=PICK)
    def look_for_what_is_gone(self, pick: int) -> None:
        gone = [
            e for e in self.model.events if e.erased and e.act == "turn" and not e.owner.startswith("gone")
        ]
        if gone:
            event = gone[pick % len(gone)]
            assert self.memory.get(self.scope(event.owner, event.session), event.event_id) is FORGOTTEN

    @rule(user=USERS)
    def look_for_nobody(self, user: str) -> None:
        with pytest.raises(NotFound):
            self.memory.get(Scope("acme", user=user), "0" * 32)

    @invariant()
    def views_equal_the_model(self) -> None:
        for user in ("ann", "bo"):
            scope = Scope("acme", user=user)
            current = self.model.current(user)
            records = self.memory.records(scope)
            assert {r.record_id: (r.content, r.status) for r in records} == current
            hits = self.memory.recall(scope, "walrus", k=1000)
            expected = self.model.said(user) + [content for content, _ in current.values()]
            assert sorted(hit.text for hit in hits) == sorted(expected)
            for record in records:
                judged = [
                    e.content for e in self.model.live() if (e.act, e.record) == ("judge", record.record_id)
                ]
                assert record.feedback == (judged.count("up"), judged.count("down"))


TestRebuildEqualsLive = RebuildEqualsLive.TestCase
TestRebuildEqualsLive.settings = settings(
    max_examples=settings().max_examples // 4, stateful_step_count=25, phases=PHASES
)
TestRebuildEqualsLive.__doc__ = (
    "Promise 3: any projection rebuilt at any time equals the live one and the model."
)


def test_promise_3_long_erasures_rebuild_to_the_same(memory: Memory) -> None:
    """An erasure that takes several events (more than 500 ids) rebuilds to the same views with any batch size."""
    scope = Scope("acme", user="ann", session="s1")
    other = Scope("acme", user="ann", session="s2")
    memory.record_turn(other, role="user", content="walrus stays")
    items = [{"type": "turn", "scope": scope, "role": "user", "content": f"walrus {n}"} for n in range(1_201)]
    memory.record_batch(items)
    receipt = memory.erase(Scope("acme", user="ann"), session="s1").apply()
    assert receipt.complete
    assert receipt.events == 1_201
    assert len(memory.log(topics={"ContentErased"})) == 3
    live = dump_hashes(memory)
    for batch in (1000, 333):
        assert rebuilt_hashes(memory, batch) == live
    assert [hit.text for hit in memory.recall(other, "walrus", k=1000)] == ["walrus stays"]


@pytest.mark.parametrize("target", ["subject", "event"])
def test_promise_3_feedback_about_an_erased_person_rebuilds_to_the_same(memory: Memory, target: str) -> None:
    """What somebody says of a record about a person goes with the person from the live view too, and is not counted."""
    project, judge = Scope("acme", project="p"), Scope("acme", user="bo", project="p", session="s1")
    about = memory.remember(project, "customer owes 5", subjects=["cust-9"])
    kept = memory.remember(judge, "unrelated")
    said = memory.feedback(judge, about.record_id, "up", comment="agree")
    memory.feedback(judge, kept.record_id, "up", comment="fine")
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory) == live
    if target == "subject":
        assert memory.erase(Scope("acme"), subject="cust-9").apply().complete
    else:
        assert memory.erase(judge, event=said.event_id).apply().complete
    live = dump_hashes(memory)
    for batch in (1, 1000):
        assert rebuilt_hashes(memory, batch) == live
    assert memory.get(judge, kept.record_id).feedback == (1, 0)

"""Anything that can happen to found and stated memory, in any order: folded as it happens or anew, it is the same."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from curated_world import LATER, MIN, Log, Reader, dumped, view
from mnemolog.domain.events import ERASURE, MEMORY, ConsentGranted, ConsentWithdrawn, MergeReviewed, Recorded
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.records import READABLE, Status
from mnemolog.infra.policies import parse_policy

SLOT = ("wall", "colour")
DOCUMENTS = (
    "version: 1",
    "version: 1\nmemory: {confirm: [fact]}",
    "version: 1\nburst: {least: 2, factor: 1}",
    "version: 1\ntopics: {colours: {rule: conditional, words: [red, blue]}}",
    "version: 1\ntopics: {colours: {rule: forbidden, words: [red]}}\nmemory: {expiry: {fact: 30}}",
    "version: 1\nsystems: {paint: {attributes: [colour], verify: the paint shop}}",
)
WORDS = st.sampled_from(["red", "green", "blue"])
TIERS = st.sampled_from([Tier.USER_STATED, Tier.AGENT, Tier.UNTRUSTED_TOOL])
ROLES = st.sampled_from([Role.USER, Role.AGENT])
ANY = st.integers(0, 99)


class Gate(RuleBasedStateMachine):
    """`self.log` is what happened; a view folds it event by event, another is folded anew after each step."""

    @initialize(document=st.sampled_from(DOCUMENTS))
    def begin(self, document: str) -> None:
        self.policy = parse_policy(document).gate
        self.log, self.folded = Log(), 0
        self.opened = view(self.policy)
        self.conn, self.curated = self.opened.__enter__()

    def teardown(self) -> None:
        """The rows are the same when the log is folded anew, by threes and all at once."""
        if not hasattr(self, "opened"):
            return
        try:
            live = list(self.curated.dump(self.conn))
            now = self.log.as_read_now()
            assert dumped(now, (3,), self.policy) == live
            assert dumped(now, (500,), self.policy) == live
        finally:
            self.opened.__exit__(None, None, None)

    def memory(self) -> list[Recorded]:
        return [one for one in self.log.events if one.envelope.topic in MEMORY]

    def one(self, which: int) -> Recorded:
        return self.memory()[which % len(self.memory())]

    @rule(word=WORDS, slot=st.booleans(), tier=TIERS, voice=st.sampled_from("ab"))
    def admit(self, word: str, slot: bool, tier: Tier, voice: str) -> None:
        """Somebody says something, and the worker finds it."""
        source = self.log.say(f"the wall is {word}", tier=tier)
        self.log.find(source, word, SLOT if slot else None, voice)

    @rule(word=WORDS, role=ROLES)
    def state(self, word: str, role: Role) -> None:
        """Somebody states it."""
        self.log.state(f"the wall is {word}", role=role, slot=SLOT)

    @precondition(lambda self: self.memory())
    @rule(which=ANY, word=WORDS)
    def correct(self, which: int, word: str) -> None:
        self.log.correct(self.one(which), f"rather {word}")

    @precondition(lambda self: self.memory())
    @rule(
        which=ANY,
        act=st.sampled_from(["dispute", "retract", "confirm"]),
        role=st.sampled_from([Role.USER, Role.AGENT]),
    )
    def judge(self, which: int, act: str, role: Role) -> None:
        getattr(self.log, act)(self.one(which), role)

    @precondition(lambda self: self.memory())
    @rule(which=ANY, decision=st.sampled_from(["approve", "reject", "edit"]))
    def review(self, which: int, decision: str) -> None:
        target = self.one(which)
        self.log.review(target, decision, "edited: red" if decision == "edit" else None)

    @precondition(lambda self: self.memory())
    @rule(which=ANY, other=ANY, decision=st.sampled_from(["merge", "apart"]))
    def compare(self, which: int, other: int, decision: str) -> None:
        """A person says that two records say the same, or that they do not."""
        stream = self.one(other).envelope.stream
        self.log.append(MergeReviewed(decision, stream), self.one(which).envelope.stream)

    @rule(granted=st.booleans(), topic=st.sampled_from([None, "colours"]))
    def consent(self, granted: bool, topic: str | None) -> None:
        self.log.append((ConsentGranted if granted else ConsentWithdrawn)(topic), "consent", MIN)

    @precondition(lambda self: self.log.events)
    @rule(which=ANY)
    def erase(self, which: int) -> None:
        """An event, and what was found in it."""
        sealed = [one for one in self.log.events if one.envelope.topic not in ERASURE]
        target = sealed[which % len(sealed)]
        derived = [one for one in self.log.events if target.envelope.id in one.envelope.sources]
        self.log.erase(target, *derived)

    def fold(self) -> None:
        for recorded in self.log.events[self.folded :]:
            if recorded.envelope.topic in self.curated.topics:
                self.curated.fold(self.conn, [recorded])
        self.folded = len(self.log.events)

    @invariant()
    def one_value_stands(self) -> None:
        """Never two readable values of one slot but those that need confirmation, and never one that waits."""
        if not hasattr(self, "log"):
            return
        self.fold()
        reader = Reader(self.conn, self.curated)
        records = reader.view.records(self.conn, reader.scopes, LATER, include_history=True)
        readable = [one for one in records if one.status in READABLE]
        of_slot = [one for one in readable if one.slot == SLOT]
        assert len(of_slot) <= 1 or {one.status for one in of_slot} == {Status.CONTESTED}
        assert all({one.id, *one.rivals} == {each.id for each in of_slot} for one in of_slot)
        assert all(one.content is not None for one in readable)


Gate.TestCase.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
TestGate = Gate.TestCase
TestGate.__doc__ = "Promise 3 for the gate: whatever happens, a rebuild equals the live view."

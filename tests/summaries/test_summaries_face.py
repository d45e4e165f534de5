"""Summaries on the real log, vault and views: written once, never late, remade after an erasure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from face_world import files_with
from mnemolog import Memory, Scope
from mnemolog.domain.context import estimate_tokens
from mnemolog.domain.events import FORGOTTEN, Draft, Receipt
from mnemolog.domain.landmarks import RawTurn
from mnemolog.domain.principal import Tier
from mnemolog.domain.summaries import Summary
from mnemolog.errors import ErasedScope
from mnemolog.projections import summaries_view
from summaries_world import S1, S2, SMALL, current, numbers, session_of, talk, window, worker, written

CHAT = [f"{who} says thing number {n} about {topic}" for n, (who, topic) in enumerate([
    ("Mina", "harbours"), ("bot", "cranes"), ("Mina", "tides"), ("bot", "pilots"), ("Mina", "tugs"),
    ("bot", "berths"), ("Mina", "buoys"), ("bot", "locks"),
])]  # fmt: skip


class Fixed:
    """Says what it is told to."""

    name, version, reads_tools = "fixed", "1", False

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def summarise(self, turns: Sequence[RawTurn]) -> Summary:
        return Summary(self.texts.pop(0))


class DyingLog:
    """Appends, and then is gone before the writer hears of it."""

    def __init__(self, log: object) -> None:
        self._log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        self._log.append(drafts)  # type: ignore[attr-defined]
        raise RuntimeError("killed")


def test_what_was_said_first_is_kept_through_a_session_of_200_turns(memory: Memory) -> None:
    """Facts, decisions, prohibitions of turns 1 to 5, and what is open, at turn 60 and 200, in 2,000 tokens."""
    opening = [
        ("user", "We build the Heron export. The budget is 48Mquokka won and it starts in May."),
        ("assistant", "Understood."),
        ("user", "Never push to main without a review. 데이터베이스는 PostgreSQL로 결정했습니다."),
        ("assistant", "I will keep to that."),
        ("user", "My contact is Dana Oh. Could you find out who owns the zebra wharf?"),
        ("user", "Let us go on with the first module."),
    ]
    kept = ["48Mquokka won", "May", "Never push to main", "PostgreSQL로 결정", "Dana Oh", "zebra wharf"]
    writer, wrote = worker(memory), 0
    for at in range(1, 201):
        busy = f"Step {at} of the {CHAT[at % 8].split()[-1]} module took {at * 7} seconds; I must retry it."
        role, text = opening[at - 1] if at <= 6 else (("assistant", "user")[at % 2], busy)
        memory.record_turn(S1, role=role, content=text)
        wrote += writer.run_once()
        if at in (60, 200):
            found = current(memory, S1)
            assert found is not None and [fact for fact in kept if fact not in found.rendered] == []
            assert [item.kind for item in found.open_items if "zebra" in item.text] == ["request"]
            assert estimate_tokens(found.rendered) <= 2_000
    assert 5 <= wrote <= 10
    assert 12 <= len(window(memory, S1, keep=12)) <= 45


def test_an_erased_fact_leaves_the_summary(memory: Memory) -> None:
    """A03: after erasing one source the summary is remade from the other, with another version and range."""
    first = memory.record_turn(S1, role="user", content="Heron budget is 48Mquokka won")
    memory.record_turn(S1, role="user", content="Heron starts in May")
    memory.close_session(S1)
    writer = worker(memory)
    assert writer.run_once() == 1
    before = current(memory, S1)
    assert before is not None and "48Mquokka" in before.rendered and "May" in before.rendered
    receipt = memory.erase(S1, event=first.event_id).apply()
    assert receipt.complete
    assert current(memory, S1) is None
    assert writer.run_once() == 1
    after = current(memory, S1)
    assert after is not None and "Heron starts in May" in after.rendered
    assert "48Mquokka" not in repr(after) and "48" not in after.rendered
    assert (after.version, after.first) != (before.version, before.first)
    assert after.version > before.version and after.first > before.first
    assert files_with(memory.path, "48Mquokka") == set()
    assert next(r.event for r in memory.log(limit=99, topics={"SummaryWritten"})) is FORGOTTEN
    live = memory.operations.dump_hash("summaries")
    memory.operations.rebuild("summaries")
    assert memory.operations.dump_hash("summaries") == live


def test_a_blank_summary_is_refused_and_the_one_before_stays(memory: Memory) -> None:
    """J05: a summariser that returns nothing writes nothing, and moves no window."""
    writer = worker(memory, summariser=Fixed("all well", "", " \n\u200b—", "new"), rule=SMALL)
    talk(memory, S1, *CHAT)
    assert writer.run_once() == 1
    kept, seen = current(memory, S1), window(memory, S1)
    for _ in range(2):
        talk(memory, S1, *CHAT)
        assert writer.run_once() == 0
        assert current(memory, S1) == kept
        assert window(memory, S1)[: len(seen)] == seen
    assert writer.refused == {"blank": 2}
    talk(memory, S1, "one more", "and an answer")
    assert writer.run_once() == 1
    assert (now := current(memory, S1)) is not None and now.text == "new"


def test_a_worker_that_dies_behind_its_append_writes_nothing_twice(memory: Memory) -> None:
    """Killed between append and everything after it: the next worker finds the summary written."""
    talk(memory, S1, *CHAT)
    dying = worker(memory, log=DyingLog(memory._store.log), rule=SMALL)
    with pytest.raises(RuntimeError, match="killed"):
        dying.run_once()
    assert written(memory) == 1
    assert dying.run_once() == worker(memory, rule=SMALL).run_once() == 0
    assert written(memory) == 1


def test_the_same_work_delivered_again_is_one_summary(memory: Memory) -> None:
    """Two workers that prepared the same range append it once; the slower one of another range stands back."""
    talk(memory, S1, *CHAT)
    one, two = worker(memory, rule=SMALL), worker(memory, rule=SMALL)
    session = session_of(memory, S1)
    first, same = one.prepare(session), two.prepare(session)
    longer = two.prepare(session, force=True)
    assert first is not None and same is not None and longer is not None
    assert [one.commit(first), two.commit(same), one.commit(first)] == [True, False, False]
    assert two.commit(longer) is False
    assert two.refused == {"overtaken": 1}
    assert written(memory) == 1


def test_a_summary_begun_before_an_erasure_cannot_commit_behind_it(memory: Memory) -> None:
    """The log refuses it, the erased text stays away, and the worker makes it anew from what is left."""
    ids = talk(memory, S1, "The code word is zebra99", *CHAT)
    writer = worker(memory, rule=SMALL)
    draft = writer.prepare(session_of(memory, S1))
    assert draft is not None and "zebra99" in repr(draft.event)
    memory.erase(S1, event=ids[0]).apply()
    with pytest.raises(ErasedScope):
        writer.commit(draft)
    assert written(memory) == 0
    assert writer.run_once() == 1
    assert (found := current(memory, S1)) is not None and "zebra99" not in found.rendered
    assert files_with(memory.path, "zebra99") == set()


def test_work_refused_by_an_erasure_is_done_again(memory: Memory) -> None:
    """A look that ran into an erasure counts it, and the next look summarises the rest."""
    ids = talk(memory, S1, *CHAT)
    writer = worker(memory, rule=SMALL)
    real = writer._log.append

    def erasing(drafts: Sequence[Draft]) -> list[Receipt]:
        writer._log.append = real  # type: ignore[method-assign]
        memory.erase(S1, event=ids[0]).apply()
        return real(drafts)

    writer._log.append = erasing  # type: ignore[method-assign]
    assert writer.run_once() == 0
    assert writer.refused == {"erased": 1}
    assert writer.run_once() == 1
    assert (found := current(memory, S1)) is not None and "harbours" not in found.rendered


def test_a_summary_whose_sources_are_whole_is_current_again(memory: Memory) -> None:
    """Erasing a later turn takes the later summary; the earlier one stands again and the window opens."""
    writer = worker(memory, rule=SMALL)
    talk(memory, S1, *CHAT)
    assert writer.run_once() == 1
    early = current(memory, S1)
    later = talk(memory, S1, *[text.replace("thing", "word") for text in CHAT])
    assert writer.run_once() == 1
    assert (late := current(memory, S1)) is not None and early is not None and late.last > early.last
    memory.erase(S1, event=later[0]).apply()
    assert current(memory, S1) == early
    assert window(memory, S1)[0].position == early.last + 1
    assert writer.run_once() == 1
    assert (again := current(memory, S1)) is not None
    assert (again.first, again.last) == (late.first, late.last)
    assert again.version == late.version + 1


def test_the_window_moves_only_with_its_summary_and_keeps_a_minimum(memory: Memory) -> None:
    """Before the summary is folded every turn is in the window; afterwards those behind it, never too few."""
    writer = worker(memory, rule=SMALL)
    ids = talk(memory, S1, *CHAT)
    assert [one.event_id for one in window(memory, S1)] == ids
    assert writer.run_once() == 1
    found = current(memory, S1)
    assert found is not None
    assert [one.event_id for one in window(memory, S1)] == ids[-2:]
    assert len(window(memory, S1, keep=5)) == 5
    memory.close_session(S1)
    assert writer.run_once() == 1
    assert (closed := current(memory, S1)) is not None and closed.last > found.last
    assert [one.event_id for one in window(memory, S1)] == ids[-2:]


def test_a_turn_that_is_not_indexed_stays_in_the_window(memory: Memory) -> None:
    """Nothing leaves the window before search can find it; when it can, no new event is needed."""
    talk(memory, S1, *CHAT)
    indexed = 4
    writer = worker(memory, rule=SMALL, indexed_to=lambda: indexed)
    assert writer.run_once() == 1
    assert (found := current(memory, S1)) is not None and found.last <= 4
    talk(memory, S1, *CHAT)
    indexed = 5
    assert writer.run_once() == 0
    indexed = 99
    assert writer.run_once() == 1


def test_a_new_session_begins_with_the_last_one_of_its_project(memory: Memory) -> None:
    """The session that went on last gives its summary; another project, or another user, gives none."""
    elsewhere = Scope("acme", user="u-1", project="other", session="s-9")
    stranger = Scope("acme", user="u-2", project="heron", session="s-8")
    for scope, fact in ((S1, "Heron starts in May"), (S2, "Heron ends in July"), (elsewhere, "Ibis is late")):
        talk(memory, scope, fact, "Understood, noted down")
        memory.close_session(scope)
    memory.open_session(stranger)
    assert worker(memory).run_once() == 3
    with memory._store.runner.read("summaries") as conn:
        seen = numbers(memory, conn, S1)
        found = summaries_view.last_of_project(conn, seen)
        assert found is not None and "July" in found.rendered and "Ibis" not in found.rendered
        before = summaries_view.last_of_project(conn, seen, but=session_of(memory, S2))
        assert before is not None and "May" in before.rendered
        assert summaries_view.last_of_project(conn, numbers(memory, conn, stranger)) is None


def test_a_session_that_nobody_closed_ends_when_the_next_one_begins(memory: Memory) -> None:
    """Few agents close what they leave: what was said there is handed on all the same, once."""
    works = worker(memory)
    other = replace(S1, project="other", session="s-9")
    talk(memory, S1, "제 이름은 민수예요", "We decided to ship on Friday")
    talk(memory, other, "nothing of it")
    assert works.run_once() == 0
    talk(memory, S2, "good morning")
    assert works.run_once() == 1
    assert "ship on Friday" in memory.context(S2, "when?", budget=600, layers=["session"]).text
    assert works.run_once() == 0
    talk(memory, S1, "And on Monday, if it rains")
    talk(memory, S2, "you were saying?")
    assert works.run_once() == 0, "two that go on side by side have not ended"
    talk(memory, replace(S1, session="s-3"), "hello")
    assert works.run_once() == 2, "now they have"
    assert worker(memory).run_once() == 0, "a worker that begins anew finds nothing left"


def test_erasing_a_person_takes_the_summaries_that_name_them(memory: Memory) -> None:
    """A session about two persons is summarised again without the erased one, by the envelope's subjects alone."""
    memory.record_turn(S1, role="user", content="Dana Oh wants locker quokka7741", subjects=["dana"])
    talk(memory, S1, *CHAT)
    writer = worker(memory, rule=SMALL)
    assert writer.run_once() == 1
    assert (mixed := current(memory, S1)) is not None and "quokka7741" in mixed.rendered
    assert memory.erase(Scope("acme"), subject="dana").apply().complete
    assert current(memory, S1) is None
    assert writer.run_once() == 1
    assert (left := current(memory, S1)) is not None and "quokka7741" not in left.rendered
    assert files_with(memory.path, "quokka7741") == set()


def test_an_erased_session_is_not_summarised_any_more(memory: Memory) -> None:
    """Nothing is due, nothing is written, and no look raises."""
    talk(memory, S1, *CHAT)
    writer = worker(memory, rule=SMALL)
    writer.run_once()
    assert memory.erase(S1, session="s-1").apply().complete
    assert writer.run_once() == worker(memory, rule=SMALL).run_once() == 0
    assert memory._store.runner.dump("summaries") != []
    assert "harbours" not in repr(memory._store.runner.dump("summaries"))


def test_a_rebuild_reads_what_is_recorded(memory: Memory) -> None:
    """A rebuild writes no summary and has the same rows."""
    talk(memory, S1, *CHAT)
    worker(memory, rule=SMALL).run_once()
    memory.operations.catch_up()
    head, live = memory.operations.status().head, memory.operations.dump_hash("summaries")
    memory.operations.rebuild("summaries", batch_size=1)
    assert memory.operations.dump_hash("summaries") == live
    assert memory.operations.status().head == head


def test_an_error_in_one_session_leaves_the_others_alone(memory: Memory) -> None:
    """The other sessions get their summaries, the error is told, and the session is tried again."""
    fails = True

    class Picky(Fixed):
        def summarise(self, turns: Sequence[RawTurn]) -> Summary:
            if fails and "bad" in turns[0].text:
                raise ValueError("cannot")
            return Summary("fine")

    talk(memory, S1, "bad", *CHAT)
    talk(memory, S2, *CHAT)
    writer = worker(memory, rule=SMALL, summariser=Picky())
    with pytest.raises(ValueError, match="cannot"):
        writer.run_once()
    assert current(memory, S1) is None and current(memory, S2) is not None
    fails = False
    assert writer.run_once() == 1


def test_the_background_thread_writes_what_is_due(memory: Memory) -> None:
    """Started and stopped, it leaves the summary written."""
    writer = worker(memory, rule=SMALL)
    writer.background.start()
    talk(memory, S1, *CHAT)
    for _ in range(200):
        if written(memory):
            break
        memory.wait(memory.operations.status().head, 0.05)
    writer.background.stop()
    assert written(memory) >= 1
    assert writer.background.trouble.crashes == 0


def test_a_summary_has_the_trust_of_a_machine(memory: Memory) -> None:
    """What persons said comes back through an agent, never above its tier; sources are all that was read."""
    ids = talk(memory, S1, *CHAT)
    memory.record_turn(S1, role="system", content="You are a harbour bot")
    memory.close_session(S1)
    worker(memory).run_once()
    event = memory.log(limit=99, topics={"SummaryWritten"})[0]
    assert event.envelope.origin is Tier.AGENT
    assert event.envelope.sources == tuple(ids)

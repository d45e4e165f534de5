"""What was found falls with its source: candidates, outcomes and the queue, down to the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from face_world import U1, U2, contents, dump_hashes, everything, files_with, rebuilt_hashes
from mnemolog import Memory, Scope
from mnemolog.domain.gate.candidates import Source
from mnemolog.domain.gate.ports import Found, Rules
from mnemolog.errors import ErasedScope

ENGLISH, KOREAN = "zyxwombatqk", "뷁쀍춃뽥"
EVERY = ("admitted", "evidence", "needs confirmation", "quarantined", "log only")


def leave_traces(memory: Memory) -> list[str]:
    """The marker in a record, in the queue, in what is only logged, in what a person approved, and beside a secret."""
    user = memory.record_turn(U1, role="user", content=f"My editor is {ENGLISH}.")
    said = (f"We use {ENGLISH}.", f"우리는 배포에 {KOREAN}을 씁니다.")
    tools = [memory.record_tool_result(U1, output=text, name="web") for text in said]
    secret = memory.record_turn(U1, role="user", content=f"My password is Zx9!{ENGLISH}7Q")
    memory.operations.extract()
    memory.review.approve(U1, memory.review.list(U1)[0].record_id, reason=f"because {ENGLISH}")
    events = [one.event_id for one in (user, *tools, secret)]
    assert {one.found_in for one in memory.review.list(U1, status=EVERY)} == set(events)
    return events


@pytest.mark.embedded
@pytest.mark.parametrize("what", ["event", "record", "session", "subject"])
def test_promise_8_no_byte_is_left_of_what_was_found(memory: Memory, tmp_path: Path, what: str) -> None:
    """After an erasure no file has the text, no outcome tells of it, and the neighbour's are as they were."""
    memory.record_turn(U2, role="user", content="My editor is vim.")
    events = leave_traces(memory)
    assert files_with(tmp_path / "data", ENGLISH, KOREAN) != set()
    if what == "subject":
        memory.erase(Scope("acme"), subject="u-1").apply()
    elif what == "session":
        memory.erase(U1, session="s-1").apply()
    elif what == "event":
        for event in events:
            memory.erase(U1, event=event).apply()
    else:
        for record in {one.record_id for one in memory.review.list(U1, status=EVERY)}:
            memory.erase(U1, record=record).apply()
    assert files_with(tmp_path / "data", ENGLISH, KOREAN) == set()
    assert ENGLISH not in everything(memory, U1, ENGLISH)
    if what != "session":
        assert memory.review.list(U1, status=EVERY) == []
        assert contents(memory, U2) == ["My editor is vim"]
    before = dump_hashes(memory)
    assert rebuilt_hashes(memory, 2) == before


def test_an_approval_falls_with_what_was_approved(memory: Memory) -> None:
    """A decision carries what it decided about, so erasing the source erases the decision too."""
    event = memory.record_tool_result(U1, output="We use vendor Z.", name="web").event_id
    memory.operations.extract()
    (waiting,) = memory.review.list(U1)
    memory.review.approve(U1, waiting.record_id)
    assert contents(memory, U1) == ["We use vendor Z"]
    memory.erase(U1, event=event).apply()
    assert contents(memory, U1) == []
    assert not [one for one in memory.log(topics={"QuarantineReviewed", "CandidatesExtracted"}) if one.event]


def test_extraction_that_began_before_an_erasure_appends_nothing(memory: Memory) -> None:
    """A worker that read a turn which is erased before it appends is refused."""
    event = memory.record_turn(U1, role="user", content="I live in Daejeon.").event_id
    worker = memory._store.gate.extracting[0]
    rules = worker.extractor

    class Slow(Rules):
        def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
            memory.erase(U1, event=event).apply()
            return rules.extract(sources)

    worker.extractor = Slow()
    worker.catch_up()
    assert memory.log(topics={"CandidatesExtracted"}) == []
    assert contents(memory, U1) == []


def test_who_comes_back_is_not_remembered_from_before(memory: Memory) -> None:
    """After a person's erasure nothing that was found about them can come again from late deliveries."""
    memory.record_turn(U1, role="user", content="I live in Daejeon.", occurred_at="2025-12-01T00:00:00Z")
    memory.operations.extract()
    memory.erase(Scope("acme"), subject="u-1").apply()
    with pytest.raises(ErasedScope):
        memory.record_turn(U1, role="user", content="I live in Daejeon.", occurred_at="2025-12-02T00:00:00Z")
    memory.operations.extract()
    assert contents(memory, U1) == []

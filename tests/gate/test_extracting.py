"""The worker and any extractor behind its port: when it is asked, about what, and what of its answer counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from face_world import U1, U2, contents, open_memory
from mnemolog import Memory
from mnemolog.domain.gate.candidates import EXTRACTOR, Candidate, Source
from mnemolog.domain.gate.ports import Found
from mnemolog.errors import StoreUnavailable


def whole(text: str, content: str | None = None) -> Candidate:
    """A candidate that is the whole text, or claims to be."""
    span = (0, len(text))
    return Candidate(
        "fact", content or text, span, content or text, span, "user", None, negated=False,
        confidence=0.9, rule="all",
    )  # fmt: skip


class Reading:
    """Takes every text of a session for a statement, once the session rests."""

    version, at_rest, most = "reading-1", True, 3

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.away = False

    def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
        if self.away:
            raise StoreUnavailable("the model is away: later")
        self.asked.append([source.text for source in sources])
        return [(whole(source.text),) for source in sources]


@pytest.fixture
def extractor() -> Reading:
    return Reading()


@pytest.fixture
def memory(tmp_path: Path, extractor: Reading) -> Iterator[Memory]:
    with open_memory(tmp_path / "data", extractor=extractor) as opened:
        yield opened


def test_a_session_is_read_together_when_it_ends(memory: Memory, extractor: Reading) -> None:
    """Not before it ends, in the order of the log, in portions; another session waits for its own end."""
    worker = memory._store.gate.extracting[1]
    for at in range(4):
        memory.record_turn(U1, role="user", content=f"word {at}")
        memory.record_turn(U2, role="user", content=f"other {at}")
    memory.record_turn(U1, role="system", content="be brief")
    worker.run_once()
    assert extractor.asked == [
        ["word 0", "word 1", "word 2"],
        ["word 3"],
        ["other 0", "other 1", "other 2"],
        ["other 3"],
    ]
    memory.record_turn(U1, role="user", content="word 5")
    worker.run_once()
    assert len(extractor.asked) == 4
    memory.close_session(U1)
    worker.run_once()
    assert extractor.asked[4:] == [["word 5"]]


def test_what_could_not_be_told_is_asked_again(memory: Memory, extractor: Reading) -> None:
    """An extractor that is away loses nothing; the rules go on without it."""
    memory.record_turn(U1, role="user", content="I live in Daejeon.")
    extractor.away = True
    with pytest.raises(StoreUnavailable):
        memory.operations.extract()
    assert contents(memory, U1) == ["I live in Daejeon"]
    extractor.away = False
    memory.operations.extract()
    assert extractor.asked == [["I live in Daejeon."]]
    assert len(memory.records(U1)) == 2


def test_what_waits_is_known_after_a_restart(tmp_path: Path) -> None:
    """A session that was open when the process ended is read once it ends."""
    with open_memory(tmp_path / "data", extractor=Reading()) as memory:
        memory.record_turn(U1, role="user", content="word")
        memory._store.gate.extracting[1].run_once()
    later = Reading()
    with open_memory(tmp_path / "data", extractor=later) as memory:
        memory._store.gate.extracting[1].run_once()
        assert later.asked == []
        memory.close_session(U1)
        memory._store.gate.extracting[1].run_once()
        assert later.asked == [["word"]]


def test_no_span_no_candidate(memory: Memory, extractor: Reading) -> None:
    """What does not stand in its source word for word is refused and counted, whoever found it."""
    extractor.extract = lambda sources: [(whole(one.text, "I live on Mars"),) for one in sources]  # type: ignore[method-assign]
    memory.record_turn(U1, role="user", content="word")
    memory.operations.extract()
    assert memory.log(topics={"CandidatesExtracted"}) == []
    assert memory._store.gate.extracting[1].refused == {"not in its source": 1}


def test_only_one_version_may_count(memory: Memory) -> None:
    """Both extractors' candidates are recorded; the policy says whose are memory, and may change its mind."""
    memory.record_turn(U1, role="user", content="I live in Daejeon. Good morning.")
    memory.operations.extract()
    assert len(memory.records(U1)) == 2
    for version, expected in (
        (EXTRACTOR, "I live in Daejeon"),
        ("reading-1", "I live in Daejeon. Good morning."),
    ):
        memory.operations.adopt_policy(f"version: 1\nmemory: {{extractor: {version}}}\n")
        assert contents(memory, U1) == [expected]


def test_a_person_chooses_between_two_values(memory: Memory) -> None:
    """A conflict that is decided for the older record stays decided, whatever is folded anew."""
    slot = ("deploy", "day")
    older, newer = (memory.remember(U1, f"Deploy on {day}", slot=slot) for day in ("Friday", "Monday"))
    memory.review.resolve(U1, older.record_id, [newer.record_id], reason="asked the team")
    assert contents(memory, U1) == ["Deploy on Friday"]
    memory.operations.rebuild("curated", batch_size=1)
    assert contents(memory, U1) == ["Deploy on Friday"]

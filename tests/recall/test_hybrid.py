"""Recall over all signals: who is a candidate, what is filtered, and what a question's own time words do."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding_fakes import Bigrams, embedding_memory
from face_world import ACME, U1, U2, open_memory, texts
from mnemolog import Memory, Scope
from mnemolog.errors import InvalidInput
from mnemolog.projections import hybrid

SIGNALS = {
    "lexical", "dense", "window", "neighbours", "session_best", "session_lexical", "author", "time", "record",
    "recency",
}  # fmt: skip


def talk(
    memory: Memory, *said: str, scope: Scope = U1, at: str | None = None, author: str | None = None
) -> None:
    for text in said:
        memory.record_turn(scope, role="user", content=text, occurred_at=at, author=author)


def test_every_hit_carries_what_it_is_made_of(memory: Memory) -> None:
    """The signals of a hit sum to its score, for turns and records alike."""
    talk(memory, "the walrus deploys on friday", "lunch was good", author="Mina")
    memory.remember(U1, "deploys happen on fridays")
    hits = memory.recall(U1, "when does Mina deploy the walrus")
    assert len(hits) == 3
    for hit in hits:
        assert set(hit.signals) == SIGNALS
        assert hit.score == pytest.approx(sum(hit.signals.values()))
    assert {hit.signals["author"] for hit in hits if hit.record_id is None} == {1.0}
    assert {hit.signals["record"] for hit in hits if hit.record_id is not None} == {1.0}


def test_what_shares_no_word_is_found_by_its_vector(memory: Memory) -> None:
    """A turn that is near, but has none of the question's words, is a hit; without vectors it is none."""
    talk(memory, "redeployments", "quarterly budget meeting")
    assert texts(memory, U1, "deployment", k=1) == ["redeployments"]
    assert memory.recall(U1, "deployment", k=1)[0].signals["dense"] > 0


def test_without_an_embedder_words_must_do(tmp_path: Path) -> None:
    """A store without an embedder answers by words alone, and no file of vectors is made."""
    with open_memory(tmp_path / "data") as memory:
        talk(memory, "redeployments", "the walrus sleeps")
        memory.operations.embed()
        assert texts(memory, U1, "deployment") == []
        (hit,) = memory.recall(U1, "walrus")
        assert hit.signals["dense"] == hit.signals["window"] == 0.0
        assert memory.operations.vectors() == []
        assert not (memory.path / "vectors.db").exists()


def test_before_the_first_vector_nothing_is_loaded(tmp_path: Path) -> None:
    """Until something is embedded recall neither opens the vectors nor asks the embedder."""
    embedder = Bigrams()
    with open_memory(tmp_path / "data", embedder=embedder) as memory:
        talk(memory, "the walrus sleeps")
        assert texts(memory, U1, "walrus") == ["the walrus sleeps"]
        assert embedder.texts == [] and not (memory.path / "vectors.db").exists()


def test_what_is_not_embedded_yet_is_found_by_its_words(tmp_path: Path) -> None:
    """New turns without vectors are hits beside those that have them, and the lag says so."""
    with open_memory(tmp_path / "data", embedder=Bigrams()) as memory:
        talk(memory, "a walrus", "lunch", "budget")
        memory.operations.embed()
        talk(memory, "the walrus deploys on friday")
        assert set(texts(memory, U1, "walrus deploys", k=2)) == {"a walrus", "the walrus deploys on friday"}
        (lag, *_) = memory.operations.vectors()
        assert (lag.name, lag.lag > 0, lag.state) == ("vectors", True, "live")


def test_a_failing_embedder_costs_the_question_nothing(tmp_path: Path) -> None:
    """Where the question cannot be embedded, recall goes by words, and the status says so."""
    embedder = Bigrams()
    with open_memory(tmp_path / "data", embedder=embedder) as memory:
        talk(memory, "the walrus sleeps", "lunch")
        memory.operations.embed()

        def fail(texts: object) -> None:
            raise OSError("a secret of the endpoint")

        embedder.before = fail
        assert texts(memory, U1, "walrus") == ["the walrus sleeps"]
        (warning,) = [each for each in memory.operations.status().warnings if "vector" in each]
        assert "OSError" in warning and "secret" not in warning


def test_a_small_scope_beside_a_huge_one_gets_its_k(memory: Memory) -> None:
    """Ten turns beside a neighbour's thousand, all alike: the small scope gets its ten, with vectors too."""
    memory.record_batch(
        [
            {"type": "turn", "scope": U2, "role": "user", "content": f"walrus {number}"}
            for number in range(1000)
        ]
    )
    talk(memory, *(f"walrus {number}" for number in range(10)))
    hits = memory.recall(U1, "walrus", k=10)
    assert len(hits) == 10 and all(hit.signals["dense"] != 0 for hit in hits)


def test_every_surface_keeps_to_its_scope(memory: Memory) -> None:
    """C02: what is nearest of all, but a neighbour's, is in no hit, also with filters and in history."""
    talk(memory, "the walrus deploys on friday", scope=U2, author="Mina")
    memory.remember(U2, "the walrus deploys on friday")
    talk(memory, "nothing of it")
    for asked in (
        {},
        {"history": True},
        {"author": "Mina"},
        {"kinds": ["turn", "fact"]},
        {"status": ["current"]},
    ):
        found = memory.recall(U1, "the walrus deploys on friday", k=100, **asked)
        assert "walrus" not in repr(found)


# Filters ----------------------------------------------------------------------------------------------------------


def test_filters_choose_and_change_no_score(memory: Memory) -> None:
    """Kind, author, tool, slot and status choose among the hits; the score of what stays is the same."""
    talk(memory, "walrus one", author="Mina")
    talk(memory, "walrus two", author="Jun")
    memory.record_tool_result(U1, output="walrus three", name="search")
    memory.remember(U1, "walrus four", slot=("walrus", "number"))
    memory.remember(U1, "walrus five", kind="preference")
    whole = {hit.text: hit.score for hit in memory.recall(U1, "walrus", k=50)}
    for asked, expected in (
        ({"author": "mina"}, {"walrus one"}),
        ({"tool": "search"}, {"walrus three"}),
        ({"slot": ("Walrus", "number")}, {"walrus four"}),
        ({"status": ["current"]}, {"walrus four", "walrus five"}),
        ({"kinds": ["preference", "tool_result"]}, {"walrus three", "walrus five"}),
        ({"author": "Mina", "slot": ("walrus", "number")}, set()),
    ):
        found = {hit.text: hit.score for hit in memory.recall(U1, "walrus", k=50, **asked)}
        assert found == {text: whole[text] for text in expected}
    with pytest.raises(InvalidInput):
        memory.recall(U1, "walrus", status=["fresh"])


def test_what_is_over_comes_back_only_as_history(memory: Memory) -> None:
    """Superseded, retracted and expired values are in no default hit; as history, or by status, they are."""
    old = memory.remember(U1, "the port is 22", slot=("ssh", "port"))
    memory.remember(U1, "the port is 49222", slot=("ssh", "port"))
    gone = memory.remember(U1, "the port is closed")
    memory.retract(U1, gone.record_id)
    memory.remember(U1, "the port is open today", expires_at="2020-01-01T00:00:00Z")
    assert texts(memory, U1, "the port is 22") == ["the port is 49222"]
    everything = memory.recall(U1, "the port is 22", history=True, k=50)
    assert {hit.status for hit in everything} == {"current", "superseded", "retracted", "expired"}
    (hit,) = memory.recall(U1, "the port", status=["superseded"])
    assert hit.record_id == old.record_id


def test_a_slot_is_decided_by_its_key_and_never_by_nearness(memory: Memory) -> None:
    """B06, B11: near statements in other slots all stand; one slot has one value, whatever the wording is."""
    for text in ("KDHA is in Seoul", "Seoul hosts KDHA", "KDHA moved to Seoul", "the KDHA of Seoul"):
        memory.remember(U1, text, slot=("KDHA", "place"))
    home = memory.remember(U1, "home address: 1 Walrus Road", slot=("home", "address"))
    memory.remember(U1, "office address: 1 Walrus Road", slot=("office", "address"))
    memory.remember(U1, "home address: 2 Walrus Road", slot=("home", "address"))
    found = memory.recall(U1, "address of home, office and KDHA", k=50)
    assert sorted(hit.text for hit in found) == [
        "home address: 2 Walrus Road",
        "office address: 1 Walrus Road",
        "the KDHA of Seoul",
    ]
    assert memory.get(U1, home.record_id).status == "superseded"


def test_a_record_is_found_by_what_it_says_now(memory: Memory) -> None:
    """The vector of a record is of the event that gave its content: corrected, confirmed, restated or edited."""
    note = memory.remember(U1, "lunch at noon")
    memory.correct(U1, note.record_id, "redeployments at dawn")
    memory.confirm(U1, note.record_id)
    talk(memory, "budget")
    near, far = (
        memory.recall(U1, question, slot=None, kinds=["fact"])[0].signals["dense"]
        for question in ("deployment", "lunch noon")
    )
    assert near > far


# Time words -------------------------------------------------------------------------------------------------------


def days(memory: Memory) -> None:
    """One turn before, on and after the 5th of January in Seoul, to the minute."""
    for text, at in (
        ("walrus before", "2026-01-04T23:59:59+09:00"),
        ("walrus first", "2026-01-05T00:00:00+09:00"),
        ("walrus last", "2026-01-05T23:59:59+09:00"),
        ("walrus after", "2026-01-06T00:00:00+09:00"),
    ):
        talk(memory, text, at=at)


@pytest.mark.parametrize("query", ["what of the walrus yesterday", "어제 walrus"])
def test_yesterday_is_exactly_that_local_day(memory: Memory, query: str) -> None:
    """D06: asked at 00:10 in the session's zone, yesterday is that day from its first to its last second."""
    memory.open_session(U1, timezone="Asia/Seoul")
    days(memory)
    found = texts(memory, U1, query, now="2026-01-06T00:10:00", k=50)
    assert set(found) == {"walrus first", "walrus last"}


def test_yesterday_is_seen_from_the_zone_of_now(memory: Memory) -> None:
    """Without a session's zone the caller's moment says which day it is."""
    days(memory)
    assert set(texts(memory, U1, "the walrus yesterday", now="2026-01-06T00:10:00+09:00")) == {
        "walrus first",
        "walrus last",
    }


def test_a_relative_time_without_turns_only_lifts(memory: Memory) -> None:
    """Where nothing was said in the time that the question means, it bounds nothing."""
    days(memory)
    assert len(texts(memory, U1, "the walrus yesterday", now="2026-03-01T12:00:00+09:00")) == 4


def test_bounds_of_the_caller_are_strict(memory: Memory) -> None:
    """since and until hold beside a question's own time words, and leave nothing rather than something else."""
    days(memory)
    asked = {"now": "2026-01-06T00:10:00+09:00", "k": 50}
    assert texts(memory, U1, "the walrus", until="2026-01-01T00:00:00Z", **asked) == []
    found = texts(memory, U1, "the walrus yesterday", since="2026-01-05T12:00:00+09:00", **asked)
    assert found == ["walrus last"]


def test_a_week_is_counted_from_the_moment_that_is_asked(memory: Memory) -> None:
    """D02: "last week", asked as of the 24th of May 2023, is the 15th to the 21st, whenever it is asked."""
    for text, at in (
        ("in Busan early", "2023-05-14T12:00:00Z"),
        ("in Busan monday", "2023-05-15T00:00:00Z"),
        ("in Busan sunday", "2023-05-21T23:59:59Z"),
        ("in Busan late", "2023-05-22T00:00:00Z"),
    ):
        talk(memory, text, at=at)
    found = texts(memory, U1, "last week in Busan", now="2023-05-24T09:00:00Z", k=50)
    assert set(found) == {"in Busan monday", "in Busan sunday"}


@pytest.mark.parametrize("query", ["the walrus on January 5, 2026", "2026년 1월 5일에 walrus"])
def test_a_date_is_a_bound(memory: Memory, query: str) -> None:
    """Only what was said on that day answers, as long as anything was."""
    days(memory)
    found = memory.recall(U1, query, now="2026-03-01T12:00:00+09:00", k=50)
    assert {hit.text for hit in found} == {"walrus first", "walrus last"}
    assert {hit.signals["time"] for hit in found} == {1.0}


@pytest.mark.parametrize("query", ["what of the walrus in March?", "3월에 walrus는?"])
def test_a_month_is_a_bound_that_what_names_it_passes(memory: Memory, query: str) -> None:
    """What was said in that month, and whatever names the month itself: said earlier, later, or put down."""
    for text, at in (
        ("the walrus in February", "2026-02-27T10:00:00Z"),
        ("the walrus comes in March, 3월에", "2026-02-28T10:00:00Z"),
        ("the walrus is here", "2026-03-12T10:00:00Z"),
        ("the walrus left", "2026-04-02T10:00:00Z"),
    ):
        talk(memory, text, at=at)
    memory.remember(U1, "The walrus of March weighs a ton, 3월 기준")
    asked = {"now": "2026-04-20T12:00:00Z", "k": 50}
    assert set(texts(memory, U1, query, **asked)) == {
        "the walrus comes in March, 3월에",
        "the walrus is here",
        "The walrus of March weighs a ton, 3월 기준",
    }
    before_anything = query.replace("March", "December").replace("3월", "12월")
    assert len(texts(memory, U1, before_anything, **asked)) == 5


def test_a_year_only_lifts(memory: Memory) -> None:
    """A stretch longer than a month is as often what was spoken about: what was said then comes first."""
    days(memory)
    talk(memory, "walrus of old", at="2025-11-04T12:00:00+09:00")
    found = memory.recall(U1, "the walrus in 2025", now="2026-03-01T12:00:00+09:00", k=50)
    assert len(found) == 5 and found[0].text == "walrus of old"


# Large scopes -----------------------------------------------------------------------------------------------------


def test_a_large_scope_is_ranked_by_the_best_of_each_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound only the best of each signal and the turns beside them are ranked: the same ones lead."""
    with embedding_memory(tmp_path / "data") as memory:
        for number in range(300):
            session = Scope("acme", user="u-1", project="billing", session=f"s-{number // 20}")
            word = "walrus" if number % 60 == 7 else "lunch"
            talk(memory, f"{word} number {number}", scope=session, author=("Mina", "Jun")[number % 2])
        questions = ("walrus number", "lunch number 31", "what did Jun say of the walrus")
        whole = [texts(memory, U1, question, k=5) for question in questions]
        monkeypatch.setattr(hybrid, "WHOLE", 50)
        monkeypatch.setattr(hybrid, "BEST", 40)
        large = [texts(memory, U1, question, k=5) for question in questions]
        for some, others in zip(whole, large, strict=True):
            assert some[0] == others[0] and len(set(some) & set(others)) >= 4
        assert {hit.author for hit in memory.recall(U1, "walrus number", k=5, author="mina")} <= {"Mina"}
        assert len(memory.recall(U1, "walrus number", k=50, author="Jun")) == 50


def test_the_index_is_kept_for_large_scopes_only(tmp_path: Path) -> None:
    """An index is made when a scope outgrows the exact scan, follows the log, and gives the same nearest turns."""
    from mnemolog.infra.settings import Settings

    settings = Settings.load(durability="os", exact_up_to=40)
    with embedding_memory(tmp_path / "data", settings=settings) as memory:
        talk(memory, *(f"walrus number {number}" for number in range(40)))
        exact = texts(memory, U1, "walrus number 7", k=3)
        assert not (memory.path / "index").exists()
        talk(memory, *(f"lunch number {number}" for number in range(40)))
        assert texts(memory, U1, "walrus number 7", k=1) == exact[:1]
        assert [lag.name for lag in memory.operations.vectors()] == ["vectors", "index"]
        assert {lag.lag for lag in memory.operations.vectors()} == {0}
        points = memory._store.vectors._index.points()
        memory.operations.rebuild("index")
        assert memory._store.vectors._index.points() == points


def test_turns_without_a_session_and_system_prompts(memory: Memory) -> None:
    """A turn of no session is found by itself; what the system said is no candidate at all."""
    alone = Scope("acme", user="u-1", project="billing")
    talk(memory, "walrus alone", scope=alone)
    memory.record_turn(U1, role="system", content="walrus rules")
    talk(memory, "walrus in session")
    hits = memory.recall(U1, "walrus")
    assert {hit.text for hit in hits} == {"walrus alone", "walrus in session"}
    assert memory.recall(ACME, "walrus") == []


def test_what_is_kept_in_memory_follows_the_log(memory: Memory) -> None:
    """Turns that came, and turns that were erased, between two questions are seen at once."""
    talk(memory, "walrus one")
    second = memory.record_turn(U1, role="user", content="walrus two")
    assert len(memory.recall(U1, "walrus")) == 2
    talk(memory, "walrus three")
    assert len(memory.recall(U1, "walrus")) == 3
    memory.erase(U1, event=second.event_id).apply()
    assert set(texts(memory, U1, "walrus")) == {"walrus one", "walrus three"}

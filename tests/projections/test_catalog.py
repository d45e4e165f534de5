"""The catalog: events are found by id, session, stream, subject and source without opening any body."""

from __future__ import annotations

from pathlib import Path

from projection_fakes import FakeLog, runner_over

from mnemolog.domain.events import FeedbackGiven, MemoryStated, SessionOpened, ToolReturned, TurnRecorded
from mnemolog.projections import catalog
from mnemolog.projections.catalog import Catalog


def test_events_are_found_by_what_their_envelope_says(tmp_path: Path) -> None:
    """Each look-up returns rows in log order, with scope, owner and session, and nothing of the body."""
    log = FakeLog()
    log.add(SessionOpened(), "u1", session="s1")
    said = log.turn("a", "u1", session="s1", project="p1")
    log.turn("b", "u2", session="s2", subjects=("u2", "u9"))
    blob = log.add(ToolReturned("c", blob={"ref": "x"}), None, project="p1", session=None, subjects=("t1",))
    runner = runner_over(log, tmp_path, Catalog())
    with runner.read("catalog") as conn:
        row = catalog.find(conn, said.envelope.id)
        assert row is not None
        assert (row.position, row.topic, row.owner, row.session) == (2, "TurnRecorded", "u1", "s1")
        assert (row.blob, row.erased) == (False, False)
        assert [row.position for row in catalog.by_session(conn, "s1")] == [1, 2]
        assert [row.position for row in catalog.by_stream(conn, "s2")] == [3]
        assert [row.position for row in catalog.by_subject(conn, "u9")] == [3]
        assert [row.position for row in catalog.by_subject(conn, "u1")] == [1, 2]
        found = catalog.find_all(conn, [blob.envelope.id, said.envelope.id, "unknown"])
        assert [(row.position, row.blob, row.owner) for row in found] == [(2, False, "u1"), (4, True, "p1")]
        assert catalog.find(conn, "unknown") is None
        assert catalog.count_by_topic(conn) == {"SessionOpened": 1, "ToolReturned": 1, "TurnRecorded": 2}


def test_what_is_derived_is_found_through_every_step(tmp_path: Path) -> None:
    """The closure over sources: what came of an event, what came of that, each once, also from many events."""
    log = FakeLog()
    first, second = log.turn("a"), log.turn("b")
    stated = log.add(MemoryStated("c"), sources=[first.envelope.id, second.envelope.id])
    log.add(MemoryStated("d"), sources=[stated.envelope.id, first.envelope.id])
    log.add(MemoryStated("e"), sources=["elsewhere"])
    runner = runner_over(log, tmp_path, Catalog())
    with runner.read("catalog") as conn:
        assert [row.position for row in catalog.derived_from(conn, [second.envelope.id])] == [3, 4]
        many = [first.envelope.id, *(f"absent-{number}" for number in range(5000))]
        assert [row.position for row in catalog.derived_from(conn, many)] == [3, 4]
        assert catalog.derived_from(conn, ["unknown"]) == []


def test_an_erased_event_keeps_its_row_of_ids(tmp_path: Path) -> None:
    """Named events, and every event of an erased person, are marked; a rebuild marks the same ones."""
    log = FakeLog()
    log.turn("a", "u1")
    named = log.turn("b", "u2")
    log.turn("c", "u3", subjects=("u3", "u1"))
    log.add(FeedbackGiven(named.envelope.id, "good"), "u1", subjects=())
    log.turn("d", "u3")
    runner = runner_over(log, tmp_path, Catalog())
    runner.catch_up("catalog")
    log.erase_events(named)
    log.erase_subject("u1")
    runner.catch_up("catalog")
    with runner.read("catalog") as conn:
        rows = catalog.find_all(conn, [row.envelope.id for row in log.rows])
    assert [row.erased for row in rows] == [True, True, True, True, False, False, False]
    live = runner.dump("catalog")
    for batch_size in (1, 3, 100):
        runner.rebuild("catalog", batch_size)
        assert runner.dump("catalog") == live


def test_sessions_are_not_scopes(tmp_path: Path) -> None:
    """Many sessions of one user share one scope number, also across batches and rebuilds."""
    log = FakeLog()
    for number in range(30):
        log.add(TurnRecorded("user", "a"), f"u{number % 2}", session=f"s{number}")
    runner = runner_over(log, tmp_path, Catalog(), batch_size=4)
    runner.rebuild("catalog", batch_size=7)
    with runner.read("catalog") as conn:
        numbers = [row.scope for row in catalog.find_all(conn, [row.envelope.id for row in log.rows])]
    assert len(set(numbers)) == 2
    assert numbers[::2] == [numbers[0]] * 15

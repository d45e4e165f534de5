"""The views of summaries and working state are functions of the log, whatever the batches, and equal naive models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from projection_fakes import FakeLog
from sqlalchemy import Connection, MetaData, create_engine
from sqlalchemy.pool import StaticPool

from mnemolog.domain.events import (
    ContentErased,
    Event,
    Recorded,
    SessionClosed,
    SessionOpened,
    SubjectErased,
    SummaryWritten,
    ToolReturned,
    TurnRecorded,
    WorkingStateChanged,
)
from mnemolog.domain.scope import ANY, Scope, ScopeIds
from mnemolog.domain.summaries import is_blank
from mnemolog.projections import summaries, summaries_view, working
from mnemolog.projections.ports import Projection
from mnemolog.projections.scopes import ScopeTable
from mnemolog.projections.summaries import Summaries
from mnemolog.projections.working import Working

KEEP = 2
EVERYONE = ScopeIds(Scope("t1", user=ANY, project=ANY))
SESSIONS = st.sampled_from(["s1", "s2"])
WHO = st.sampled_from([("u1",), ("u1", "u2"), ("u2", "u1")])
TURN = st.tuples(st.just("turn"), SESSIONS, WHO, st.sampled_from(["user", "assistant", "system", "tool"]))
FRAME = st.tuples(st.just("frame"), SESSIONS, st.booleans())
SUMMARY = st.tuples(st.just("summary"), SESSIONS, st.integers(1, 9), st.sampled_from(["word", "word", " \n"]))
STATE = st.tuples(
    st.just("state"),
    SESSIONS,
    st.sampled_from("ab"),
    st.sampled_from("xyz"),
    st.sampled_from([1, "two", None]),
)
ERASE = st.tuples(st.just("erase"), st.integers(0, 60), st.booleans())
PERSON = st.tuples(st.just("person"), st.just("u2"))
OPS = st.lists(st.one_of(TURN, TURN, TURN, FRAME, SUMMARY, SUMMARY, STATE, STATE, ERASE, PERSON), max_size=40)


def owner_of(session: str) -> str:
    return {"s1": "u1", "s2": "u2"}[session]


def apply(log: FakeLog, op: tuple[Any, ...]) -> None:
    if op[0] in ("turn", "frame", "summary", "state"):
        about = {owner_of(op[1]), *(op[2] if op[0] == "turn" else ())}
        if about & log.destroyed:
            return  # nobody's keys seal it any more
    if op[0] == "turn":
        said: Event = (
            ToolReturned(f"out {op[2]}") if op[3] == "tool" else TurnRecorded(op[3], f"said {op[2]}")
        )
        log.add(said, owner_of(op[1]), session=op[1], subjects=op[2])
    elif op[0] == "frame":
        log.add(SessionOpened() if op[2] else SessionClosed(), owner_of(op[1]), session=op[1])
    elif op[0] == "summary":
        summarise(log, *op[1:])
    elif op[0] == "state":
        changed = WorkingStateChanged(op[2], {op[3]: op[4]})
        log.add(changed, owner_of(op[1]), session=f"{op[1]}", sources=())
    elif op[0] == "person":
        log.erase_subject(op[1])
    elif log.rows:
        erase(log, log.rows[op[1] % len(log.rows)], op[2])


def is_turn(recorded: Recorded) -> bool:
    event = recorded.event
    return isinstance(event, ToolReturned) or (isinstance(event, TurnRecorded) and event.role != "system")


def summarise(log: FakeLog, session: str, up_to: int, word: str) -> None:
    """A summary of the first turns that are left, as the worker would write it."""
    said = [r for r in log.rows if is_turn(r) and r.envelope.scope.session == session and alive(log, r)]
    covered = said[:up_to]
    if not covered:
        return
    subjects = sorted({owner_of(session)}.union(*(r.envelope.subjects for r in covered)))
    if set(subjects) & log.destroyed:
        return
    event = SummaryWritten(word, "rolling", covered[0].position, covered[-1].position, "m", "1", "h")
    sources = [r.envelope.id for r in covered]
    log.add(event, owner_of(session), session=session, subjects=subjects, sources=sources)


def erase(log: FakeLog, target: Recorded, derived_too: bool) -> None:
    """With what was derived from it, as an erasure is planned; or alone, so that views must find the rest."""
    found = [target]
    if derived_too:
        found += [r for r in log.rows if target.envelope.id in r.envelope.sources]
    log.erase_events(*found)


def erased_by(log: FakeLog, recorded: Recorded) -> bool:
    for later in log.rows[recorded.position :]:
        if isinstance(later.event, ContentErased) and recorded.envelope.id in later.event.events:
            return True
        if isinstance(later.event, SubjectErased):
            person = later.event.subject
            if person in recorded.envelope.subjects or person == recorded.envelope.scope.user:
                return True
    return False


def alive(log: FakeLog, recorded: Recorded) -> bool:
    return not erased_by(log, recorded)


def scopes(conn: Any) -> list[int]:
    return list(ScopeTable(MetaData()).visible(conn, EVERYONE))


@contextmanager
def view(projection: Projection) -> Iterator[Connection]:
    """An empty view in memory, inside a transaction."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        with engine.begin() as conn:
            projection.create(conn)
            yield conn
    finally:
        engine.dispose()


@contextmanager
def live(projection: Projection, ops: Sequence[tuple[Any, ...]]) -> Iterator[tuple[FakeLog, Connection]]:
    """Folded as it happened, event by event."""
    log = FakeLog()
    with view(projection) as conn:
        for op in ops:
            before = log.head()
            apply(log, op)
            for recorded in log.read(before, 10, topics=projection.topics).events:
                projection.fold(conn, [recorded])
        yield log, conn


def rebuilt(projection: Projection, log: FakeLog, batch: int) -> list[tuple[object, ...]]:
    """Folded from the beginning, with the bodies of what was erased gone."""
    with view(projection) as conn:
        events = log.read(0, 10_000, topics=projection.topics).events
        for at in range(0, len(events), batch):
            projection.fold(conn, events[at : at + batch])
        return list(projection.dump(conn))


@given(OPS, st.integers(1, 7))
@settings(max_examples=100)
def test_promise_3_rebuild_equals_live(ops: list[tuple[Any, ...]], batch: int) -> None:
    """As it happened, and rebuilt in any batches with the erased bodies gone: the same dumps."""
    for made in (Summaries, Working):
        with live(made(), ops) as (log, conn):
            dumped = list(made().dump(conn))
        assert rebuilt(made(), log, batch) == rebuilt(made(), log, 1000) == dumped


@given(OPS)
@settings(max_examples=100)
def test_summaries_equal_a_naive_model(ops: list[tuple[Any, ...]]) -> None:
    """Current is the newest summary of which everything is left; the window is what it does not cover, and the last."""
    with live(Summaries(), ops) as (log, conn):
        for session in ("s1", "s2"):
            current = summaries_view.of_session(conn, scopes(conn), session)
            expected = model_summary(log, session)
            assert (current.event_id if current else None) == (expected.envelope.id if expected else None)
            window = summaries_view.window(conn, scopes(conn), session, keep=KEEP)
            assert [each.event_id for each in window] == model_window(log, session, expected)
        erased = [r.envelope.id for r in log.rows if erased_by(log, r)]
        assert summaries.held(conn, erased) == 0


def model_summary(log: FakeLog, session: str) -> Recorded | None:
    by_id = {r.envelope.id: r for r in log.rows}
    whole = [
        r
        for r in log.rows
        if isinstance(r.event, SummaryWritten)
        and r.envelope.scope.session == session
        and not is_blank(r.event.text)
        and all(alive(log, by_id[one]) for one in (r.envelope.id, *r.envelope.sources))
    ]
    return whole[-1] if whole else None


def model_window(log: FakeLog, session: str, current: Recorded | None) -> list[str]:
    left = [r for r in log.rows if is_turn(r) and r.envelope.scope.session == session and alive(log, r)]
    cut = current.event.last if current and isinstance(current.event, SummaryWritten) else 0
    return [r.envelope.id for at, r in enumerate(left) if r.position > cut or at >= len(left) - KEEP]


@given(OPS)
@settings(max_examples=100)
def test_working_state_equals_a_naive_model(ops: list[tuple[Any, ...]]) -> None:
    """Every key has the value of the last change of it that is left; None removes; the version counts all."""
    ops = [op for op in ops if op[0] != "state" or op[2] == "a"]
    with live(Working(), ops) as (log, conn):
        for session in ("s1", "s2"):
            mine = [r for r in log.rows if r.envelope.scope.session == session]
            changes = [r for r in mine if isinstance(r.event, WorkingStateChanged)]
            found = working.state(conn, scopes(conn), session, "a")
            assert dict(found.values) == merged([r for r in changes if alive(log, r)])
            assert found.version == (changes[-1].envelope.version if changes else 0)
            assert set(found.changes) == set(found.values)
        assert working.held(conn, [r.envelope.id for r in log.rows if erased_by(log, r)]) == 0


def merged(changes: list[Recorded]) -> dict[str, object]:
    values: dict[str, object] = {}
    for recorded in changes:
        assert isinstance(recorded.event, WorkingStateChanged)
        values.update(recorded.event.values)
    return {name: value for name, value in values.items() if value is not None}

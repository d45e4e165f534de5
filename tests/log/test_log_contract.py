"""The contract of `EventLog`, for every log that claims to be one."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from log_kinds import Kind, Log, SqliteKind

from log_support import ALICE, WHEN, FakeSealer, draft
from mnemolog.domain.errors import (
    ErasedScope,
    IdempotencyConflict,
    InvalidInput,
    StoreClosed,
    VersionConflict,
)
from mnemolog.domain.events import ContentErased, MemoryConfirmed, SubjectErased, TurnRecorded, Undecodable
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.clock import SeededClock
from mnemolog.projections.ports import EventLog, Page

Factory = Callable[..., Log]


def texts(page: Page) -> list[str]:
    return [e.event.content for e in page.events if isinstance(e.event, TurnRecorded)]


def positions(page: Page) -> list[int]:
    return [recorded.position for recorded in page.events]


def test_it_is_an_event_log(log: Log) -> None:
    """The adapter has the shape of the port."""
    port: EventLog = log
    assert port.head() == 0


# Append ---------------------------------------------------------------------------------------------------------


def test_positions_and_versions_start_at_one_and_are_contiguous(log: Log) -> None:
    """Positions count the log, versions count each stream."""
    receipts = log.append([draft("a"), draft("b", stream="s2"), draft("c")])
    assert [(r.position, r.stream, r.version) for r in receipts] == [(1, "s1", 1), (2, "s2", 1), (3, "s1", 2)]
    (more,) = log.append([draft("d", stream="s2")])
    assert (more.position, more.version) == (4, 2)
    assert log.append([]) == []


def test_what_was_appended_is_read_back_also_after_a_restart(log_factory: Factory) -> None:
    """The log is on disk."""
    first = log_factory()
    first.append([draft("a"), draft("b")])
    first.close()
    again = log_factory()
    assert texts(again.read(0, 10)) == ["a", "b"]
    assert again.append([draft("c")])[0].version == 3


def test_an_expected_version_that_is_right_appends(log: Log) -> None:
    """Zero means that the stream must be new."""
    log.append([draft("a", expected_version=0)])
    assert log.append([draft("b", expected_version=1)])[0].version == 2
    receipts = log.append([draft("c", expected_version=2), draft("d", expected_version=3)])
    assert [r.version for r in receipts] == [3, 4]


def test_an_expected_version_that_is_wrong_appends_nothing(log: Log) -> None:
    """A call is all or nothing."""
    log.append([draft("a")])
    with pytest.raises(VersionConflict) as conflict:
        log.append([draft("b"), draft("c", stream="s2", expected_version=5)])
    assert (conflict.value.stream, conflict.value.expected, conflict.value.actual) == ("s2", 5, 0)
    assert log.head() == 1
    assert log.append([draft("d")])[0].version == 2
    assert log.stats()["version_conflicts"] == 1


def test_the_same_key_and_body_is_one_event(log: Log) -> None:
    """I03: a resend after a client's timeout yields the first receipt; another body is a conflict."""
    (first,) = log.append([draft("a", key="k", digest="d1")])
    (again,) = log.append([draft("a", key="k", digest="d1", expected_version=0)])
    assert again.duplicate
    assert not first.duplicate
    assert (again.event_id, again.position, again.version) == (first.event_id, first.position, first.version)
    with pytest.raises(IdempotencyConflict) as conflict:
        log.append([draft("b", key="k", digest="d2")])
    assert conflict.value.event_id == first.event_id
    assert log.head() == 1


def test_a_key_is_known_after_a_restart(log_factory: Factory) -> None:
    """I03, with a restart between the two."""
    first = log_factory()
    (receipt,) = first.append([draft("a", key="k")])
    first.close()
    (again,) = log_factory().append([draft("a", key="k")])
    assert again.duplicate
    assert again.event_id == receipt.event_id


def test_a_key_counts_within_one_call(log: Log) -> None:
    """A batch that holds the same message twice stores it once."""
    receipts = log.append([draft("a", key="k"), draft("b", key="k2"), draft("a", key="k")])
    assert [(r.position, r.duplicate) for r in receipts] == [(1, False), (2, False), (1, True)]
    with pytest.raises(IdempotencyConflict):
        log.append([draft("c", key="k3", digest="1"), draft("d", key="k3", digest="2")])
    assert log.head() == 2


def test_a_known_key_among_new_ones_leaves_no_gap(log: Log) -> None:
    """Duplicates take no version."""
    log.append([draft("a", key="k1")])
    receipts = log.append([draft("b", key="k2"), draft("a", key="k1"), draft("c", key="k3")])
    assert [r.version for r in receipts] == [2, 1, 3]
    assert log.verify() == 3


def test_a_known_key_comes_before_every_other_refusal(log: Log, sealer: FakeSealer) -> None:
    """A resend is answered with the first receipt, also when it could not be written anew."""
    (first,) = log.append([draft("a", key="k")])
    log.append([draft("b"), draft("c", key="k2")])
    sealer.destroyed.add("alice")
    log.append([draft(SubjectErased("e", subject="alice", sessions=("s1",)), stream="erasure", subjects=())])
    (again,) = log.append([draft("a", key="k", expected_version=0, began_at=0)])
    assert again.duplicate
    assert again.event_id == first.event_id


def test_keys_are_looked_up_only_while_some_are_known(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """New keys cost one look at the unique index; a resend of many is not written twice each time."""
    looked: list[int] = []
    by_keys = log._recorder.by_keys
    monkeypatch.setattr(
        log._recorder, "by_keys", lambda c, keys: looked.append(len(keys)) or by_keys(c, keys)
    )
    log.append([draft(str(n), key=f"k{n}") for n in range(9)])
    assert looked == []
    assert log.append([draft("0", key="k0"), draft("new", key="n0")])[1].position == 10
    assert log.append([draft("1", key="k1")])[0].duplicate
    log.append([draft("new", key="n1")])
    assert looked == [2, 1, 1]
    log.append([draft("new", key="n2")])
    assert looked == [2, 1, 1]
    assert log.stats()["duplicates"] == 2
    assert log.stats()["events"] == log.verify() == 12


def test_input_that_cannot_be_stored_appends_nothing(log: Log) -> None:
    """Serialising fails before the log is touched, or fails the call alone."""
    for bad in (draft("\udc00"), draft("x", stream="\udc00"), draft("x", subjects=())):
        with pytest.raises(InvalidInput):
            log.append([draft("fine"), bad])
    assert log.head() == 0
    assert log.append([draft("a")])[0].position == 1


def test_recorded_time_never_steps_back(log_factory: Factory) -> None:
    """Whatever the clock does, also over a restart."""
    later = datetime(2026, 5, 1, tzinfo=UTC)
    first = log_factory(clock=SeededClock(later))
    first.append([draft("a")])
    first.close()
    second = log_factory(clock=SeededClock(later - timedelta(days=9)))
    second.append([draft("b")])
    times = [recorded.envelope.recorded_at for recorded in second.read(0, 9).events]
    assert times == sorted(times)
    assert times[0] == "2026-05-01T00:00:00.000000+00:00"


def test_twenty_events_of_one_instant_keep_their_order(log: Log) -> None:
    """D09: equal times are ordered by position."""
    for number in range(20):
        log.append([draft(str(number), occurred_at=WHEN)])
    assert texts(log.read(0, 100)) == [str(number) for number in range(20)]


# Fences ---------------------------------------------------------------------------------------------------------

ERASURES = [
    SubjectErased("e", subject="alice"),
    SubjectErased("e", subject="bob", sessions=("s1",)),
    ContentErased("e", events=("source", "other")),
    ContentErased("e", session="s1"),
]


@pytest.mark.parametrize("erasure", ERASURES)
def test_work_that_began_before_an_erasure_is_refused(log: Log, erasure: SubjectErased) -> None:
    """Nothing derived from what was erased commits afterwards, and the refusal is counted."""
    log.append([draft("a")])
    began = log.head()
    log.append([draft(erasure, stream="erasure", subjects=())])
    late = draft("late", sources=("source",), began_at=began)
    with pytest.raises(ErasedScope):
        log.append([late])
    assert log.stats()["refused_late"] == 1
    elsewhere = ScopeIds(Scope(tenant="t1", user="alice", session="s2"))
    fresh = draft("fresh", scope=elsewhere, sources=("source",), began_at=log.head())
    assert log.append([fresh])[0].position == 3


@pytest.mark.parametrize("erasure", [ERASURES[1], ERASURES[3]])
def test_an_erased_session_takes_no_more_events(log: Log, erasure: ContentErased) -> None:
    """Late deliveries are refused and counted, whenever they began; the erasure itself may go on."""
    log.append([draft(erasure, stream="erasure", subjects=())])
    with pytest.raises(ErasedScope):
        log.append([draft("late")])
    assert log.stats()["refused_late"] == 1
    more = ContentErased("e", events=("more",), session="s1")
    assert log.append([draft(more, stream="erasure", subjects=())])


def test_work_about_others_is_not_refused(log: Log) -> None:
    """A fence is around what was erased, and nothing else."""
    log.append([draft(SubjectErased("e", subject="bob"), stream="erasure", subjects=())])
    assert log.append([draft("a", sources=("source",), began_at=0)])


def test_a_subject_of_a_part_is_fenced_too(log: Log) -> None:
    """A body about two people may not be stored late for either."""
    log.append([draft(SubjectErased("e", subject="bob"), stream="erasure", subjects=())])
    parts = ((("alice", "bob"), ("role", "content", "author")),)
    with pytest.raises(ErasedScope):
        log.append([draft("a", parts=parts, began_at=0)])


def test_fences_hold_after_a_restart_and_for_other_writers(log_factory: Factory) -> None:
    """They come from the log itself."""
    first, second = log_factory(), log_factory()
    second.append([draft("a")])
    first.append([draft(SubjectErased("e", subject="alice"), stream="erasure", subjects=())])
    for log in (second, log_factory()):
        with pytest.raises(ErasedScope):
            log.append([draft("late", began_at=1)])


def test_a_destroyed_subject_fails_its_own_request_alone(log: Log, sealer: FakeSealer) -> None:
    """The sealer's refusal is typed, counted, and harms nobody else."""
    sealer.destroyed.add("alice")
    with pytest.raises(ErasedScope):
        log.append([draft("x", subjects=("bob",)), draft("a")])
    assert log.append([draft("b", subjects=("bob",))])[0].position == 1
    assert log.stats()["refused_erased"] == 1


# Read -----------------------------------------------------------------------------------------------------------


def test_reading_pages_through_the_log(log: Log) -> None:
    """`after` excludes, `limit` bounds, and the page says how far it has looked."""
    log.append([draft(str(number)) for number in range(5)])
    page = log.read(0, 2)
    assert (positions(page), page.position) == ([1, 2], 2)
    page = log.read(page.position, 2)
    assert (positions(page), page.position) == ([3, 4], 4)
    page = log.read(page.position, 2)
    assert (positions(page), page.position) == ([5], 5)
    page = log.read(page.position, 2)
    assert (positions(page), page.position) == ([], 5)


def test_a_filtered_page_moves_over_what_it_left_out(log: Log) -> None:
    """A projection that cares for few topics is not held up by the others."""
    log.append([draft("a"), draft(MemoryConfirmed()), draft("b"), draft(MemoryConfirmed()), draft("c")])
    page = log.read(0, 1, topics={"MemoryConfirmed"})
    assert (positions(page), page.position) == ([2], 2)
    page = log.read(2, 5, topics={"MemoryConfirmed", "MemoryDisputed"})
    assert (positions(page), page.position) == ([4], 5)
    assert log.read(0, 5, topics=[]) == Page([], 5)
    assert log.read(0, 5, topics={"NeverSeen"}) == Page([], 5)


def test_reading_behind_the_head_stays_there(log: Log) -> None:
    """A reader's position never moves back."""
    log.append([draft("a")])
    assert log.read(9, 5) == Page([], 9)


def test_positions_are_read_in_order_and_unknown_ones_left_out(log: Log) -> None:
    """`read_at` answers with what there is."""
    log.append([draft(str(number)) for number in range(4)])
    assert [r.position for r in log.read_at([4, 2, 99, 2])] == [2, 4]
    assert log.read_at([]) == []


def test_a_stream_is_read_in_version_order(log: Log) -> None:
    """Other streams do not show."""
    log.append([draft("a"), draft("x", stream="s2"), draft("b"), draft("c")])
    assert [r.envelope.version for r in log.read_stream("s1")] == [1, 2, 3]
    assert [r.position for r in log.read_stream("s1", after_version=2)] == [4]
    assert log.read_stream("unknown") == []


def test_bodies_are_closed_on_request(log: Log) -> None:
    """All three ways to read can leave bodies closed."""
    log.append([draft("a")])
    assert log.read(0, 1, bodies=False).events[0].event is None
    assert log.read_at([1], bodies=False)[0].event is None
    assert log.read_stream("s1", bodies=False)[0].event is None


def test_scopes_come_back(log: Log) -> None:
    """Levels that are absent stay absent."""
    scopes = [
        ALICE,
        ScopeIds(Scope(tenant="t2")),
        ScopeIds(Scope(tenant="t", organization="o", project="p", agent="a")),
    ]
    log.append([draft("x", scope=scope) for scope in scopes])
    assert [recorded.envelope.scope for recorded in log.read(0, 9).events] == scopes


# Wait -----------------------------------------------------------------------------------------------------------


def test_waiting_ends_at_the_timeout_or_at_once(log: Log) -> None:
    """A head beyond `after` needs no waiting."""
    started = time.monotonic()
    assert log.wait(0, 0.03) == 0
    assert time.monotonic() - started >= 0.03
    log.append([draft("a")])
    assert log.wait(0, 60) == 1


@pytest.mark.parametrize("same", [True, False], ids=["this log", "another process's"])
def test_a_commit_ends_the_waiting(log_factory: Factory, same: bool) -> None:
    """The doorbell rings for commits of this log; polling finds those of another."""
    waiting = log_factory()
    writing = waiting if same else log_factory()
    heads: list[int] = []
    thread = Thread(target=lambda: heads.append(waiting.wait(0, 30)))
    thread.start()
    writing.append([draft("a")])
    thread.join(5)
    assert heads == [1]


def test_commits_ring_other_doorbells(log: Log) -> None:
    """A callback gets the head; duplicates ring nothing."""
    heads: list[int] = []
    log.on_commit(heads.append)
    log.append([draft("a", key="k"), draft("b")])
    log.append([draft("a", key="k")])
    assert heads == [2]


# Several processes, closing, integrity -----------------------------------------------------------------------------


def test_two_writers_of_one_file_agree_on_versions(log_factory: Factory) -> None:
    """What one remembers is dropped when the other has written."""
    one, two = log_factory(), log_factory()
    for number in range(6):
        (receipt,) = (one, two)[number % 2].append([draft(str(number))])
        assert (receipt.position, receipt.version) == (number + 1, number + 1)
    with pytest.raises(VersionConflict):
        one.append([draft("x", expected_version=5)])
    (known,) = two.append([draft("k", key="k")])
    assert one.append([draft("k", key="k")])[0].event_id == known.event_id
    assert one.verify() == 7


def test_a_closed_log_refuses_everything(log: Log) -> None:
    """With a typed error; closing twice is fine."""
    log.append([draft("a")])
    log.close()
    log.close()
    for call in (
        log.head,
        log.verify,
        log.checkpoint,
        lambda: log.append([draft("b")]),
        lambda: log.read(0, 1),
    ):
        with pytest.raises(StoreClosed):
            call()


def test_leaves_are_listed_in_order(log: Log) -> None:
    """What a Merkle tree is built from."""
    log.append([draft(str(number)) for number in range(3)])
    leaves = log.leaves(1, 10)
    assert [position for position, _ in leaves] == [2, 3]
    assert all(len(leaf) == 32 for _, leaf in leaves)


def test_a_verified_log_reports_its_progress(log: Log) -> None:
    """Checked so far, and in all."""
    seen: list[tuple[int, int]] = []
    log.append([draft(str(number)) for number in range(3)])
    assert log.verify(lambda done, total: seen.append((done, total))) == 3
    assert seen == [(3, 3)]


def test_a_checkpoint_empties_the_wal(log: Log, log_kind: Kind) -> None:
    """Nothing old stays in the file beside; a server's WAL is the server's."""
    log.append([draft("a")])
    assert log.checkpoint()
    if isinstance(log_kind, SqliteKind):
        assert log_kind.path.with_name("log.db-wal").stat().st_size == 0


def test_an_unreadable_row_stops_nobody(log: Log, log_kind: Kind) -> None:
    """A reader gets a placeholder for it, and a writer goes on behind it."""
    log.append([draft("a"), draft("b")])
    log_kind.tamper(f"UPDATE stored_events SET state={log_kind.hex('00')} WHERE position=2")
    page = log.read(0, 9)
    assert isinstance(page.events[1].event, Undecodable)
    assert log.append([draft("c")])[0].position == 3

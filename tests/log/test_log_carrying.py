"""A log takes the rows of another one over as they are, keeps a mark, and can be closed; every kind alike."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kinds import Kind, Log

from log_support import FakeSealer, draft
from mnemolog.domain.errors import AnotherLog, IdempotencyConflict, StoreClosed, StoreMoved
from mnemolog.infra.clock import SeededClock
from mnemolog.infra.log import SqliteEventLog
from mnemolog.infra.log.verification import tree_head

Factory = Callable[..., Log]


@pytest.fixture
def given_log(tmp_path: Path) -> SqliteEventLog:
    """Another log, with keys, streams and a NUL."""
    log = SqliteEventLog(tmp_path / "given.db", FakeSealer(), SeededClock())
    for number in range(7):
        log.append([draft(f"{number}\x00", stream=f"s-{number % 3}", key=f"k-{number}")])
    return log


def test_rows_are_taken_over_as_they_are(log: Log, given_log: SqliteEventLog) -> None:
    """Positions, versions, keys, leaves and bytes; appending goes on behind them, and knows the keys."""
    log.stored.carry(given_log.stored.rows(0, 4), 1)
    log.stored.carry(given_log.stored.rows(4, 100), 5)
    assert log.stored.rows(0, 100) == given_log.stored.rows(0, 100)
    assert log.leaves(0, 100) == given_log.leaves(0, 100)
    assert log.verify() == 7
    with pytest.raises(IdempotencyConflict):
        log.append([draft("other", key="k-3", digest="other")])
    (receipt,) = log.append([draft("next", stream="s-0")])
    assert (receipt.position, receipt.version) == (8, 4)
    given_log.close()


def test_rows_go_where_they_belong_or_nowhere(log: Log, given_log: SqliteEventLog) -> None:
    """Over a gap, over what is there, behind an append of somebody else: refused, and nothing is stored."""
    rows = given_log.stored.rows(0, 100)
    with pytest.raises(AnotherLog):
        log.stored.carry(rows[2:], 3)
    log.append([draft("mine")])
    with pytest.raises(AnotherLog):
        log.stored.carry(rows, 1)
    assert log.head() == 1
    assert log.append([draft("mine, too")])[0].position == 2
    given_log.close()


def test_a_mark_is_there_until_it_is_taken_away(log_factory: Factory) -> None:
    """Every opening reads it; it is no event."""
    log, other = log_factory(), log_factory()
    assert log.stored.mark() is None
    for mark in ("one", '{"two": "둘"}', None):
        log.put_mark(mark)
        assert other.stored.mark() == mark
        assert log_factory().stored.mark() == mark
    assert log.head() == 0


def test_a_closed_log_takes_no_event_from_anybody(log_factory: Factory) -> None:
    """Whoever has it open reads on; opened again without the mark it goes on."""
    log, other = log_factory(), log_factory()
    log.append([draft("a")])
    other.append([draft("b")])
    log.put_mark("moved", closed=True)
    for each in (log, other, log_factory()):
        with pytest.raises(StoreMoved):
            each.append([draft("c")])
        assert len(each.read(0, 10).events) == 2
    log.put_mark(None)
    assert [each.append([draft("d")])[0].position for each in (log, other)] == [3, 4]


def test_inside_frozen_the_log_stands_still(log_factory: Factory, log_kind: Kind) -> None:
    """What is appended from here waits, also where the log is closed meanwhile; after it, it goes on."""
    log = log_factory()
    with log.frozen():
        log.put_mark("frozen")
        assert log.head() == 0
    assert log.append([draft("a")])[0].position == 1
    log.close()
    with pytest.raises(StoreClosed):
        log.put_mark("late")


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=40))
def test_the_head_of_the_tree_is_that_of_the_standard(leaves: list[bytes]) -> None:
    """As RFC 6962 defines it: split at the largest power of two that is smaller."""

    def head(some: list[bytes]) -> bytes:
        if len(some) < 2:
            return some[0] if some else sha256(b"").digest()
        split = 1
        while 2 * split < len(some):
            split *= 2
        return sha256(b"\x01" + head(some[:split]) + head(some[split:])).digest()

    assert tree_head(leaves) == head(leaves)

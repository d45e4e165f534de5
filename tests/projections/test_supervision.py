"""Work in the background lets calls go first, and never waits for them for ever."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic

import pytest

from mnemolog.projections.supervision import Background, Foreground, stop_all

LONG = 5.0


@pytest.fixture
def stopping() -> Event:
    return Event()


def waited(call: Callable[[], None]) -> float:
    started = monotonic()
    call()
    return monotonic() - started


def test_it_goes_on_at_once_when_nobody_calls(stopping: Event) -> None:
    """Without a call there is nothing to wait for."""
    assert waited(lambda: Foreground().give_way(stopping)) < 0.02


def test_it_waits_while_a_read_is_under_way_but_not_for_ever(stopping: Event) -> None:
    """A read that does not end holds work up for a quarter of a second."""
    foreground = Foreground()
    with foreground:
        assert 0.2 < waited(lambda: foreground.give_way(stopping)) < LONG


def test_it_waits_a_moment_after_a_call(stopping: Event) -> None:
    """A call is likely to be followed by another one."""
    foreground = Foreground()
    foreground.touch()
    assert 0.01 < waited(lambda: foreground.give_way(stopping)) < 0.2


def test_one_of_two_reads_that_ends_leaves_the_other(stopping: Event) -> None:
    """Work waits as long as one of several reads is under way."""
    foreground = Foreground()
    with foreground:
        with foreground:
            pass
        assert waited(lambda: foreground.give_way(stopping)) > 0.2


def test_one_that_is_stopped_waits_for_nobody(stopping: Event) -> None:
    """Who is asked to end does not wait for reads."""
    foreground = Foreground()
    stopping.set()
    with foreground:
        assert waited(lambda: foreground.give_way(stopping)) < 0.2


def test_no_step_begins_while_a_read_is_under_way() -> None:
    """A thread's step begins when the read has ended."""
    foreground, stepped = Foreground(), Event()
    background = Background("test", stepped.set, lambda: None)
    with foreground:
        background.start(foreground)
        early = stepped.wait(0.1)
    late = stepped.wait(LONG)
    background.stop()
    assert (early, late) == (False, True)


def test_all_are_asked_to_end_before_one_is_waited_for() -> None:
    """Threads that end slowly end together: the first ends only once the second has been asked."""
    asked, ended, begun = Event(), [], Event()

    def slow() -> None:
        begun.set()
        ended.append(asked.wait(LONG))

    first = Background("first", slow, lambda: None)
    second = Background("second", lambda: second.rest(LONG), asked.set)
    for one in (first, second):
        one.start()
    assert begun.wait(LONG)
    stop_all([first, second])
    assert (ended, first.running, second.running) == ([True], False, False)

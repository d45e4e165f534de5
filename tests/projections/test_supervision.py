"""Work in the background lets calls go first, and never waits for them for ever."""

from __future__ import annotations

from threading import Event

import pytest

from mnemolog.projections import supervision
from mnemolog.projections.supervision import Background, Foreground, stop_all

LONG = 5.0


class Passing:
    """A clock, and an event that nobody sets: to wait for it is what lets the time pass."""

    def __init__(self, is_set: bool = False) -> None:
        self.now, self._is_set = 100.0, is_set

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += 0 if self._is_set else seconds
        return self._is_set


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    made = Passing()
    monkeypatch.setattr(supervision, "time", made)
    return made


def waited(foreground: Foreground, passing: Passing) -> float:
    started = passing.now
    foreground.give_way(passing)  # type: ignore[arg-type]
    return passing.now - started


def test_it_goes_on_at_once_when_nobody_calls(passing: Passing) -> None:
    """Without a call there is nothing to wait for."""
    assert waited(Foreground(), passing) == 0


def test_it_waits_while_a_read_is_under_way_but_not_for_ever(passing: Passing) -> None:
    """A read that does not end holds work up for a quarter of a second."""
    foreground = Foreground()
    with foreground:
        assert waited(foreground, passing) == pytest.approx(0.25, abs=0.021)


def test_it_waits_a_moment_after_a_call(passing: Passing) -> None:
    """A call is likely to be followed by another one."""
    foreground = Foreground()
    foreground.touch()
    assert waited(foreground, passing) == pytest.approx(0.02, abs=0.021)
    assert waited(foreground, passing) == 0


def test_one_of_two_reads_that_ends_leaves_the_other(passing: Passing) -> None:
    """Work waits as long as one of several reads is under way."""
    foreground = Foreground()
    with foreground:
        with foreground:
            pass
        assert waited(foreground, passing) == pytest.approx(0.25, abs=0.021)


def test_one_that_is_stopped_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is asked to end does not wait for reads."""
    foreground, ending = Foreground(), Passing(is_set=True)
    monkeypatch.setattr(supervision, "time", ending)
    with foreground:
        assert waited(foreground, ending) == 0


def test_no_step_begins_while_a_read_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread's step begins when the read has ended."""
    monkeypatch.setattr(supervision, "_PATIENCE", 600.0)
    foreground, stepped = Foreground(), Event()
    background = Background("test", stepped.set, lambda: None)
    with foreground:
        background.start(foreground)
        early = stepped.wait(0.1)
    late = stepped.wait(LONG)
    background.stop()
    assert (early, late) == (False, True)


def test_a_long_step_gives_way_between_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that comes during a step is let go first at the next part, as long as the step has patience left."""
    monkeypatch.setattr(supervision, "_PATIENCE", 600.0)
    foreground, first, more, second = Foreground(), Event(), Event(), Event()

    def step() -> None:
        first.set()
        more.wait(LONG)
        background.give_way()
        second.set()
        background.rest(LONG)

    background = Background("two parts", step, wake=lambda: None)
    background.give_way()  # in no step: nothing to wait for
    background.start(foreground)
    assert first.wait(LONG)
    with foreground:
        more.set()
        assert not second.wait(0.2)
    assert second.wait(LONG)
    background.stop()


def test_a_step_that_has_waited_enough_waits_no_more(passing: Passing) -> None:
    """The parts share the patience of one step: many of them do not hold it up for ever."""
    foreground = Foreground()
    with foreground:
        assert foreground.give_way(passing, 0.1) == pytest.approx(0.1, abs=0.021)  # type: ignore[arg-type]
        assert foreground.give_way(passing, 0.0) == 0  # type: ignore[arg-type]
        assert foreground.give_way(passing, -0.02) == 0  # type: ignore[arg-type]


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


def test_one_that_began_to_wait_after_it_was_asked_ends_all_the_same() -> None:
    """A wake-up that came a moment too early is followed by another."""
    calls, woken, begun = list[bool](), Event(), Event()

    def wake() -> None:
        calls.append(begun.is_set())
        if len(calls) > 1:
            woken.set()

    def step() -> None:
        begun.set()
        woken.wait(10 * LONG)

    background = Background("late", step, wake)
    background.start()
    assert begun.wait(LONG)
    background.stop(LONG)
    assert not background.running
    assert len(calls) > 1

"""The set of utterances itself: large, balanced, and a third of it unseen."""

from __future__ import annotations

from collections import Counter

from gate_world import held_out, utterances


def test_the_set_is_large_and_balanced() -> None:
    """At least 300 different utterances, about half Korean, half of which (and no fewer) yield nothing."""
    every = utterances()
    assert len({one.text for one in every}) == len(every) >= 300
    for lang in ("en", "ko"):
        mine = [one for one in every if one.lang == lang]
        empty = [one for one in mine if not one.expect]
        assert abs(len(mine) / len(every) - 0.5) < 0.03
        assert 0.5 <= len(empty) / len(mine) < 0.56


def test_what_was_held_out_is_another_set() -> None:
    """Five sets, about half Korean and half with nothing to keep, of which no text is among the others."""
    every = held_out()
    assert Counter(one.category for one in every) == {
        "held out": 300,
        "held out again": 196,
        "held out last": 156,
        "held out by another": 300,
        "held out in the end": 158,
    }
    assert not {one.text for one in every} & {one.text for one in utterances()}
    for lang in ("en", "ko"):
        mine = [one for one in every if one.lang == lang]
        assert 0.49 <= len(mine) / len(every) <= 0.51
        assert 0.49 <= sum(not one.expect for one in mine) / len(mine) <= 0.51


def test_a_third_is_unseen() -> None:
    """A third is kept apart, in each language, with and without something to keep."""
    groups = Counter((one.lang, bool(one.expect)) for one in utterances() if one.split != "later")
    unseen = Counter((one.lang, bool(one.expect)) for one in utterances() if one.split == "unseen")
    assert all(abs(unseen[group] / count - 1 / 3) < 0.01 for group, count in groups.items())

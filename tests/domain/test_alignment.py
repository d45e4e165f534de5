"""Sending a history again doubles nothing and loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.alignment import new_messages

DIGESTS = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(DIGESTS, DIGESTS)
def test_a_whole_history_adds_exactly_its_end(stored: list[str], new: list[str]) -> None:
    """Whatever repeats in it, a history sent whole adds what came after."""
    assert new_messages(stored, stored + new) == list(range(len(stored), len(stored) + len(new)))


@given(DIGESTS)
def test_the_same_history_again_adds_nothing(stored: list[str]) -> None:
    """The same history again adds nothing."""
    assert new_messages(stored, stored) == []


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=12), st.data())
def test_a_history_with_its_start_cut_off_still_aligns(items: list[int], data: st.DataObject) -> None:
    """A history with its start cut off still aligns."""
    stored = [str(item) for item in items]
    start = data.draw(st.integers(0, len(stored) - 1))
    new = data.draw(st.lists(st.text("xyz", min_size=1), max_size=4))
    incoming = stored[start:] + new
    kept = len(stored) - start
    assert new_messages(stored, incoming) == list(range(kept, len(incoming)))


def test_two_equal_messages_stay_two() -> None:
    """Two equal messages stay two."""
    assert new_messages([], ["ok", "ok"]) == [0, 1]
    assert new_messages(["ok"], ["ok", "ok"]) == [1]


def test_an_older_snapshot_adds_nothing() -> None:
    """An older snapshot adds nothing."""
    assert new_messages(list("abcdef"), list("abc")) == []
    assert new_messages(list("abcdef"), list("cd")) == []


def test_a_compacted_beginning_adds_the_summary_and_the_new_end() -> None:
    """A compacted beginning adds the summary and the new end."""
    assert new_messages(list("abcdef"), ["summary", "d", "e", "f", "g"]) == [0, 4]


def test_a_compacted_middle_keeps_the_known_beginning() -> None:
    """A compacted middle keeps the known beginning."""
    assert new_messages(list("abcdef"), ["a", "summary", "e", "f", "g"]) == [1, 4]


def test_an_edited_last_message_is_new() -> None:
    """An edited last message is new."""
    assert new_messages(list("abc"), ["a", "b", "x"]) == [2]


def test_a_single_message_that_only_repeats_an_older_one_is_new() -> None:
    """A single message that only repeats an older one is new."""
    assert new_messages(["hi", "ok", "bye"], ["ok"]) == [0]


def test_ten_thousand_messages_align_at_once() -> None:
    """Ten thousand messages align at once."""
    stored = [str(index % 7) for index in range(10_000)]
    assert new_messages(stored, [*stored[5_000:], "new"]) == [5_000]


def test_a_cut_history_is_read_on_from_the_end_of_what_is_stored() -> None:
    """What begins as the stored messages end goes on from there, even where it also looks like an old piece."""
    assert new_messages(["u1", "a6", "u4", "a9", "u1", "a6", "u4"], ["u1", "a6", "u4", "a9"]) == [3]
    assert new_messages(["u3", "a0", "u3"], ["a0", "u3", "a0", "u3"]) == [2, 3]


@given(st.lists(DIGESTS, max_size=4), DIGESTS)
def test_the_last_history_again_adds_nothing(earlier: list[list[str]], last: list[str]) -> None:
    """Whatever was recorded before, and however a history was read, the same one right after adds nothing."""
    stored: list[str] = []
    for history in [*earlier, last]:
        stored += [history[index] for index in new_messages(stored, history)]
    assert new_messages(stored, last) == []

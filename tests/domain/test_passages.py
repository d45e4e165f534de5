"""Passages: a large text in bounded pieces that end where it pauses, and nothing of it lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.lexical import Matches, bm25
from mnemolog.domain.passages import LENGTH, number_of, passages, place_of, readable
from mnemolog.domain.retrieval import best_passage
from plain_search import with_passages

ENGLISH = "The deploy failed because the disk was full. We restarted it at noon. "
KOREAN = "디스크가 가득 차서 배포가 실패했습니다. 정오에 다시 시작했습니다. "


@given(st.text(st.sampled_from("ab가나 \n.,\t\r。"), max_size=3_000))
def test_passages_hold_every_letter_once(text: str) -> None:
    """In order, without overlap, none longer than the bound, none empty; only blanks lie between them."""
    end = 0
    for at, passage in enumerate(passages(text)):
        assert passage.part == at
        assert text[end : passage.start].strip() == ""
        assert 0 < passage.end - passage.start <= LENGTH
        assert text[passage.start : passage.end].strip() == text[passage.start : passage.end]
        end = passage.end
    assert text[end:].strip() == ""


@pytest.mark.parametrize("sentence", [ENGLISH, KOREAN])
def test_a_passage_ends_at_a_paragraph_else_a_line_else_a_sentence(sentence: str) -> None:
    """The text is cut where it pauses, in Korean as in English."""
    paragraph = (sentence * 4).strip()
    cuts = [text[one.end - 1] for text in [sentence * 40] for one in passages(text)]
    assert set(cuts) == {"."}
    text = "\n\n".join([paragraph] * 9)
    found = {text[one.start : one.end] for one in passages(text)}
    assert all(piece.startswith(paragraph) and piece.endswith(paragraph) for piece in found)
    lines = "\n".join(f"row {n}: {sentence.strip()}" for n in range(60))
    assert all(lines[one.start :].startswith("row ") for one in passages(lines))


def test_a_text_without_pauses_is_cut_at_the_bound() -> None:
    """One word of a megabyte is still searched in pieces; JSON on one line is cut between its values."""
    assert {one.end - one.start for one in passages("x" * 100 * LENGTH)} == {LENGTH}
    text = "[" + ",".join(f'{{"id":{n}}}' for n in range(500)) + "]"
    assert all(text[one.end - 1] in ",]" for one in passages(text))


def test_of_too_many_the_first_and_the_last_are_kept() -> None:
    """A bound leaves out the middle: the beginning of a log and its end are found; parts keep their numbers."""
    text = "\n".join(f"{n} {'z' * 300}" for n in range(200))
    whole, some = passages(text), passages(text, 80)
    assert len(some) == 80 and some[:70] == whole[:70] and some[70:] == whole[-10:]
    assert passages(text, 1_000) == whole


def test_a_passage_has_one_number() -> None:
    """Position and part come back from it, and numbers of one event follow each other."""
    assert place_of(number_of(7, 4_711)) == (7, 4_711)
    assert number_of(7, 1) - number_of(7, 0) == 1 < number_of(8, 0) - number_of(7, 5)


def test_escaped_letters_can_be_read() -> None:
    """JSON's \\uc548 is a letter, a pair is one character, half of a pair stays as it is."""
    assert readable('{"a": "\\uc548\\ub155"}') == '{"a": "안녕"}'
    assert readable("\\ud83d\\ude00") == "😀"
    assert readable("\\ud83d \\uc548") == "\\ud83d \\uc548"


def test_a_long_text_makes_its_words_no_more_common() -> None:
    """A word in every passage of one log is as rare as a word in one short turn; the best passage scores."""
    whole = Matches(10, 100, {"error": {1: 1, 2: 1}, "disk": {}}, {1: 10, 2: 10})
    pieces = Matches(
        50,
        500,
        {"error": {number_of(3, n): 1 for n in range(50)}, "disk": {number_of(3, 7): 1}},
        {number_of(3, n): 10 for n in range(50)},
    )
    query = [("disk", 1.0), ("error", 1.0)]
    documents, found = with_passages(whole, pieces, query)
    assert documents[3] == found[number_of(3, 7)] == max(found.values())
    assert documents[1] == documents[2] == found[number_of(3, 0)]
    three = Matches(10, 100, {"error": {1: 1, 2: 1, 4: 1}}, {1: 10, 2: 10, 4: 10})
    assert documents[1] == bm25(three, query)[1]
    nothing = Matches(0, 0, {"error": {}}, {})
    assert with_passages(whole, nothing, query) == (bm25(whole, query), {})


def test_the_best_passage_has_the_words_or_the_meaning() -> None:
    """What has both wins; words alone, or vectors alone, decide where the other is silent; of equals the first."""
    one, two, three = (number_of(5, n) for n in range(3))
    assert best_passage({two: 3.0}, {one: 0.2, two: 0.6, three: 0.1}) == two
    assert best_passage({three: 3.0}, {}) == three
    assert best_passage({}, {one: 0.2, two: 0.3}) == two
    assert best_passage({one: 1.0, two: 1.0}, {}) == one

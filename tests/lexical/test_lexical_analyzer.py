"""What a text can be found by: Korean and English words, numbers, identifiers, and hostile characters."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.lexical import MAX_TERM, Analyzer, date_tokens
from mnemolog.infra.stem import default_analyzer

analyzer = default_analyzer()


def score(question: str, text: str) -> float:
    """The summed weight of the question's terms that the text has: above 0 means that it is found."""
    tokens = set(analyzer.document(text))
    return sum(weight for term, weight in analyzer.query(question) if term in tokens)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        pytest.param("배포", "배포는 금요일에만 합니다", id="G01"),
        pytest.param("Notion", "Notion에 정리", id="G03"),
        pytest.param("이름", "제 이름은 민수", id="G04"),
        ("집", "집에 갔어"),
        ("집에", "여기가 집"),
        ("집에서", "집은 멀다"),
        ("약", "약은 먹었어"),
        ("약은", "약"),
        ("돈", "돈이 없다"),
        ("먹고", "저녁을 먹었어"),
        ("약", "감기약은 어디 있지"),
        ("배포를", "배포는 금요일"),
        ("5월", "5월에 만나요"),
        ("3시", "오후 3시까지"),
        ("개월", "3개월이 지났다"),
        ("猫", "猫が好き"),
        ("京", "东京"),
        ("东京", "我住在东京"),
        ("すし", "すしが食べたい"),
    ],
)
def test_a_word_is_found_with_and_without_its_particle(question: str, text: str) -> None:
    """G01, G03, G04: particles, counters and compounds hide no word, with no model and no dictionary."""
    assert score(question, text) > 0


def test_particles_and_endings_alone_carry_no_match() -> None:
    """Two sentences that share only grammar share no full-weight term."""
    assert score("학교에서 공부합니다", "시장에서 구경합니다") == 0
    assert score("무엇입니까", "사과입니다") == 0
    assert score("언제 하기로 했나요", "회의를 하기로 했어") == 0
    assert score("민수는", "영희는") == 0


def test_a_word_weighs_more_than_the_end_of_a_compound() -> None:
    """'약' asks for the medicine first and for '감기약' second; two-syllable words are no compounds."""
    assert score("약", "약을 샀다") > score("약", "감기약을 샀다") > 0
    assert score("이", "나이") == 0
    assert "나" not in analyzer.document("나이 회의")


@pytest.mark.parametrize("form", ["K-7741", "k7741", "7741", "K7741", "k-7741"])
def test_an_identifier_is_found_in_every_spelling(form: str) -> None:
    """A ticket number is one name however it is written; its digits alone find it too."""
    assert score(form, "see K-7741에서 확인") > 0
    assert score(form, "see k7741, please") > 0


def test_the_whole_identifier_beats_its_part() -> None:
    """Who asks for K-7741 gets K-7741 before L-7741."""
    assert score("K-7741", "K-7741") > score("K-7741", "L-7741") > 0


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("user name", "getUserName()"),
        ("getusername", "getUserName()"),
        ("iphone", "my iPhone"),
        ("retry", "max_retry_count = 3"),
        ("minsu", "mail minsu.kim@example.co.kr"),
        ("memory", "src/mnemolog/memory.py"),
        ("email", "send an e-mail"),
        ("12000원", "가격은 12,000원"),
        ("12000", "12,000 units"),
        ("20230524", "on 2023-05-24"),
        ("camping", "We camped by the lake"),
        ("Caroline", "Caroline’s dog"),
        ("O'Brien", "obrien"),
        ("May", "in May"),
        ("cafe", "Café"),
    ],
)
def test_names_paths_and_numbers_are_split_sensibly(question: str, text: str) -> None:
    """Code names, addresses, paths, prices and inflected words are found by their parts."""
    assert score(question, text) > 0


def test_function_words_are_left_out_on_both_sides() -> None:
    """A question's 'when did' and a text's 'that is' neither match nor lengthen."""
    assert analyzer.query("When did she go there? Don't you?") == analyzer.query("go")
    assert analyzer.document("That is what it was.") == []
    assert [term for term, _ in analyzer.query("will may can")] == ["can", "mai", "will"]


def test_width_composition_and_case_do_not_matter() -> None:
    """NFD equals NFC, full width equals half width, upper equals lower case."""
    text = "배포는 Café 금요일"
    assert analyzer.document(unicodedata.normalize("NFD", text)) == analyzer.document(text)
    assert analyzer.document("ＮＯＴＩＯＮ１２") == analyzer.document("notion12")
    assert analyzer.query("BERLIN") == analyzer.query("berlin")


def test_symbols_are_ignored_and_broken_characters_are_harmless() -> None:
    """Emoji, NUL, lone surrogates and laughter leave the words beside them as they are."""
    assert analyzer.document("😀 배포 \x00 \ud83d ㅋㅋㅋ berlin…") == ["배포", "berlin"]


def test_encoded_data_is_bounded() -> None:
    """Megabytes of base64 become a handful of short terms, and the words around them stay."""
    for junk in ("QUJD/zz+" * 50_000, "a1" * 100_000, "f" * 100_000):
        tokens = analyzer.document(f"camel {junk} lake")
        assert len(tokens) < 40 and max(map(len, tokens)) <= MAX_TERM
        assert (tokens[0], tokens[-1]) == ("camel", "lake")


def test_the_date_is_found_in_english_and_korean() -> None:
    """The date belongs to the searched text in both languages."""
    text = date_tokens(datetime(2023, 5, 24, tzinfo=UTC))
    assert all(score(question, text) for question in ("May 2023", "5월", "24일에", "2023년 5월 24일"))


def test_the_word_memory_is_bounded_and_can_be_forgotten() -> None:
    """The stemmer is asked once a word; after `forget` nothing is remembered."""
    asked: list[str] = []

    def stem(word: str) -> str:
        asked.append(word)
        return word

    own = Analyzer(stem)
    own.document("camping camping camping")
    assert asked == ["camping"]
    own.forget()
    own.document("camping")
    assert asked == ["camping", "camping"]


@given(st.text(max_size=300))
def test_every_token_survives_the_index_tokenizer(text: str) -> None:
    """For any text: tokens have no separator, no upper case, bounded length, and a query finds its own text."""
    tokens = analyzer.document(text)
    for token in tokens:
        assert token and len(token) <= MAX_TERM
        assert all(character.isalnum() or ord(character) > 127 for character in token)
        assert not any("A" <= character <= "Z" for character in token)
        token.encode()
    if any(weight == 1.0 for _, weight in analyzer.query(text)):
        assert score(text, text) > 0

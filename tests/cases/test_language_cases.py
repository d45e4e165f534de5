"""Complaints about recall in other languages, and what is right; without a neural model."""

from __future__ import annotations

import pytest

from face_world import U1, texts
from mnemolog import Memory


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("배포는 금요일에만 합니다", "배포"),
        ("배포는 금요일에만 합니다", "금요일"),
        ("배포는 금요일에만 합니다", "배포를"),
        ("우리 집은 제주에 있다", "집"),
        ("약을 아침에 먹는다", "약"),
    ],
)
def test_a_noun_is_found_without_its_particle(memory: Memory, text: str, query: str) -> None:
    """G01: a particle hides no noun, whichever side has it, and words of one syllable are found."""
    memory.remember(U1, text)
    memory.record_turn(U1, role="user", content=text)
    assert texts(memory, U1, query) == [text, text]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Notion에 정리", "Notion"),
        ("Notion에 정리", "notion"),
        ("v2로 올렸다", "v2"),
        ("ＧＰＵ가 필요", "GPU"),
    ],
)
def test_a_latin_name_is_found_with_a_particle_glued_on(memory: Memory, text: str, query: str) -> None:
    """G03: a Korean particle glued to a Latin name does not hide it, nor do case and width."""
    memory.remember(U1, text)
    assert texts(memory, U1, query) == [text]


def test_korean_is_searched_and_stored_as_it_was_said(memory: Memory) -> None:
    """G04: Korean words are found, composed or not, and the stored text is the one that came in."""
    composed, decomposed = (
        "제 이름은 민수",
        "\u110c\u1166 \u110b\u1175\u1105\u1173\u11b7\u110b\u1173\u11ab 철수",
    )
    memory.record_turn(U1, role="user", content=composed)
    memory.record_turn(U1, role="user", content=decomposed)
    assert set(texts(memory, U1, "이름")) == {composed, decomposed}
    assert set(texts(memory, U1, "\u110b\u1175\u1105\u1173\u11b7")) == {composed, decomposed}

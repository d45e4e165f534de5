"""Where patterns are looked for: from their anchors, with the same findings as from every place of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemolog.domain.gate import credentials, identifiers
from mnemolog.domain.gate.anchors import Places, near
from mnemolog.domain.gate.findings import WIDE, Finding, narrow
from mnemolog.infra import scanning

LINES = [
    json.loads(line)["text"]
    for line in Path(__file__).with_name("korean_identifiers.jsonl").read_text(encoding="utf-8").splitlines()
]
TOKEN = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
PIECES = (
    *"0 1 8 12 345 6789 010 02 82 +82 +1 00 (02) (415) 415-55 555-1212 1234567 901010-1234567 4111 1111 x12 X5".split(),
    *"- -- . .. / _ , : @ * # ( ) [ ] < > = := => ; ' \" ` :// ".split(" "),
    *(" ", "  ", "\n", "\r\n", "\t", "는 ", " is ", "은 "),
    *"a.b mail naver.com 하윤 골뱅이 점com (at) [AT] [dot] https app:pw1x@".split(),
    *"공일공 이삼사오 육칠팔구 ０１０ － ＠".split(),
    *"여권 passport M12345678 면허 licence licen\u017fe".split(),
    *"계좌 국민은행 카드 ssn order 전화 fax GB82 WEST 1234 5698 7654 32".split(),
    *"비밀번호 비번 API 키 OTP 인증번호 password pass pwd pin access code key".split(),
    *"token secret \u212aey PAS\u017fWORD p\u0130n".split(),
    *"sk- sk-test- ghp_ AKIA ASIA IOSFODNN7EXAMPLE eyJ hf_ npm_ xoxb-".split(),
    *"glpat- ya29. sk_live_ -us2 cl_key sl-pass AP9 AKC SG.".split(),
    *"api_key db_pass ibm_key secret_key aws //x/:_authToken= T3BlbkFJ".split(),
    *(TOKEN, TOKEN[:20], TOKEN[:24], TOKEN[:36], "0123456789abcdef" * 4, "-----BEGIN PRIVATE KEY-----"),
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from((*PIECES, *LINES)), max_size=4).map(" ".join),
    st.lists(st.text(max_size=8) | st.sampled_from(PIECES), max_size=10).map("".join),
)


def everywhere(pattern: re.Pattern[str], text: str, _places: Places, _reach: int) -> Iterator[re.Match[str]]:
    """The plain definition."""
    return pattern.finditer(text)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("+1 415-55X2671 and x12")
@example("GB82 WEST 1234 5698 7654 3\u0130")
def test_identifiers_are_those_of_every_place(text: str) -> None:
    """Numbers, addresses and documents are found as if each pattern were tried at every place (case F01)."""
    found = set(identifiers.identifiers(text))
    with patch.object(identifiers, "near", everywhere):
        assert set(identifiers.identifiers(text)) == found


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_credentials_are_those_of_every_place(text: str) -> None:
    """A secret that is named as one is found as if each label were tried at every place."""
    found = set(credentials.credentials(text))
    with patch.object(credentials, "near", everywhere):
        assert set(credentials.credentials(text)) == found


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example(f"aws_key = '{TOKEN[:40]}' and 12345678:{TOKEN[:35]} AC{'a1' * 16}")
@example(f"key: {TOKEN[:44]}\ncl-pass: {'abcdef01' * 8}\n'{TOKEN[:30]}'")
def test_the_secrets_of_the_library_are_those_of_every_line(text: str) -> None:
    """No plugin is left out that would have found something in a line."""
    found = set(scanning.library_secrets(text))
    with patch.object(scanning, "_due", lambda _text, plugins: plugins):
        assert set(scanning.library_secrets(text)) == found


@pytest.mark.parametrize("text", ["010\u2013１２３４", "ㅡ", "plain", "", "a—b％"])
def test_wide_characters_are_narrowed_in_place(text: str) -> None:
    """Full-width characters and dashes become ASCII, one for one."""
    assert narrow(text) == text.translate(WIDE)
    assert len(narrow(text)) == len(text)


def test_matches_do_not_overlap_and_begin_where_they_may() -> None:
    """Of what begins in two places near each other, the later one counts only behind the first."""
    found = near(re.compile("a+b"), "aab aaab ab", ((0, 2), (1, 5), (9, 9)), 5)
    assert [one.span() for one in found] == [(0, 3), (4, 8), (9, 11)]


def test_every_plugin_of_the_library_is_known() -> None:
    """A plugin for which no words or form are written down looks at every line, and none of these is misspelt."""
    names = {name for name, _ in scanning._plugins()}
    assert set(scanning._WORDS) | set(scanning._FORMS) == names
    assert isinstance(next(iter(scanning.library_secrets("aws: AKIAIOSFODNN7EXAMPLE"))), Finding)

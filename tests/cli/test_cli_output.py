"""What leaves the command line: safe for terminals, exact for programs."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mnemolog.domain.erasure import StoreResult
from mnemolog.domain.events import FORGOTTEN
from mnemolog.domain.ingress import carried
from mnemolog.domain.principal import Tier
from mnemolog.domain.scope import Scope
from mnemolog.infra.cli.output import Output, dump, one_line, plain, safe, size, when

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \r\x08 \u202egnp.exe \u2066 \x7f \x00"


def steers(text: str) -> bool:
    """Whether a terminal would do anything but show the text."""
    return any(
        (ord(char) < 32 and char not in "\t\n")
        or 127 <= ord(char) < 160
        or char in "\u202e\u2066\u2028\ufeff"
        for char in text
    )


@given(st.text(st.characters(categories=None)))
def test_no_text_steers_a_terminal(text: str) -> None:
    """Whatever was stored, what a person sees holds no control character, and can be encoded."""
    shown = safe(text)
    assert not steers(shown)
    shown.encode()
    assert "\n" not in one_line(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_gives_text_back_exactly(text: str) -> None:
    """JSON neither changes a text nor lets it steer a terminal."""
    line = dump({"text": text})
    assert not steers(line)
    assert json.loads(line) == {"text": text}


def test_escapes_are_visible() -> None:
    """An escape sequence is shown as text, and a lone surrogate by its number."""
    assert safe("\x1b[31mred") == "\\x1b[31mred"
    assert safe(carried("a\udc80b", "text")) == "a\\udc80b"
    assert safe("한국어\tand\n日本語 👩‍💻") == "한국어\tand\n日本語 👩‍💻"


def test_json_carries_lone_surrogates_reversibly() -> None:
    """A text that UTF-8 cannot carry is written in the form that the log carries."""
    assert json.loads(dump(["a\udc80"])) == [carried("a\udc80", "text")]


def test_plain_values() -> None:
    """Dataclasses are objects, tiers are words, times are ISO 8601, scopes hold what is set."""
    at = datetime(2026, 3, 9, 9, 14, tzinfo=timezone(timedelta(hours=9)))
    assert plain({"at": at, "tier": Tier.USER_STATED}) == {
        "at": "2026-03-09T09:14:00+09:00",
        "tier": "user_stated",
    }
    assert plain(Scope("acme", user="u-17")) == {"tenant": "acme", "user": "u-17"}
    assert plain(StoreResult("log", 1, 1, 0)) == {
        "store": "log", "found": 1, "removed": 1, "readable": 0, "remark": "", "due": False,
    }  # fmt: skip
    assert plain(FORGOTTEN) == "FORGOTTEN"


def test_times_and_sizes_for_people() -> None:
    """Times keep their own offset; bytes get a unit."""
    assert when("2026-03-09T09:14:00.123+09:00") == "2026-03-09 09:14+0900"
    assert when(datetime(2026, 3, 9, 9, 14, tzinfo=UTC)) == "2026-03-09 09:14Z"
    assert (when(None), size(12), size(2048)) == ("", "12 B", "2.0 KB")


def test_cut_texts_say_so() -> None:
    """A text that is too long for a table ends with an ellipsis."""
    assert one_line("a  b\n\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_wide_text_does_not_break_a_table(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Korean takes two columns a letter: no line is wider than the terminal, and no letter is lost."""
    text = "거래처정산리포트자동화" * 20
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    Output(as_json=False).table(["n>", "text"], [[1, (text, "record 0123")], [2, HOSTILE]])
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert max(map(cell_len, shown.splitlines())) <= int(width)
    assert shown.count("거") == text.count("거")
    assert not steers(shown)


def test_markup_in_stored_text_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Square brackets, links and emoji names in a stored text stay as they were."""
    out = Output(as_json=False)
    out.text("[bold red]x[/] :smile: [link=http://a]b[/link]")
    out.table(["text"], [["[red]y[/]"]])
    shown = capsys.readouterr().out
    assert "[bold red]x[/] :smile: [link=http://a]b[/link]" in shown
    assert "[red]y[/]" in shown


def test_programs_get_no_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """With JSON, neither messages nor warnings nor bars go to stderr."""
    out = Output(as_json=True)
    out.say("next step")
    out.warn("careful")
    with out.progress("work") as progress:
        progress(1, 2)
    out.document({"a": 1})
    assert capsys.readouterr() == ('{"a":1}\n', "")

"""What people read of the gate. Labels are English; a question is in the language of what it asks about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mnemolog.domain.gate.admission import Decision, Reason

STANDINGS: Final = {
    Decision.ADMIT: "admitted",
    Decision.EVIDENCE: "evidence",
    Decision.CONFIRM: "needs confirmation",
    Decision.QUARANTINE: "quarantined",
    Decision.REJECT: "log only",
}
"""Words for what becomes of a candidate; closed, for programs too."""
WAITING: Final = ("needs confirmation", "quarantined")
_QUOTED: Final = 500
"""Characters of a value that a question quotes; those of a slot are a fifth."""
_MARKS: Final = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞", '"'))
_BRACKETS: Final = str.maketrans("()（）", "[][]")


def is_korean(text: str) -> bool:
    """Whether it has a Korean letter."""
    return any("가" <= letter <= "힣" for letter in text)


def _quoted(text: str) -> str:
    """On one line, and without the marks that would end the quotation, so that it stays one."""
    return f"“{_line(text, _QUOTED).translate(_MARKS)}”"


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def question(content: str, reasons: Sequence[str], topic: str | None) -> str:
    """What to ask the person whom a waiting candidate is about, in the candidate's own language."""
    korean, consent = is_korean(content), Reason.NEEDS_CONSENT.value in reasons
    quoted = _quoted(content)
    if korean and consent:
        return f"“{topic}”에 관한 내용입니다. 기억해도 될까요? {quoted}"
    if korean:
        return f"이 내용을 기억해도 될까요? {quoted}"
    if consent:
        return f"This is about {topic}. May it be remembered? {quoted}"
    return f"Should this be remembered? {quoted}"


def which(values: Sequence[str], slot: tuple[str, str] | None = None, *, korean: bool = False) -> str:
    """What to ask where several values of one slot stand against each other. korean: whether the person asked writes it."""
    quoted = ", ".join(map(_quoted, values))
    told = ""
    if slot is not None:
        told = f" ({_line(': '.join(slot), _QUOTED // 5).translate(_MARKS).translate(_BRACKETS)})"
    if korean or any(map(is_korean, (*values, told))):
        return f"다음 중 어느 것이 맞나요?{told} {quoted}"
    return f"Which of these is right?{told} {quoted}"


def same(first: str, second: str) -> str:
    """What to ask where two records may say the same. The second is the one that would stay."""
    if is_korean(first + second):
        return f"같은 내용인가요? {_quoted(first)}, {_quoted(second)}"
    return f"Do these say the same? {_quoted(first)}, {_quoted(second)}"

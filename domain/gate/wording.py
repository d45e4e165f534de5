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


def is_korean(text: str) -> bool:
    """Whether it has a Korean letter."""
    return any("가" <= letter <= "힣" for letter in text)


def question(content: str, reasons: Sequence[str], topic: str | None) -> str:
    """What to ask the person whom a waiting candidate is about, in the candidate's own language."""
    korean, consent = is_korean(content), Reason.NEEDS_CONSENT.value in reasons
    if korean and consent:
        return f"“{topic}”에 관한 내용입니다. 기억해도 될까요? “{content}”"
    if korean:
        return f"이 내용을 기억해도 될까요? “{content}”"
    if consent:
        return f"This is about {topic}. May it be remembered? “{content}”"
    return f"Should this be remembered? “{content}”"


def which(values: Sequence[str], slot: tuple[str, str] | None = None, *, korean: bool = False) -> str:
    """What to ask where several values of one slot stand against each other. korean: whether the person asked writes it."""
    quoted = ", ".join(f"“{value}”" for value in values)
    told = f" ({': '.join(slot)})" if slot is not None else ""
    if korean or any(map(is_korean, (*values, told))):
        return f"다음 중 어느 것이 맞나요?{told} {quoted}"
    return f"Which of these is right?{told} {quoted}"


def same(first: str, second: str) -> str:
    """What to ask where two records may say the same. The second is the one that would stay."""
    if is_korean(first + second):
        return f"같은 내용인가요? “{first}”, “{second}”"
    return f"Do these say the same? “{first}”, “{second}”"

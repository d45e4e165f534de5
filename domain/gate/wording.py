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


def which(values: Sequence[str]) -> str:
    """What to ask where several values of one slot stand against each other."""
    quoted = [f"“{value}”" for value in values]
    if any(map(is_korean, values)):
        return f"다음 중 어느 것이 맞나요? {', '.join(quoted)}"
    return f"Which of these is right? {', '.join(quoted)}"

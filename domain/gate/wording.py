"""What people read of the gate, in Korean where what it is about is Korean, else in English."""

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
_STANDINGS_KO: Final = {
    "admitted": "기억함",
    "evidence": "이미 기억한 내용의 근거",
    "needs confirmation": "확인 필요",
    "quarantined": "보류",
    "log only": "기억하지 않음",
    "merge proposed": "병합 제안",
}
_REASONS_KO: Final = {
    Reason.SECRET: "비밀값이 들어 있습니다",
    Reason.SECRET_MASKED: "비밀값을 가렸습니다",
    Reason.IDENTIFIER: "개인 식별 정보가 들어 있습니다",
    Reason.IDENTIFIER_MASKED: "개인 식별 정보를 가렸습니다",
    Reason.NOTHING_LEFT: "가리고 나면 남는 내용이 없습니다",
    Reason.NO_SPAN: "원문에 그대로 있지 않습니다",
    Reason.SYSTEM_TEXT: "시스템 프롬프트에 있는 글입니다",
    Reason.OWN_TEXT: "기억이 넣어 준 글을 되풀이합니다",
    Reason.LOW_TRUST: "이런 내용을 말할 수 없는 출처입니다",
    Reason.LOW_CONFIDENCE: "뜻이 충분히 확실하지 않습니다",
    Reason.INSTRUCTS: "원문이 읽는 쪽에 할 일을 지시합니다",
    Reason.NO_STATEMENT: "서술이 아니라 질문이나 지시입니다",
    Reason.OTHER_EXTRACTOR: "인정하지 않는 규칙으로 찾았습니다",
    Reason.KIND: "보관하지 않는 종류입니다",
    Reason.WITHDRAWN: "당사자가 동의를 거두었습니다",
    Reason.FORBIDDEN_TOPIC: "금지된 주제입니다",
    Reason.NEEDS_CONSENT: "동의가 필요한 주제입니다",
    Reason.NOT_ALLOWED_TOPIC: "허용된 주제가 아닙니다",
    Reason.ASKED_FIRST: "보관하기 전에 묻게 되어 있습니다",
    Reason.REJECTED_BEFORE: "전에 사람이 거절했습니다",
    Reason.SAID_BEFORE: "이미 기억한 내용입니다",
    Reason.SAME_ORIGIN: "같은 출처가 되풀이했습니다",
    Reason.BURST: "한 출처에서 평소보다 훨씬 많이 나왔습니다",
    Reason.APPROVED: "사람이 승인했습니다",
    Reason.OWNED: "값은 원본 시스템이 보관합니다",
}
assert set(_REASONS_KO) == set(Reason)


def is_korean(text: str) -> bool:
    """Whether it has a Korean letter."""
    return any("가" <= letter <= "힣" for letter in text)


def standing(name: str, *, korean: bool) -> str:
    """What became of a candidate, for people."""
    return _STANDINGS_KO.get(name, name) if korean else name


def because(reasons: Sequence[str], *, korean: bool) -> list[str]:
    """The reasons of an outcome, for people."""
    return [_REASONS_KO[Reason(one)] if korean else one for one in reasons]


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

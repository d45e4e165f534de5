"""Secrets as people write them in a chat: "비밀번호는 …", "my token is …", a key pasted into a sentence.

Secrets in code and settings are what detect-secrets knows; an adapter brings it as one more scanner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mnemolog.domain.gate.anchors import Places, near, standing
from mnemolog.domain.gate.findings import Finding, Sort, narrow

_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:[A-Za-z]{2,8}[-_])*[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,}|"
    r"xox[abeprs]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|ya29\.[\w-]{20,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|"
    r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]*)?|AGE-SECRET-KEY-1[0-9A-Z]{20,})"
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.{0,8000}?-----END [A-Z ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s]{0,8000})",
    re.DOTALL,
)
_IN_ADDRESS: Final = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s:/@]{1,64}:(?P<v>[^\s:/@]{3,128})@", re.IGNORECASE
)
_NAMED: Final = re.compile(
    r"(?P<label>비밀\s?번호|비번|패스워드|암호(?![화학문])|인증\s?번호|인증\s?코드|보안\s?코드|(?<![a-z])OTP(?![a-z])|"
    r"(?:API|액세스|접근|비밀|시크릿|보안|개인)\s?키|시크릿|토큰|"
    r"(?<![a-z0-9])(?:pass ?(?:word|wd|code|phrase)s?|pwd?|pin(?: code| number)?|(?:verification|security|access|one-time) code|"
    r"(?:api|access|secret|private|auth|encryption|signing|service)[ _-]?(?:key|token|secret)|(?:bearer |auth )?token|secret|credentials?)(?![a-z0-9]))"
    r"(?P<link>\\?[\"']\s?[:=]\s{0,3}\\?|\s?(?:는|은|이|가|를|을|로는)?\s?(?:[:=]|\bis now\b|\bis\b|\bwas\b|\bto\b|->|→)?\s{0,3})"
    r"[\"'`(\[]?(?P<v>[^\s\"'`,;)\]]{4,200})",
    re.IGNORECASE,
)
_LABELS: Final = (
    "비밀",
    "비번",
    "패스워드",
    "암호",
    "인증",
    "보안",
    "otp",
    "키",
    "시크릿",
    "토큰",
    "pass",
    "pw",
    "pin",
    "code",
    "key",
    "token",
    "secret",
    "credential",
)
"""What every label has one of."""
_LABEL: Final = 16
"""More characters than a label has before that."""
_NAMED_LONGEST: Final = 300
_UNLIKE: Final = re.compile("[ſıİ]")
"""Letters that a pattern takes for another one, and that are not that one in lower case."""
_MARKS: Final = tuple(
    "sk- sk_ pk- pk_ rk- rk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox AKIA ASIA AIza ya29. hf_ npm_ eyJ AGE-SECRET-KEY-1".split()
)
"""What a known key begins with."""
_SCHEME: Final = 21
_ADDRESS: Final = 300
_TAIL: Final = re.compile(
    r"(?<=[!-~가-힣])(?:입니다|이에요|이예요|예요|에요|이야|야|이고요?|고요?|으로|로|임|이라고|라고|인데요?|였어요?|을|를|이|가|은|는|다|요)[.!?~]*\Z"
)
_KEY_LABEL: Final = re.compile(r"키|시크릿|토큰|key|token|secret|credential", re.IGNORECASE)
_CODE_LABEL: Final = re.compile(r"인증|보안\s?코드|OTP|pin|code", re.IGNORECASE)
_UNIT: Final = re.compile(
    r"\d+(?:자리?|개|회|번|일|시간|분|초|개월|년|글자|바이트|characters?|chars?|bits?|bytes?|k|m)"
)
_REFERENCE: Final = re.compile(
    r"[*•x.●_-]+|\$\{?\w+\}?|<[^>]*>?|\{\{?.*|%\w+%|\[.*|https?:.*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[\w.]+\(.*|(?:os|process|env|self|config)\..*",
    re.IGNORECASE,
)
"""Masks, variables and places: what stands where a secret would."""
_ORDINARY: Final = frozenset(
    "masked redacted incorrect wrong required expired invalid strong weak secure stored hashed encrypted needed correct missing optional hidden "
    "reset safe changed saved protected empty short long blank different valid again please manager policy field rotation "
    "based authentication limit count usage window type management generation refresh string value format unknown private "
    "public sensitive managed kept never always only needed used given sent being about where what that this from your "
    "their with when have been must should will cannot using not".split()
)


def credentials(text: str) -> Iterator[Finding]:
    """Every secret that is named as one or has the form of one."""
    plain = narrow(text)
    for found in _PRIVATE_KEY.finditer(plain):
        yield Finding(Sort.SECRET, found.start(), found.end(), "private key")
    for found in near(_KNOWN, plain, _starts(plain, _MARKS), len(plain)):
        yield Finding(Sort.SECRET, found.start(), found.end(), "key in prose")
    before_host = ((place - _SCHEME, place) for place in standing(plain, "://"))
    for found in near(_IN_ADDRESS, plain, before_host, _ADDRESS):
        if not _REFERENCE.fullmatch(found["v"]):
            yield Finding(Sort.SECRET, *found.span("v"), "password in address")
    for found in near(_NAMED, plain, _labels(plain), _NAMED_LONGEST):
        if (end := _named(found)) is not None:
            yield Finding(Sort.SECRET, found.start("v"), end, "named secret")


def _starts(text: str, words: Iterable[str]) -> Places:
    """Where one of the words stands."""
    return ((place, place) for place in sorted({place for word in words for place in standing(text, word)}))


def _labels(text: str) -> Places:
    """Where a label may begin: at a word that it has, or shortly before."""
    lower = text.lower()
    if _UNLIKE.search(text):
        return ((0, len(text)),)
    words = {place for word in _LABELS for place in standing(lower, word)}
    starts = {start for place in words for start in range(max(0, place - _LABEL), place + 1)}
    return ((start, start) for start in sorted(starts))


def _named(found: re.Match[str]) -> int | None:
    """Where the value ends, without the ending that Korean puts behind it; None where it is no secret."""
    value = _TAIL.sub("", found["v"]).rstrip(".?")
    label, link = found["label"], found["link"]
    if not 4 <= len(value) or _REFERENCE.fullmatch(value) or value.casefold() in _ORDINARY:
        return None
    if _KEY_LABEL.search(label):
        good = re.fullmatch(r"[\w./+=:~-]{16,}", value, re.ASCII) is not None and _is_mixed(value)
    elif value.isdigit():
        named = bool(_CODE_LABEL.search(label) or link.strip())
        good = named and len(value) <= 12 and not _UNIT.match(found["v"])
    else:
        good = not _UNIT.fullmatch(value) and (_is_mixed(value) or _is_word(found, value))
    return found.start("v") + len(value) if good else None


def _is_mixed(value: str) -> bool:
    """Letters with digits or odd marks: no word of a sentence."""
    letters = any(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    marks = any(each in "!@#$%^&*+=?~|<>" for each in value.rstrip("!?"))
    if letters and digits:
        return digits > 1 or re.search("[가-힣]", value) is None
    return marks and (letters or digits > 0)


def _is_word(found: re.Match[str], value: str) -> bool:
    """An ordinary word is a password only where it is plainly given as one: "my password is swordfish"."""
    before = found.string[max(0, found.start() - 12) : found.start()]
    given = re.search(r"[:=]", found["link"]) or (
        "is" in found["link"] and re.search(r"\b(?:my|our|the|his|her)\s+(?:\w+ )?$", before, re.IGNORECASE)
    )
    return bool(given) and re.fullmatch("[a-z-]{6,40}", value) is not None

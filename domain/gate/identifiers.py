"""Personal identifiers in a text, by form, checksum where there is one, and context where there is none.

Context is what stands shortly before: "주민번호", "call me on", a bank's name. What names another sort of number ("주문번호",
"order") speaks against a find that no checksum supports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from mnemolog.domain.gate.anchors import Places, near
from mnemolog.domain.gate.checksums import born, business, iban, iban_length, luhn, resident
from mnemolog.domain.gate.findings import Finding, Sort, narrow

_NO_CHECKSUM_SINCE: Final = date(2020, 10, 1)
_NEAR: Final = 32
"""Characters before a number that tell what it is."""
_FREE: Final = r"(?<![0-9A-Za-z])(?<![0-9][-./,])(?<![*#])"
"""Nothing before it makes it a part of something longer."""


def _first(one: str) -> str:
    """One character that is free. It comes before what it looks back at: from place to place a search then only skips."""
    return rf"{one}(?<![0-9A-Za-z]{one})(?<![0-9][-./,]{one})(?<![*#]{one})"


_OPEN: Final = r"(?![0-9A-Za-z*])(?![-./,][0-9*])"
_SEP: Final = r"(?:\s?[-./_]\s?|\s)?"
_PAREN: Final = r"\("
_DIGIT: Final = _first(r"\d")
_BRACKET: Final = _first(r"[(\d]")
_ZERO: Final = rf"(?:{_first(_PAREN)}0|{_first('0')})"


def identifiers(text: str) -> Iterator[Finding]:
    """Every personal identifier, overlaps included: `scan` chooses."""
    plain = narrow(text)
    numbers = [(found.start() - 1, found.end() - 1) for found in _NUMBERS.finditer(plain)]
    for rule in _RULES:
        for found in rule.matches(plain, numbers):
            span = rule.check(found)
            if span is not None:
                yield Finding(rule.sort, *span, rule.name)


@dataclass(frozen=True, slots=True)
class _Rule:
    """pattern: the form; check: what of it is one, if it is; places: where the form can begin, None in a number."""

    name: str
    sort: Sort
    pattern: re.Pattern[str]
    check: Callable[[re.Match[str]], tuple[int, int] | None]
    places: Callable[[str], Places] | None

    def matches(self, text: str, numbers: Places) -> Iterator[re.Match[str]]:
        """Where the form is in the text, of which these are the numbers."""
        if self.places is None:
            return near(self.pattern, text, numbers, _BEHIND)
        return near(self.pattern, text, self.places(text), _REACH)


_NUMBERS: Final = re.compile(r"\d(?:[-\s./_()xX]{0,6}\d){6,}")
"""Digits that hang together, of which no rule is content with fewer than seven; no rule has more marks between two."""
_BEHIND: Final = 16
"""Characters of an extension behind a number, and of what must not follow."""
_REACH: Final = 600
"""More characters than any other form has."""


def _everywhere(text: str) -> Places:
    return ((0, len(text)),)


def _where_any(*words: str) -> Callable[[str], Places]:
    """Everywhere in a text that has one of these words, which are folded, and nowhere in another."""

    def places(text: str) -> Places:
        folded = text.casefold()
        return _everywhere(text) if any(word in folded for word in words) else ()

    return places


def _before_mark(mark: re.Pattern[str], longest: int) -> Callable[[str], Places]:
    """In the characters before a mark."""
    return lambda text: ((found.start() - longest, found.start()) for found in mark.finditer(text))


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _before(found: re.Match[str], near: int = _NEAR) -> str:
    """What stands before it on its line, or on the one above where it begins the line."""
    near_by = found.string[max(0, found.start("v") - near) : found.start("v")]
    return near_by.rstrip().rpartition("\n")[2]


_OTHER: Final = re.compile(
    r"티켓|예약|회원|증권\s?번호|관리\s?번호|접수|공시|승인|대기|쿠폰|주문|송장|운송|택배|법인\s?등록|문서|상품|제품|빌드|버전|시리얼|일련|로그|학번|사번|좌표|우편|핀\s?번호|구역|면적|"
    r"\b(?:order|invoice|tracking|serial|build|version|ticket|issue|sku|isbn|part|model|reservation|booking|commit|zip|lot)\b",
    re.IGNORECASE,
)


def _is_other(found: re.Match[str]) -> bool:
    return _OTHER.search(_before(found)) is not None


def _plain(found: re.Match[str]) -> tuple[int, int]:
    return found.span("v")


def _unless_other(found: re.Match[str]) -> tuple[int, int] | None:
    return None if _is_other(found) else found.span("v")


# Korean registration numbers -----------------------------------------------------------------------------------------

_RESIDENT_WORDS: Final = re.compile(
    r"주민|외국인\s?등록|민증|\brrn\b|resident (?:registration|number)", re.IGNORECASE
)


def _resident(found: re.Match[str]) -> tuple[int, int] | None:
    """With context the date is enough; without it a checksum, or the form with a hyphen and a birth since it ended."""
    digits = _digits(found["v"])
    birthday = born(digits)
    if birthday is None:
        return None
    told = _RESIDENT_WORDS.search(_before(found)) is not None
    if not told and _is_other(found):
        return None
    likely = resident(digits) and birthday.year >= 1920
    new = "-" in found["v"] and birthday >= _NO_CHECKSUM_SINCE
    return found.span("v") if told or likely or new else None


_BUSINESS_WORDS: Final = re.compile(r"사업자|세금\s?계산서|business (?:registration|number)", re.IGNORECASE)


def _business(found: re.Match[str]) -> tuple[int, int] | None:
    told = _BUSINESS_WORDS.search(_before(found)) is not None
    hyphenated = "-" in found["v"] and not _is_other(found)
    return found.span("v") if business(_digits(found["v"])) and (told or hyphenated) else None


# Money ---------------------------------------------------------------------------------------------------------------

_CARD_WORDS: Final = re.compile(
    r"카드|신용|체크|결제|\bcards?\b|\bcc\b|credit|debit|visa|master|amex", re.IGNORECASE
)
_NETWORKS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}|(?:2131|1800)\d{11}|"
    r"6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}"
)
_OTHER_NETWORKS: Final = re.compile(r"9\d{15}|(?:50|5[6-9]|6[0-9])\d{10,17}")
"""Domestic ones and Maestro: only with context."""


def _card(found: re.Match[str]) -> tuple[int, int] | None:
    digits = _digits(found["v"])
    told = _CARD_WORDS.search(_before(found)) is not None
    known = _NETWORKS.fullmatch(digits) or (told and _OTHER_NETWORKS.fullmatch(digits))
    return found.span("v") if known and luhn(digits) and (told or not _is_other(found)) else None


def _iban(found: re.Match[str]) -> tuple[int, int] | None:
    """Exactly as many characters as its country has: what follows may be a word of the sentence."""
    length = iban_length(found["v"][:2])
    start = end = found.start("v")
    kept = ""
    while end < found.end("v") and length is not None and len(kept) < length:
        kept += found.string[end] if found.string[end].isalnum() else ""
        end += 1
    return (start, end) if length is not None and len(kept) == length and iban(kept) else None


_BANKS: Final = r"은행|뱅크|농협|신협|수협|새마을\s?금고|우체국|저축은행|국민|신한|우리|하나|기업|씨티|산업|증권(?!\s?번호)|토스|계좌|통장|입금|환불"
_BANK_WORDS: Final = re.compile(
    rf"(?:{_BANKS})\S{{0,4}}(?:\s\S{{1,6}}){{0,2}}\s?[:：]?\s?$|\baccount (?:number|no\.?)\W{{0,4}}(?:is )?$",
    re.IGNORECASE,
)


def _account(found: re.Match[str]) -> tuple[int, int] | None:
    digits = _digits(found["v"])
    after = found.string[found.end("v") : found.end("v") + 2].strip()
    if not 10 <= len(digits) <= 16 or after.startswith("원") or _is_other(found):
        return None
    return found.span("v") if _BANK_WORDS.search(_before(found)) else None


# Documents -----------------------------------------------------------------------------------------------------------


def _with(words: str, near: int = _NEAR) -> Callable[[re.Match[str]], tuple[int, int] | None]:
    compiled = re.compile(words, re.IGNORECASE)
    return lambda found: found.span("v") if compiled.search(_before(found, near)) else None


def _licence(found: re.Match[str]) -> tuple[int, int] | None:
    """A Korean one begins with the number of a region, 11 to 28."""
    told = re.search(r"면허|licen[cs]e", _before(found), re.IGNORECASE) is not None
    region = found["region"]
    return found.span("v") if told or (region.isdigit() and 11 <= int(region) <= 28) else None


def _foreign_licence(found: re.Match[str]) -> tuple[int, int] | None:
    return found.span("v") if len(_digits(found["v"])) >= 5 else None


# Phones --------------------------------------------------------------------------------------------------------------

_PHONE_WORDS: Final = re.compile(
    r"전화|연락|휴대|핸드폰|폰|(?<![가-힣])번호|팩스|문자|카톡|\b(?:phone|mobile|cell|tel|fax|desk|call|reach|text|whatsapp|answering|"
    r"messages?|registered|contact|dial|ring|hotline|office)\b",
    re.IGNORECASE,
)
_SURE_PHONE_WORDS: Final = re.compile(
    r"(?:전화|연락처|휴대폰|핸드폰|팩스|\b(?:phone|mobile|cell|tel|fax|desk|call me (?:at|on)))\W{0,3}$",
    re.IGNORECASE,
)
"""Also before digits without a separator."""
_PHONE_AFTER: Final = re.compile(r"\s?(?:office|fax|mobile|desk|cell)\b|-office", re.IGNORECASE)


def _landline(found: re.Match[str]) -> tuple[int, int] | None:
    """Without a separator only where it is called a phone number."""
    if re.search(r"\D", found["v"]) is None and not _PHONE_WORDS.search(_before(found)):
        return None
    return None if _is_other(found) else found.span("v")


def _foreign(found: re.Match[str]) -> tuple[int, int] | None:
    return found.span("v") if 8 <= len(_digits(found["v"])) <= 17 else None


def _by_context(found: re.Match[str]) -> tuple[int, int] | None:
    """Groups of digits in any form, where words around them say that one can call there."""
    digits = _digits(found["v"])
    words = _PHONE_WORDS if re.search(r"\D", found["v"]) else _SURE_PHONE_WORDS
    told = words.search(_before(found)) or _PHONE_AFTER.match(found.string, found.end("v"))
    if not told or not 7 <= len(digits) <= 14 or _is_other(found) or _NO_PHONE.match(found["v"]):
        return None
    return found.span("v")


_NO_PHONE: Final = re.compile(
    r"(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:0?[1-9]|[12]\d|3[01])\b|\d{1,3}(?:\.\d{1,3}){3}\Z|1[568]\d\d-\d{4}\Z"
)
"""A day, an address of a host, a hotline of a company."""


# Mail ----------------------------------------------------------------------------------------------------------------


def _email(found: re.Match[str]) -> tuple[int, int] | None:
    """Not git@host:path, and not the password and host of scheme://name:password@host."""
    path = found.string[found.end("v") : found.end("v") + 2]
    if (
        re.match(r":[\w/~]", path)
        or found["v"].startswith("git@")
        or re.search(r"://\S*:$", _before(found, 80))
    ):
        return None
    return found.span("v")


def _rule(
    name: str,
    sort: Sort,
    pattern: str,
    check: Callable[[re.Match[str]], tuple[int, int] | None] = _plain,
    places: Callable[[str], Places] | None = None,
) -> _Rule:
    return _Rule(name, sort, re.compile(pattern, re.IGNORECASE), check, places)


_NUMERAL: Final = "[공영일이삼사오육륙칠팔구0-9]"
_AT: Final = r"(?:@|\s?골뱅이\s?|\s?[(\[]at[)\]]\s?)"
_DOT: Final = r"(?:\.|\s?점\s?|\s?[(\[]dot[)\]]\s?)"
_HOST: Final = r"(?:[a-z0-9가-힣-]{1,63}\.){1,6}[a-z]{2,24}(?![a-z0-9@])"
_SPOKEN_HOST: Final = rf"(?:[a-z0-9-]{{1,63}}{_DOT}){{1,6}}[a-z]{{2,24}}(?![a-z0-9@])"
_MOBILE: Final = rf"1[016789]\)?{_SEP}\d{{3,4}}{_SEP}\d{{4}}"

_AT_SIGN: Final = re.compile("@")
_SPOKEN_AT: Final = re.compile(r"[@골(\[](?:(?<=@)|(?<=골)뱅이|(?<=[(\[])at[)\]])", re.IGNORECASE)
_COUNTRY: Final = re.compile(r"\d(?<=[a-z]{2}\d)\d", re.IGNORECASE)


def _from_country(text: str) -> Places:
    return ((found.start() - 2, found.start() - 2) for found in _COUNTRY.finditer(text))


_RULES: Final = (
    _rule("korean resident", Sort.RESIDENT, rf"(?P<v>{_DIGIT}\d{{5}}(?:\s?-\s?|\s)?[1-8]\d{{6}}){_OPEN}", _resident),
    _rule("korean business", Sort.BUSINESS, rf"(?P<v>{_DIGIT}\d{{2}}[- ]?\d{{2}}[- ]?\d{{5}}){_OPEN}", _business),
    _rule("card", Sort.CARD, rf"(?P<v>{_DIGIT}\d{{3}}(?:[-. ]?\d{{4,6}}){{1,2}}[-. ]?\d{{1,7}}(?:[-. ]?\d{{1,3}})?){_OPEN}", _card),
    _rule("iban", Sort.IBAN, r"(?<![0-9a-z])(?P<v>[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,30})", _iban, _from_country),
    _rule("korean account", Sort.ACCOUNT, rf"(?P<v>{_DIGIT}(?:\d{{1,5}}(?:-\d{{1,8}}){{1,4}}|\d{{9,15}})){_OPEN}", _account),
    _rule("passport", Sort.PASSPORT, rf"{_FREE}(?P<v>[a-z]\d{{3}}[a-z]\d{{4}}|[a-z]{{1,2}}\d{{7,8}})(?![0-9a-z])",
          _with(r"여권|passport"), _where_any("여권", "passport")),
    _rule("korean licence", Sort.LICENCE, rf"(?P<v>(?P<region>{_DIGIT}\d)-\d{{2}}-\d{{6}}-\d{{2}}){_OPEN}", _licence),
    _rule("korean licence", Sort.LICENCE, r"면허\D{0,12}(?P<v>\d{2}-\d{6}-\d{2})(?![0-9])", places=_everywhere),
    _rule("licence", Sort.LICENCE, r"licen[cs]e (?:number |no\.? )?(?:is |:)?\s?(?P<v>[a-z0-9][a-z0-9-]{5,14})(?![a-z0-9-])",
          _foreign_licence, _everywhere),
    _rule("ssn", Sort.SSN, rf"(?P<v>{_DIGIT}(?!(?<=0)00|(?<=6)66)\d{{2}}[- ]?\d{{2}}[- ]?\d{{4}}){_OPEN}", _with(r"\bssn\b|social security")),
    _rule("korean mobile", Sort.PHONE, rf"(?P<v>{_ZERO}{_MOBILE}){_OPEN}", _unless_other),
    _rule("korean mobile abroad", Sort.PHONE, rf"{_FREE}(?P<v>(?:\+|00[1-9]?[- ]?)?82\)?{_SEP}\(?0?{_MOBILE}){_OPEN}", _unless_other),
    _rule("korean landline", Sort.PHONE,
          rf"(?P<v>{_ZERO}(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|50[2-8])\)?{_SEP}\d{{3,4}}{_SEP}\d{{4}}){_OPEN}", _landline),
    _rule("korean landline abroad", Sort.PHONE, rf"{_FREE}(?P<v>\+82{_SEP}\(?0?(?:2|[3-6][1-5]|70)\)?{_SEP}\d{{3,4}}{_SEP}\d{{4}}){_OPEN}"),
    _rule("spoken", Sort.PHONE, rf"(?P<v>(?:[공영]일[공영]|010)[-\s]?{_NUMERAL}{{4}}[-\s]?{_NUMERAL}{{4}})(?!{_NUMERAL})",
          places=_where_any("010", "공일", "영일")),
    _rule("spaced", Sort.PHONE, rf"(?P<v>{_first('0')} 1 0(?: \d){{8}}){_OPEN}"),
    _rule("international", Sort.PHONE,
          rf"(?<![\w+])(?P<v>(?:\+|00[1-9]?[- ]?)(?=[1-9])\d{{1,4}}[-. ]?(?:\(\d{{1,4}}\)[-. ]?)?\d{{1,5}}(?:[-. ]?\d{{2,4}}){{1,4}}(?:x\d{{1,5}})?){_OPEN}",
          _foreign),
    _rule("american", Sort.PHONE, rf"(?P<v>{_BRACKET}(?:(?<=1)[-. ](?:\(\d{{3}}\) ?|\d{{3}}[-.])|(?<=\()\d{{3}}\) ?|(?<=\d)\d{{2}}[-.])\d{{3}}[-.]\d{{4}}(?:x\d{{1,5}})?){_OPEN}", _unless_other),
    _rule("by context", Sort.PHONE, rf"(?P<v>{_BRACKET}(?:(?<=\()\d{{1,4}}\)[-. ]?(?:\d{{2,5}}(?:[-. ]\d{{2,4}}){{1,4}}|\d{{2,4}}[-. ]\d{{7}}|\d{{9,11}})|"
          rf"(?<=\d)(?:\d{{1,4}}(?:[-. ]\d{{2,4}}){{1,4}}|\d{{1,3}}[-. ]\d{{7}}|\d{{8,10}}))(?:x\d{{1,5}})?)(?![0-9])", _by_context),
    _rule("email", Sort.EMAIL, rf"(?<![a-z0-9._%+-])(?P<v>[a-z0-9][a-z0-9._%+-]{{0,63}}@{_HOST})", _email, _before_mark(_AT_SIGN, 64)),
    _rule("spoken email", Sort.EMAIL, rf"(?<![a-z0-9._%+-])(?P<v>[a-z0-9][a-z0-9._%+-]{{0,63}}{_AT}{_SPOKEN_HOST})", _email,
          _before_mark(_SPOKEN_AT, 65)),
    _rule("email", Sort.EMAIL, rf"(?<!\w)(?P<v>[가-힣]{{1,20}}@{_HOST})", _email, _before_mark(_AT_SIGN, 20)),
)  # fmt: skip

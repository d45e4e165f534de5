"""The check digits of identifiers. Each takes digits (an IBAN also letters) without separators."""

from __future__ import annotations

from datetime import date
from typing import Final

_RESIDENT: Final = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_BUSINESS: Final = (1, 3, 7, 1, 3, 7, 1, 3, 5)
_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in (
        pair.split(":")
        for pair in (
            "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DK:18 DO:28 "
            "EE:20 EG:29 ES:24 FI:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HR:21 HU:28 IE:22 IL:23 IQ:23 IS:26 "
            "IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 MK:19 MR:27 MT:31 MU:30 "
            "NL:18 NO:15 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 SA:24 SC:31 SE:24 SI:19 SK:24 SM:27 ST:25 SV:28 TL:23 "
            "TN:24 TR:26 UA:29 VA:22 VG:24 XK:20"
        ).split()
    )
}


def luhn(digits: str) -> bool:
    total = sum(
        digit if place % 2 == 0 else sum(divmod(2 * digit, 10))
        for place, digit in enumerate(map(int, reversed(digits)))
    )
    return total % 10 == 0


def iban_length(country: str) -> int | None:
    return _IBAN_LENGTHS.get(country.upper())


def iban(text: str) -> bool:
    """ISO 13616: the length of its country, and 1 modulo 97."""
    moved = text[4:] + text[:4]
    return (
        text.isascii()
        and len(text) == iban_length(text[:2])
        and int("".join(str(int(each, 36)) for each in moved)) % 97 == 1
    )


def resident(digits: str) -> bool:
    """Of Korean numbers given out until October 2020; those of foreigners (seventh digit 5 to 8) add two."""
    total = sum(weight * int(digit) for weight, digit in zip(_RESIDENT, digits, strict=False))
    start = 13 if digits[6] in "5678" else 11
    return (start - total % 11) % 10 == int(digits[12])


def born(digits: str) -> date | None:
    """The birthday in a Korean resident number; None where there is no such day."""
    century = {"1": 1900, "2": 1900, "3": 2000, "4": 2000, "5": 1900, "6": 1900, "7": 2000, "8": 2000}.get(
        digits[6]
    )
    if century is None:
        return None
    try:
        return date(century + int(digits[:2]), int(digits[2:4]), int(digits[4:6]))
    except ValueError:
        return None


def business(digits: str) -> bool:
    total = sum(weight * int(digit) for weight, digit in zip(_BUSINESS, digits, strict=False))
    return (10 - (total + int(digits[8]) * 5 // 10) % 10) % 10 == int(digits[9])

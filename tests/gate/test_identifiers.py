"""Personal identifiers and secrets: found in every written form, masked, and stored as a keyed fingerprint only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.gate import checksums
from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.findings import Finding, Sort, fingerprint, mask, scan
from mnemolog.domain.gate.identifiers import identifiers

KEY = b"0123456789abcdef"
LINES = [
    json.loads(line)
    for line in Path(__file__).with_name("korean_identifiers.jsonl").read_text(encoding="utf-8").splitlines()
]


def found(text: str) -> list[tuple[str, str]]:
    return [(one.sort.value, text[one.start : one.end]) for one in scan(text, (identifiers, credentials))]


def test_recall_on_korean_lines() -> None:
    """At least 95 % of the identifiers of the Korean set are found, with their exact places and their sort."""
    wanted = [(line, span["type"], span["value"]) for line in LINES for span in line["spans"]]
    hits = [each for line, *each in wanted if tuple(each) in found(line["text"])]
    assert len(wanted) >= 100
    assert len(hits) / len(wanted) >= 0.95


def test_look_alikes_pass() -> None:
    """At most 2 % of the lines that only look like an identifier are found."""
    innocent = [line["text"] for line in LINES if not line["spans"]]
    assert len(LINES) >= 150 and len(innocent) >= 75
    assert len([text for text in innocent if found(text)]) / len(innocent) <= 0.02


def test_what_is_masked_is_found_no_more() -> None:
    """Masked text holds none of what was found, and masking it again changes nothing."""
    for line in LINES:
        text = line["text"]
        masked = mask(text, scan(text, (identifiers, credentials)))
        assert all(value not in masked for _, value in found(text))
        assert found(masked) == []


def test_a_number_without_checksum_needs_its_context() -> None:
    """A resident number of today has no checksum: its date and the words before it tell (case F02)."""
    assert not checksums.resident("0101013000000")
    assert found("주민번호 010101-3000000") == [("resident", "010101-3000000")]
    assert found("주문번호 010101-3000000") == []
    assert found("주민번호 019901-3000000") == []


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("My card is 4111 1111 1111 1111.", "card"),
        ("IBAN: gb82west12345698765432", "iban"),
        ("my ssn is 123-45-6789", "ssn"),
        ("Call me at (415) 555-2671 x12", "phone"),
        ("reach me on +49 30 901820", "phone"),
        ("write to a.b+c@mail.example.org", "email"),
        ("my passport is K12345678", "passport"),
        ("my driver's license number is F162823540116", "licence"),
        ("my password is hunter2", "secret"),
        ("My password is swordfish", "secret"),
        ("token sk-test-FAKE0123456789abcdef", "secret"),
        ("db: postgres://app:s3cretpw@db.local/x", "secret"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "secret"),
        ("api_key = 'a8f5f167f44f4964e6c998dee827110c'", "secret"),
    ],
)
def test_other_forms(text: str, sort: str) -> None:
    """What is written in English is found too (case F01)."""
    assert [each for each, _ in found(text)] == [sort]


@pytest.mark.parametrize(
    "text",
    [
        "card 4111 1111 1111 1112",
        "GB82WEST12345698765431",
        "the password is incorrect",
        "your password must be 8 characters",
        "password: ${DB_PASSWORD}",
        "token limit is 128000 tokens",
        "the secret of success is patience",
        "order 415-555-2671",
        "version 10.20.30.40",
        "I used 4096 tokens today",
        "see git@github.com:org/repo.git",
        "set API_KEY=<your key here>",
        "reset your pin code",
    ],
)
def test_what_is_none(text: str) -> None:
    """A wrong checksum, talk about secrets, a placeholder and other numbers are left alone."""
    assert found(text) == []


def test_a_private_key_goes_as_a_whole() -> None:
    """Not only the first line of a key is masked, also of one that was cut off."""
    text = "here:\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC"
    assert mask(text, scan(text, (credentials,))) == "here:\n[masked secret]"


def test_of_overlapping_findings_the_longer_stays() -> None:
    """A place is masked once, by what covers most of it; of equals by the more telling sort."""
    longer, shorter = Finding(Sort.PHONE, 0, 12, "a"), Finding(Sort.CARD, 2, 8, "b")
    equal = Finding(Sort.CARD, 0, 12, "c")
    assert scan("x" * 12, (lambda _: [shorter, longer],)) == (longer,)
    assert scan("x" * 12, (lambda _: [longer, equal],)) == (equal,)


def test_a_fingerprint_needs_a_key_and_shows_nothing() -> None:
    """The same secret under another key has another fingerprint, and none of them holds a part of it (case F06)."""
    text = "비밀번호는 Abcd1234efgh5678 이야"
    (one,) = scan(text, (credentials,))
    first, second = fingerprint(text, one, KEY), fingerprint(text, one, b"another key of 16+")
    assert first != second and len(first) == 64
    assert not any(part in first.casefold() for part in ("abcd1234", "5678", "1234"))
    assert "Abcd" not in repr(one)
    with pytest.raises(InvalidInput, match="at least 16 bytes"):
        fingerprint(text, one, b"short")


@pytest.mark.parametrize(
    "spellings",
    [
        [
            "010-2345-6789",
            "01023456789",
            "+82 10-2345-6789",
            "+821023456789",
            "공일공 이삼사오 육칠팔구",
            "０１０-２３４５-６７８９",
        ],
        ["hayun@naver.com", "HAYUN@naver.com", "hayun 골뱅이 naver.com", "hayun골뱅이naver점com"],
        ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"],
    ],
)
def test_spellings_of_one_thing_share_a_fingerprint(spellings: list[str]) -> None:
    """The same number or address has one fingerprint, however it is written."""
    prints = set()
    for text in spellings:
        (one,) = scan(text, (identifiers,))
        assert (one.start, one.end) == (0, len(text))
        prints.add(fingerprint(text, one, KEY))
    assert len(prints) == 1


def test_checksums() -> None:
    """Each check digit is computed as its standard says: one changed digit breaks it."""
    assert checksums.luhn("4111111111111111") and not checksums.luhn("4111111111111112")
    assert checksums.iban("DE89370400440532013000") and not checksums.iban("DE89370400440532013001")
    assert not checksums.iban("DE8937040044053201300")
    assert checksums.business("1234567891") and not checksums.business("1234567892")
    assert checksums.born("0102293000000") is None
    assert checksums.born("0002293000000") is not None


def test_any_text_is_scanned_without_an_error() -> None:
    """Odd characters and very long runs are no reason to fail."""
    for text in [
        "",
        "\x00",
        "\ud83d",
        "1" * 5_000,
        "1-" * 3_000,
        "a@" * 3_000,
        "비밀번호는 " * 500,
        "²³¹" * 10,
        "٠١٠-١٢٣٤-٥٦٧٨",
    ]:
        assert isinstance(scan(text, (identifiers, credentials)), tuple)

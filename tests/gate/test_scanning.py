"""detect-secrets as a scanner: what only the library knows, at its place in the text."""

from __future__ import annotations

import pytest

from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.findings import mask, scan
from mnemolog.domain.gate.identifiers import identifiers
from mnemolog.infra.scanning import library_secrets


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("aws: AKIAIOSFODNN7EXAMPLE and more", "AKIAIOSFODNN7EXAMPLE"),
        ("first\nhook https://app:Zx9kQ2mL@host.test/x", "Zx9kQ2mL"),
        ('cfg\n  db_password = "kX92!mmQ17z"\n', "kX92!mmQ17z"),
        ("stripe sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2", "sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2"),
    ],
)
def test_secrets_of_code_are_found_at_their_place(text: str, secret: str) -> None:
    """The finding points at the secret, also in a later line, and names the plugin."""
    findings = scan(text, (library_secrets,))
    assert secret in {text[one.start : one.end] for one in findings}
    assert all(one.rule.startswith("detect-secrets ") for one in findings)
    assert secret not in mask(text, findings)


@pytest.mark.parametrize(
    "text",
    [
        "plain talk about passwords",
        "commit 3f2a9c1b4d5e6f708192a3b4c5d6e7f8091a2b3c",
        'id = "123e4567-e89b-12d3-a456-426614174000"',
        "host 8.8.8.8",
        "password: ${DB_PASSWORD}",
        "",
    ],
)
def test_what_is_no_secret(text: str) -> None:
    """Digests, ids, addresses of hosts and placeholders pass."""
    assert scan(text, (library_secrets,)) == ()


def test_a_long_line_is_looked_at_in_pieces() -> None:
    """A secret far along a very long line is found where it stands."""
    text = "x " * 30_000 + "AKIAIOSFODNN7EXAMPLE"
    (one,) = scan(text, (library_secrets,))
    assert text[one.start : one.end] == "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize("escape", ["\\n", "\\t", "\\\\n", "\\u000a", "\\r\\n"])
@pytest.mark.parametrize(
    "secret", ["900101-1234568", "4111 1111 1111 1111", "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"]
)
def test_a_line_break_of_json_hides_nothing(escape: str, secret: str) -> None:
    """The letter of an escaped line break is none that stands before a number or a key."""
    text = f'{{"stdout": "contact:{escape}{secret}"}}'
    shown = mask(text, scan(text, (library_secrets, credentials, identifiers)))
    assert secret not in shown and shown.startswith('{"stdout": "contact:')

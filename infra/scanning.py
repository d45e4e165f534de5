"""Secrets in code and settings, found by detect-secrets: one more `Scanner` beside those of the domain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from mnemolog.domain.gate.findings import Finding, Sort

_LEFT_OUT: Final = frozenset({"IPPublicDetector", "HexHighEntropyString"})
"""An address of a host is no secret, and every commit and digest is a hex string of high entropy."""
_SHORTEST: Final = 8
"""Characters of a line that could hold a secret with its name or its mark."""
LONGEST_LINE: Final = 2_000
"""Characters of a line that are looked at together; a longer one is looked at in pieces, of which the plugins' patterns
are quick,"""
_OVERLAP: Final = 400
"""so many characters of which stand in two."""
_NAMES: Final = (
    *(f"{before}key" for before in ("_", "i", "ı", "\u0307", "h", "e", "t", "b", "v")),
    *(f"{before}pass" for before in "_bey"),
    *("password", "passwd", "pwd", "secret", "contrase"),
)
_WORDS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "AWS Access Key": (("akia", "asia", "abia", "acca", "a3t", "aws"),),
    "Azure Storage Account access key": (("accountkey=",),),
    "Basic Auth Credentials": (("://",),),
    "Cloudant Credentials": (tuple("clou cl_ cl- clkey clpw clpass cltoken clap".split()),),
    "GitHub Token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),),
    "GitLab Token": (
        tuple("glpat- gldt- glft- glsoat- glrt- gr1348941 glcbt- glimt- glptt- glagent- gloas-".split()),
    ),
    "IBM COS HMAC Credentials": (("secret",), ("key",)),
    "IBM Cloud IAM Key": (("key", "pwd", "pass", "token"),),
    "JSON Web Token": (("eyj",),),
    "Mailchimp Access Key": (("-us",),),
    "NPM tokens": (("_authtoken",),),
    "OpenAI Token": (("t3blbkfj",),),
    "Private Key": (("private key", "putty-user-key-file-2"),),
    "PyPI Token": (("pypi-age",),),
    "Secret Keyword": (_NAMES, ("'", '"', "`")),
    "SendGrid API Key": (("sg.",),),
    "Slack Token": (("xox", "hooks.slack.com"),),
    "SoftLayer Credentials": (tuple("softlayer sl_ sl- slkey slpwd slpass sltoken slap".split()),),
    "Square OAuth Secret": (("sq0csp-",),),
    "Stripe Access Key": (("k_live_",),),
}
"""What a text must have, folded, for a plugin to find anything in it: of each group a word. None has an i where the
plugin takes small letters for large ones: of that letter there are too many."""
_FORMS: Final = {
    "Artifactory Credentials": r"A(?:KC[a-zA-Z0-9]{10}|P[\dA-F][a-zA-Z0-9]{8})",
    "Base64 High Entropy String": r"""(['"])[A-Za-z0-9+/\\_=-]{23,}\1""",
    "Discord Bot Token": r"[MNO][a-zA-Z\d_-]{23,25}\.[a-zA-Z\d_-]{6}\.",
    "IBM Cloud IAM Key": r"""(?i)[=: >"'][a-z0-9_-]{44}""",
    "Telegram Bot Token": r"\d{8}:[0-9A-Za-z_-]{35}",
    "Twilio API Key": r"(?:AC|SK)[a-z0-9]{32}",
}
"""And what form something in it must have. The entropy that is asked for takes 23 characters."""
Plugins = Sequence[tuple[str, Any]]


def library_secrets(text: str) -> Iterator[Finding]:
    """What the plugins of detect-secrets find, line by line. Nothing is verified, so nothing leaves the process."""
    plugins, at = _due(text, _plugins()), 0
    for line in text.splitlines(keepends=True) if plugins else ():
        pieces = range(0, max(1, len(line) - _OVERLAP), LONGEST_LINE - _OVERLAP)
        for start in pieces if len(line) > _SHORTEST else ():
            yield from _in_line(line[start : start + LONGEST_LINE], at + start, plugins)
        at += len(line)


def _due(text: str, plugins: Plugins) -> Plugins:
    """Those that may find something in the text: to look for words is quick, and most texts have none."""
    folded = text.casefold()
    due = [one for one in plugins if one[0] not in _WORDS or _has(folded, _WORDS[one[0]])]
    return [one for one in due if one[0] not in _FORMS or _compiled(_FORMS[one[0]]).search(text)]


def _has(folded: str, groups: tuple[tuple[str, ...], ...]) -> bool:
    for words in groups:
        for word in words:
            if word in folded:
                break
        else:
            return False
    return True


def _in_line(line: str, at: int, plugins: Plugins) -> Iterator[Finding]:
    for name, plugin in _due(line, plugins):
        for value in _values(plugin, line):
            place = line.find(value)
            if value and place >= 0:
                yield Finding(Sort.SECRET, at + place, at + place + len(value), f"detect-secrets {name}")


def _values(plugin: Any, line: str) -> set[str]:
    found = plugin.analyze_line(filename="text", line=line, line_number=1)
    values = {secret.secret_value or "" for secret in found}
    return {value for value in values if not any(ordinary(value) for ordinary in _heuristics())}


@cache
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(form)


@cache
def _plugins() -> tuple[tuple[str, Any], ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: dict[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple((name, made()) for name, made in sorted(classes.items()) if made.__name__ not in _LEFT_OUT)


@cache
def _heuristics() -> tuple[Any, ...]:
    """What only looks like a secret: a placeholder, a counter, a path."""
    from detect_secrets.filters import heuristic

    return (
        heuristic.is_sequential_string,
        heuristic.is_potential_uuid,
        heuristic.is_templated_secret,
        heuristic.is_prefixed_with_dollar_sign,
        heuristic.is_not_alphanumeric_string,
    )

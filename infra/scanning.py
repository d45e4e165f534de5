"""Secrets in code and settings, found by detect-secrets: one more `Scanner` beside those of the domain."""

from __future__ import annotations

from collections.abc import Iterator
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
_NAMES: Final = {"Secret Keyword": ("key", "pass", "pwd", "secret", "contrase")}
"""What a line must have for a plugin that is slow to find anything."""


def library_secrets(text: str) -> Iterator[Finding]:
    """What the plugins of detect-secrets find, line by line. Nothing is verified, so nothing leaves the process."""
    at = 0
    for line in text.splitlines(keepends=True):
        pieces = range(0, max(1, len(line) - _OVERLAP), LONGEST_LINE - _OVERLAP)
        for start in pieces if len(line) > _SHORTEST else ():
            yield from _in_line(line[start : start + LONGEST_LINE], at + start)
        at += len(line)


def _in_line(line: str, at: int) -> Iterator[Finding]:
    folded = line.casefold()
    for name, plugin in _plugins():
        if name in _NAMES and not any(word in folded for word in _NAMES[name]):
            continue
        for value in _values(plugin, line):
            place = line.find(value)
            if value and place >= 0:
                yield Finding(Sort.SECRET, at + place, at + place + len(value), f"detect-secrets {name}")


def _values(plugin: Any, line: str) -> set[str]:
    found = plugin.analyze_line(filename="text", line=line, line_number=1)
    values = {secret.secret_value or "" for secret in found}
    return {value for value in values if not any(ordinary(value) for ordinary in _heuristics())}


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

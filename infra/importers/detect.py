"""Telling the format of a file from how it begins."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.importers import claude_code, jsonl, tau_bench
from mnemolog.infra.importers.sources import Source

_RUNS: Final = re.compile(r'"(?:traj|task_id)"\s*:')
_SESSION: Final = re.compile(r'"(?:sessionId|parentUuid|leafUuid|isSidechain|isSnapshotUpdate)"\s*:')
_EVENT: Final = re.compile(rf'"type"\s*:\s*"(?:{"|".join(jsonl.FIELDS)})"')
LINES_LOOKED_AT: Final = 50


def detect(source: Source) -> str:
    """The name of the file's format. Raises InvalidInput when it looks like none of them."""
    head = source.head()
    if not head.strip():
        return jsonl.FORM
    if head.lstrip().startswith("["):
        if _RUNS.search(head):
            return tau_bench.FORM
    elif claude_code.is_document(head):
        return claude_code.FORM
    elif form := _of_lines(head):
        return form
    known = ", ".join(map(spelled, (jsonl.FORM, claude_code.FORM, tau_bench.FORM)))
    raise InvalidInput(f"cannot tell the format of {source.path.name}: name it with --format, one of {known}")


def spelled(form: str) -> str:
    """The name of a format as people read and write it."""
    return form.replace("_", "-")


def _of_lines(head: str) -> str | None:
    for text in head.splitlines()[:LINES_LOOKED_AT]:
        try:
            form = _of_object(json.loads(text))
        except (ValueError, RecursionError):
            form = _of_text(text)
        if form:
            return form
    return None


def _of_object(line: Any) -> str | None:
    if not isinstance(line, dict):
        return None
    kind = line.get("type")
    if isinstance(kind, str) and kind in jsonl.FIELDS:
        return jsonl.FORM
    said = kind in ("user", "assistant") and isinstance(line.get("message"), dict)
    named = line.keys() & {"sessionId", "leafUuid", "isSidechain", "isSnapshotUpdate"}
    return claude_code.FORM if said or (kind is not None and named) else None


def _of_text(text: str) -> str | None:
    """From the beginning of a line that is too long to be looked at whole."""
    if _EVENT.search(text):
        return jsonl.FORM
    return claude_code.FORM if _SESSION.search(text) else None

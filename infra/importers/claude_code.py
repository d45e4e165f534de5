"""Claude Code session files: one JSON object per line, or one document with a list of `loglines`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from mnemolog.consumers.importing import Entry, Item, Place, Skipped
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.ingress import moment
from mnemolog.domain.messages import Called, Returned, Said, expand
from mnemolog.domain.messages import Item as Happened
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers.reading import Options, records_of_array, records_of_lines
from mnemolog.infra.importers.sources import Source, derived_key

FORM: Final = "claude_code"
SIDECHAIN: Final = "sidechain"
"""The agent of what a sub-agent said and did. What it is told comes from the main agent, not from the user."""

LOGLINES: Final = re.compile(r'"loglines"\s*:\s*\[')
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_TEXT: Final = frozenset({"thinking", "redacted_thinking", "image", "document"})


def read(source: Source, after: Place, options: Options) -> Iterator[Entry]:
    """The entries after a place. The records before it are gone over for what they say about their sessions."""
    sessions = _Sessions(options, source.path.name.partition(".")[0] or FORM)
    found = records_of_array(source, LOGLINES) if is_document(source.head()) else records_of_lines(source)
    for record in found:
        entry = record.problem or sessions.entry(record.place, record.value)
        if record.place.number > after.number:
            yield entry


def is_document(head: str) -> bool:
    """Whether a file that begins so is one document and not one object per line."""
    first = head.lstrip().partition("\n")[0]
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        return LOGLINES.search(head) is not None
    return isinstance(line, dict) and isinstance(line.get("loglines"), list)


class _Sessions:
    """What lines say about their session once and for all: its project, and which call asked which tool."""

    def __init__(self, options: Options, name: str) -> None:
        self._options, self._defaults, self._name = options, options.scope(), name
        self._projects: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def entry(self, place: Place, record: Any) -> Entry:
        try:
            return self._entry(place, record)
        except InvalidInput as error:
            by_design = isinstance(error, _NotSaid)
            return Entry(place, skipped=(Skipped(place.number, str(error), by_design=by_design),))

    def _entry(self, place: Place, record: Any) -> Entry:
        message = _message(record)
        scope = self._scope(record)
        when = self._time(record)
        items: list[Item] = []
        skipped: list[Skipped] = []
        for index, block in enumerate(_blocks(message)):
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in _NOT_TEXT:
                skipped.append(Skipped(place.number, f"{kind} blocks are not kept", by_design=True))
                continue
            named = (record.get("uuid") or place.number, index)
            try:
                items.extend(
                    self._item(happened, scope, when, place.number, (*named, nth))
                    for nth, happened in enumerate(expand([{"role": record["type"], "content": [block]}]))
                )
            except InvalidInput:
                skipped.append(
                    Skipped(place.number, "a content block has a form that this format does not have")
                )
        if not items and not skipped:
            skipped.append(Skipped(place.number, "the message is empty", by_design=True))
        return Entry(place, tuple(items), tuple(skipped))

    def _scope(self, record: Mapping[str, Any]) -> Scope:
        levels = dict(self._defaults.present())
        levels["session"] = _string(record.get("sessionId")) or levels.get("session") or self._name
        if self._defaults.project is None and (project := self._project(levels["session"], record)):
            levels["project"] = project
        if record.get("isSidechain") is True:
            levels["agent"] = SIDECHAIN
        return Scope.of(levels)

    def _project(self, session: str, record: Mapping[str, Any]) -> str | None:
        """The folder in which the session began; going to another folder does not change the project."""
        folder = _string(record.get("cwd"))
        if session not in self._projects and folder:
            path = PureWindowsPath(folder) if "\\" in folder else PurePosixPath(folder)
            self._projects[session] = path.name.strip()
        return self._projects.get(session) or None

    def _time(self, record: Mapping[str, Any]) -> datetime:
        stamp = record.get("timestamp")
        if not isinstance(stamp, str):
            raise InvalidInput("the message has no timestamp")
        return moment(stamp, "timestamp", zone=lambda: self._options.zone, now=_EPOCH)

    def _item(
        self, happened: Happened, scope: Scope, when: datetime, number: int, named: tuple[object, ...]
    ) -> Item:
        kind, fields = fields_of(happened, self._tools)
        if kind == "turn" and scope.agent == SIDECHAIN and fields["role"] == "user":
            fields["role"] = "assistant"
        key = derived_key(
            FORM, scope.encode(), *named, kind, json.dumps(fields, sort_keys=True, ensure_ascii=True)
        )
        return Item(kind, scope, {**fields, "occurred_at": when}, key, number, derived_key=True)


class _NotSaid(InvalidInput):
    """The record belongs to the format, and holds nothing that somebody said."""


def _message(record: Any) -> Mapping[str, Any]:
    """The message of a record that holds one that was really said. Raises InvalidInput with the reason if not."""
    if not isinstance(record, dict):
        raise InvalidInput("the record is not a JSON object")
    kind = record.get("type")
    if kind not in ("user", "assistant"):
        name = f"{kind[:40]} records are" if isinstance(kind, str) else "a record without a type is"
        raise _NotSaid(f"{name} not part of the conversation")
    if record.get("isMeta") is True:
        raise _NotSaid("meta records are not part of the conversation")
    if record.get("isCompactSummary") is True:
        raise _NotSaid("summaries made by the runtime are not what somebody said")
    message = record.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
        raise InvalidInput("the message has no content")
    return message


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message["content"]
    return [block for block in ([content] if isinstance(content, str) else content) if block != ""]


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def fields_of(happened: Happened, tools: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Kind and fields of what a message says. `tools` remembers which tool a call asked, until it answers."""
    if isinstance(happened, Said):
        fields: dict[str, Any] = {"role": happened.role, "content": happened.content}
        return "turn", {**fields, "author": happened.author} if happened.author else fields
    if isinstance(happened, Called):
        if happened.call_id:
            tools[happened.call_id] = happened.name
        return "tool_call", _given(name=happened.name, arguments=happened.arguments, call_id=happened.call_id)
    assert isinstance(happened, Returned)
    name = happened.name or tools.pop(happened.call_id or "", None)
    if happened.error:
        return "tool_result", _given(error=happened.output, call_id=happened.call_id, name=name)
    return "tool_result", _given(output=happened.output, call_id=happened.call_id, name=name)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

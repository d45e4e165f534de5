"""A sink that keeps what it is given, with the memory's rules on keys and times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemolog.domain.errors import IdempotencyConflict, InvalidInput, MnemologError, NotFound
from mnemolog.domain.events import Receipt
from mnemolog.domain.principal import LOCAL_OPERATOR, Principal
from mnemolog.domain.scope import Scope

DEFAULTS = Scope("acme", user="u-17", project="billing")


class FakeMemory:
    """Appended items in order; `calls` tells how they came; `fail_after` breaks it after so many."""

    def __init__(self, path: Path, principal: Principal = LOCAL_OPERATOR) -> None:
        self.path, self.principal = path, principal
        self.items: list[dict[str, Any]] = []
        self.calls: list[tuple[str, int]] = []
        self.fail_after: int | None = None
        self._by_key: dict[tuple[str, str], tuple[str, Receipt]] = {}

    def record_batch(self, items: Sequence[Mapping[str, Any]], /) -> list[Receipt | MnemologError]:
        if self.fail_after is not None and len(self.items) >= self.fail_after:
            raise KeyboardInterrupt
        self.calls.append(("batch", len(items)))
        answers: list[Receipt | MnemologError] = []
        for item in items:
            fields = dict(item)
            kind, scope = fields.pop("type"), fields.pop("scope")
            try:
                answers.append(self._append(kind, scope, fields))
            except MnemologError as error:
                answers.append(error)
        return answers

    def remember(self, scope: Scope, content: str, **fields: Any) -> Receipt:
        return self._single("remember", scope, {"content": content, **fields})

    def correct(self, scope: Scope, record_id: str, content: str, **fields: Any) -> Receipt:
        return self._on_record("correct", scope, record_id, {"content": content, **fields})

    def retract(self, scope: Scope, record_id: str, **fields: Any) -> Receipt:
        return self._on_record("retract", scope, record_id, fields)

    def confirm(self, scope: Scope, record_id: str, **fields: Any) -> Receipt:
        return self._on_record("confirm", scope, record_id, fields)

    def dispute(self, scope: Scope, record_id: str, **fields: Any) -> Receipt:
        return self._on_record("dispute", scope, record_id, fields)

    def feedback(self, scope: Scope, target: str, rating: str, **fields: Any) -> Receipt:
        return self._single("feedback", scope, {"target": target, "rating": rating, **fields})

    def wait(self, after: int, timeout: float, /) -> int:
        return len(self.items)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item["type"] == kind]

    def _on_record(self, kind: str, scope: Scope, record: str, fields: dict[str, Any]) -> Receipt:
        if not any(item["stream"] == record for item in self.items):
            raise NotFound(f"no record {record}")
        return self._single(kind, scope, {"record": record, **fields}, stream=record)

    def _single(self, kind: str, scope: Scope, fields: dict[str, Any], stream: str = "") -> Receipt:
        self.calls.append((kind, 1))
        return self._append(kind, scope, fields, stream)

    def _append(self, kind: str, scope: Scope, fields: dict[str, Any], stream: str = "") -> Receipt:
        if fields["occurred_at"].utcoffset() is None:
            raise InvalidInput("occurred_at has no time zone")
        key = fields.get("key") or f"none-{len(self.items)}"
        said = {name: value for name, value in fields.items() if name not in ("occurred_at", "author", "key")}
        body = json.dumps([kind, said], sort_keys=True, default=str)
        place = (scope.tenant, key)
        if place in self._by_key:
            first, receipt = self._by_key[place]
            if first != body:
                raise IdempotencyConflict(receipt.event_id)
            return Receipt(receipt.event_id, receipt.position, receipt.stream, receipt.version, True)
        position = len(self.items) + 1
        receipt = Receipt(f"e{position}", position, stream or f"r{position}", 1)
        self._by_key[place] = (body, receipt)
        self.items.append({"type": kind, "scope": scope, "stream": receipt.stream, **fields})
        return receipt


def turn(number: int, session: str = "s-1", **more: Any) -> dict[str, Any]:
    """A line of the event file."""
    return {
        "type": "turn",
        "scope": {"tenant": "acme", "user": "u-17", "project": "billing", "session": session},
        "role": "user",
        "content": f"message {number}",
        "occurred_at": f"2026-03-09T09:{number // 60 % 60:02}:{number % 60:02}+09:00",
        "key": f"{session}/{number}",
        **more,
    }


def statement(kind: str, key: str, **fields: Any) -> dict[str, Any]:
    """A line about memory."""
    return {
        "type": kind,
        "scope": {"tenant": "acme", "user": "u-17", "project": "billing", "session": "s-1"},
        "occurred_at": "2026-03-09T10:00:00+09:00",
        "key": key,
        **fields,
    }


def write_lines(path: Path, lines: Sequence[Any], end: str = "\n") -> Path:
    """A file of JSON lines; a string stands as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(texts) + end, encoding="utf-8")
    return path


def said(message: object, uuid: str, role: str = "user", **more: Any) -> dict[str, Any]:
    """A line of a Claude Code session file."""
    return {
        "type": role,
        "uuid": uuid,
        "sessionId": "c-1",
        "timestamp": "2026-03-09T09:00:00.000Z",
        "message": {"role": role, "content": message},
        **more,
    }

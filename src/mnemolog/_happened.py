"""The events of what happened, from what callers give, checked by the ingress rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mnemolog.domain import ingress, messages
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import (
    Event,
    SessionClosed,
    SessionOpened,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.infra.clock import zone_named

PREVIEW_HEAD: Final = 4_000
PREVIEW_TAIL: Final = 1_000


def event_of(item: messages.Item) -> Event:
    """The event of one thing that a message says, checked by the ingress rule."""
    if isinstance(item, messages.Said):
        return turn(item.role, item.content, item.author)
    if isinstance(item, messages.Called):
        return tool_call(item.name, item.arguments, item.call_id)
    said = {"error" if item.error else "output": item.output}
    return tool_result(**said, call_id=item.call_id, name=item.name)


def built(kind: object, given: Mapping[str, Any]) -> Event:
    """The event of a `record_batch` item, from the keyword arguments of the method of its type."""
    build = _KINDS.get(str(kind))
    if build is None:
        raise InvalidInput(f"unknown type {kind!r}: use one of {', '.join(_KINDS)}")
    try:
        return build(**given)
    except TypeError as error:
        raise InvalidInput(f"{kind}: {error}") from None


def turn(role: str, content: str, author: str | None = None) -> TurnRecorded:
    if ingress.carried(role, "role") not in messages.ROLES:
        raise InvalidInput(f"role must be one of user, assistant, system, not {role!r}")
    return TurnRecorded(
        messages.ROLES[role], ingress.carried(content, "content"), ingress.optional(author, "author")
    )


def tool_call(name: str, arguments: Any, call_id: str | None = None) -> ToolCalled:
    return ToolCalled(
        ingress.short(name, "name"),
        ingress.json_text(arguments, "arguments"),
        ingress.optional(call_id, "call_id"),
    )


def tool_result(
    output: Any = None,
    error: str | None = None,
    call_id: str | None = None,
    name: str | None = None,
    source: Sequence[str] | None = None,
) -> ToolReturned:
    if error is not None and output is not None:
        raise InvalidInput("a tool result has output= or error=, not both")
    text = ingress.json_text("" if output is None else output, "output")
    return ToolReturned(
        text if error is None else ingress.carried(error, "error"),
        ingress.optional(name, "name"),
        ingress.optional(call_id, "call_id"),
        error is not None,
        tuple(ingress.short(part, "source") for part in ingress.texts(source or (), "source")),
    )


def chunk(
    role: str, content: str, utterance: str, index: int, final: bool = False, author: str | None = None
) -> UtteranceChunkRecorded:
    said = turn(role, content, author)
    index = ingress.whole(index, "index")
    return UtteranceChunkRecorded(
        said.role, said.content, ingress.short(utterance, "utterance"), said.author, index, bool(final)
    )


def session_opened(timezone: str | None = None, title: str | None = None) -> SessionOpened:
    if timezone is not None:
        zone_named(ingress.short(timezone, "timezone"))
    return SessionOpened(timezone, ingress.optional(title, "title"))


def session_closed(reason: str | None = None) -> SessionClosed:
    return SessionClosed(ingress.optional(reason, "reason"))


_KINDS: Final[dict[str, Callable[..., Event]]] = {
    "turn": turn,
    "chunk": chunk,
    "tool_call": tool_call,
    "tool_result": tool_result,
    "session_opened": session_opened,
    "session_closed": session_closed,
}
"""What `record_batch` takes, and how its event is made of the keyword arguments."""


def preview(text: str) -> str:
    """The bounded part of a large text that the event itself keeps: its beginning and its end."""
    left_out = len(text) - PREVIEW_HEAD - PREVIEW_TAIL
    return (
        f"{text[:PREVIEW_HEAD]}\n[… {left_out} characters: read_output gives them …]\n{text[-PREVIEW_TAIL:]}"
    )

"""Chat messages in OpenAI's and Anthropic's shapes, as the things that happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.ingress import json_text, readable_text, several

ROLES: Final = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


@dataclass(frozen=True, slots=True)
class Said:
    """A turn: role is user, assistant or system."""

    role: str
    content: str
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call; arguments as JSON text."""

    name: str
    arguments: str
    call_id: str | None


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool result."""

    output: str
    call_id: str | None
    name: str | None = None
    error: bool = False


Item = Said | Called | Returned


def expand(messages: Iterable[Mapping[str, Any]]) -> list[Item]:
    """What the messages say, in order: one message may hold text, tool calls and tool results.

    Raises InvalidInput naming the message's index when its shape is neither OpenAI's nor Anthropic's.
    """
    items: list[Item] = []
    for index, message in enumerate(several(messages, "messages", "mappings with role and content")):
        if not isinstance(message, Mapping):
            raise InvalidInput(f"messages[{index}] must be a mapping with role and content")
        try:
            items.extend(_of_message(message))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"messages[{index}] is not OpenAI- or Anthropic-shaped: {error!r}") from error
    return items


def _of_message(message: Mapping[str, Any]) -> Iterator[Item]:
    role = message.get("role")
    if role in ("tool", "function"):
        text = _joined(message.get("content"))
        yield Returned(text, message.get("tool_call_id"), message.get("name"), bool(message.get("is_error")))
        return
    if role not in ROLES:
        raise InvalidInput(f"unknown role {role!r}: use one of {', '.join(ROLES)}, tool")
    yield from _of_content(ROLES[role], message.get("content"), message.get("name"))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield Called(
            function["name"], json_text(function.get("arguments", "{}"), "arguments"), call.get("id")
        )


def _of_content(role: str, content: Any, author: str | None) -> Iterator[Item]:
    if content is None:
        return
    if isinstance(content, str):
        if content:
            yield Said(role, content, author)
        return
    for block in content:
        yield from _of_block(role, block, author)


def _of_block(role: str, block: Any, author: str | None) -> Iterator[Item]:
    if isinstance(block, str):
        yield Said(role, block, author)
        return
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text"):
        if block["text"]:
            yield Said(role, block["text"], author)
    elif kind == "tool_use":
        yield Called(block["name"], json_text(block.get("input", {}), "input"), block.get("id"))
    elif kind == "tool_result":
        text = _joined(block.get("content"))
        yield Returned(text, block.get("tool_use_id"), None, bool(block.get("is_error")))
    elif kind not in ("thinking", "redacted_thinking"):
        yield Said(role, f"[{kind}]", author)


def _joined(content: Any) -> str:
    """A tool result's content as text; blocks that are not text become their kind in brackets."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(
            block if isinstance(block, str) else block.get("text") or f"[{block.get('type')}]"
            for block in content
        )
    return readable_text(content, "content")

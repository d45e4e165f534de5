"""What a session leaves open: requests that nobody answered, things put off, errors of tools that nobody solved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.domain.landmarks import RawTurn, quote, sentences, terms

_REQUEST: Final = re.compile(
    r"\?\s*$|^(?:please|can you|could you|would you|will you|let me know|show|tell|send|find|check|fix|write|add|"
    r"create|make|update|run|explain|remind|summari[sz]e|list|give|look|help|compare|prepare|draft|implement)\b|"
    r"\bplease\b|(?:해|알려|보내|고쳐|찾아|만들어|써|정리해|확인해)\s?(?:줘|주세요|주십시오|주실|줄래)|주세요|부탁|까요\b|나요\b|[은는]가요\b",
    re.IGNORECASE,
)
_PUT_OFF: Final = re.compile(
    r"\b(?:later|get back to you|look into (?:it|that)|let me check|i['’]ll check|need more time|not sure yet|"
    r"cannot yet|can['’]t yet|come back to|blocked|waiting for)\b|"
    r"나중에|추후|확인 후|확인해\s?보|다시 말씀|알아보고|검토 후|보류|기다려",
    re.IGNORECASE,
)
_TO_DO: Final = re.compile(
    r"\b(?:to-?do|tbd|open question|still need to|still open|remains? open|unresolved|undecided|follow[- ]up)\b|"
    r"미정|미해결|보류|할 일|아직 .{0,30}(?:않|못|안 )",
    re.IGNORECASE,
)
_DONE: Final = re.compile(
    r"\b(?:done|fixed|resolved|solved|completed?|finished|decided|closed|answered|sent)\b|완료|해결|끝났|마쳤|정했|결정|보냈",
    re.IGNORECASE,
)
_TOOL: Final = re.compile(r"[\w.:/-]{1,64}")
_SHORT_REPLY: Final = 240
_ANSWERS: Final = 0.5
"""Share of an item's terms that a later turn must have to be about it."""
_TOUCHES: Final = 0.01
_SAME_CALL: Final = 0.6


@dataclass(frozen=True, slots=True)
class OpenItem:
    """kind: request, todo or error. The text of an error names the tool only: what a tool said is no statement."""

    kind: str
    event_id: str
    text: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "event": self.event_id, "text": self.text}

    @classmethod
    def of(cls, values: dict[str, Any]) -> OpenItem:
        return cls(values["kind"], values["event"], values["text"])


@dataclass(frozen=True, slots=True)
class Raised:
    """An open item of a summary. turn: where it came up; call: of a tool that failed, where it is known.

    Of what the summary covers: replied: the agent spoke after it; last: no person did.
    """

    item: OpenItem
    turn: RawTurn
    call: RawTurn | None = None
    replied: bool = False
    last: bool = True


@dataclass(frozen=True, slots=True)
class _Heard:
    """A quotable turn with what is asked of it again and again."""

    at: int
    turn: RawTurn
    terms: frozenset[str]
    is_reply: bool
    """Of the agent, and not a promise to answer later."""
    says_done: bool


def open_items(turns: Sequence[RawTurn]) -> list[OpenItem]:
    """What is still open at the end of these turns, in the order in which it came up."""
    heard = [_listened(at, turn) for at, turn in enumerate(turns) if turn.is_heard]
    found = [*_requests(heard), *_to_dos(heard), *_errors(turns)]
    return [item for _, item in sorted(found, key=lambda each: each[0])]


def still_open(raised: Sequence[Raised], later: Sequence[RawTurn]) -> list[OpenItem]:
    """What of a summary's items the turns behind it have not settled, by the same signs as in `open_items`."""
    heard = [_listened(at, turn) for at, turn in enumerate(later) if turn.is_heard]
    return [one.item for one in raised if not _is_settled(one, heard, later)]


def _is_settled(one: Raised, heard: Sequence[_Heard], later: Sequence[RawTurn]) -> bool:
    if one.item.kind == "error":
        return _succeeds(one, later)
    if one.item.kind == "todo":
        return _done_later(heard, 0, terms(one.item.text))
    needed = 0.0 if one.last else _ANSWERS if one.replied else _TOUCHES
    return _answered(heard, 0, terms(one.turn.text), one.replied, needed)


def _succeeds(one: Raised, later: Sequence[RawTurn]) -> bool:
    calls = _calls(later)
    tool, arguments = _called(one.turn, one.call)
    for turn in later:
        if turn.kind == "tool_result" and not turn.error:
            again, given = _called(turn, calls.get(turn.call_id))
            if again == tool and _same(arguments, given):
                return True
    return False


def _listened(at: int, turn: RawTurn) -> _Heard:
    puts_off = len(turn.text) <= _SHORT_REPLY and _PUT_OFF.search(turn.text) is not None
    is_reply = turn.role == "assistant" and not puts_off
    return _Heard(at, turn, terms(turn.text), is_reply, _DONE.search(turn.text) is not None)


def _requests(heard: Sequence[_Heard]) -> Iterator[tuple[int, OpenItem]]:
    for number, one in enumerate(heard):
        if not one.turn.is_of_person:
            continue
        asked = [each for each in sentences(one.turn.text) if _REQUEST.search(each)]
        if asked and not _answered(heard, number + 1, one.terms):
            text = max(asked, key=lambda each: len(terms(each)))
            yield one.at, OpenItem("request", one.turn.event_id, quote(text, 0))


def _answered(
    heard: Sequence[_Heard], first: int, asked: frozenset[str], replied: bool = False, needed: float = 0.0
) -> bool:
    """By a reply, from `first` on, that does not put it off, and that is about it unless it follows at once."""
    for at in range(first, len(heard)):
        if heard[at].turn.role == "user":
            # One reply may answer several questions in a row: then it shares a word with each.
            needed = _ANSWERS if replied else max(needed, _TOUCHES)
            continue
        replied = True
        if heard[at].is_reply and _is_about(heard[at], asked, needed):
            return True
    return False


def _is_about(one: _Heard, item: frozenset[str], share: float = _ANSWERS) -> bool:
    return not share or (bool(item) and len(item & one.terms) >= share * len(item))


def _to_dos(heard: Sequence[_Heard]) -> Iterator[tuple[int, OpenItem]]:
    for number, one in enumerate(heard):
        for each in sentences(one.turn.text):
            cue = _TO_DO.search(each)
            if cue is not None and not each.endswith("?") and not _done_later(heard, number + 1, terms(each)):
                yield one.at, OpenItem("todo", one.turn.event_id, quote(each, cue.start()))


def _done_later(heard: Sequence[_Heard], first: int, item: frozenset[str]) -> bool:
    return any(heard[at].says_done and _is_about(heard[at], item) for at in range(first, len(heard)))


def _errors(turns: Sequence[RawTurn]) -> Iterator[tuple[int, OpenItem]]:
    """A failed call is solved by a later success of the same tool with much the same arguments."""
    calls = _calls(turns)
    open_calls: dict[tuple[str, frozenset[str]], tuple[int, OpenItem]] = {}
    for at, turn in enumerate(turns):
        if turn.kind != "tool_result":
            continue
        tool, arguments = _called(turn, calls.get(turn.call_id))
        for known in [key for key in open_calls if key[0] == tool and _same(key[1], arguments)]:
            del open_calls[known]
        if turn.error:
            item = OpenItem("error", turn.event_id, f"the last call of {tool} failed")
            open_calls[tool, arguments] = (at, item)
    yield from open_calls.values()


def _calls(turns: Sequence[RawTurn]) -> dict[str | None, RawTurn]:
    return {turn.call_id: turn for turn in turns if turn.kind == "tool_call" and turn.call_id is not None}


def _called(result: RawTurn, call: RawTurn | None) -> tuple[str, frozenset[str]]:
    """Which tool a result is of, and the words of what it was given."""
    if call is None:
        return _tool(result.tool), frozenset()
    return _tool(call.tool), _values(call.text)


def _tool(name: str | None) -> str:
    return name if name is not None and _TOOL.fullmatch(name) else "a tool"


def _values(arguments: str) -> frozenset[str]:
    """The words of a call's argument values; of the raw text where it is no JSON."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return frozenset(re.findall(r"\w+", arguments[:2_000]))
    text = " ".join(str(value) for value in given.values()) if isinstance(given, dict) else str(given)
    return frozenset(re.findall(r"\w+", text[:2_000]))


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    together = one | other
    return not together or len(one & other) >= _SAME_CALL * len(together)

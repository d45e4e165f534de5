"""The policy document: YAML, validated, with the line of every mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import PolicyAdopted
from mnemolog.domain.policy import DEFAULT, ContextPolicy, Floors, Policy, Shares
from mnemolog.domain.summaries import WindowRule
from mnemolog.projections.ports import Page

MAX_CHARACTERS: Final = 65_536
_PAGE: Final = 100
_ADOPTIONS: Final = frozenset({PolicyAdopted.topic})

DEFAULT_DOCUMENT: Final = """\
# What Mnemolog does when nobody has adopted anything else.
version: 1
context:
  shares:          # percent of the model's window; together 100
    boot: 7.5      # constraints and the project's blueprint
    tools: 5       # working state, references
    memory: 10     # records, and what a search found
    session: 40    # summary, landmarks, open items, raw turns
    input: 20      # what the model is asked now: outside of a context
    reserve: 17.5  # what the model writes: outside of a context
  floors:          # percent of a context that stays free for a layer's first entries
    boot: 10
    tools: 5
    memory: 20
    session: 20
summaries:
  keep: 12         # raw turns that always stay
  step: 20         # turns that must have come before the next summary,
  growth: 8        # or 1/growth of what the last one covered, where that is more
"""

_Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Shares(_Part):
    boot: _Percent = DEFAULT.context.shares.boot
    tools: _Percent = DEFAULT.context.shares.tools
    memory: _Percent = DEFAULT.context.shares.memory
    session: _Percent = DEFAULT.context.shares.session
    input: _Percent = DEFAULT.context.shares.input
    reserve: _Percent = DEFAULT.context.shares.reserve

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        total = sum(self.model_dump().values())
        if abs(total - 100) > 1e-6:
            raise ValueError(f"the six shares must add up to 100, not {total:g}")
        if not self.boot + self.tools + self.memory + self.session:
            raise ValueError("boot, tools, memory and session leave nothing for a context")
        return self


class _Floors(_Part):
    boot: _Percent = DEFAULT.context.floors.boot
    tools: _Percent = DEFAULT.context.floors.tools
    memory: _Percent = DEFAULT.context.floors.memory
    session: _Percent = DEFAULT.context.floors.session

    @model_validator(mode="after")
    def _fit(self) -> Self:
        total = sum(self.model_dump().values())
        if total > 100:
            raise ValueError(f"the floors must not add up to more than 100, as {total:g} does")
        return self


class _Context(_Part):
    shares: _Shares = _Shares()
    floors: _Floors = _Floors()


class _Summaries(_Part):
    keep: Annotated[int, Field(ge=0, le=1_000)] = DEFAULT.summaries.keep
    step: Annotated[int, Field(ge=1, le=10_000)] = DEFAULT.summaries.step
    growth: Annotated[int, Field(ge=1, le=1_000)] = DEFAULT.summaries.growth


class _Document(_Part):
    version: Annotated[int, Field(ge=1, le=1)]
    context: _Context = _Context()
    summaries: _Summaries = _Summaries()


def parse_policy(text: str) -> Policy:
    """The policy of a document. Raises InvalidInput, which names the line of every mistake."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"a policy has at most {MAX_CHARACTERS} characters")
    node = _composed(text)
    if not isinstance(node, yaml.MappingNode):
        raise InvalidInput("line 1: a policy is a mapping that begins with `version: 1`")
    if twice := list(_repeated(node)):
        raise InvalidInput("; ".join(twice))
    try:
        found = _Document.model_validate(_loaded(text))
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        mistakes.sort(key=lambda one: _line(node, one["loc"]))
        raise InvalidInput("; ".join(_sentence(node, one) for one in mistakes)) from None
    values = found.model_dump()
    context = values["context"]
    return Policy(
        ContextPolicy(Shares(**context["shares"]), Floors(**context["floors"])),
        WindowRule(**values["summaries"]),
    )


def read_policy(path: Path) -> str:
    """The document of a file. Raises InvalidInput where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None


class PolicyLog(Protocol):
    """What the loader needs of the log."""

    def read(self, after: int, limit: int, *, topics: frozenset[str] | None = None) -> Page: ...


def adopted(log: PolicyLog) -> PolicyAdopted | None:
    """The policy document that was adopted last."""
    found, after = None, 0
    while True:
        page = log.read(after, _PAGE, topics=_ADOPTIONS)
        found = next((e.event for e in reversed(page.events) if isinstance(e.event, PolicyAdopted)), found)
        if len(page.events) < _PAGE:
            return found
        after = page.position


def adopted_policy(log: PolicyLog) -> Policy | None:
    """The policy that decides, as its adopted document says."""
    found = adopted(log)
    return None if found is None else parse_policy(found.document)


def policy_document(policy: Policy) -> str:
    """A document that says the same as the policy, without comments."""
    values = {"version": 1, **asdict(policy)}
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def _composed(text: str) -> yaml.Node | None:
    with _lines():
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise InvalidInput("a policy has no aliases: write the value where it counts")
        return yaml.compose(text, Loader=yaml.SafeLoader)


def _loaded(text: str) -> Any:
    with _lines():
        return yaml.safe_load(text)


@contextmanager
def _lines() -> Iterator[None]:
    """Mistakes of the language itself, as ours."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidInput(f"line {line}: {error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, RecursionError):
        raise InvalidInput("this is no YAML") from None


def _repeated(node: yaml.Node) -> Iterator[str]:
    """Names given twice: YAML would silently take the last."""
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for name, value in node.value:
        if str(name.value) in seen:
            yield f"line {name.start_mark.line + 1}: {name.value} is given twice"
        seen.add(str(name.value))
        yield from _repeated(value)


def _sentence(node: yaml.Node, error: Any) -> str:
    path: Sequence[Any] = error["loc"]
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "there is no such field"
    name = ".".join(str(part) for part in path)
    return f"line {_line(node, path)}: {f'{name}: ' if name else ''}{message}"


def _line(node: yaml.Node, path: Sequence[Any]) -> int:
    """Of the last part of the path that stands in the document, counted from 1."""
    line = node.start_mark.line + 1
    for part in path:
        if not isinstance(node, yaml.MappingNode):
            break
        found = next(((name, value) for name, value in node.value if name.value == part), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return int(line)

"""The policy document: YAML, validated, with the line of every mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.policy import Policy

MAX_CHARACTERS: Final = 65_536

DEFAULT_DOCUMENT: Final = """\
# What Mnemolog does when nobody has adopted anything else.
version: 1
memory:
  mode: full           # or window: only the log and the window of raw turns
  kinds: [fact, preference, episode, procedure, constraint, reference]
  extractor: any       # or the one version that counts, such as rules-5
  least_confidence: 0.7
  confirm: []          # kinds that a person is asked about before they are kept
  confirm_explicit: false  # also what somebody asked to remember
  expiry: {}           # days after which a kind is no longer read: {episode: 180}
  contested_within: 10 # minutes between equal voices that contradict each other: a person is asked
trust:
  floors:              # the lowest origin that may state a kind
    fact: trusted_tool
    preference: user_inferred
    episode: trusted_tool
    procedure: user_inferred
    constraint: user_stated
    reference: trusted_tool
  ceilings:            # the highest trust of what each may say
    user: user_stated
    assistant: agent
    tool: trusted_tool
  tools: {}            # the trust of a tool's results, by its name: {crm: trusted_tool}
  instructs_below: agent   # origins below tell nobody what to do
burst:                 # of one origin in an hour: held beyond
  factor: 5            # times its usual number, and never below
  least: 20
topics: {}             # by name: {health: {rule: conditional, words: [diagnosis, 진단]}}
personal:              # in statements, and wherever a turn is found or shown
  secret: block        # or redact
  resident: redact     # or block, or keep; so for all that follow
  card: redact
  iban: redact
  account: redact
  business: redact
  ssn: redact
  passport: redact
  licence: redact
  phone: redact
  email: redact
consent:
  on_withdrawal: stop  # reading; or erase
reading:
  kinds: {}            # by role; a role that is not named reads all: {agent: [fact, constraint]}
  personal: [agent, user, operator, auditor, service]
systems: {}            # {crm: {attributes: [address, balance], verify: "CRM, customer page"}}
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


def parse_policy(text: str) -> Policy:
    """The policy of a document. Raises InvalidInput, which names the line of every mistake."""
    from mnemolog.infra.policy_schema import Document, meant  # models that few processes have a use for

    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"a policy has at most {MAX_CHARACTERS} characters")
    node = _composed(text)
    if not isinstance(node, yaml.MappingNode):
        raise InvalidInput("line 1: a policy is a mapping that begins with `version: 1`")
    if twice := list(_repeated(node)):
        raise InvalidInput("; ".join(twice))
    try:
        found = Document.model_validate(_loaded(text))
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        mistakes.sort(key=lambda one: _line(node, one["loc"]))
        raise InvalidInput("; ".join(_sentence(node, one) for one in mistakes)) from None
    return meant(found)


def read_policy(path: Path) -> str:
    """The document of a file. Raises InvalidInput where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None


def policy_document(policy: Policy) -> str:
    """A document that says the same as the policy, without comments."""
    from mnemolog.infra.policy_schema import written

    lines: dict[str, Any] = {
        "sort_keys": False,
        "allow_unicode": True,
        "default_flow_style": None,
        "width": 110,
    }
    return str(yaml.safe_dump(written(policy), **lines))


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

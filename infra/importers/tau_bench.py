"""tau-bench results: one JSON list of runs, each a conversation with tool calls. They hold no times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mnemolog.consumers.importing import Entry, Item, Place, Skipped
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.messages import expand
from mnemolog.domain.scope import Scope
from mnemolog.infra.importers.claude_code import fields_of
from mnemolog.infra.importers.reading import Options, records_of_array
from mnemolog.infra.importers.sources import Source, derived_key

FORM: Final = "tau_bench"
RUNS: Final = re.compile(r"\A\s*\[")
NOTE: Final = (
    "these runs hold no times: all that they say is dated {start}, and its order is that of the file"
)


def read(source: Source, after: Place, options: Options) -> Iterator[Entry]:
    """One entry per run after a place."""
    for found in records_of_array(source, RUNS):
        if found.place.number > after.number:
            yield _entry(found.place, found.value, options)


def _entry(place: Place, run: Any, options: Options) -> Entry:
    try:
        scope = _scope(run, options)
        messages = run["traj"]
    except (KeyError, TypeError, AttributeError):
        return Entry(
            place, skipped=(Skipped(place.number, "the element is not a run with task_id and traj"),)
        )
    except InvalidInput as error:
        return Entry(place, skipped=(Skipped(place.number, str(error)),))
    items: list[Item] = []
    skipped: list[Skipped] = []
    tools: dict[str, str] = {}
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        try:
            items.extend(_items(message, index, scope, tools, place.number, options))
        except InvalidInput:
            skipped.append(Skipped(place.number, "a message has a form that this format does not have"))
    return Entry(place, tuple(items), tuple(skipped))


def _scope(run: Mapping[str, Any], options: Options) -> Scope:
    defaults = options.scope()
    session = f"task-{run['task_id']}-trial-{run.get('trial', 0)}"
    user = defaults.user or ((run.get("info") or {}).get("task") or {}).get("user_id")
    return replace(defaults, user=user, session=session)


def _items(
    message: Any, index: int, scope: Scope, tools: dict[str, str], number: int, options: Options
) -> Iterator[Item]:
    for nth, happened in enumerate(expand([message])):
        kind, fields = fields_of(happened, tools)
        key = derived_key(FORM, scope.encode(), index, nth, kind, json.dumps(fields, sort_keys=True))
        yield Item(kind, scope, {**fields, "occurred_at": options.start}, key, number, derived_key=True)

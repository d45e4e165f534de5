"""`state`: where an agent is with its tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.output import dump, when

if TYPE_CHECKING:
    from mnemolog.projections.working import TaskState

Task = Annotated[str, typer.Argument(metavar="TASK", help="The name of the task.")]
OneTask = Annotated[
    str | None, typer.Argument(metavar="TASK", help="Which task; all of the session if left out.")
]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="VALUE is JSON, or else a text.")
]
Remove = Annotated[list[str] | None, typer.Option("--remove", metavar="KEY", help="Repeatable.")]
Expected = Annotated[
    int | None, typer.Option("--expected-version", min=0, help="Refuse (exit 4) if it has changed since.")
]
Key = Annotated[
    str | None, typer.Option("--key", help="Makes a repeated call safe: the same key adds nothing.")
]


def register(app: typer.Typer) -> None:
    command(app, "show")(show_state)
    command(app, "set")(set_state)


def show_state(call: Call, task: OneTask = None) -> None:
    """Show the state of a session's tasks, the one that changed last at the end.

    Example: mnemolog state show --tenant acme --user u-17 --session s-1
    """
    scope = call.scope
    with call.memory() as memory:
        found = memory.states(scope) if task is None else [memory.state(scope, task)]
    if call.out.as_json:
        call.out.lines(found)
    elif any(each.values for each in found):
        rows = [row for each in found for row in _rows(each)]
        call.out.table(["task", "version>", "key", "value"], rows)
    else:
        call.out.say("No state here. Next: mnemolog state set TASK KEY=VALUE")


def set_state(
    call: Call,
    task: Task,
    values: Values = None,
    remove: Remove = None,
    expected_version: Expected = None,
    key: Key = None,
) -> None:
    """Set keys of a task's state; the others stay.

    Example: mnemolog state set report step=draft 'left=["totals"]' --tenant acme --user u-17 --session s-1
    """
    scope = call.scope
    changed = dict(map(_pair, values or ())) | dict.fromkeys(remove or ())
    with call.memory() as memory:
        receipt = memory.set_state(scope, task, changed, expected_version=expected_version, key=key)
    if call.out.as_json:
        names = ("event_id", "position", "version", "duplicate")
        call.out.document({"task": task, **{name: getattr(receipt, name) for name in names}})
    else:
        call.out.text(f"{task}: version {receipt.version}")


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(f"not KEY=VALUE: {text!r}")
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return name, value
    if found is None:
        raise InvalidInput(f"{name}=null would remove the key: use --remove {name}")
    return name, found


def _rows(state: TaskState) -> list[list[Any]]:
    return [
        [
            state.task,
            state.version,
            name,
            (value if isinstance(value, str) else dump(value), when(state.changes[name].occurred_at)),
        ]
        for name, value in state.values.items()
    ]

"""`recall`, `context`, `records`: what an agent or a person reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.events import Forgotten
from mnemolog.domain.scope import LEVELS, Scope
from mnemolog.infra.cli.command import Call, command, moment, period
from mnemolog.infra.cli.output import one_line, when

if TYPE_CHECKING:
    from mnemolog.domain.records import Side, Step
    from mnemolog.results import Context, Hit, MemoryRecord

TEXT_SHOWN = 400
"""Characters of a text in a table; `records show` and `log show` have all of it."""

Query = Annotated[
    str, typer.Argument(metavar="QUERY", help="What is asked, in the words of the one who asks.")
]
AnyOf = Annotated[
    list[str] | None,
    typer.Option(
        "--any", metavar="LEVEL", help="Read every value of a level (all: of each not given). Repeatable."
    ),
]
Exact = Annotated[
    list[str] | None,
    typer.Option(
        "--exact", metavar="LEVEL", help="Leave out what lacks this level (all: any level). Repeatable."
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", metavar="KIND", help="turn, tool_call, tool_result, or a kind of record. Repeatable."
    ),
]
Now = Annotated[str | None, typer.Option("--now", metavar="TIME", help="Judge validity at this time.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Happened at this time or later.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Happened before this time.")]
History = Annotated[bool, typer.Option("--history", help="Superseded and retracted ones too.")]
Count = Annotated[
    int, typer.Option("-k", metavar="COUNT", min=1, max=1000, help="At most so many, the best.")
]
Budget = Annotated[int, typer.Option("--budget", min=1, help="Tokens that the text may have.")]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layer", metavar="NAME", help="Only boot, tools, memory or session. Repeatable."),
]
ShowReceipt = Annotated[
    bool, typer.Option("--receipt", help="Show (on stderr) what went in and what did not.")
]
RecordId = Annotated[str, typer.Argument(metavar="ID", help="The id of a record; for show, of an event too.")]
BelievedAt = Annotated[
    int | None,
    typer.Option("--believed-at", min=0, metavar="POSITION", help="As the log stood at that position."),
]
Statuses = Annotated[
    list[str] | None, typer.Option("--status", metavar="STATUS", help="Such as superseded. Repeatable.")
]

Author = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="Only turns of this author; no records.")
]
Tool = Annotated[
    str | None,
    typer.Option("--tool", metavar="NAME", help="Only calls and results of this tool; no records."),
]
Slot = Annotated[
    tuple[str, str] | None,
    typer.Option("--slot", metavar="ENTITY ATTRIBUTE", help="Only records of this slot; no turns."),
]


def register(app: typer.Typer, panel: str) -> None:
    command(app, panel=panel)(recall)
    command(app, panel=panel)(context)


def register_records(app: typer.Typer) -> None:
    command(app, "list")(list_records)
    command(app, "show")(show_record)
    command(app, "history")(record_history)


def recall(
    call: Call,
    query: Query,
    k: Count = 10,
    since: Since = None,
    until: Until = None,
    now: Now = None,
    kind: Kinds = None,
    author: Author = None,
    tool: Tool = None,
    slot: Slot = None,
    status: Statuses = None,
    history: History = False,
    any_of: AnyOf = None,
    exact: Exact = None,
) -> None:
    """Find what answers a question: records and events of this scope, best first.

    The question may be a time ("last week"), and not empty: `records list` and `log list` show all there is.

    Example: mnemolog recall "which format for reports?" --tenant acme --user u-17 --project billing
    """
    scope = call.reading(any_of or ())
    (begin, end), at = period(since, until), moment(now)
    with call.memory() as memory:
        hits = memory.recall(
            scope,
            query,
            k=k,
            since=begin,
            until=end,
            now=at,
            kinds=kind or None,
            author=author,
            tool=tool,
            slot=slot,
            status=status or None,
            exact=_exact(exact),
            history=history,
        )
    if call.out.as_json:
        call.out.document(hits)
    elif hits:
        call.out.table(["score>", "what", "text"], [_hit(hit) for hit in hits])
    else:
        call.out.say(f"Nothing found. {_widen(scope, 'other words')}")


def context(
    call: Call,
    query: Query,
    budget: Budget = 2000,
    layer: Layers = None,
    now: Now = None,
    receipt: ShowReceipt = False,
) -> None:
    """Assemble what an agent should read before it answers, within a budget of tokens.

    QUERY may be empty (""), where nothing is asked yet. The text goes to stdout. Its receipt, ids only, is in the
    log; `audit context` shows it.

    Example: mnemolog context "draft the report" --budget 2000 --tenant acme --user u-17 > memory.txt
    """
    scope, at = call.scope, moment(now)
    with call.memory() as memory:
        found = memory.context(scope, query, budget=budget, layers=layer or None, now=at)
    if call.out.as_json:
        call.out.document({"text": found.text, "messages": found.messages, "receipt": found.receipt})
        return
    if found.text:
        call.out.text(found.text)
    _account(call, found, receipt)


def list_records(
    call: Call,
    kind: Kinds = None,
    status: Statuses = None,
    now: Now = None,
    believed_at: BelievedAt = None,
    history: History = False,
    any_of: AnyOf = None,
    exact: Exact = None,
) -> None:
    """List the records of a scope.

    Example: mnemolog records list --tenant acme --any all
    """
    scope, at = call.reading(any_of or ()), moment(now)
    with call.memory() as memory:
        records = memory.records(
            scope,
            kinds=kind or None,
            status=status or None,
            now=at,
            believed_at=believed_at,
            exact=_exact(exact),
            history=history,
        )
    if call.out.as_json:
        call.out.lines(records)
    elif records:
        rows = [_record(record) for record in records]
        call.out.table(["what", "text"], rows)
    else:
        call.out.say(f"No records here. {_widen(scope, 'mnemolog remember TEXT')}")


def show_record(call: Call, id: RecordId, now: Now = None, any_of: AnyOf = None) -> None:
    """Show one record, or one event, with everything that is known about it.

    Example: mnemolog records show 019cd2a4... --tenant acme --any all
    """
    scope, at = call.reading(any_of or ()), moment(now)
    with call.memory() as memory:
        found = memory.get(scope, id, now=at)
    if call.out.as_json:
        call.out.document(found)
    elif isinstance(found, Forgotten):
        call.out.text("FORGOTTEN: its content was erased")
    else:
        call.out.pairs(_details(found))


def record_history(call: Call, id: RecordId, any_of: AnyOf = None) -> None:
    """Show everything that happened to a record and to the others in its slot, oldest first.

    Example: mnemolog records history 019cd2a4... --tenant acme --any all
    """
    scope = call.reading(any_of or ())
    with call.memory() as memory:
        steps = memory.history(scope, id)
    if call.out.as_json:
        call.out.lines(steps)
    else:
        call.out.table(["version>", "what", "text"], [step_row(step) for step in steps])


def _exact(levels: Sequence[str] | None) -> bool | list[str]:
    return True if levels and "all" in levels else list(levels or ())


def _widen(scope: Scope, otherwise: str) -> str:
    """What to do about an empty answer: mostly a level of the scope is missing."""
    missing = [level for level in ("user", "project") if getattr(scope, level) is None]
    if not missing:
        return f"Try {otherwise}."
    options = " and ".join(f"--{level}" for level in missing)
    return f"Name {options}, or read every value with --any all; or try {otherwise}."


def _hit(hit: Hit) -> list[Any]:
    what = hit.kind if hit.status == "current" else f"{hit.kind}, {hit.status}"
    place = f"record {hit.record_id}" if hit.record_id else f"event {next(iter(hit.event_ids), '')}"
    part = f"  characters {hit.span.start}-{hit.span.end} of {hit.span.total}" if hit.span else ""
    under = f"{when(hit.occurred_at)}  {place}{part}"
    return [f"{hit.score:.2f}", (what, hit.author or hit.role or ""), (one_line(hit.text, TEXT_SHOWN), under)]


def _record(record: MemoryRecord) -> list[Any]:
    slot = f"[{' '.join(record.slot)}]  " if record.slot else ""
    under = f"{slot}{when(record.occurred_at)}  {record.record_id}"
    return [(record.kind, record.status), (one_line(str(record.content), TEXT_SHOWN), under)]


def step_row(step: Step) -> list[Any]:
    """Version, what was done with which effect, and what was said or decided, by whom, when and where."""
    said = one_line(step.content or "", TEXT_SHOWN) or _decision(step)
    text = said + (f" ({one_line(step.reason)})" if step.reason else "")
    rule = f"  by the rule: {step.rule}" if step.other else ""
    at = f"{when(step.occurred_at or step.recorded_at)}  by {step.actor}  at {step.position}"
    return [step.version, (step.act, step.effect), (text, f"{at}  {step.record}{rule}")]


def _decision(step: Step) -> str:
    """What a person decided between records: which of them won, and over which."""
    others = ", ".join(map(_side, step.against))
    if step.won is not None:
        return f"{_side(step.won)} won over {others}"
    return f"not the same as {others}" if others else ""


def _side(side: Side) -> str:
    return f"“{one_line(side.content, TEXT_SHOWN)}”" if side.content else f"record {side.record}"


def _details(found: MemoryRecord | Hit) -> dict[str, Any]:
    """Every field with its name; lists one per line, times for people."""
    from dataclasses import fields

    from mnemolog.results import Hit

    shown = {field.name.replace("_", " "): _shown(getattr(found, field.name)) for field in fields(found)}
    if not isinstance(found, Hit):
        up, down = found.feedback
        shown |= {
            "slot": " ".join(found.slot or ()),
            "feedback": f"{up} up, {down} down" if up or down else "",
        }
    return shown


def _shown(value: Any) -> Any:
    if isinstance(value, Scope):
        return "  ".join(f"{level} {value}" for level, value in value.present() if level in LEVELS)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return "\n".join(str(_shown(item)) for item in value)
    if hasattr(value, "items"):
        return ", ".join(f"{name} {item:.3g}" for name, item in value.items())
    if hasattr(value, "event_id"):
        return value.event_id if value.start is None else f"{value.event_id} [{value.start}, {value.end})"
    return value.name.lower() if hasattr(value, "name") else value


def _account(call: Call, found: Context, details: bool) -> None:
    """What the context holds, on stderr."""
    receipt = found.receipt
    if not receipt.entries:
        call.out.say("Nothing to read here. Name --user and --project, or try a larger --budget.")
        return
    call.out.say(
        f"{receipt.tokens} of {receipt.budget} tokens, {len(receipt.entries)} entries, "
        f"{len(receipt.left_out)} left out; receipt {receipt.event_id}"
    )
    if details:
        rows = [[item.get("layer"), item.get("tokens"), "in", item.get("id")] for item in receipt.entries]
        rows += [["", "", item.reason, item.id] for item in receipt.left_out]
        call.out.table(["layer", "tokens>", "what", "id!"], rows, message=True)

"""`log`: the events themselves, by position."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import NotFound
from mnemolog.domain.events import Forgotten, Undecodable
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line, plain, when

if TYPE_CHECKING:
    from mnemolog.domain.events import Event, Recorded
    from mnemolog.memory import Memory

TEXT_SHOWN = 200
PAGE = 500
POLL_SECONDS = 1.0

After = Annotated[int, typer.Option("--after", min=0, metavar="POSITION", help="Begin behind this position.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many events.")]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="Such as TurnRecorded. Repeatable.")
]
Last = Annotated[bool, typer.Option("--last", help="The newest ones instead of the oldest.")]
Target = Annotated[str, typer.Argument(metavar="POSITION|EVENT", help="A position, or the id of an event.")]
Idle = Annotated[
    float | None, typer.Option("--idle", min=0, metavar="SECONDS", help="End when nothing came for so long.")
]


def register(app: typer.Typer) -> None:
    command(app, "list")(list_events)
    command(app)(show)
    command(app)(follow)
    command(app)(verify)


def list_events(
    call: Call, after: After = 0, limit: Limit = 50, topic: Topics = None, last: Last = False
) -> None:
    """List events in the order of the log.

    Example: mnemolog log list --last -n 20 --topic MemoryStated
    """
    with call.memory() as memory:
        if last:
            after = max(after, memory.operations.status().head - limit)
        events = [_named(memory, item) for item in memory.log(after=after, limit=limit, topics=topic or None)]
    if call.out.as_json:
        call.out.lines([document for _, document in events])
    elif events:
        call.out.table(["position>", "event", "text"], [_cells(*event) for event in events])
    else:
        call.out.say("No events here. Next: mnemolog import FILE, or another --after or --topic.")


def show(call: Call, event: Target) -> None:
    """Show one event whole: envelope and content.

    Example: mnemolog log show 17
    """
    with call.memory() as memory:
        recorded, document = _named(memory, _find(memory, event))
    if call.out.as_json:
        call.out.document(document)
        return
    envelope = {name: value for name, value in document["envelope"].items() if name != "scope"}
    call.out.pairs({"position": recorded.position, "scope": _scope(document), **_flat(envelope)})
    call.out.say("")
    body = document["event"]
    call.out.pairs(_flat(body) if isinstance(body, dict) else {"content": body})


def follow(call: Call, after: After = 0, topic: Topics = None, idle: Idle = None) -> None:
    """Print events as they are appended, until interrupted.

    Example: mnemolog log follow --after 120 --json
    """
    with call.memory() as memory:
        for recorded, document in _arriving(memory, after, topic, idle):
            if call.out.as_json:
                call.out.document(document)
            else:
                call.out.text("  ".join((str(recorded.position), *_row(recorded, document))))


def verify(call: Call) -> int:
    """Recompute the hash of every stored event; exit code 10 when one does not match.

    Example: mnemolog log verify
    """
    with call.memory() as memory, call.out.progress("Verifying") as progress:
        checked = memory.operations.verify_log(progress)
    if call.out.as_json:
        call.out.document({"checked": checked})
    else:
        call.out.text(f"{checked} events have the form and the hash that they were written with")
    return Exit.OK


def _find(memory: Memory, target: str) -> Recorded:
    """By position, or by id from the newest page to the oldest. Raises NotFound."""
    if target.isdigit() and len(target) < 20:
        found = memory.log(after=max(0, int(target) - 1), limit=1)
        if found and found[0].position == int(target):
            return found[0]
    else:
        start = memory.operations.status().head
        while start > 0:
            start = max(0, start - PAGE)
            for item in memory.log(after=start, limit=PAGE):
                if item.envelope.id == target:
                    return item
    raise NotFound(f"no event {target} in this log: mnemolog log list shows what there is")


def _arriving(
    memory: Memory, after: int, topics: list[str] | None, idle: float | None
) -> Iterator[tuple[Recorded, dict[str, Any]]]:
    seen = time.monotonic()
    while True:
        page = memory.log(after=after, limit=PAGE, topics=topics or None)
        for item in page:
            yield _named(memory, item)
        if page:
            after, seen = page[-1].position, time.monotonic()
            continue
        if idle is not None and time.monotonic() - seen >= idle:
            return
        memory.wait(
            max(after, memory.operations.status().head),
            POLL_SECONDS if idle is None else min(idle, POLL_SECONDS),
        )


def _named(memory: Memory, recorded: Recorded) -> tuple[Recorded, dict[str, Any]]:
    """The event, and as JSON has it: names instead of the ids of its scope and its writer."""
    envelope = plain(recorded.envelope)
    names = memory.names(recorded.envelope.scope)
    actor = ScopeIds(Scope(recorded.envelope.scope.tenant, agent=recorded.envelope.actor))
    envelope |= {"scope": plain(names), "actor": (memory.names(actor).agent or "").removeprefix("@")}
    return recorded, {"position": recorded.position, "envelope": envelope, "event": plain(recorded.event)}


def _row(recorded: Recorded, document: dict[str, Any]) -> tuple[str, str, str, str]:
    """Time, topic, scope and text of an event."""
    envelope = recorded.envelope
    text = one_line(_text(recorded.event), TEXT_SHOWN)
    return when(envelope.occurred_at), envelope.topic, _scope(document), text


def _cells(recorded: Recorded, document: dict[str, Any]) -> list[Any]:
    at, topic, scope, text = _row(recorded, document)
    return [recorded.position, (topic, at), (text, scope)]


def _scope(document: dict[str, Any]) -> str:
    return "/".join(document["envelope"]["scope"].values())


def _text(event: Event | Forgotten | Undecodable | None) -> str:
    """What an event says, in one text; its marks where it says nothing."""
    if event is None or isinstance(event, Forgotten | Undecodable):
        return (
            ""
            if event is None
            else str(event)
            if isinstance(event, Forgotten)
            else f"undecodable: {event.reason}"
        )
    said = [
        getattr(event, name, None) for name in ("role", "author", "name", "arguments", "content", "output")
    ]
    text = " ".join(str(part) for part in said if part)
    return text or str(getattr(event, "reason", None) or "")


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    from mnemolog.infra.cli.output import dump

    return {
        name: dump(value) if isinstance(value, dict | list) and value else value
        for name, value in values.items()
    }

"""`log`: the events themselves, by position."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import NotFound
from mnemolog.domain.events import Forgotten, Undecodable
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.cli.command import Call, command, period
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line, plain, when
from mnemolog.infra.cli.reading import Since, Until

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
Last = Annotated[bool, typer.Option("--last", help="The newest of them instead of the oldest.")]
Target = Annotated[str, typer.Argument(metavar="POSITION|EVENT", help="A position, or the id of an event.")]
Idle = Annotated[
    float | None, typer.Option("--idle", min=0, metavar="SECONDS", help="End when nothing came for so long.")
]


def register(app: typer.Typer) -> None:
    command(app, "list")(list_events)
    command(app)(show)
    command(app)(follow)
    command(app)(verify)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which events of the log are meant."""

    topics: list[str] | None = None
    scope: Scope | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def all(self) -> bool:
        return not (self.topics or self.scope or self.since or self.until)

    def behind(self, memory: Memory, after: int, page_size: int = PAGE) -> Iterator[Recorded]:
        """Those behind a position, oldest first, read page by page."""
        while page := memory.log(after=after, limit=page_size, topics=self.topics, scope=self.scope):
            yield from filter(self._in_time, page)
            after = page[-1].position

    def newest(self, memory: Memory, after: int, count: int) -> list[Recorded]:
        """The last of those behind a position: looks twice as far back each time that there are too few."""
        head, reach = memory.wait(0, 0.0), count
        while True:
            start = max(after, head - reach)
            found = deque(self.behind(memory, start), maxlen=count)
            if len(found) == count or start == after:
                return list(found)
            reach *= 2

    def _in_time(self, recorded: Recorded) -> bool:
        at = datetime.fromisoformat(recorded.envelope.occurred_at)
        return not ((self.since and at < self.since) or (self.until and at >= self.until))


def list_events(
    call: Call,
    after: After = 0,
    limit: Limit = 50,
    topic: Topics = None,
    since: Since = None,
    until: Until = None,
    last: Last = False,
) -> None:
    """List events in the order of the log; with --tenant, --user, ... only those that have these levels.

    Example: mnemolog log list --last -n 20 --topic MemoryStated
    """
    asked = _Asked(topic or None, call.only, *period(since, until))
    with call.memory() as memory:
        if last:
            found = asked.newest(memory, after, limit + 1)
            shown = found[-limit:]
        else:
            found = list(islice(asked.behind(memory, after, min(PAGE, limit + 1)), limit + 1))
            shown = found[:limit]
        events = [_named(memory, item) for item in shown]
        head = memory.wait(0, 0.0)
    if call.out.as_json:
        call.out.lines([document for _, document in events])
        return
    if not events:
        call.out.say("No events here. Next: mnemolog import FILE, or ask for less.")
        return
    call.out.table(["position>", "event", "text"], [_cells(*event) for event in events])
    if len(found) > limit:
        call.out.say(_rest(shown, head if asked.all else None, after, last))


def _rest(shown: list[Recorded], head: int | None, after: int, last: bool) -> str:
    """How many were left out, where that can be told without reading them all, and how to see them."""
    if last:
        count = "" if head is None else f"{head - after - len(shown)} "
        return f"{count}earlier ones: a larger -n"
    place = shown[-1].position
    return f"{'' if head is None else f'{head - place} '}more: --after {place}"


def show(call: Call, event: Target) -> None:
    """Show one event whole: envelope and content.

    Example: mnemolog log show 17
    """
    with call.memory() as memory:
        recorded, document = _named(memory, _find(memory, event, call.only))
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
        for recorded, document in _arriving(memory, after, _Asked(topic or None, call.only), idle):
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


def _find(memory: Memory, target: str, only: Scope | None) -> Recorded:
    """By position, or by id from the newest page to the oldest. Raises NotFound, also for what is elsewhere."""
    position = int(target) if target.isdigit() and len(target) < 20 else _position(memory, target)
    found = memory.log(after=max(0, position - 1), limit=1, scope=only) if position else []
    if found and found[0].position == position:
        return found[0]
    where = "this scope of the log" if only else "this log"
    raise NotFound(f"no event {target} in {where}: mnemolog log list shows what there is")


def _position(memory: Memory, ident: str) -> int:
    """Where the event with this id is; 0 when it is nowhere."""
    start = memory.wait(0, 0.0)
    while start > 0:
        start = max(0, start - PAGE)
        for item in memory.log(after=start, limit=PAGE):
            if item.envelope.id == ident:
                return item.position
    return 0


def _arriving(
    memory: Memory, after: int, asked: _Asked, idle: float | None
) -> Iterator[tuple[Recorded, dict[str, Any]]]:
    seen = time.monotonic()
    while True:
        head = memory.wait(0, 0.0)
        for item in asked.behind(memory, after):
            yield _named(memory, item)
            after, seen = item.position, time.monotonic()
        after = max(after, head)
        if idle is not None and time.monotonic() - seen >= idle:
            return
        memory.wait(after, POLL_SECONDS if idle is None else min(idle, POLL_SECONDS))


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

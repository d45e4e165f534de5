"""`erase`: shows what it would destroy, asks, destroys, and accounts for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line

if TYPE_CHECKING:
    from mnemolog.domain.erasure import ErasureReceipt, Reach

SHOWN = 20

EventId = Annotated[str | None, typer.Option("--event", metavar="ID", help="One event.")]
RecordId = Annotated[
    str | None, typer.Option("--record", metavar="ID", help="A record, its history and what it rests on.")
]
Subject = Annotated[
    str | None, typer.Option("--subject", metavar="ID", help="A person, everywhere in the tenant.")
]
Keep = Annotated[bool, typer.Option("--keep-evidence", help="With --record: leave the events it rests on.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Only finish the erasures that are not complete, and say what is left."),
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept, sealed, with the request.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def register(app: typer.Typer, panel: str) -> None:
    command(app, panel=panel)(erase)


def erase(
    call: Call,
    event: EventId = None,
    record: RecordId = None,
    subject: Subject = None,
    keep_evidence: Keep = False,
    reason: Reason = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    resume: Resume = False,
) -> int:
    """Destroy the keys of an event, a record, a session or a person, and clean every view.

    Prints the plan first and asks for the id, typed; --yes does not ask. A session is erased with --session ID
    and none of the other three. This cannot be undone. Exit code 9 when something is left.

    Example: mnemolog erase --subject u-17 --tenant acme --reason "asked on 2 March"
    """
    if resume:
        return _resumed(call, event, record, subject)
    target = _target(call, event, record, subject)
    scope = call.scope.at(()) if "subject" in target else call.scope
    if call.out.as_json and not (yes or dry_run):
        raise InvalidInput("with --json an erasure needs --yes, or --dry-run to see its plan")
    with call.memory() as memory:
        plan = memory.erase(scope, **target, reason=reason, keep_evidence=keep_evidence)
        shown = replace(plan.reach, sessions=plan.sessions)
        _show_plan(call, shown)
        name = next(iter(target.values()))
        if dry_run or not (yes or _confirmed(call, name)):
            return _not_applied(call, shown, dry_run)
        with call.out.steps() as step:
            receipt = plan.apply(progress=step)
    _show_receipt(call, shown, receipt)
    return Exit.OK if receipt.complete else Exit.INCOMPLETE


def _resumed(call: Call, *targets: str | None) -> int:
    """Finish what was begun. Opening a memory tries it too; what is left then is tried, and told, here."""
    if any(targets):
        raise InvalidInput("--resume goes on with what was begun: give it no --event, --record or --subject")
    with call.memory() as memory:
        receipts = memory.operations.finish_erasures()
    complete = all(receipt.complete for receipt in receipts)
    if call.out.as_json:
        call.out.document({"receipts": receipts, "complete": complete})
        return Exit.OK if complete else Exit.INCOMPLETE
    for receipt in receipts:
        _account(call, receipt)
    if not receipts:
        call.out.say("No erasure is pending: all that were begun are finished.")
    return Exit.OK if complete else Exit.INCOMPLETE


def _target(call: Call, event: str | None, record: str | None, subject: str | None) -> dict[str, str]:
    """The one thing to erase. A session counts only from the command line: never erase by a forgotten variable."""
    named = {"event": event, "record": record, "subject": subject}
    target = {what: name for what, name in named.items() if name}
    session = call.levels.get("session")
    if not target and session and call.given("session"):
        target = {"session": session}
    if len(target) != 1:
        raise InvalidInput("name one thing to erase: --event, --record, --session or --subject")
    return target


def _show_plan(call: Call, plan: Reach) -> None:
    if call.out.as_json:
        return
    call.out.pairs(
        {
            "erase": str(plan.what),
            "events": f"{len(plan.events)} ({', '.join(f'{topic} {n}' for topic, n in plan.counts.items())})",
            "records": _some(plan.records),
            "sessions": _some(plan.sessions),
            "stays": _some(plan.evidence_left),
        }
    )


def _some(ids: Any) -> str:
    shown = "\n".join(ids[:SHOWN])
    return shown + (f"\n... {len(ids)} in all; --json lists them" if len(ids) > SHOWN else "")


def _confirmed(call: Call, name: str) -> bool:
    call.out.say(f"This cannot be undone. Type {one_line(name)} to erase it:")
    return sys.stdin.readline().strip() == name.strip()


def _not_applied(call: Call, plan: Reach, dry_run: bool) -> int:
    if call.out.as_json:
        call.out.document({"plan": plan, "receipt": None})
    call.out.say("Nothing was erased." + ("" if dry_run else " The id was not typed; --yes does not ask."))
    return Exit.OK if dry_run else Exit.USAGE


def _show_receipt(call: Call, plan: Reach, receipt: ErasureReceipt) -> None:
    if call.out.as_json:
        call.out.document({"plan": plan, "receipt": receipt, "complete": receipt.complete})
        return
    _account(call, receipt)


def _account(call: Call, receipt: ErasureReceipt) -> None:
    call.out.text(f"erased: {receipt.events} events, as {receipt.erasure_id} at position {receipt.position}")
    call.out.table(
        ["store", "found>", "removed>", "still readable>", "remark"],
        [[one.store, one.found, one.removed, one.readable, one.remark] for one in receipt.stores],
    )
    for left in _left(receipt):
        call.out.warn(f"not complete: {left}")


def _left(receipt: ErasureReceipt) -> Iterator[str]:
    """What keeps an erasure from being complete, and what to do about it."""
    if receipt.evidence_left:
        yield f"{len(receipt.evidence_left)} events stay, as --keep-evidence asked: erase them with --event ID"
    if readable := [one.store for one in receipt.stores if one.readable]:
        yield f"something is still readable in {', '.join(readable)}: try again with `mnemolog erase --resume`"
    yield from (f"{one.store}: {one.remark}" for one in receipt.stores if one.due and one.store == "keys")
    if due := [one.store for one in receipt.stores if one.due and one.store != "keys"]:
        yield (
            f"nothing of it can be read, but its bytes may still be in the files of {', '.join(due)} "
            "(a reader was in the way): finish with `mnemolog erase --resume`"
        )

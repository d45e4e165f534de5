"""`policy` and `audit`: what decides, and who was shown what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mnemolog.domain.errors import NotFound
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.output import when

File = Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A policy, in YAML.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Of a record or an event.")]
AsAdopted = Annotated[
    bool, typer.Option("--adopted", help="The document that was adopted, word for word, and no more.")
]
ContextId = Annotated[str, typer.Argument(metavar="ID", help="Of the context's receipt.")]


def register_policy(app: typer.Typer) -> None:
    command(app, "show", scoped=False)(show_policy)
    command(app, "check", scoped=False)(check_policy)
    command(app, "adopt", scoped=False)(adopt_policy)


def register_audit(app: typer.Typer) -> None:
    command(app, "record")(audit_record)
    command(app, "context")(audit_context)


def show_policy(call: Call, adopted: AsAdopted = False) -> None:
    """Print all that decides now, as a document: what was adopted, and the values of what that leaves out.

    Example: mnemolog policy show > policy.yaml
    """
    from mnemolog.infra.policies import DEFAULT_DOCUMENT, policy_document
    from mnemolog.infra.policy_schema import written

    with call.memory() as memory:
        policy, given = memory.operations.policy(), memory.operations.policy_document()
    if call.out.as_json:
        call.out.document({"policy": policy.hash, "adopted": given is not None, "values": written(policy)})
        return
    if adopted and given is None:
        raise NotFound("no policy was adopted: the default decides, and `mnemolog policy show` prints it")
    text = DEFAULT_DOCUMENT if given is None else given if adopted else policy_document(policy)
    call.out.text(text.rstrip("\n"))
    call.out.say(f"policy {policy.hash[:12]}{'' if given else ', the default'}")


def check_policy(call: Call, file: File) -> None:
    """Say whether a document is a policy, and what is wrong with it, line by line (exit code 2).

    Example: mnemolog policy check policy.yaml
    """
    from mnemolog.infra.policies import parse_policy, read_policy
    from mnemolog.infra.policy_schema import written

    policy = parse_policy(read_policy(file))
    if call.out.as_json:
        call.out.document({"policy": policy.hash, "values": written(policy)})
    else:
        call.out.text(f"{file} is a policy: {policy.hash[:12]}")


def adopt_policy(call: Call, file: File) -> None:
    """Let a document decide from here on; the adoption is an event. One that decides already adds nothing.

    Example: mnemolog policy adopt policy.yaml
    """
    with call.memory() as memory:
        receipt = memory.operations.adopt_policy(file)
        policy = memory.operations.policy()
    if call.out.as_json:
        told = {"event_id": receipt.event_id, "position": receipt.position, "policy": policy.hash}
        call.out.document({**told, "duplicate": receipt.duplicate})
    else:
        told_as = "already adopted" if receipt.duplicate else "adopted"
        call.out.text(f"{told_as}: policy {policy.hash[:12]} at position {receipt.position}")


def audit_record(call: Call, id: Id) -> None:
    """List the contexts and reads that a record or an event entered, and those that left it out.

    Example: mnemolog audit record 019cd2a4...
    """
    with call.memory() as memory:
        found = memory.operations.audit_record(id)
    if call.out.as_json:
        call.out.lines(found)
    elif found:
        call.out.table(["when!", "by", "what", "where"], [_exposure(each) for each in found])
    else:
        call.out.say("Nobody has read it yet.")


def audit_context(call: Call, id: ContextId) -> None:
    """Show what a context held, in the order in which it was read, and what was left out and why.

    Example: mnemolog audit context 019cd2a4...
    """
    with call.memory() as memory:
        found = memory.operations.audit_context(id)
    if call.out.as_json:
        call.out.document(found)
        return
    told = ("at", "by", "scope", "session", "tokens", "budget", "read_position")
    call.out.pairs({name.replace("_", " "): _plain(getattr(found, name)) for name in told})
    rows: list[list[Any]] = [
        [one.layer, one.tokens, f"version {one.version}", one.id + (" (reference)" if one.reference else "")]
        for one in found.held
    ]
    rows += [["", "", one.reason, one.id] for one in found.left_out]
    call.out.table(["layer", "tokens>", "what", "id!"], rows)


def _exposure(one: Any) -> list[Any]:
    what = f"left out: {one.left_out}" if one.left_out else one.action
    under = f"{one.layer}, version {one.version}, {one.tokens} tokens" if one.layer else ""
    return [when(one.at), one.by, (what, under), (_plain(one.scope), one.event_id)]


def _plain(value: Any) -> Any:
    present = getattr(value, "present", None)
    return value if present is None else "  ".join(f"{level} {name}" for level, name in present())

"""`projections` and `keys`: what an operator does to a running memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import plain
from mnemolog.infra.cli.store import views

Name = Annotated[str, typer.Argument(metavar="VIEW", help="As `projections list` names it.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="VIEW...", help="Which views; all if left out.")]
Position = Annotated[int, typer.Argument(metavar="POSITION", min=1, help="As `projections parked` shows it.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept, sealed, in the log.")]
OneName = Annotated[str | None, typer.Argument(metavar="VIEW", help="Which view; all if left out.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="Events in one transaction.")]
Force = Annotated[
    bool, typer.Option("--force", help="Also switch to a view that lacks more events than the live one.")
]
OfKeys = Annotated[bool, typer.Option("--keys", help="For the database of the keys.")]
NewKey = Annotated[
    Path | None,
    typer.Option(
        "--new-key-file", exists=True, dir_okay=False, help="32 bytes in base64; made afresh if left out."
    ),
]


_NAME_A_KEY: Final = (
    "the root key comes from MNEMOLOG_ROOT_KEY, which cannot be changed from here: write a new one "
    "(openssl rand -base64 32 > FILE), give --new-key-file FILE, then set the variable to it"
)


def register_projections(app: typer.Typer) -> None:
    for name, function in {"list": list_views, "lag": lag, "rebuild": rebuild, "parked": parked}.items():
        command(app, name)(function)
    command(app)(replay)
    command(app)(dismiss)


def register_keys(app: typer.Typer) -> None:
    command(app, "status")(keys_status)
    command(app, "rotate")(rotate)


def register(app: typer.Typer, panel: str) -> None:
    command(app, scoped=False, panel=panel)(privileges)


def privileges(call: Call, keys: OfKeys = False) -> None:
    """Print SQL that sets up the roles of a PostgreSQL deployment: owner, writer, reader, auditor, and keeper.

    Run it as a superuser of the database, once `init` has made the tables, and again after an upgrade.

    Example: mnemolog privileges | psql mnemolog
    """
    from mnemolog.infra.postgres.privileges import key_privileges
    from mnemolog.infra.postgres.privileges import privileges as of_log
    from mnemolog.infra.settings import Settings

    schema = Settings.load().database_schema
    sql = key_privileges(schema) if keys else of_log(schema)
    if call.out.as_json:
        call.out.document({"sql": sql})
    else:
        call.out.text(sql)


def list_views(call: Call) -> None:
    """List the views with their versions and positions.

    Example: mnemolog projections list
    """
    with call.memory() as memory:
        found = memory.operations.projections()
    if call.out.as_json:
        call.out.lines(found)
    else:
        call.out.table(*views(found))


def lag(call: Call) -> int:
    """Show how many events each view and the vectors are behind, and how many changes the index is.

    Exit code 9 while events are parked or a view has failed.

    Example: mnemolog projections lag --json
    """
    with call.memory() as memory:
        found = [*memory.operations.projections(), *memory.operations.vectors()]
    if call.out.as_json:
        names = ("name", "position", "head", "lag", "parked", "waiting", "state")
        call.out.lines([{name: getattr(view, name) for name in names} for view in found])
    else:
        rows = [[view.name, view.lag, view.parked, view.waiting, view.state] for view in found]
        call.out.table(["view!", "behind>", "parked>", "waiting>", "state!"], rows)
    stuck = any(view.parked or view.waiting or view.state == "failing" for view in found)
    return Exit.INCOMPLETE if stuck else Exit.OK


def rebuild(call: Call, names: Names = None, batch_size: BatchSize = None, force: Force = False) -> int:
    """Fold views anew from the start of the log, beside the live ones, then switch to them.

    A new view that lacks more events than the live one is not switched to (exit code 9), unless --force asks for it.

    Example: mnemolog projections rebuild curated
    """
    with call.memory() as memory:
        known = [view.name for view in memory.operations.projections()]
        wanted = names or known
        if unknown := set(wanted) - set(known):
            raise NotFound(f"no view {', '.join(sorted(unknown))}: there are {', '.join(known)}")
        with call.out.progress(f"Rebuilding {', '.join(wanted)}") as progress:
            memory.operations.rebuild_all(wanted, batch_size=batch_size, progress=progress, force=force)
        for name in wanted:
            call.out.say(f"rebuilt: {name}")
        found = [view for view in memory.operations.projections() if view.name in wanted]
    if call.out.as_json:
        call.out.document(found)
    else:
        call.out.table(*views(found))
    return Exit.INCOMPLETE if any(view.parked for view in found) else Exit.OK


def parked(call: Call, name: OneName = None) -> int:
    """List events that a view could not fold, and why; exit code 9 while there are any.

    Later events of the same owner wait behind a parked one. `projections replay` tries it again, `projections
    dismiss` gives it up; both are recorded.

    Example: mnemolog projections parked curated
    """
    with call.memory() as memory:
        found = memory.operations.parked(name)
    if call.out.as_json:
        call.out.lines(found)
    elif found:
        rows = [[item.projection, item.position, item.state, (item.reason, item.event_id)] for item in found]
        call.out.table(["view!", "position>", "state!", "why"], rows)
    else:
        call.out.say("Nothing is parked.")
    return Exit.INCOMPLETE if found else Exit.OK


def replay(call: Call, name: Name, position: Position) -> None:
    """Try a parked event again.

    Example: mnemolog projections replay curated 17
    """
    with call.memory() as memory:
        receipt = memory.operations.replay_parked(name, position)
    _answer(call, receipt, f"event {position} of {name} is tried again")


def dismiss(call: Call, name: Name, position: Position, reason: Reason = None) -> None:
    """Give a parked event up: the view leaves it out, in every rebuild too.

    Example: mnemolog projections dismiss curated 17 --reason "broken export"
    """
    with call.memory() as memory:
        receipt = memory.operations.dismiss_parked(name, position, reason=reason)
    _answer(call, receipt, f"event {position} is left out of {name}")


def keys_status(call: Call) -> None:
    """Say where the root key is, what the key store holds, and what to mind.

    Example: mnemolog keys status
    """
    with call.memory() as memory:
        found = memory.operations.status()
    if call.out.as_json:
        call.out.document({"keys": found.keys, "warnings": found.warnings})
        return
    call.out.pairs({name.replace("_", " "): plain(value) for name, value in found.keys.items()})
    for warning in found.warnings:
        call.out.warn(warning)


def rotate(call: Call, new_key_file: NewKey = None) -> None:
    """Put every key under a new root key and forget the old one, which closes every stale copy.

    With the root key in the environment, give the new one with --new-key-file, and set the variable to it before
    the next start.

    Example: mnemolog keys rotate
    """
    new = _key(new_key_file) if new_key_file else None
    with call.memory() as memory:
        if new is None and memory.operations.status().keys["root_key"] == "environment":
            raise InvalidInput(_NAME_A_KEY)
        memory.operations.rotate_root_key(new)
        found = memory.operations.status()
    if call.out.as_json:
        call.out.document({"rotated": True, "keys": found.keys})
    else:
        call.out.text("rotated: every key is under the new root key; copies made before cannot be opened")


def _key(path: Path) -> bytes:
    from mnemolog.infra.vault.rootkey import decode_root_key

    try:
        return decode_root_key(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None


def _answer(call: Call, receipt: Any, done: str) -> None:
    if call.out.as_json:
        call.out.document({"event_id": receipt.event_id, "position": receipt.position})
    else:
        call.out.text(done)

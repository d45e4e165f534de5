"""`init`, `status`, `version`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.cli.command import Call, command, directory
from mnemolog.infra.cli.output import size

if TYPE_CHECKING:
    from mnemolog.results import GateStatus, Status

_OWN: Final = (
    "log.db", "keys.db", "root.key", "lock", "opening.lock", "users.lock", "views", "blobs", "imports",
    "lost+found",
)  # fmt: skip
"""How the names begin that a data directory may hold before its log is there."""

Place = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", parser=directory, help="The directory; --data if left out."),
]
Force = Annotated[bool, typer.Option("--force", help="Also in a directory that holds something else.")]


def register(app: typer.Typer, first: str, operating: str) -> None:
    command(app, scoped=False, panel=first)(init)
    command(app, panel=operating)(status)
    command(app, scoped=False, panel=operating)(catch_up)
    command(app, panel=operating)(metrics)
    command(app, scoped=False, panel=operating)(version)


def init(call: Call, path: Place = None, force: Force = False) -> None:
    """Make a data directory, and say where it and its root key are.

    Safe to repeat.

    Example: mnemolog init ./data
    """
    call = call.at(path)
    before = _is_there(call.data)
    if not (before or force):
        _refuse_foreign(call.data)
    with call.memory(create=True) as memory:
        found = memory.operations.status()
    key = key_place(call.data)
    if call.out.as_json:
        call.out.document(
            {"data": call.data.resolve(), "created": not before, "root_key": key, "warnings": found.warnings}
        )
        return
    call.out.text(f"{'Already there' if before else 'Ready'}: {call.data.resolve()}")
    call.out.pairs({"root key": key})
    _warnings(call, found)
    call.out.say(f"Next: mnemolog import FILE --data {call.data}")


def _is_there(data: Path) -> bool:
    from mnemolog.infra.compose import exists
    from mnemolog.infra.settings import Settings

    return exists(data, Settings.load())


def _refuse_foreign(path: Path) -> None:
    """Raises InvalidInput for a directory of something else: what is in it would be taken for the memory's."""
    held = sorted(one.name for one in path.iterdir()) if path.is_dir() else []
    if foreign := [name for name in held if not name.startswith(_OWN)]:
        raise InvalidInput(
            f"{path} is no memory and holds {foreign[0]}{' and more' * (len(foreign) > 1)}: "
            "name another directory, or add --force"
        )


def status(call: Call) -> None:
    """How much is there, how far the views are, and what an operator should know.

    Example: mnemolog status --data ./data
    """
    with call.memory() as memory:
        found, partitions = memory.operations.status(), memory.operations.partitions()
        behind = memory.operations.behind() if found.leads and not partitions else ()
    sent = _relayed(call) if partitions else None
    if call.out.as_json:
        shared = {"partitions": partitions, "relayed": sent} if partitions else {}
        call.out.document({one.name: getattr(found, one.name) for one in fields(found)} | shared)
        return
    call.out.pairs(
        {
            "data": found.path,
            "events": found.head,
            "root key": key_place(call.data),
            "size": ", ".join(f"{name} {size(number)}" for name, number in found.sizes.items()),
            "refused": _refused(found),
            "led by": "" if found.leads else f"process {found.leader}",
        }
    )
    if found.counts:
        call.out.table(["event", "count>"], sorted(found.counts.items()))
    call.out.table(*views([*found.projections, *found.workers]))
    if found.gate.candidates:
        call.out.table(["candidates", "because", "count>"], _candidates(found.gate))
    call.out.pairs({"people did": _listed(found.gate.people), "waits for a person": _waiting(found.gate)})
    _warnings(call, found)
    if behind:
        call.out.say(
            f"Not done yet: {', '.join(behind)}. Agents do it in the background; without one: mnemolog catch-up "
            f"--data {call.data}"
        )
    if not found.head:
        call.out.say(f"Nothing recorded yet. Next: mnemolog import FILE --data {call.data}")


def _candidates(gate: GateStatus) -> list[list[Any]]:
    """What became of candidates, each reason below its outcome."""
    rows: list[list[Any]] = []
    for status, count in sorted(gate.candidates.items()):
        rows.append([status, "", count])
        rows += [[status, why, of] for why, of in sorted(gate.reasons.get(status, {}).items())]
    return rows


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _waiting(gate: GateStatus) -> str:
    return f"{gate.waiting}, the first since {gate.waiting_since}" if gate.waiting else ""


def catch_up(call: Call) -> None:
    """Do what agents' threads do in the background: views, statements, what must be hidden, vectors, summaries.

    A command is too short for these. Without vectors recall goes by words alone. Where an agent has the memory open,
    its threads do all this.

    Example: mnemolog catch-up --data ./data
    """
    with call.memory() as memory, call.out.stages() as progress:
        position = memory.operations.run_workers(
            lambda stage, at, of: progress(f"Catching up: {stage}", at, of)
        )
        found = memory.operations.status()
    counts = {name: found.counts.get(event, 0) for name, event in _DERIVED.items()}
    embedded = next((one.position for one in found.vectors if one.name == "vectors"), None)
    if call.out.as_json:
        call.out.document({"position": position, "vectors": embedded, **counts})
        return
    vectors = "no embedder, so no vectors" if embedded is None else f"vectors to position {embedded}"
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    call.out.text(f"caught up to position {position}: {vectors}; so far {told}")


_DERIVED: Final = {"candidates": "CandidatesExtracted", "summaries": "SummaryWritten"}


def metrics(call: Call) -> None:
    """Show the store's numbers in the text format of Prometheus.

    Example: mnemolog metrics --data ./data
    """
    from mnemolog.infra.metrics import exposition, samples

    with call.memory() as memory:
        found = exposition(memory)
    if call.out.as_json:
        call.out.lines(samples(found))
    else:
        call.out.text(found.decode().rstrip("\n"))


def _relayed(call: Call) -> int:
    """How far the relay has sent the log."""
    from mnemolog.consumers.relay import Place
    from mnemolog.infra.places import opened_places
    from mnemolog.infra.settings import Settings

    with opened_places(Settings.load(data=call.data)) as places:
        return Place.decode(places.load("relay")).position


def version(call: Call) -> None:
    """The installed version.

    Example: mnemolog version
    """
    number = installed()
    if call.out.as_json:
        call.out.document({"version": number})
    else:
        call.out.text(f"mnemolog {number}")


def installed() -> str:
    """The version of the installed distribution."""
    from importlib.metadata import version

    return version("mnemolog")


def views(projections: Any) -> tuple[list[str], list[list[Any]]]:
    """The table of projections."""
    columns = ["view!", "version!", "position>", "lag>", "parked>", "waiting>", "state!"]
    rows = [
        [view.name, view.version[:12], view.position, view.lag, view.parked, view.waiting, view.state]
        for view in projections
    ]
    return columns, rows


def key_place(data: Path) -> str:
    """Where the root key is: a file, or a variable. Never the key."""
    from mnemolog.infra.compose import root_key_provider
    from mnemolog.infra.settings import Settings

    place = getattr(root_key_provider(data, Settings.load()), "path", None)
    return str(place.resolve()) if place else "the environment (MNEMOLOG_ROOT_KEY)"


def _refused(found: Status) -> str:
    parts = {"late for an erasure": found.refused_late, "without right": found.refused_access}
    return ", ".join(f"{count} {why}" for why, count in parts.items() if count)


def _warnings(call: Call, found: Status) -> None:
    for warning in found.warnings:
        call.out.warn(warning)

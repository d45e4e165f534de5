"""`cluster`: the servers that a deployment needs, on this machine, for a developer without Docker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.cli.command import Call, command, directory


class Server(Protocol):
    """One server in a folder of its own. Its state has `pid`, None where it does not run."""

    def up(self) -> Any:
        """Start it, unless it runs; when this returns it answers. Raises StoreUnavailable."""

    def down(self) -> None:
        """Stop it, if it runs."""

    def status(self) -> Any: ...


def _postgres(state: Any) -> dict[str, str]:
    return {"MNEMOLOG_DATABASE_URL": state.url, "MNEMOLOG_KEYS_URL": state.url}


def _kafka(state: Any) -> dict[str, str]:
    return {"MNEMOLOG_KAFKA": state.address}


SERVERS: Final[Mapping[str, tuple[str, Callable[[Any], dict[str, str]]]]] = {
    "postgres": ("mnemolog.infra.postgres.cluster:Cluster", _postgres),
    "kafka": ("mnemolog.infra.kafka.cluster:Broker", _kafka),
}
"""Name, the class that is made with a folder, and the settings that lead to the server, from its state."""

Which = Annotated[
    list[str] | None, typer.Argument(metavar="SERVER...", help=f"{', '.join(SERVERS)}; all if left out.")
]
Folder = Annotated[
    Path,
    typer.Option("--folder", metavar="PATH", parser=directory, help="Where the servers keep their files."),
]
FOLDER: Final = Path("cluster")


def register(app: typer.Typer) -> None:
    for function in (up, down, status):
        command(app, scoped=False)(function)


def up(call: Call, servers: Which = None, folder: Folder = FOLDER) -> None:
    """Start the servers, unless they run, and print the settings that lead to them.

    They listen on 127.0.0.1 and trust everybody there: for development and tests. What they hold stays until the
    folder is removed. A server that runs as root needs a folder that its own user may enter.

    Example: mnemolog cluster up --folder /tmp/mnemolog-cluster
    """
    settings: dict[str, str] = {}
    for name, server in _chosen(servers, folder).items():
        call.out.say(f"starting {name}")
        settings |= SERVERS[name][1](server.up())
    if call.out.as_json:
        call.out.document(settings)
    for name, value in settings.items() if not call.out.as_json else ():
        call.out.text(f"export {name}={value}")


def down(call: Call, servers: Which = None, folder: Folder = FOLDER) -> None:
    """Stop the servers; what they hold is kept.

    Example: mnemolog cluster down
    """
    chosen = _chosen(servers, folder)
    for name, server in reversed(chosen.items()):
        server.down()
        call.out.say(f"{name} is down")
    if call.out.as_json:
        call.out.document(_states(chosen))


def status(call: Call, servers: Which = None, folder: Folder = FOLDER) -> None:
    """Show which servers run, and the settings that lead to them.

    Example: mnemolog cluster status
    """
    states = _states(_chosen(servers, folder))
    if call.out.as_json:
        call.out.document(states)
        return
    rows = []
    for name, state in states.items():
        where = " ".join(dict.fromkeys(state["settings"].values()))
        rows.append([name, "up" if state["pid"] else "down", state["pid"] or "", where])
    call.out.table(["server!", "state!", "pid>", "where"], rows)


def _chosen(names: list[str] | None, folder: Path) -> dict[str, Server]:
    if unknown := set(names or ()) - set(SERVERS):
        raise InvalidInput(f"no server {', '.join(sorted(unknown))}: there are {', '.join(SERVERS)}")
    return {name: _server(name, folder / name) for name in SERVERS if not names or name in names}


def _server(name: str, folder: Path) -> Server:
    module, _, kind = SERVERS[name][0].partition(":")
    made: Server = getattr(import_module(module), kind)(folder)
    return made


def _states(servers: Mapping[str, Server]) -> dict[str, dict[str, Any]]:
    states = {name: server.status() for name, server in servers.items()}
    return {
        name: {"pid": state.pid, "settings": SERVERS[name][1](state) if state.pid else {}}
        for name, state in states.items()
    }

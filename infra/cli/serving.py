"""`serve`: one role in a process of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemolog.infra.cli.command import Call, command

RoleName = Annotated[
    str, typer.Argument(metavar="ROLE", help="projections, relay, ingest, records, worker, embedder")
]
HealthPort = Annotated[
    int | None,
    typer.Option(
        "--health-port",
        min=0,
        max=65_535,
        help="Answer /healthz, /readyz and /metrics on 127.0.0.1 there; 0 (the default) for not at all.",
    ),
]


def register(app: typer.Typer, panel: str) -> None:
    command(app, scoped=False, panel=panel)(serve)


def serve(call: Call, role: RoleName, health_port: HealthPort = None) -> None:
    """Run one role until SIGTERM or Ctrl-C: it then finishes what it has begun, and ends. A second one ends it at once.

    projections keeps views, vectors, summaries and the gate up; where another process does so, it stands by.
    relay sends the log to Kafka, records what is remembered; ingest takes what runtimes send there into the log.

    Example: mnemolog serve projections --health-port 9464
    """
    from mnemolog.infra.roles import opening
    from mnemolog.infra.roles.servers import servers_of
    from mnemolog.infra.serving import serve as run
    from mnemolog.infra.settings import Settings

    settings = Settings.load(data=call.data)
    port = settings.health_port if health_port is None else health_port
    opened, servers = opening(role, settings), servers_of(role, settings)
    run(role, opened, health_port=port, say=call.out.say, servers=servers)

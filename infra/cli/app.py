"""`mnemolog`: the commands in the order in which a newcomer meets them."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Annotated, Final

import typer

from mnemolog.infra.cli import (
    cluster,
    erasing,
    governing,
    importing,
    logs,
    moving,
    operating,
    reading,
    reviewing,
    serving,
    stating,
    store,
    topics,
    working,
)
from mnemolog.infra.cli.command import group, show_help
from mnemolog.infra.cli.exits import Root

HELP: Final = """Memory for AI agents that you can replay, correct, and prove erased.

First steps:

    mnemolog init ./data
    mnemolog import examples/sample_week.jsonl --data ./data
    mnemolog recall "which format for reports?" --tenant hanul --any all
"""

Version = Annotated[bool, typer.Option("--version", help="Show the installed version and exit.")]


def start(context: typer.Context, version: Version = False) -> None:
    if version:
        typer.echo(f"mnemolog {store.installed()}")
        raise typer.Exit
    show_help(context)


app = typer.Typer(
    name="mnemolog",
    cls=Root,
    help=HELP,
    invoke_without_command=True,
    callback=start,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

STEPS: Final = "First steps"
MEMORY: Final = "Memory"
OPERATING: Final = "Operating"

store.register(app, STEPS, OPERATING)
importing.register(app, STEPS)
reading.register(app, MEMORY)
stating.register(app, MEMORY)
erasing.register(app, MEMORY)
reading.register_records(group("records", "List, show and explain what is remembered.", app, panel=MEMORY))
reviewing.register(app, MEMORY, OPERATING)
reviewing.register_review(group("review", "Decide about what waits for a person.", app, panel=MEMORY))
reviewing.register_consent(group("consent", "What a user agrees to be remembered.", app, panel=MEMORY))
working.register(group("state", "Where an agent is with the tasks of a session.", app, panel=MEMORY))
governing.register_audit(
    group("audit", "Who was shown a record, and what a context held.", app, panel=OPERATING)
)
governing.register_policy(
    group("policy", "What decides about memory, contexts and summaries.", app, panel=OPERATING)
)
logs.register(group("log", "Read and check the log of everything that happened.", app, panel=OPERATING))
operating.register_projections(
    group("projections", "See, rebuild and unblock the views made from the log.", app, panel=OPERATING)
)
serving.register(app, OPERATING)
cluster.register(
    group("cluster", "Servers of your own on this machine, without Docker.", app, panel=OPERATING)
)
moving.register(app, OPERATING)
operating.register(app, OPERATING)
operating.register_keys(group("keys", "The keys that everything is sealed with.", app, panel=OPERATING))
topics.register_topics(group("topics", "The Kafka topics of this memory.", app, panel=OPERATING))
topics.register_letters(group("dlq", "Messages that ingest could not take.", app, panel=OPERATING))


def main() -> None:
    """The entry point of the `mnemolog` script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError, OSError):
                stream.reconfigure(errors="backslashreplace")
    app(prog_name="mnemolog")

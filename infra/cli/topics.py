"""`topics` and `dlq`: the Kafka topics of a memory, and the messages that ingest could not take."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.exits import Exit
from mnemolog.infra.cli.output import one_line

if TYPE_CHECKING:
    from mnemolog.infra.kafka.letters import Letter, Letters
    from mnemolog.infra.roles.kafka import OnKafka

Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions", min=1, help="Of the events; more than there are adds some. MNEMOLOG_KAFKA_PARTITIONS."
    ),
]
New = Annotated[
    bool, typer.Option("--new", help="Make a new key; old ones still open what is in the topics.")
]
DropOld = Annotated[bool, typer.Option("--drop-old", help="Forget all keys but the one in use.")]
Text = Annotated[bool, typer.Option("--text", help="Also what the message says: a person's own words.")]
Handled = Annotated[bool, typer.Option("--all", help="Those that were replayed or dismissed too.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="As `dlq list` shows it.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="As `dlq list` shows them; or --all.")]
Everything = Annotated[bool, typer.Option("--all", help="All that wait.")]


def register_topics(app: typer.Typer) -> None:
    command(app, scoped=False)(create)
    command(app, scoped=False)(status)
    command(app, scoped=False)(key)


def register_letters(app: typer.Typer) -> None:
    command(app, "list", scoped=False)(list_)
    command(app, scoped=False)(show)
    command(app, scoped=False)(replay)
    command(app, scoped=False)(dismiss)


@contextmanager
def _on_kafka(call: Call) -> Iterator[OnKafka]:
    from mnemolog.infra.roles.kafka import on_kafka
    from mnemolog.infra.settings import Settings

    # What it has to say of its connections is for processes that run on; here it is in the error.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    with on_kafka(Settings.load(data=call.data), create=False) as kafka:
        yield kafka


def create(call: Call, partitions: Partitions = None) -> None:
    """Make the topics that are not there, and record in the log how many partitions the events have.

    More partitions later are an epoch of their own, which workers take up without losing the order of anybody.

    Example: mnemolog topics create --partitions 12
    """
    with _on_kafka(call) as kafka:
        epoch, made = kafka.create_topics(partitions)
    found = {"made": made, "epoch": epoch.number, "partitions": epoch.partitions, "begins": epoch.begins}
    if call.out.as_json:
        call.out.document(found)
    else:
        call.out.say(f"made: {', '.join(made)}" if made else "all topics were there")
        call.out.say(f"events: {epoch.partitions} partitions, epoch {epoch.number} since {epoch.begins}")


def status(call: Call) -> int:
    """Show the topics as the broker has them; exit code 9 where one is not there.

    Example: mnemolog topics status --json
    """
    with _on_kafka(call) as kafka:
        topics = kafka.admin.status()
    if call.out.as_json:
        call.out.lines(topics)
    else:
        rows = [[one.name, one.partitions or "not there", one.messages] for one in topics]
        call.out.table(["topic!", "partitions>", "messages>"], rows)
    return Exit.OK if all(one.partitions for one in topics) else Exit.INCOMPLETE


def key(call: Call, new: New = False, drop_old: DropOld = False) -> None:
    """Print the public key that runtimes seal their messages to; made at the first call.

    A running ingest takes up new keys when it is started again. Dropping the old ones closes what was sealed to
    them for good, in every topic and copy.

    Example: mnemolog topics key
    """
    from mnemolog.infra.roles.beside import ingest_key_file
    from mnemolog.infra.roles.kafka import ingest_keys
    from mnemolog.infra.settings import Settings

    settings = Settings.load(data=call.data)
    keys = ingest_keys(settings)
    if new:
        keys = keys.rotated(ingest_key_file(settings))
    if drop_old:
        keys = keys.alone(ingest_key_file(settings))
    if call.out.as_json:
        call.out.document({"key": keys.current.text, "keys": len(keys.private)})
    else:
        call.out.text(keys.current.text)


def list_(call: Call, handled: Handled = False) -> int:
    """List messages that ingest could not take, and why; exit code 9 while any waits.

    Example: mnemolog dlq list
    """
    with _letters(call) as letters:
        found = letters.all() if handled else letters.open()
    if call.out.as_json:
        call.out.lines([_document(letter) for letter in found])
    elif found:
        rows = [[one.id, one.at, one.state, (one.code, one_line(str(one.reason), 100))] for one in found]
        call.out.table(["id!", "sent", "state!", "why"], rows)
    else:
        call.out.say("There are no dead letters.")
    return Exit.INCOMPLETE if any(letter.state == "open" for letter in found) else Exit.OK


def show(call: Call, id: Id, text: Text = False) -> None:
    """Show one dead letter: where it was, whose it is, how large, and why it could not be taken.

    Example: mnemolog dlq show mnemolog.ingest/0/42 --text
    """
    with _letters(call) as letters:
        letter = letters.get(id)
        said = letters.text(letter)
    shown = said.decode("utf-8", "backslashreplace") if isinstance(said, bytes) else str(said)
    document = _document(letter)
    if call.out.as_json:
        call.out.document({**document, "text": shown} if text else document)
        return
    call.out.pairs(document)
    if text:
        call.out.text(shown)


def replay(call: Call, ids: Ids = None, everything: Everything = False) -> None:
    """Send dead letters to ingest once more, after what was wrong is mended. One that fails again is a new letter.

    Example: mnemolog dlq replay --all
    """
    with _letters(call) as letters:
        chosen = _chosen(letters, ids, everything)
        letters.replay(chosen)
    _said(call, "replayed", chosen)


def dismiss(call: Call, ids: Ids = None, everything: Everything = False) -> None:
    """Give dead letters up. That it was done is kept; the bytes go with the next run of the broker's cleaner.

    Example: mnemolog dlq dismiss mnemolog.ingest/0/42
    """
    with _letters(call) as letters:
        chosen = _chosen(letters, ids, everything)
        letters.dismiss(chosen)
    _said(call, "dismissed", chosen)


@contextmanager
def _letters(call: Call) -> Iterator[Letters]:
    with _on_kafka(call) as kafka, kafka.letters() as letters:
        yield letters


def _chosen(letters: Letters, ids: list[str] | None, everything: bool) -> list[Letter]:
    if everything == bool(ids):
        raise InvalidInput("name dead letters, or --all of them")
    return letters.open() if everything else [letters.get(id) for id in dict.fromkeys(ids or ())]


def _said(call: Call, done: str, chosen: list[Letter]) -> None:
    if call.out.as_json:
        call.out.document({done: [letter.id for letter in chosen]})
    else:
        call.out.say(f"{done}: {len(chosen)}")


def _document(letter: Letter) -> dict[str, Any]:
    """A letter without its text."""
    document = {name: getattr(letter, name) for name in ("id", "code", "state", "at", "since", "size")}
    return {**document, "owners": list(letter.owners), "reason": str(letter.reason)}

"""`move`: a memory is carried over, from files to PostgreSQL or back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.infra.cli.command import Call, command
from mnemolog.infra.cli.output import Output
from mnemolog.infra.cli.store import Place

if TYPE_CHECKING:
    from mnemolog.moving import MoveReceipt

Target = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="SETTINGS",
        help="A file of the target's settings, MNEMOLOG_DATA=... and so on, one a line; or a directory for files.",
    ),
]


def register(app: typer.Typer, panel: str) -> None:
    command(app, panel=panel)(move)


def move(call: Call, to: Target, path: Place = None) -> None:
    """Carry a memory over to another place: from files to PostgreSQL, or back.

    Events keep their positions, hashes and bytes, keys are put under the target's root key, views are made anew and
    compared, nothing is embedded again. Close every process that has it open. Interrupted, it is run again and goes
    on. Afterwards the old one is closed for good.

    Example: mnemolog move ./data --to postgres.env
    """
    from mnemolog.infra.settings import Settings
    from mnemolog.moving import move, target_of

    call = call.at(path)
    place, settings = target_of(to)
    with _Bars(call.out) as bars:
        receipt = move(
            call.data,
            place,
            settings=Settings.load(data=call.data),
            to_settings=settings,
            principal=call.principal,
            progress=bars.tell,
        )
    if call.out.as_json:
        call.out.document(receipt)
    else:
        _show(call, receipt)


class _Bars:
    """One bar for each step."""

    def __init__(self, out: Output) -> None:
        self._out, self._open = out, ExitStack()
        self._step = ""
        self._bar: Callable[[int, int], None] = lambda done, of: None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tell(self, step: str, done: int, of: int) -> None:
        if step != self._step:
            self._open.close()
            self._step, self._bar = step, self._open.enter_context(self._out.progress(step.capitalize()))
        self._bar(done, of)


def _show(call: Call, receipt: MoveReceipt) -> None:
    call.out.text(f"moved: {receipt.events} events, now in {receipt.target}")
    here = receipt.events - receipt.carried
    call.out.pairs(
        {
            "carried now": f"{receipt.carried}" + (f", {here} were there already" if here else ""),
            "root of the leaves": receipt.root,
            "keys": f"{receipt.subjects} subjects, {receipt.names} names",
            "large outputs": receipt.blobs,
            "vectors": receipt.vectors,
            "views compared": ", ".join(receipt.views),
        }
    )
    call.out.warn(
        f"{receipt.source} is closed, but holds everything with its keys: what is erased from now on stays "
        "readable there, so delete it when the target is seen to work"
    )

"""`remember`, `correct`, `retract`, `confirm`, `dispute`: what people and agents say about memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemolog.domain.errors import NotFound, ProjectionStalled, StoreUnavailable
from mnemolog.domain.principal import ALLOWED, Action
from mnemolog.infra.cli.command import Call, command, content, moment

if TYPE_CHECKING:
    from mnemolog.domain.events import Receipt
    from mnemolog.domain.scope import Scope
    from mnemolog.memory import Memory
    from mnemolog.results import Standing

Content = Annotated[str, typer.Argument(metavar="TEXT", help='The statement; "-" reads it from stdin.')]
RecordId = Annotated[
    str, typer.Argument(metavar="RECORD", help="Its id, as recall and records list show it.")
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept with it.")]
Key = Annotated[
    str | None, typer.Option("--key", help="Makes a repeated call safe: the same key adds nothing.")
]
Expected = Annotated[
    int | None, typer.Option("--expected-version", min=0, help="Refuse (exit 4) if it has changed since.")
]
Evidence = Annotated[
    list[str] | None, typer.Option("--evidence", metavar="ID", help="Id of an event it rests on. Repeatable.")
]
Subjects = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="ID", help="The person it is about, if not the user. Repeatable."),
]
Slot = Annotated[
    tuple[str, str] | None,
    typer.Option("--slot", metavar="ENTITY ATTRIBUTE", help="Two words: where one value is current."),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="fact (at first), preference, episode, procedure, constraint or reference.",
    ),
]
ValidFrom = Annotated[
    str | None, typer.Option("--valid-from", metavar="TIME", help="When it begins to be true.")
]
ValidTo = Annotated[str | None, typer.Option("--valid-to", metavar="TIME", help="When it ceases to be true.")]
Expires = Annotated[
    str | None, typer.Option("--expires-at", metavar="TIME", help="When it is no longer used.")
]
Sensitivity = Annotated[
    str | None,
    typer.Option("--sensitivity", help="normal or personal; as it was, where left out, and normal at first."),
]


def register(app: typer.Typer, panel: str) -> None:
    for function in (remember, correct, retract, confirm, dispute):
        command(app, panel=panel)(function)


def remember(
    call: Call,
    text: Content,
    slot: Slot = None,
    kind: Kind = None,
    evidence: Evidence = None,
    about: Subjects = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    expires_at: Expires = None,
    sensitivity: Sensitivity = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """State something to be remembered.

    Example: mnemolog remember "Reports go out as PDF" --slot report format --kind preference --tenant acme
    """
    scope = call.scope
    begins, ends, expires = moment(valid_from), moment(valid_to), moment(expires_at)
    with call.memory() as memory:
        receipt = memory.remember(
            scope,
            content(text),
            slot=slot,
            kind=kind,
            evidence=tuple(evidence or ()),
            subjects=tuple(about or ()),
            valid_from=begins,
            valid_to=ends,
            expires_at=expires,
            sensitivity=sensitivity,
            key=key,
            expected_version=expected_version,
        )
        standing = stands(memory, scope, receipt)
    known = standing is not None and standing.known and standing.kept
    answer(call, receipt, "already known, evidence added" if known else "remembered", standing=standing)


def correct(
    call: Call,
    record: RecordId,
    text: Content,
    reason: Reason = None,
    evidence: Evidence = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    expires_at: Expires = None,
    sensitivity: Sensitivity = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """Replace what a record says; the old value stays in its history.

    Example: mnemolog correct 019cd2a4... "Reports go out as PDF" --reason "the customer asked" --tenant acme
    """
    scope = call.scope
    begins, ends, expires = moment(valid_from), moment(valid_to), moment(expires_at)
    with call.memory() as memory:
        receipt = memory.correct(
            scope,
            record,
            content(text),
            reason=reason,
            evidence=tuple(evidence or ()),
            valid_from=begins,
            valid_to=ends,
            expires_at=expires,
            sensitivity=sensitivity,
            key=key,
            expected_version=expected_version,
        )
        standing = stands(memory, scope, receipt)
    answer(call, receipt, "corrected", standing=standing)


def retract(
    call: Call, record: RecordId, reason: Reason = None, key: Key = None, expected_version: Expected = None
) -> None:
    """Take a record back; an older value of its slot is current again.

    Example: mnemolog retract 019cd2a4... --reason "never agreed" --tenant acme
    """
    _act(call, "retract", "retracted", record, reason, key, expected_version)


def confirm(
    call: Call, record: RecordId, reason: Reason = None, key: Key = None, expected_version: Expected = None
) -> None:
    """Say that a record still holds.

    Example: mnemolog confirm 019cd2a4... --tenant acme
    """
    _act(call, "confirm", "confirmed", record, reason, key, expected_version)


def dispute(
    call: Call, record: RecordId, reason: Reason = None, key: Key = None, expected_version: Expected = None
) -> None:
    """Say that a record is doubtful, without another value.

    Example: mnemolog dispute 019cd2a4... --reason "the contract says otherwise" --tenant acme
    """
    _act(call, "dispute", "disputed", record, reason, key, expected_version)


def _act(
    call: Call,
    method: str,
    done: str,
    record: str,
    reason: str | None,
    key: str | None,
    expected_version: int | None,
) -> None:
    scope = call.scope
    with call.memory() as memory:
        before = _status(memory, scope, record)
        receipt = getattr(memory, method)(
            scope, record, reason=reason, key=key, expected_version=expected_version
        )
        after = _status(memory, scope, record)
    same = after is not None and before == after != "current"
    answer(call, receipt, done, f" (nothing changed: it stays {after})" if same else "")


def _status(memory: Memory, scope: Scope, record: str) -> str | None:
    """How the record stands, for callers who may read it."""
    standing = stands(memory, scope, record)
    return None if standing is None else standing.status


def stands(memory: Memory, scope: Scope, said: Receipt | str) -> Standing | None:
    """What became of it; None where the caller may not read, or workers have not come to it yet."""
    if Action.READ not in ALLOWED[memory.principal.role]:
        return None
    try:
        return memory.standing(scope, said)
    except (NotFound, ProjectionStalled, StoreUnavailable):
        return None


def answer(
    call: Call, receipt: Receipt, done: str, remark: str = "", *, standing: Standing | None = None
) -> None:
    """Say what was done to a record, and what became of what was said of it."""
    if call.out.as_json:
        became = {} if standing is None else {"status": standing.status, "reasons": standing.reasons}
        call.out.document({"record_id": receipt.record_id, **_fields(receipt), **became})
        return
    if standing is not None and standing.status != "current":
        done = f"{done}, {standing.status}" if standing.kept else standing.status
    if standing is not None and standing.reasons:
        remark = f" ({'; '.join(standing.reasons)}){remark}"
    remark += " (this key was known: nothing added)" if receipt.duplicate else ""
    call.out.text(f"{done}: {receipt.record_id} version {receipt.version}{remark}")
    if standing is not None and standing.status in NEXT:
        where = f"{receipt.record_id} {whose(call.scope)} --data {call.data}"
        call.out.say(NEXT[standing.status].format(where))


def whose(scope: Scope) -> str:
    """The options that name a scope, for a command that is to be pasted."""
    return " ".join(f"--{level} {name}" for level, name in scope.present())


NEXT: Final = {
    "needs confirmation": "Others say something else of it: see mnemolog review list, decide with review resolve {0}",
    "held for review": "Not memory yet. A person decides: mnemolog review approve {0}, or reject, or edit",
    "withheld": "It is in the log and is not read. mnemolog why {0} tells more",
    "dropped": "It is in the log and is not memory. mnemolog why {0} tells more",
    "undecided": "It is in the log. mnemolog projections parked tells what it waits for",
}
"""What to do about what did not become memory."""


def _fields(receipt: Receipt) -> dict[str, Any]:
    names = ("event_id", "position", "stream", "version", "duplicate")
    return {name: getattr(receipt, name) for name in names}

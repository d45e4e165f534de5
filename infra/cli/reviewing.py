"""`review`, `consent`, `why`, `why-not`, `extract`: what waits for a person, and why memory is as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.domain.errors import NotFound
from mnemolog.infra.cli.command import Call, command, content
from mnemolog.infra.cli.output import one_line, when
from mnemolog.infra.cli.reading import TEXT_SHOWN, AnyOf, step_row
from mnemolog.infra.cli.stating import Content, Expected, Key, Reason, answer, whose

if TYPE_CHECKING:
    from mnemolog.domain.controls import Control
    from mnemolog.domain.records import Evidence
    from mnemolog.results import Conflict, MemoryRecord, MergeProposal, Outcome, Why

MERGES = "merge proposed"
RecordId = Annotated[str, typer.Argument(metavar="RECORD", help="Its id, as review list shows it.")]
OtherId = Annotated[str, typer.Argument(metavar="OTHER", help="The id of another record of its scope.")]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over",
        metavar="RECORD",
        help="What it is chosen over; all that it stands against if left out. Repeatable.",
    ),
]
EventId = Annotated[str, typer.Argument(metavar="EVENT", help="Its id, as log list shows it.")]
Statuses = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        help="needs confirmation, quarantined, merge proposed, log only, admitted or evidence. Repeatable.",
    ),
]
Most = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many, the oldest.")]
About = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="A topic of the policy; without it, all memory.")
]


def register(app: typer.Typer, panel: str, operating: str) -> None:
    command(app, panel=panel)(why)
    command(app, "why-not", panel=panel)(why_not)
    command(app, panel=operating, scoped=False)(extract)


def register_review(app: typer.Typer) -> None:
    command(app, "list")(list_waiting)
    command(app, "show")(show_waiting)
    command(app, "approve")(approve)
    command(app, "reject")(reject)
    command(app, "edit")(edit)
    command(app, "resolve")(resolve)
    command(app, "merge")(merge)
    command(app, "apart")(apart)


def register_consent(app: typer.Typer) -> None:
    command(app, "grant")(grant)
    command(app, "withdraw")(withdraw)


def extract(call: Call) -> None:
    """Look, at what was said since the last look, for what should be remembered and for what must be hidden.

    Example: mnemolog extract
    """
    with call.memory() as memory, call.out.progress("Looking") as progress:
        position = memory.operations.extract(progress=progress)
        found = memory.operations.status().counts.get("CandidatesExtracted", 0)
    if call.out.as_json:
        call.out.document({"position": position, "candidates": found})
    else:
        call.out.text(f"looked up to position {position}; candidates so far: {found}")


def list_waiting(call: Call, status: Statuses = None, limit: Most = 100, any_of: AnyOf = None) -> None:
    """List what waits for a person, each with the question to ask: candidates, conflicts, possible doubles.

    Example: mnemolog review list --tenant acme --any all
    """
    from mnemolog.domain.gate.wording import WAITING

    scope, wanted = call.reading(any_of or ()), status or [*WAITING, MERGES]
    statuses = [one for one in wanted if one != MERGES]
    with call.memory() as memory:
        found: list[Any] = list(memory.review.list(scope, status=statuses, limit=limit)) if statuses else []
        found += memory.review.conflicts(scope) if WAITING[0] in wanted else []
        found += memory.review.merges(scope) if MERGES in wanted else []
    found = found[:limit]
    if call.out.as_json:
        call.out.lines(found)
    elif found:
        call.out.table(["what", "text"], [_waiting(one) for one in found])
    else:
        call.out.say(
            "Nothing waits here. What was said since the last look is not in it: `mnemolog catch-up`"
        )


def show_waiting(call: Call, record: RecordId, any_of: AnyOf = None) -> None:
    """Show everything that was found for a record, whatever became of it, and what it is to be compared with.

    Example: mnemolog review show 019cd2a4... --tenant acme --any all
    """
    scope = call.reading(any_of or ())
    with call.memory() as memory:
        compared: list[Any] = [*memory.review.conflicts(scope), *memory.review.merges(scope)]
        found: list[Any] = [one for one in compared if record in _compared(one)]
        try:
            found = [*memory.review.show(scope, record), *found]
        except NotFound:
            if not found:
                raise
    if call.out.as_json:
        call.out.lines(found)
    else:
        call.out.table(["what", "text"], [_waiting(one) for one in found])


def approve(
    call: Call, record: RecordId, reason: Reason = None, key: Key = None, expected_version: Expected = None
) -> None:
    """Keep it: what was found for the record is memory from here on, under every policy.

    Example: mnemolog review approve 019cd2a4... --tenant acme --user u-17
    """
    _decide(call, "approve", "approved", record, reason, key, expected_version)


def reject(
    call: Call, record: RecordId, reason: Reason = None, key: Key = None, expected_version: Expected = None
) -> None:
    """Do not keep it. Who says it again is asked about it, or not heard.

    Example: mnemolog review reject 019cd2a4... --reason "not ours" --tenant acme --user u-17
    """
    _decide(call, "reject", "rejected", record, reason, key, expected_version)


def edit(
    call: Call,
    record: RecordId,
    text: Content,
    reason: Reason = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """Keep it in other words.

    Example: mnemolog review edit 019cd2a4... "We use PostgreSQL" --tenant acme --user u-17
    """
    scope = call.scope
    with call.memory() as memory:
        receipt = memory.review.edit(
            scope, record, content(text), reason=reason, key=key, expected_version=expected_version
        )
    answer(call, receipt, "kept in other words")


def resolve(
    call: Call,
    record: RecordId,
    over: Over = None,
    reason: Reason = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """Choose a record over those that say something else of the same slot.

    Example: mnemolog review resolve 019cd2a4... --reason "she told me" --tenant acme --user u-17
    """
    scope = call.scope
    with call.memory() as memory:
        receipt = memory.review.resolve(
            scope, record, over or (), reason=reason, key=key, expected_version=expected_version
        )
    answer(call, receipt, "chosen")


def merge(
    call: Call,
    record: RecordId,
    into: OtherId,
    reason: Reason = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """Say that RECORD says what OTHER says: it is superseded by OTHER, as long as that stands.

    Example: mnemolog review merge 019cd2a4... 019cd2b7... --tenant acme --user u-17
    """
    _compare(call, "merge", "merged", (record, into), reason, key, expected_version)


def apart(
    call: Call,
    record: RecordId,
    other: OtherId,
    reason: Reason = None,
    key: Key = None,
    expected_version: Expected = None,
) -> None:
    """Say that two records say different things: they are not proposed again, and a merge is undone.

    Example: mnemolog review apart 019cd2a4... 019cd2b7... --tenant acme --user u-17
    """
    _compare(call, "keep_apart", "kept apart", (record, other), reason, key, expected_version)


def grant(call: Call, topic: About = None, reason: Reason = None) -> None:
    """Record that the user agrees that memory is kept, about a topic or at all.

    Example: mnemolog consent grant --topic health --tenant acme --user u-17
    """
    _consent(call, "grant_consent", "granted", topic, reason)


def withdraw(call: Call, topic: About = None, reason: Reason = None) -> None:
    """Record that the user takes it back: what was kept is not read any more.

    Example: mnemolog consent withdraw --topic health --tenant acme --user u-17
    """
    _consent(call, "withdraw_consent", "withdrawn", topic, reason)


def why(call: Call, record: RecordId, any_of: AnyOf = None) -> None:
    """Show how a record came to be what it is: at each control point the rule, the evidence, the record against it.

    Example: mnemolog why 019cd2a4... --tenant acme --any all
    """
    scope = call.reading(any_of or ())
    with call.memory() as memory:
        found = memory.why(scope, record)
    if call.out.as_json:
        call.out.document(found)
        return
    call.out.pairs(_head(found))
    rows = [_outcome(one) for one in found.outcomes]
    rows += [step_row(step)[1:] for step in found.steps]
    rows += [[("against", one.status), (_text(one), one.record_id)] for one in found.competing]
    if rows:
        call.out.table(["what", "text"], rows)
    _path(call, found.path)


def why_not(call: Call, event: EventId, any_of: AnyOf = None) -> None:
    """Show what became of an event: what was found in it, and at each control point the rule that decided.

    Example: mnemolog why-not 019cd2a4... --tenant acme --any all
    """
    scope = call.reading(any_of or ())
    with call.memory() as memory:
        found = memory.why_not(scope, event)
    if call.out.as_json:
        shown = {
            "reason": found.reason,
            "outcomes": found.outcomes,
            "looked": found.looked,
            "path": found.path,
        }
        call.out.document(shown)
        return
    if found.outcomes:
        call.out.table(["what", "text"], [_outcome(one) for one in found.outcomes])
    else:
        call.out.text(found.reason)
    _path(call, found.path)


def _decide(
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
        decide = getattr(memory.review, method)
        receipt = decide(scope, record, reason=reason, key=key, expected_version=expected_version)
    answer(call, receipt, done)


def _compare(
    call: Call,
    method: str,
    done: str,
    records: tuple[str, str],
    reason: str | None,
    key: str | None,
    expected_version: int | None,
) -> None:
    scope = call.scope
    with call.memory() as memory:
        decide = getattr(memory.review, method)
        receipt = decide(scope, *records, reason=reason, key=key, expected_version=expected_version)
    answer(call, receipt, done)


def _consent(call: Call, method: str, done: str, topic: str | None, reason: str | None) -> None:
    scope = call.scope
    with call.memory() as memory:
        receipt = getattr(memory, method)(scope, topic, reason=reason)
    if call.out.as_json:
        call.out.document({"event_id": receipt.event_id, "position": receipt.position})
    else:
        call.out.text(f"{done}: {topic or 'all memory'} of user {scope.user}")
    if done == "withdrawn":
        call.out.say(
            "It is not read as memory any more; what was said, turns and tool outputs, stays in the log and is found. "
            f"To erase that, too: mnemolog erase --subject {scope.user} --tenant {scope.tenant}"
        )


def _compared(one: Conflict | MergeProposal) -> list[str]:
    """The records that it is about."""
    records = getattr(one, "records", None) or (one.record, one.into)  # type: ignore[union-attr]
    return [record.record_id for record in records]


def _waiting(one: Any) -> list[Any]:
    """A candidate, a conflict, or a proposal, with the question in the language of what it is about."""
    if hasattr(one, "found_in"):
        return _outcome(one)
    why = getattr(one, "reason", None) or " ".join(getattr(one, "slot", None) or ())
    under = f"{why}  records {' '.join(_compared(one))}  {whose(one.scope)}".strip()
    return [
        (one.status, ""),
        (one_line(one.question, TEXT_SHOWN), under),
    ]


def _outcome(one: Outcome) -> list[Any]:
    """Labels are English, as all that the command line says; a question is in the language of what it asks about."""
    text = one.question or one.content or ""
    reasons = "; ".join(one.reasons)
    under = (
        f"{reasons}  {when(one.occurred_at)}  record {one.record_id}  from {one.found_in}  {whose(one.scope)}"
    )
    return [(one.status, one.kind or ""), (one_line(text, TEXT_SHOWN), under.strip())]


def _head(found: Why) -> dict[str, Any]:
    record = found.record
    if record is None:
        standing = found.standing
        return {
            "record": found.record_id,
            "status": f"not in memory: {standing.status}",
            "because": "; ".join(standing.reasons),
        }
    return {
        "record": found.record_id,
        "text": record.content,
        "status": record.status,
        "reason": record.reason or "",
        "trust": record.trust.name.lower(),
        "slot": " ".join(record.slot or ()),
    }


def _path(call: Call, path: Sequence[Control]) -> None:
    """The control points, each with the rule and what it looked at."""
    if path:
        several = len({one.record_id for one in path}) > 1
        rows = [_control(one, several) for one in path]
        call.out.table(["control", "rule", "looked at"], rows)


def _control(one: Control, several: bool) -> list[Any]:
    """several: the path is that of more than one record."""
    sources = [_span(each) for each in one.evidence]
    rule = (one.rule, f"record {one.record_id}" if several else "")
    under = [f"evidence {' '.join(sources)}"] if sources else []
    under += [f"against record {one.against}"] if one.against else []
    return [(one.point, one.result), rule, (one.detail, "  ".join(under))]


def _span(one: Evidence) -> str:
    return one.event_id if one.start is None else f"{one.event_id} [{one.start}, {one.end})"


def _text(one: MemoryRecord) -> str:
    return one_line(str(one.content), TEXT_SHOWN)

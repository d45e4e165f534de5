"""From rows and records to what the face hands back and what a context is made of."""

from __future__ import annotations

from datetime import datetime

from mnemolog.domain import ingress
from mnemolog.domain.context import Entry
from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.domain.events import Recorded
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Record, Status
from mnemolog.projections.turns_view import TurnRow
from mnemolog.results import Hit


def record_hit(record: Record, score: float) -> Hit:
    return Hit(
        text=record.content or "",
        score=score,
        signals={"lexical": score},
        event_ids=record.event_ids,
        record_id=record.id,
        occurred_at=datetime.fromisoformat(record.occurred_at),
        kind=record.kind,
        version=record.version,
        status=str(record.status),
        origin=record.trust,
        session=record.session,
    )


def turn_hit(row: TurnRow, score: float) -> Hit:
    return Hit(
        text=row.text,
        score=score,
        signals={"lexical": score},
        event_ids=(row.event_id,),
        record_id=None,
        occurred_at=datetime.fromisoformat(row.occurred_at),
        kind=row.kind,
        role=row.role,
        author=row.author or row.tool,
        origin=Tier(row.origin),
        session=row.session,
    )


def record_entry(record: Record) -> Entry:
    slot = f" {'/'.join(record.slot)}" if record.slot else ""
    status = "" if record.status is Status.CURRENT else f" ({record.status})"
    label = f"memory {record.kind}{slot}{status} {record.occurred_at[:10]} {origin(record.trust)}"
    return Entry(record.id, record.version, "memory", label, record.content or "", record.trust)


def hit_entry(hit: Hit, layer: str, session: str | None) -> Entry:
    """Text of untrusted origin enters a context outside its own session only as a labelled reference."""
    who = " ".join(part for part in (hit.kind, hit.role, hit.author) if part)
    label = f"{who} {hit.occurred_at.isoformat(timespec='minutes')} {origin(hit.origin)}"
    foreign = hit.origin <= Tier.UNTRUSTED_TOOL and hit.session != session
    reference = f"{len(hit.text)} characters; read_output {hit.event_ids[0]}" if foreign else None
    return Entry(hit.event_ids[0], 1, layer, label, hit.text, hit.origin, hit.session, reference)


def origin(tier: Tier) -> str:
    return tier.name.lower().replace("_", " ")


def within(occurred_at: str, bounds: tuple[int | None, int | None]) -> bool:
    if bounds == (None, None):
        return True
    at = ingress.microseconds(datetime.fromisoformat(occurred_at))
    return (bounds[0] is None or at >= bounds[0]) and (bounds[1] is None or at < bounds[1])


def status_named(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        raise InvalidInput(f"status must be one of {', '.join(Status)}, not {name!r}") from None


def text_of(recorded: Recorded) -> str:
    event = recorded.event
    for field in ("content", "output", "arguments"):
        text = getattr(event, field, None)
        if isinstance(text, str):
            return text
    raise NotFound(f"event {recorded.envelope.id} is a {recorded.envelope.topic}: it has no text")

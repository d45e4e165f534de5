"""From rows and records to what the face hands back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.domain.events import Recorded
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Record, Status, Step
from mnemolog.domain.retrieval import Ranked
from mnemolog.projections.passages import PassageRow, text_in
from mnemolog.projections.turns_view import TurnRow
from mnemolog.results import Hit, Span


def record_hit(record: Record, ranked: Ranked) -> Hit:
    return Hit(
        text=record.content or "",
        score=ranked.score,
        signals=ranked.signals,
        event_ids=record.event_ids,
        record_id=record.id,
        occurred_at=datetime.fromisoformat(record.occurred_at),
        kind=record.kind,
        version=record.version,
        status=str(record.status),
        origin=record.trust,
        session=record.session,
    )


def turn_hit(row: TurnRow, ranked: Ranked | None = None, passage: PassageRow | None = None) -> Hit:
    """Without `ranked`, as something that was asked for by its id. passage: what is shown of a large text."""
    return Hit(
        text=passage.text if passage else row.text,
        span=Span(passage.start, passage.end, passage.total) if passage else None,
        score=ranked.score if ranked else 0.0,
        signals=ranked.signals if ranked else {},
        event_ids=(row.event_id,),
        record_id=None,
        occurred_at=datetime.fromisoformat(row.occurred_at),
        kind=row.kind,
        role=row.role,
        author=row.author or row.tool,
        origin=Tier(row.origin),
        session=row.session,
    )


def status_named(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        raise InvalidInput(f"status must be one of {', '.join(Status)}, not {name!r}") from None


def text_of(recorded: Recorded) -> str:
    text = text_in(recorded.event)
    if text is not None:
        return text
    raise NotFound(f"event {recorded.envelope.id} is a {recorded.envelope.topic}: it has no text")


def without_words(step: Step) -> Step:
    """That something happened, without what was said."""
    won = None if step.won is None else replace(step.won, content=None)
    against = tuple(replace(side, content=None) for side in step.against)
    return replace(step, content=None, reason=None, won=won, against=against)

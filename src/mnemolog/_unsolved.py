"""Which open items of a summary are still open: what was said and done behind it may have settled them."""

from __future__ import annotations

from typing import Final

from mnemolog._views import View
from mnemolog.domain.landmarks import RawTurn
from mnemolog.domain.open_items import OpenItem, Raised, still_open
from mnemolog.domain.principal import Tier
from mnemolog.projections import turns_view
from mnemolog.projections.summaries_view import SummaryRow
from mnemolog.projections.turns_view import TurnRow

_MOST: Final = 200
"""Turns behind a summary that are looked at: the next one is written long before there are more."""
_CALLED: Final = 20
"""Turns before a tool's answer among which its call is looked for."""


def unsolved(view: View, summary: SummaryRow, session: str | None) -> tuple[OpenItem, ...]:
    """view: of the turns. session: the one that goes on, where the summary is of another."""
    if not summary.open_items or summary.session is None:
        return summary.open_items
    sessions = {summary.session, session or summary.session}
    later = turns_view.behind(view.conn, view.scopes, sessions, summary.last, _MOST)
    if not later:
        return summary.open_items
    raised = {one.item: one for one in _raised(view, summary, summary.session)}
    left = set(still_open(list(raised.values()), [_raw(row) for row in later]))
    return tuple(item for item in summary.open_items if item not in raised or item in left)


def _raised(view: View, summary: SummaryRow, session: str) -> list[Raised]:
    """Those items whose turn is there."""
    rows = turns_view.by_ids(view.conn, [item.event_id for item in summary.open_items], view.scopes)
    asked, replied = (
        turns_view.last_said(view.conn, view.scopes, session, role, summary.last)
        for role in ("user", "assistant")
    )
    return [
        Raised(
            item,
            _raw(row),
            _call(view, row, session) if item.kind == "error" else None,
            replied > row.position,
            asked <= row.position,
        )
        for item in summary.open_items
        if (row := rows.get(item.event_id)) is not None
    ]


def _call(view: View, result: TurnRow, session: str) -> RawTurn | None:
    if result.call_id is None:
        return None
    before = turns_view.recent(view.conn, view.scopes, session=session, limit=_CALLED, before=result.position)
    found = (row for row in reversed(before) if row.kind == "tool_call" and row.call_id == result.call_id)
    return next(map(_raw, found), None)


def _raw(row: TurnRow) -> RawTurn:
    return RawTurn(
        row.event_id,
        row.position,
        row.kind,
        row.text,
        Tier(row.origin),
        row.role,
        row.author,
        row.tool,
        row.call_id,
        row.error,
    )

"""The second look after an erasure: how many of these events a view still holds content of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection, MetaData, func, select

from mnemolog.projections import summaries, working
from mnemolog.projections.curated_rows import Tables
from mnemolog.projections.gating import GateTables
from mnemolog.projections.passages import PASSAGES
from mnemolog.projections.turns import FEEDBACK, SESSION_EVENTS, TURNS

_IDS_PER_STATEMENT: Final = 500


def in_turns(conn: Connection, event_ids: Sequence[str]) -> int:
    """Rows of what was said, of its passages, of sessions and of feedback."""
    return sum(
        conn.execute(select(func.count()).where(table.c.event_id.in_(ids))).scalar_one()
        for ids in _chunks(event_ids)
        for table in (TURNS, PASSAGES, SESSION_EVENTS, FEEDBACK)
    )


def in_curated(conn: Connection, event_ids: Sequence[str]) -> int:
    """Assertions that are more than a tombstone, and what became of candidates."""
    rows, outcomes = Tables(MetaData()).assertions, GateTables(MetaData()).outcomes
    found = 0
    for ids in _chunks(event_ids):
        whole = select(func.count()).where(rows.c.event_id.in_(ids), rows.c.forgotten.is_(False))
        judged = select(func.count()).where(outcomes.c.event_id.in_(ids))
        found += conn.execute(whole).scalar_one() + conn.execute(judged).scalar_one()
    return found


HOLDING: Final[dict[str, Callable[[Connection, Sequence[str]], int]]] = {
    "turns": in_turns,
    "curated": in_curated,
    "summaries": summaries.held,
    "working": working.held,
    "catalog": lambda conn, event_ids: 0,  # ids only, by design
    "access": lambda conn, event_ids: 0,  # ids only, by design
}


def _chunks(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[at : at + _IDS_PER_STATEMENT] for at in range(0, len(ids), _IDS_PER_STATEMENT)]

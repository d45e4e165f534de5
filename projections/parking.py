"""What every view file keeps beside its rows: the checkpoints, the events that failed, and the dismissed ones.

There is one checkpoint per partition of the owners: one where a single process folds, more where workers share the
work. All of it changes in the same transaction as the rows, so a crash never separates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    MetaData,
    Table,
    TextClause,
    bindparam,
    delete,
    func,
    inspect,
    select,
    text,
    update,
)

from mnemolog.domain.errors import NotFound
from mnemolog.projections.dialects import Integer, String, insert

_METADATA: Final = MetaData()
_CHECKPOINT: Final = Table(
    "checkpoint",
    _METADATA,
    Column("projection", String, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("stale", Integer, nullable=False, server_default="0"),
    Column("begun", Integer, nullable=False, server_default="0"),
    Column("delivered", Integer, nullable=False, server_default="0"),
)
_PARKED: Final = Table(
    "parked",
    _METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False),
    Column("owner", String, index=True),
    Column("reason", String, nullable=False),
    Column("state", String, nullable=False),
    Column("erased", Integer, nullable=False),
    Column("at", String, nullable=False),
)
_DISMISSED: Final = Table(
    "dismissed",
    _METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String, nullable=False),
)
_OF_OWNER: Final = select(_PARKED.c.position).where(_PARKED.c.owner == bindparam("owner")).limit(1)


class ParkedState(StrEnum):
    FAILED = "failed"
    WAITING = "waiting"
    """Waits behind an earlier event of the same owner that failed."""


@dataclass(frozen=True, slots=True)
class ParkedEvent:
    """An event that is not in the view. owner: who waits behind it, None for nobody; reason: never any text.

    erased: a later erasure that covers it was applied already, so that it will be folded as FORGOTTEN.
    """

    position: int
    event_id: str
    owner: str | None
    reason: str
    state: ParkedState
    erased: bool
    at: str


@dataclass(slots=True)
class ViewState:
    """What a view file knows of itself; of a partition, true as long as a compare-and-set of its position succeeds.

    positions: of each partition; begun: the head when the view began to be built.
    delivered: where the messages of each partition go on, as whoever delivers them counts.
    """

    positions: dict[int, int]
    stale: bool
    blocked: set[str]
    parked: bool
    dismissed: dict[int, str]
    delivered: dict[int, int]
    begun: int

    @property
    def position(self) -> int:
        """Everything up to here is in the view."""
        return min(self.positions.values())


class Parking:
    """The checkpoints and the parked events of one projection in its view file."""

    def __init__(self, projection: str) -> None:
        self._projection = projection
        self._mine = _CHECKPOINT.c.projection == projection

    def create(self, conn: Connection, dismissed: Iterable[tuple[int, str]], begun: int = 0) -> None:
        """The tables of a new view, which begins at position 0 and will skip the dismissed events.

        begun: the head of the log now.
        """
        _METADATA.create_all(conn, checkfirst=False)
        row = {"projection": self._projection, "partition": 0, "position": 0, "begun": begun}
        conn.execute(insert(conn, _CHECKPOINT).values(row))
        for position, event_id in dismissed:
            self.dismiss(conn, position, event_id)

    def is_made(self, conn: Connection) -> bool:
        """Whether `create` was called."""
        return inspect(conn).has_table(_CHECKPOINT.name)

    def load(self, conn: Connection) -> ViewState:
        rows = conn.execute(select(_CHECKPOINT).where(self._mine)).all()
        if not rows:
            raise NotFound(f"the view {self._projection!r} has no checkpoint: rebuild it")
        owners = conn.execute(select(_PARKED.c.owner).distinct()).scalars().all()
        return ViewState(
            positions={row.partition: row.position for row in rows},
            stale=any(row.stale for row in rows),
            blocked={owner for owner in owners if owner is not None},
            parked=bool(owners),
            dismissed={row.position: row.event_id for row in conn.execute(select(_DISMISSED))},
            delivered={row.partition: row.delivered for row in rows},
            begun=rows[0].begun,
        )

    def advance(
        self,
        conn: Connection,
        moves: Mapping[int, tuple[int, int]],
        delivered: Mapping[int, int] | None = None,
        *,
        of: int,
    ) -> bool:
        """Compare and set. False where another runner was faster: then nothing of this batch may stay.

        moves: partition → from where to where; delivered: where its messages go on, so that whoever takes over asks
        for what comes behind; of: how many partitions the view is thought to have, by which owners were placed.
        """
        return self._moved(conn, moves, delivered or {}, of) == len(moves)

    def _moved(
        self, conn: Connection, moves: Mapping[int, tuple[int, int]], delivered: Mapping[int, int], of: int
    ) -> int:
        """How many were where they were thought to be. As text: this is the most frequent statement of all."""
        values: dict[str, Any] = {"projection": self._projection, "of": of}
        for number, (one, (at, to)) in enumerate(moves.items()):
            values |= {f"one{number}": one, f"at{number}": at, f"to{number}": to}
            if one in delivered:
                values[f"next{number}"] = delivered[one]
        return conn.execute(_moving(tuple(one in delivered for one in moves)), values).rowcount

    def skip(self, conn: Connection, partitions: Mapping[int, int], to: int, *, of: int) -> None:
        """Move on each of these partitions that is still at its position, while there are as many as thought."""
        self._moved(conn, {one: (at, to) for one, at in partitions.items()}, {}, of)

    def divide(self, conn: Connection, partitions: int) -> None:
        """Go on with more partitions, or with one: all at the position that those of now share."""
        rows = [dict(row) for row in conn.execute(select(_CHECKPOINT).where(self._mine)).mappings()]
        there = {row["partition"] for row in rows}
        conn.execute(delete(_CHECKPOINT).where(self._mine & (_CHECKPOINT.c.partition >= partitions)))
        new = [number for number in range(partitions) if number not in there]
        if new:
            values = [{**rows[0], "partition": number, "delivered": 0} for number in new]
            conn.execute(insert(conn, _CHECKPOINT), values)

    def mark_stale(self, conn: Connection) -> None:
        """This view no longer follows from the log: it has to be built anew."""
        conn.execute(update(_CHECKPOINT).where(self._mine).values(stale=1))

    def park(self, conn: Connection, row: ParkedEvent) -> None:
        """Set a failed event aside. Later failures of the owner now wait for it, as it is the first in order."""
        self._put(conn, row)
        if row.owner is not None:
            later = (_PARKED.c.owner == row.owner) & (_PARKED.c.position > row.position)
            conn.execute(update(_PARKED).where(later).values(state=ParkedState.WAITING, reason=""))

    def hold(self, conn: Connection, row: ParkedEvent) -> None:
        """Set an event aside that waits behind another."""
        self._put(conn, row)

    def _put(self, conn: Connection, row: ParkedEvent) -> None:
        values = {
            "position": row.position,
            "event_id": row.event_id,
            "owner": row.owner,
            "reason": row.reason,
            "state": row.state.value,
            "erased": int(row.erased),
            "at": row.at,
        }
        put = insert(conn, _PARKED).values(values)
        conn.execute(put.on_conflict_do_update(index_elements=[_PARKED.c.position], set_=values))

    def unpark(self, conn: Connection, positions: Sequence[int]) -> None:
        conn.execute(delete(_PARKED).where(_PARKED.c.position.in_(positions)))

    def dismiss(self, conn: Connection, position: int, event_id: str) -> None:
        values = {"position": position, "event_id": event_id}
        conn.execute(insert(conn, _DISMISSED).values(values).on_conflict_do_nothing())

    def find(self, conn: Connection, position: int) -> ParkedEvent | None:
        return next(iter(self._rows(conn, _PARKED.c.position == position)), None)

    def rows(self, conn: Connection) -> list[ParkedEvent]:
        """Everything that is parked, in log order."""
        return self._rows(conn, _PARKED.c.position > 0)

    def mark_erased(self, conn: Connection, positions: Sequence[int]) -> None:
        conn.execute(update(_PARKED).where(_PARKED.c.position.in_(positions)).values(erased=1))

    def waiting(self, conn: Connection, owner: str, limit: int) -> list[ParkedEvent]:
        """The first events that wait for this owner."""
        waits = (_PARKED.c.owner == owner) & (_PARKED.c.state == ParkedState.WAITING.value)
        return self._rows(conn, waits, limit)

    def counts(self, conn: Connection) -> dict[ParkedState, int]:
        rows = conn.execute(select(_PARKED.c.state, func.count()).group_by(_PARKED.c.state))
        return {ParkedState(row[0]): row[1] for row in rows}

    def is_parked(self, conn: Connection, owner: str) -> bool:
        return conn.execute(_OF_OWNER, {"owner": owner}).first() is not None

    def _rows(
        self, conn: Connection, condition: ColumnElement[bool], limit: int | None = None
    ) -> list[ParkedEvent]:
        query = select(_PARKED).where(condition).order_by(_PARKED.c.position).limit(limit)
        return [
            ParkedEvent(r.position, r.event_id, r.owner, r.reason, ParkedState(r.state), bool(r.erased), r.at)
            for r in conn.execute(query)
        ]


@lru_cache(1024)
def _moving(delivered: tuple[bool, ...]) -> TextClause:
    """Moves so many partitions; of some of them also where their messages go on."""
    there = " OR ".join(f'"partition" = :one{n} AND "position" = :at{n}' for n in range(len(delivered)))
    to = " ".join(f"WHEN :one{n} THEN :to{n}" for n in range(len(delivered)))
    following = " ".join(f"WHEN :one{n} THEN :next{n}" for n, known in enumerate(delivered) if known)
    values = f'"position" = CASE "partition" {to} END'
    if following:
        values += f', "delivered" = CASE "partition" {following} ELSE "delivered" END'
    mine = "WHERE projection = :projection"
    as_many = f"(SELECT count(*) FROM {_CHECKPOINT.name} {mine}) = :of"
    return text(f"UPDATE {_CHECKPOINT.name} SET {values} {mine} AND ({there}) AND {as_many}")


def reason_of(error: BaseException) -> str:
    """The class of an error and where in the code it arose; its message may quote text and is left out."""
    frames = [frame for frame in extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno} {last.name}"

"""How a view is, for people who look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mnemolog.domain.errors import RebuildRefused, StoreInUse
from mnemolog.projections.parking import Parking
from mnemolog.projections.ports import ViewStore
from mnemolog.projections.supervision import Trouble
from mnemolog.projections.versions import ViewFile


class ViewCondition(StrEnum):
    """What a view is doing, for people."""

    LIVE = "live"
    PAUSED = "paused"
    FAILING = "failing"
    """Its last attempt to advance raised; it is tried again after a while."""
    STALE = "stale"
    """It has to be built anew, and will be at the next advance."""
    REBUILDING = "rebuilding"


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a view is. head: the real head of the log; failed and waiting: events that are parked."""

    projection: str
    version: str
    position: int
    head: int
    failed: int
    waiting: int
    condition: ViewCondition
    positions: Mapping[int, int] = field(default_factory=dict)
    """Of each partition; one where a single process folds."""

    @property
    def lag(self) -> int:
        return self.head - self.position


@dataclass(frozen=True, slots=True)
class Health:
    """The background thread and the troubles of each projection (and of the thread itself, as `runner`)."""

    running: bool
    paused: bool
    troubles: Mapping[str, Trouble]

    @property
    def crashes(self) -> int:
        return sum(trouble.crashes for trouble in self.troubles.values())


def led_otherwise(name: str) -> StoreInUse:
    """A process of another release keeps the view."""
    return StoreInUse(
        f"the process that leads this memory keeps view {name!r} in another version: "
        "run the same release of mnemolog in all processes, or close the others"
    )


def refuse_worse(views: ViewStore, parking: Parking, new: ViewFile, live: ViewFile) -> None:
    """Raises RebuildRefused where the new view lacks more events than the live one."""
    with views.connect_to(new) as conn, views.connect_to(live) as old:
        rows, known = parking.rows(conn), {row.position for row in parking.rows(old)}
    if len(rows) > len(known):
        lacks = [row for row in rows if row.position not in known]
        raise RebuildRefused(new.name, [(row.position, row.reason or row.state.value) for row in lacks])


def stalled(name: str, position: int, target: int) -> str:
    """What to say of a view that did not get there."""
    where = f"view {name!r} is at position {position}, not {target}"
    return f"{where}: see `mnemolog projections lag`, then retry"

"""A view in partitions of its owners: how they move, and what they cannot fold for themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import ERASURE, PARKING, Recorded

DIVISION: Final = "PartitionsChanged"
FOR_ALL: Final = ERASURE | PARKING | {DIVISION}
"""What a partition cannot fold for itself: it reaches into other owners' rows, or into the view's own state."""

Placing = Callable[[str, int], int]
"""Owner and number of partitions → the owner's partition."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of one partition, in order: all its events from behind `previous` up to `to`.

    next: where the messages behind them begin.
    """

    events: Sequence[Recorded]
    previous: int
    to: int
    next: int


@dataclass(frozen=True, slots=True)
class Step:
    """moves: partition → from where to where; delivered: where messages of partitions go on."""

    moves: dict[int, tuple[int, int]]
    delivered: dict[int, int] = field(default_factory=dict)


def level_step(group: Collection[int], at: int, to: int) -> Step:
    return Step(dict.fromkeys(group, (at, to)))


def single(owner: str, partitions: int) -> int:
    """Where owners are while there is one partition."""
    if partitions != 1:
        raise InvalidInput("the views are divided among workers: install mnemolog[kafka] to open them")
    return 0

"""`move`: a whole memory is carried over, from files to PostgreSQL or back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mnemolog._guard import Guard
from mnemolog._notes import Notes, what_next
from mnemolog.domain.errors import InvalidInput, StoreInUse
from mnemolog.domain.principal import LOCAL_OPERATOR, Action, Principal
from mnemolog.infra.compose import Store, open_store
from mnemolog.infra.moving import MoveReceipt, Progress, carry_store, check_leaves, place_of, target_of
from mnemolog.infra.roles.beside import carry
from mnemolog.infra.settings import Settings
from mnemolog.memory import Memory

__all__ = ["MoveReceipt", "Progress", "move", "target_of"]


def move(
    path: str | Path,
    to: str | Path,
    *,
    settings: Settings | None = None,
    to_settings: Settings | None = None,
    principal: Principal = LOCAL_OPERATOR,
    progress: Progress | None = None,
) -> MoveReceipt:
    """Carry the memory in data directory `path` over to directory `to`, each with what its settings name.

    Events keep positions, leaf hashes and bytes; keys are put under the target's root key; vectors and large outputs
    are taken along; views are folded anew and compared. Cut off at any point, it is run again and goes on. Both ends
    are closed to everybody meanwhile, the target until it is complete, and the source for good: open the target.

    settings: of the source; of the environment if left out. to_settings: of the target; files in `to` if left out.
    progress: called with (step, done, of) now and then.
    Raises AnotherLog for a target that holds something else, StoreInUse where one of the two is open or an erasure is
    not finished, StoreMoved for a memory that was moved before, NotFound, AccessDenied.
    """
    ends = (
        (Path(path), _alone(settings or Settings.load())),
        (Path(to), _alone(to_settings or target_of(str(to))[1])),
    )
    source_path, target_path = (one[0].resolve() for one in ends)
    if source_path == target_path or place_of(*ends[0]) == place_of(*ends[1]):
        raise InvalidInput(
            "source and target are the same: give the target a directory (and database schema) of its own"
        )
    with open_store(*ends[0], create=False, moving=True) as source, closing(source):
        _take_up(source, principal)
        check_leaves(source, place_of(*ends[1]))
        with open_store(*ends[1], moving=True) as target, closing(target):
            return carry_store(source, target, progress, lambda: carry(*_settled(ends)))


def _alone(settings: Settings) -> Settings:
    """Nobody else folds meanwhile, so this process does, also where workers do otherwise."""
    return settings.model_copy(update={"workers": False})


def _settled(ends: Sequence[tuple[Path, Settings]]) -> list[Settings]:
    """The settings of both ends, each with its data directory."""
    return [settings.model_copy(update={"data": path}) for path, settings in ends]


def _take_up(source: Store, principal: Principal) -> None:
    """As at every opening, unless it was left already; and no erasure may be half done."""
    Guard(source, principal).enter_store(Action.OPERATE)
    if source.log.stored.mark() is None:
        source.begin(False, Memory(source, LOCAL_OPERATOR).take_over)
    for work in Notes(source.path, source.settings).pending():
        raise StoreInUse(f"an erasure is not finished: {what_next(work)}; then move")

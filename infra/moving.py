"""A store is carried over to another place, embedded or in PostgreSQL: the same events at the same positions.

Each step makes the target hold what the source holds, whatever it held of it before, so that a move that was cut off
is run again and goes on. Nobody else has either end open meanwhile. The source is only read, up to the last moment,
in which it is closed; the target is closed to everybody until it is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic_settings import PydanticBaseSettingsSource

from mnemolog.domain.errors import AnotherLog, CorruptStore, InvalidInput, StoreInUse, StoreMoved
from mnemolog.domain.policy import DEFAULT as DEFAULT_POLICY
from mnemolog.infra.adopted import adopted_policy
from mnemolog.infra.compose import Store
from mnemolog.infra.gating import PLACES_FILE
from mnemolog.infra.log.verification import tree_head
from mnemolog.infra.marks import ARRIVING, MOVED, Mark, read_mark
from mnemolog.infra.settings import Settings
from mnemolog.infra.vector_folder import INDEX_FOLDER, VectorFolder
from mnemolog.projections import catalog

Progress = Callable[[str, int, int], None]
"""Called with (step, done, of) now and then."""

_FOLDING: Final = "views"
_IMPORTS: Final = "imports"
_PAGE: Final = 500
_LEAVES: Final = 10_000
_HOURS: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class MoveReceipt:
    """What the target holds now. carried: events that this run brought; the others were there from one before.

    root: of the Merkle tree over all leaf hashes, the same at both ends. views: hash of each view's content, the same
    at both ends. vectors: rows that were taken over; none was embedded again.
    """

    source: str
    target: str
    events: int
    carried: int
    root: str
    subjects: int
    names: int
    blobs: int
    vectors: int
    views: dict[str, str] = field(default_factory=dict)


class _Written(Settings):
    """Settings of a file alone: the environment is the source's."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: Any,
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, dotenv_settings


def target_of(place: str) -> tuple[Path, Settings]:
    """Directory and settings of a target: a file of settings (`MNEMOLOG_DATA=…` a line), or a directory for all of it.

    Nothing is taken from the environment. Raises InvalidInput.
    """
    if "://" in place:
        raise InvalidInput(
            "write the url into a file, MNEMOLOG_DATABASE_URL=…, beside MNEMOLOG_DATA=…, and name that file"
        )
    path = Path(place)
    if not path.exists() and path.suffix and not place.endswith("/"):
        raise InvalidInput(f"there is no file {path}: end the name of a new directory with a slash")
    if not path.is_file():
        return path, _Written.load(data=path)
    settings = _Written.load(_env_file=path)
    if "data" not in settings.model_fields_set:
        raise InvalidInput(f"{path} lacks MNEMOLOG_DATA: the data directory that the target has")
    return settings.data, settings


def place_of(path: Path, settings: Settings) -> str:
    """What a store is called in marks and receipts: no user, no password."""
    if settings.database_url is None:
        return str(path.resolve())
    from mnemolog.infra.postgres.connecting import shown

    return f"{shown(settings.database_url.get_secret_value())} schema {settings.database_schema}"


def check_leaves(source: Store, to: str) -> None:
    """Before the target is made. Raises StoreMoved for a memory that is elsewhere, or is on its way elsewhere."""
    left = read_mark(source.log.stored.mark())
    if left is not None and left.state != ARRIVING and left.other != to:
        raise _moved(left)


def _moved(left: Mark) -> StoreMoved:
    return StoreMoved(f"this memory was moved to {left.other}: open it there, or move it back")


def carry_store(
    source: Store,
    target: Store,
    progress: Progress | None = None,
    more: Callable[[], None] = lambda: None,
) -> MoveReceipt:
    """Carry everything over. Both are open with `moving=True`, and nobody else may come in.

    more: carries what else is beside them; it may be repeated.

    Raises AnotherLog for a target with other events or keys, StoreMoved for a source that went elsewhere, StoreInUse
    where somebody has one of them open, CorruptStore where the two are not the same in the end.
    """
    return _Move(source, target, progress or (lambda step, done, of: None), more).run()


class _Move:
    def __init__(self, source: Store, target: Store, progress: Progress, more: Callable[[], None]) -> None:
        self._source, self._target, self._tell, self._more = source, target, progress, more
        self._from, self._to = (place_of(one.path, one.settings) for one in (source, target))
        self._carried = self._large = self._vectors = 0
        self._generation = source.vault.generation()
        self._folded = False
        """Whether a run before this one had everything in the target that views are folded from."""

    def run(self) -> MoveReceipt:
        self._check()
        steps = {
            "keys": self._keys,
            "log": self._log,
            "verification": self._verify,
            "large outputs": self._blobs,
            "vectors": self._files,
            _FOLDING: self._views,
        }
        with self._source.log.frozen():
            for step, do in steps.items():
                self._target.log.put_mark(Mark(ARRIVING, self._from, step).dump())
                do(step)
            receipt = self._receipt("comparison")
            # The source first: never are both open.
            self._source.log.put_mark(Mark(MOVED, self._to).dump(), closed=True)
            self._check_stood_still(receipt.events)
            self._target.log.put_mark(None)
        return receipt

    def _check_stood_still(self, events: int) -> None:
        """The lock of a server is gone with a connection; what came meanwhile came before the source was closed."""
        if (self._source.log.head(), self._source.vault.generation()) != (events, self._generation):
            self._source.log.put_mark(None)
            raise StoreInUse("somebody has changed the source meanwhile: close who does, then run it again")

    def _check(self) -> None:
        for store, place in ((self._source, self._from), (self._target, self._to)):
            if not store.leadership.alone:
                raise StoreInUse(f"another process has {place} open: close it, then move")
        left, arrived = (read_mark(store.log.stored.mark()) for store in (self._source, self._target))
        if left is not None and left.state == ARRIVING:
            raise StoreMoved(f"the move from {left.other} into {self._from} is not finished: run that first")
        unfinished = arrived is not None and arrived.state == ARRIVING
        self._folded = unfinished and arrived is not None and arrived.step == _FOLDING
        if left is not None and not (left.other == self._to and unfinished):
            raise _moved(left)
        self._check_log()

    def _check_log(self) -> None:
        """The target's log is the beginning of the source's. That every leaf is the same is looked at in the end."""
        head, there = self._source.log.head(), self._target.log.head()
        if there > head:
            raise AnotherLog(f"the target has {there} events, the source only {head}: move the other way")
        if there and self._source.log.leaves(there - 1, 1) != self._target.log.leaves(there - 1, 1):
            raise AnotherLog("the target has another log: name an empty one")
        self._target.vault.check_origin(self._source.vault)

    def _keys(self, step: str) -> None:
        self._tell(step, 0, 1)
        self._target.vault.take_over(self._source.vault)
        self._tell(step, 1, 1)

    def _log(self, step: str) -> None:
        given, taken = self._source.log, self._target.log
        position, head = taken.head(), given.head()
        while rows := given.stored.rows(position, _PAGE):
            taken.stored.carry(rows, position + 1)
            position += len(rows)
            self._carried += len(rows)
            self._tell(step, position, head)
        self._target.committed(position)

    def _verify(self, step: str) -> None:
        """That the bytes of each event are those that its leaf hash was made of."""
        self._target.log.verify(lambda done, of: self._tell(step, done, of))

    def _blobs(self, step: str) -> None:
        """Those of the log's events; a bucket or folder that both ends share has them already."""
        with self._source.runner.read("catalog", timeout=_HOURS) as conn:
            rows = catalog.with_blobs(conn)
        given, taken, url = self._source.blobs, self._target.blobs, self._source.settings.blobs_url
        shared = url is not None and url == self._target.settings.blobs_url
        self._large = len(rows)
        for number, row in enumerate(rows, 1):
            name = row.event_id
            if row.erased:
                self._large -= 1
                taken.delete(name)
            elif not (shared or taken.exists(name)) and given.exists(name):
                taken.carry(name, given.sealed(name))
            self._tell(step, number, len(rows))

    def _files(self, step: str) -> None:
        """Vectors, places of imports and of workers. The index is filled anew from the vectors."""
        self._tell(step, 0, 1)
        shutil.rmtree(self._target.path / INDEX_FOLDER, ignore_errors=True)
        shutil.rmtree(self._target.path / _IMPORTS, ignore_errors=True)
        if (self._source.path / _IMPORTS).is_dir():
            shutil.copytree(self._source.path / _IMPORTS, self._target.path / _IMPORTS)
        (self._target.path / PLACES_FILE).unlink(missing_ok=True)
        if (self._source.path / PLACES_FILE).exists():
            shutil.copyfile(self._source.path / PLACES_FILE, self._target.path / PLACES_FILE)
        self._vectors = self._carry_vectors()
        self._more()
        self._tell(step, 1, 1)

    def _carry_vectors(self) -> int:
        given, taken = (
            VectorFolder(store.path, store.settings, lambda: False) for store in (self._source, self._target)
        )
        source = given.rows(make=False)
        target = taken.rows(make=source is not None)
        if target is None:
            return 0
        with closing(target):
            count = 0
            if source is not None:
                with closing(source):
                    count = target.take_over(source)
            else:
                for space in target.spaces():
                    target.drop_space(space)
            if not target.purge():
                raise StoreInUse(
                    "somebody reads the vectors of the target, so bytes of what it held before would stay: "
                    "end that, then run it again"
                )
        return count

    def _views(self, step: str) -> None:
        """Folded anew from the log that came, unless they were so by a run that was cut off afterwards."""
        runner, head = self._target.runner, self._source.log.head()
        self._source.runner.catch_up_all(timeout=_HOURS)
        live = self._target.views.live
        # Some are folded as the policy says, which came with the log.
        before = {name: live(name) for name in runner.names()}
        self._target.adopt(adopted_policy(self._target.log) or DEFAULT_POLICY)
        self._target.refold(lambda at, of: self._tell(step, at, of))
        # What was folded before the large outputs came lacks what is in them.
        behind = {lag.projection for lag in runner.lag() if self._carried or lag.lag or not self._folded}
        due = [name for name in runner.names() if name in behind and live(name) == before[name]]
        for number, name in enumerate(due):
            tell = partial(self._tell_more, step, number * head, len(due) * head)
            runner.rebuild(name, progress=tell)

    def _tell_more(self, step: str, before: int, of: int, done: int, _: int) -> None:
        self._tell(step, before + done, of)

    def _receipt(self, step: str) -> MoveReceipt:
        self._tell(step, 0, 1)
        root = tree_head(self._same_leaves())
        given, taken = (
            {name: store.runner.dump_hash(name) for name in store.runner.names()}
            for store in (self._source, self._target)
        )
        for name, content in given.items():
            if taken[name] != content:
                raise CorruptStore(
                    f"view {name!r} differs from the one made anew: rebuild it in the source "
                    f"(`mnemolog projections rebuild {name}`), then run the move again"
                )
        keys = self._target.vault.status()
        self._tell(step, 1, 1)
        return MoveReceipt(
            self._from,
            self._to,
            self._target.log.head(),
            self._carried,
            root.hex(),
            keys.subjects,
            keys.names,
            self._large,
            self._vectors,
            taken,
        )

    def _same_leaves(self) -> Iterator[bytes]:
        """Every leaf hash, compared. Raises AnotherLog at the first that differs."""
        given, taken = _leaves(self._source), _leaves(self._target)
        for position, leaf in enumerate(given, 1):
            if next(taken, None) != leaf:
                raise AnotherLog(f"the target has another event at position {position}: name an empty one")
            yield leaf
        if next(taken, None) is not None:
            raise AnotherLog("the target has grown meanwhile: close who writes to it")


def _leaves(store: Store) -> Iterator[bytes]:
    position = 0
    while rows := store.log.leaves(position, _LEAVES):
        yield from (leaf for _, leaf in rows)
        position = rows[-1][0]

"""The composition root: builds one store out of its parts, and is the only adapter that knows them all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mnemolog.domain.errors import InvalidInput, NotFound, StoreClosed, StoreInUse, StoreUnavailable
from mnemolog.domain.scope import Scope
from mnemolog.infra.blobs import FileBlobs
from mnemolog.infra.clock import SystemClock, UuidV7
from mnemolog.infra.log.sqlite import SqliteEventLog
from mnemolog.infra.settings import Settings
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.vault import EnvironmentRootKey, FileRootKey, RootKeyProvider, Vault, open_vault
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections import turns_view
from mnemolog.projections.catalog import Catalog
from mnemolog.projections.curated import Curated
from mnemolog.projections.ports import Clock, Ids
from mnemolog.projections.runner import Runner
from mnemolog.projections.turns import Turns

LOG_FILE: Final = "log.db"
KEYS_FILE: Final = "keys.db"
LOCK_FILE: Final = "lock"
VIEWS_FOLDER: Final = "views"
BLOBS_FOLDER: Final = "blobs"
ROOT_KEY_FILE: Final = "root.key"
_DURABILITY: Final = {"fsync": "full", "os": "os"}


@dataclass(slots=True)
class Store:
    """One open data directory and everything in it. Shared by all `Memory` views of a process."""

    path: Path
    settings: Settings
    clock: Clock
    ids: Ids
    vault: Vault
    log: SqliteEventLog
    blobs: FileBlobs
    views: SqliteViews
    runner: Runner
    catalog: Catalog
    turns: Turns
    curated: Curated
    release: Callable[[], None]
    position: int = 0
    """How far the log is known to be committed: never too far, for a moment perhaps not far enough."""
    zones: dict[str, tzinfo | None] = field(default_factory=dict)
    process: int = field(default_factory=os.getpid)
    closed: bool = False

    def check_open(self) -> None:
        """Raise StoreClosed after `close`, and in a forked child."""
        if self.process != os.getpid():
            raise StoreClosed("this process is a fork of the one that opened the memory: open it anew")
        if self.closed:
            raise StoreClosed("this memory was closed: open it anew")

    def committed(self, position: int) -> None:
        """The log has committed up to here; called from any thread."""
        self.position = max(self.position, position)

    def zone_of(self, scope: Scope) -> tzinfo | None:
        """The time zone that the scope's session was opened with, if any."""
        ids = self.vault.resolve(scope, create=False)
        if ids is None or ids.session is None:
            return None
        if ids.session not in self.zones:
            with self.runner.read("turns") as conn:
                found = turns_view.session(conn, ids.session)
            name = found.timezone if found else None
            self.zones[ids.session] = zone_named(name) if name else None
        return self.zones[ids.session]

    def close(self) -> None:
        """Stop the runner and let go of the directory. Idempotent; a forked child only lets go."""
        if self.closed or self.process != os.getpid():
            self.closed = True
            return
        self.closed = True
        self.runner.stop()
        self.views.close()
        self.log.close()
        self.vault.close()
        self.release()


def open_store(
    path: Path,
    settings: Settings,
    *,
    create: bool = True,
    background: bool = True,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> Store:
    """Open a data directory, made if missing and `create`.

    Raises StoreInUse while another process has it, KeysMissing when there are events but not their keys,
    NotFound for a missing directory with create=False.
    """
    if not create and not (path / LOG_FILE).exists():
        raise NotFound(f"no memory in {path}: create one with `mnemolog init`")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        release = _lock(path / LOCK_FILE)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be used: {error.strerror}; choose a folder of yours"
        ) from error
    try:
        return _assemble(path, settings, release, clock or SystemClock(), ids or UuidV7(), background)
    except BaseException:
        release()
        raise


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name. Raises InvalidInput for one that does not exist."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"no time zone {name!r}: use an IANA name such as Asia/Seoul") from None


def root_key_provider(path: Path, settings: Settings) -> RootKeyProvider:
    """Where the root key comes from: the environment, a file elsewhere, or a file in the data directory."""
    if settings.root_key is not None:
        return EnvironmentRootKey(settings.root_key.get_secret_value())
    return FileRootKey(settings.root_key_file or path / ROOT_KEY_FILE)


def _assemble(
    path: Path, settings: Settings, release: Callable[[], None], clock: Clock, ids: Ids, background: bool
) -> Store:
    # Keys without a log are a crash between the two files: they are there and stay.
    fresh = not (path / LOG_FILE).exists() and not (path / KEYS_FILE).exists()
    with ExitStack() as undo:
        vault = open_vault(path / KEYS_FILE, root_key_provider(path, settings), create=fresh)
        undo.callback(vault.close)
        log = SqliteEventLog(path / LOG_FILE, vault, clock, durability=_DURABILITY[settings.durability])  # type: ignore[arg-type]
        undo.callback(log.close)
        views = SqliteViews(path / VIEWS_FOLDER)
        undo.callback(views.close)
        analyzer = default_analyzer()
        catalog = Catalog()
        turns = Turns(SqliteLexicalIndex("turns_lex"), analyzer)
        curated = Curated(SqliteLexicalIndex("records_lex"), analyzer)
        runner = Runner(log, views, [catalog, turns, curated], clock=clock, batch_size=settings.batch_size)
        runner.open()
        store = Store(
            path=path,
            settings=settings,
            clock=clock,
            ids=ids,
            vault=vault,
            log=log,
            blobs=FileBlobs(path / BLOBS_FOLDER, vault),
            views=views,
            runner=runner,
            catalog=catalog,
            turns=turns,
            curated=curated,
            release=release,
            position=log.head(),
        )
        log.on_commit(store.committed)
        if background:
            runner.start()
        undo.pop_all()
        return store


def _lock(path: Path) -> Callable[[], None]:
    """Take the directory for this process; the lock dies with it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise StoreInUse(
            f"process {holder or '?'} has {path.parent} open: close it there, or use that process"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return lambda: _unlock(descriptor)


def _unlock(descriptor: int) -> None:
    # Closing is not enough: a forked child has the descriptor too, and would hold the lock as long as it lives.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)

"""`SqliteViews`: one SQLite file per projection version, and a pointer file that names the live ones.

Views are disposable, so a commit waits for no disk; but rows and checkpoint share it, so they never disagree.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, Final
from urllib.parse import quote

import orjson
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from mnemolog.domain.errors import NotFound, StoreClosed, StoreUnavailable
from mnemolog.infra.locks import exclusively
from mnemolog.projections.ports import ViewSize
from mnemolog.projections.private import private
from mnemolog.projections.versions import ViewFile

POINTER: Final = "live.json"
LOCK: Final = "live.lock"
SIDE_FILES: Final = ("", "-wal", "-shm", "-journal")

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA secure_delete=ON",
    "PRAGMA mmap_size=268435456",
    "PRAGMA wal_autocheckpoint=4000",
    "PRAGMA journal_size_limit=67108864",
)
_WRITER: Final = (*_PRAGMAS, "PRAGMA cache_size=-32768")
_READER: Final = (*_PRAGMAS, "PRAGMA cache_size=-8192", "PRAGMA query_only=ON")
_PATIENCE_MS: Final = 2000
"""How long emptying the write-ahead log waits for readers."""
# BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB
_STORE_AT_FAULT: Final = frozenset({5, 6, 7, 8, 9, 10, 11, 13, 14, 26})


class SqliteViews:
    """The `ViewStore` of the embedded mode. Several processes may have `folder` open.

    busy_timeout: seconds to wait for another connection's lock before a call fails.
    sweep: whether to remove files that are not live, which only a process that is alone can tell from new ones.
    """

    def __init__(self, folder: Path, busy_timeout: float = 30.0, *, sweep: bool = True) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._busy_timeout = busy_timeout
        self._lock = RLock()
        self._open: dict[ViewFile, _Database] = {}
        self._live: dict[str, ViewFile] = {}
        self._seen: tuple[int, int] | None = None
        self._closed = False
        self.refresh()
        for file in self._on_disk() - set(self._live.values()) if sweep else ():
            _unlink(self.folder / file.filename)

    def live(self, name: str) -> ViewFile | None:
        """The file that readers of this projection see; None where there is none, or it is not there any more."""
        self.refresh()
        file = self._live.get(name)
        return file if file and (self.folder / file.filename).is_file() else None

    def create_shadow(self, name: str, version: str) -> ViewFile:
        """An empty file beside the live one, of a new generation."""
        with self._lock:
            while True:
                known = {*self._on_disk(), *self._open, *self._live.values()}
                last = max((file.generation for file in known if file.name == name), default=0)
                file = ViewFile(name, version, last + 1)
                with suppress(FileExistsError):  # another process was faster
                    (self.folder / file.filename).touch(mode=0o600, exist_ok=False)
                    return file

    @contextmanager
    def begin(self, file: ViewFile, partitions: Collection[int] | None = None) -> Iterator[Connection]:
        """A write transaction: commits at the end, rolls back on an error. One writer at a time per file."""
        with self._leased(file) as database, database.writer.begin() as conn:
            yield conn

    @contextmanager
    def connect(self, name: str) -> Iterator[Connection]:
        """A read transaction on the live file; it stays on that file, also while another is activated."""
        with ExitStack() as stack:
            conn = None
            while conn is None:
                conn = self._connected(stack, name)
            yield conn

    def _connected(self, stack: ExitStack, name: str) -> Connection | None:
        """None where another process replaced the file meanwhile."""
        with self._lock:
            self.refresh()
            file = self._live.get(name)
            if file is None:
                raise NotFound(
                    f"no view of {name!r} is live: `mnemolog projections rebuild {name}` builds it"
                )
        try:
            database = stack.enter_context(self._leased(file))
            return stack.enter_context(database.reader.connect())
        except (NotFound, DBAPIError):
            if self._live.get(name) == file and not self.refresh():
                raise
            return None

    @contextmanager
    def connect_to(self, file: ViewFile) -> Iterator[Connection]:
        """A read transaction on this file."""
        with self._leased(file) as database, database.reader.connect() as conn:
            yield conn

    def activate(self, file: ViewFile) -> None:
        """Make this file the live one, durably and at once for every new reader, and drop the one before."""
        with self._leased(file) as database:
            _truncate_wal(database.writer)
        with exclusively(self.folder / LOCK, self._busy_timeout, "switching views"), self._lock:
            self.refresh()
            before = self._live.get(file.name)
            _write_pointer(self.folder / POINTER, {**self._live, file.name: file})
            self.refresh()
        if before is not None and before != file:
            self.drop(before)

    def drop(self, file: ViewFile) -> None:
        """Remove the file as soon as its last reader has finished."""
        with self._lock:
            database = self._open.get(file)
            if database is None:
                _unlink(self.folder / file.filename)
            else:
                database.retired = True
                self._remove_if_idle(database)

    def purge(self, file: ViewFile, rewrite: Callable[[Connection], None]) -> bool:
        """Run `rewrite` in a transaction, then rewrite the file so that no deleted byte is left in it.

        False where a reader kept the write-ahead log from being truncated: purge again later.
        """
        with self.begin(file) as conn:
            rewrite(conn)
        with self._leased(file) as database:
            _run(database.writer, "VACUUM")
            return _truncate_wal(database.writer)

    def files(self) -> list[ViewSize]:
        """What is there and how large, the live ones and those being built."""
        live = set(self._live.values())
        return [
            ViewSize(file, file in live, _size(self.folder / file.filename))
            for file in sorted(self._on_disk(), key=lambda file: file.filename)
        ]

    def is_unavailable(self, error: Exception) -> bool:
        """Whether an error of a fold lies with the store (disk full, locked, damaged), not with the event."""
        if isinstance(error, StoreUnavailable):
            return True
        if not isinstance(error, DBAPIError):
            return False
        code = getattr(error.orig, "sqlite_errorcode", None)
        return error.connection_invalidated or (code is not None and code & 0xFF in _STORE_AT_FAULT)

    def close(self) -> None:
        """Close every connection; afterwards the files can be copied or removed."""
        with self._lock:
            self._closed = True
            for database in self._open.values():
                database.dispose()
            self._open.clear()

    def refresh(self) -> bool:
        """Look whether the pointer was changed, by this process or another; whether it was."""
        pointer = self.folder / POINTER
        try:
            found = pointer.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(pointer, error) from error
        seen = found.st_ino, found.st_mtime_ns
        if seen == self._seen:
            return False
        with self._lock:
            before, self._live = self._live, _read_pointer(pointer)
            self._seen = seen
            for file in set(before.values()) - set(self._live.values()):
                self.drop(file)
        return True

    @contextmanager
    def _leased(self, file: ViewFile) -> Iterator[_Database]:
        with self._lock:
            database = self._database(file)
            database.leases += 1
        try:
            yield database
        finally:
            with self._lock:
                database.leases -= 1
                self._remove_if_idle(database)

    def _database(self, file: ViewFile) -> _Database:
        if self._closed:
            raise StoreClosed("the views are closed: open the memory anew")
        if file not in self._open:
            path = self.folder / file.filename
            if not path.is_file():
                raise NotFound(f"there is no view file {file.filename}")
            self._open[file] = _Database(file, path, *_engines(path, self._busy_timeout))
        return self._open[file]

    def _remove_if_idle(self, database: _Database) -> None:
        if database.retired and database.leases == 0 and self._open.get(database.file) is database:
            del self._open[database.file]
            database.dispose()
            _unlink(database.path)

    def _on_disk(self) -> set[ViewFile]:
        return {file for path in self.folder.glob("*.db") if (file := ViewFile.parse(path.name))}


@dataclass(slots=True)
class _Database:
    file: ViewFile
    path: Path
    writer: Engine
    reader: Engine
    leases: int = field(default=0)
    retired: bool = field(default=False)

    def dispose(self) -> None:
        self.reader.dispose()
        self.writer.dispose()


def _engines(path: Path, busy_timeout: float) -> tuple[Engine, Engine]:
    return (
        _engine(path, busy_timeout, _WRITER, "BEGIN IMMEDIATE"),
        _engine(path, busy_timeout, _READER, "BEGIN"),
    )


def _engine(path: Path, busy_timeout: float, pragmas: tuple[str, ...], begin: str) -> Engine:
    def connected() -> sqlite3.Connection:
        # Never made anew: another process may have removed it in favour of the next.
        name = f"file:{quote(str(path.absolute()))}?mode=rw"
        return sqlite3.connect(
            name, uri=True, timeout=busy_timeout, check_same_thread=False, cached_statements=256
        )

    engine = create_engine(f"sqlite:///{path}", creator=connected, pool_size=4, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # The driver would begin a deferred transaction of its own, which fails at once when it turns to writing.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def start(conn: Connection) -> None:
        conn.exec_driver_sql(begin)

    return engine


def _run(engine: Engine, *statements: str) -> list[Any]:
    """Run statements outside any transaction; the first value of each."""
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        rows = [cursor.execute(statement).fetchone() for statement in statements]
        cursor.close()
        return [row[0] if row else None for row in rows]
    finally:
        connection.close()


def _truncate_wal(engine: Engine) -> bool:
    """Empty the write-ahead log into the file. False where a reader that began earlier was in the way."""
    (patience,) = _run(engine, "PRAGMA busy_timeout")
    _, busy, _ = _run(
        engine,
        f"PRAGMA busy_timeout={min(patience, _PATIENCE_MS)}",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        f"PRAGMA busy_timeout={patience}",
    )
    return bool(busy == 0)


def _read_pointer(path: Path) -> dict[str, ViewFile]:
    """The live files; nothing where the pointer is absent or holds something else: then the views are built anew.

    Raises StoreUnavailable where it cannot be read just now, for what it names is as live as before.
    """
    try:
        named = orjson.loads(path.read_bytes())
        files = {name: ViewFile.parse(filename) for name, filename in named.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}
    except OSError as error:
        raise _unreadable(path, error) from error
    return {name: file for name, file in files.items() if file and file.name == name}


def _unreadable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"{path} cannot be read ({error.strerror}): free it, then retry")


def _write_pointer(path: Path, live: dict[str, ViewFile]) -> None:
    content = orjson.dumps({name: file.filename for name, file in live.items()}, option=orjson.OPT_INDENT_2)
    beside = path.with_suffix(".new")
    with open(beside, "wb", opener=private) as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _size(path: Path) -> int:
    sizes = 0
    for side in SIDE_FILES:
        try:
            sizes += path.with_name(path.name + side).stat().st_size
        except FileNotFoundError:
            continue
    return sizes


def _unlink(path: Path) -> None:
    for side in SIDE_FILES:
        path.with_name(path.name + side).unlink(missing_ok=True)

"""The event log in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock
from time import monotonic
from typing import Any, Final

from eventsourcing.persistence import ConnectionPoolClosedError, PersistenceError

from mnemolog.domain.errors import CorruptStore, StoreClosed, StoreUnavailable
from mnemolog.domain.events import Draft, Receipt, Recorded
from mnemolog.infra.log.carrying import Stored
from mnemolog.infra.log.codec import Codec, Sealer
from mnemolog.infra.log.group import GroupCommit, Request
from mnemolog.infra.log.reading import Reader
from mnemolog.infra.log.recorder import Durability, HeadReader, LogDatastore, LogRecorder, SqliteStorage
from mnemolog.infra.log.storage import Row
from mnemolog.infra.log.verification import Progress
from mnemolog.infra.log.writer import Writer
from mnemolog.projections.ports import Clock, Page, SealedPage
from mnemolog.projections.private import made_private

POLL_SECONDS: Final = 0.05
"""How long a commit of another process may stay unseen by a waiting reader."""


class SqliteEventLog:
    """Implements `projections.ports.EventLog`. Thread-safe; other processes may append to the same file.

    durability: "full" returns after fsync; "os" trusts the operating system with the last moments before a
        power cut (a killed process loses nothing in either).
    Raises StoreUnavailable or CorruptStore when the file cannot be opened.
    """

    def __init__(
        self,
        path: str | Path,
        sealer: Sealer,
        clock: Clock,
        *,
        durability: Durability = "full",
        lock_timeout: int = 5,
    ) -> None:
        self.codec = Codec(sealer)
        # The library reads names that begin with "file:" as URIs.
        file = made_private(Path(path).absolute())
        self._datastore = LogDatastore(file, durability=durability, lock_timeout=lock_timeout)
        self._recorder = LogRecorder(self._datastore)
        with _typed_errors():
            self._recorder.create_table()
            self._storage = SqliteStorage(self._recorder)
            self._head = HeadReader(self._datastore, self._recorder)
        self._writer = Writer(self._storage, self.codec, clock)
        self._reader = Reader(self._recorder, self._reading, self.codec)
        self._group = GroupCommit(self._commit)
        self.stored = Stored(self._reader, self._writer, self._alone)
        self._doorbell = Condition(Lock())
        self._committed, self._closed, self._wakes = 0, False, 0
        self._callbacks: list[Callable[[int], None]] = []
        self._committed = self.head()

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """As the port says. Raises InvalidInput for what cannot be stored, StoreUnavailable, StoreClosed too."""
        prepared = [self.codec.prepare(draft) for draft in drafts]
        if not prepared:
            return []
        before = self._committed
        receipts = self._group.submit(Request(prepared))
        if self._committed > before:
            for callback in self._callbacks:
                callback(self._committed)
        return receipts

    def read(
        self, after: int, limit: int, *, topics: Collection[str] | None = None, bodies: bool = True
    ) -> Page:
        """As the port says. `Page.position` is the head when fewer than `limit` events were left."""
        return self._reader.read(after, limit, topics, bodies)

    def sealed(self, after: int, limit: int) -> SealedPage:
        """Up to `limit` events behind a position as they are stored, in order, and how far that is."""
        return self._reader.sealed(after, limit)

    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]:
        """As the port says."""
        return self._reader.read_at(positions, bodies)

    def by_key(self, key: str) -> Recorded | None:
        """The event that was appended under this stored key, without its body; None where there is none."""
        return self._reader.by_key(key)

    def read_stream(self, stream: str, *, after_version: int = 0, bodies: bool = True) -> list[Recorded]:
        """As the port says."""
        return self._reader.read_stream(stream, after_version, bodies)

    def decode(self, position: int, state: bytes) -> Recorded:
        """An event from what is stored of it, as `sealed` gives it; opened."""
        return self.codec.decode(position, state)

    def head(self) -> int:
        """As the port says; commits of other processes count."""
        self._check_open()
        with _typed_errors():
            return self._head.read()

    def wait(self, after: int, timeout: float) -> int:
        """As the port says. Woken by commits, `wake` and `close`; sees other processes within `POLL_SECONDS`."""
        deadline, wakes = monotonic() + timeout, self._wakes
        while True:
            head = self._committed if self._committed > after else self.head()
            with self._doorbell:
                remaining = deadline - monotonic()
                head = max(head, self._committed)
                if head > after or remaining <= 0 or self._wakes != wakes:
                    return head
                self._doorbell.wait(min(remaining, POLL_SECONDS))
                if self._closed:
                    return head

    def wake(self) -> None:
        """Let everybody who waits return now."""
        with self._doorbell:
            self._wakes += 1
            self._doorbell.notify_all()

    def look(self) -> tuple[int, int]:
        """The head, and a number that has grown whenever another process has committed since the last look."""
        head = self.head()
        return head, self._writer.foreign_up_to(head)

    def on_commit(self, callback: Callable[[int], None]) -> None:
        """Call `callback(head)` after each commit, in an appender's thread. It must be quick and not raise."""
        self._callbacks.append(callback)

    def leaves(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` pairs of position and leaf hash behind a position, in order."""
        return self._reader.leaves(after, limit)

    def put_mark(self, mark: str | None, *, closed: bool = False) -> None:
        """Note something about the log as a whole. closed: appends are refused from here on, whoever tries."""
        with self._alone(), _typed_errors():
            self._storage.put_mark(mark, closed=closed)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Nobody in this process appends inside the block; others are kept out by the directory's lock."""
        with self._alone():
            yield

    def verify(self, progress: Progress | None = None) -> int:
        """Recompute every leaf and check every number; how many events are right. Raises CorruptStore.

        progress: called with (events checked, events in all) now and then.
        """
        return self._reader.verify(progress)

    def checkpoint(self) -> bool:
        """Empty the WAL into the file, so that nothing old stays in it. False when a reader was in the way."""
        with self._alone():
            return self._storage.checkpoint()

    def stats(self) -> dict[str, int]:
        """Counters since opening, as `writer.Counters`; and the last position that this process committed."""
        return {**self._writer.counters.as_dict(), "position": self._committed}

    def close(self) -> None:
        """Let the running commit finish, then release the file. Idempotent; later calls raise StoreClosed."""
        with self._group.exclusive():
            if self._closed:
                return
            self._closed = True
            self._storage.close()
        self.wake()
        self._head.close()
        self._datastore.close()

    def __enter__(self) -> SqliteEventLog:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _commit(self, requests: Sequence[Request]) -> None:
        self._check_open()
        position = self._writer.commit(requests)
        with self._doorbell:
            self._committed = position
            self._doorbell.notify_all()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        self._check_open()
        with _typed_errors(), self._datastore.reading() as cursor:
            yield cursor

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._group.exclusive():
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the log was closed: open it anew")


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except ConnectionPoolClosedError:
        raise StoreClosed("the log was closed: open it anew") from None
    except (sqlite3.OperationalError, PersistenceError) as error:
        raise StoreUnavailable(
            f"the log cannot be read now ({error}): see to the disk or who locks it, then retry"
        ) from error
    except sqlite3.DatabaseError as error:
        raise CorruptStore(f"the log is damaged ({error}): verify the store") from error

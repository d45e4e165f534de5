"""The event log in PostgreSQL, for many processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
from eventsourcing.persistence import PersistenceError
from psycopg import Cursor

from mnemolog.domain.errors import StoreClosed
from mnemolog.domain.events import Draft, Receipt, Recorded
from mnemolog.infra.log.carrying import Stored
from mnemolog.infra.log.codec import Codec, Sealer
from mnemolog.infra.log.group import GroupCommit, Request
from mnemolog.infra.log.reading import Reader
from mnemolog.infra.log.recorder import Durability
from mnemolog.infra.log.storage import Row
from mnemolog.infra.log.verification import Progress
from mnemolog.infra.log.writer import Writer
from mnemolog.infra.postgres.connecting import connect, parameters, schema_name, typed
from mnemolog.infra.postgres.doorbell import Doorbell
from mnemolog.infra.postgres.recorder import LogDatastore, LogRecorder
from mnemolog.infra.postgres.storage import PostgresStorage
from mnemolog.projections.ports import Clock, Page, SealedPage


class PostgresEventLog:
    """Implements `projections.ports.EventLog`. Thread-safe; any number of processes may append.

    url: `postgresql://user:password@host:port/database`, with any parameter of libpq.
    schema: where its table is, made if missing.
    durability: "full" returns after the server's fsync; "os" trusts the server with the last moments before a crash
        of it (`synchronous_commit=off`), which may then take what was acknowledged and even read.
    lock_timeout: seconds to wait for another writer's transaction. idle_seconds: after so long a writer that stopped
        in the middle of one loses it. pool_timeout: seconds to wait for a connection to read on.
    Raises InvalidInput for a bad url, StoreUnavailable when the server cannot be reached or refuses.
    """

    def __init__(
        self,
        url: str,
        sealer: Sealer,
        clock: Clock,
        *,
        schema: str = "mnemolog",
        durability: Durability = "full",
        lock_timeout: int = 5,
        idle_seconds: float = 5.0,
        pool_timeout: float = 30.0,
    ) -> None:
        self.codec = Codec(sealer)
        self._datastore = LogDatastore(
            url, schema=schema, lock_timeout=lock_timeout, pool_timeout=pool_timeout
        )
        self._recorder = LogRecorder(self._datastore)
        self._storage = PostgresStorage(self._recorder, durability=durability, idle_seconds=idle_seconds)
        self._writer = Writer(self._storage, self.codec, clock)
        self._reader = Reader(self._recorder, self._reading, self.codec)
        self._group = GroupCommit(self._commit)
        self.stored = Stored(self._reader, self._writer, self._alone)
        self._bell = Doorbell(self._datastore.parameters, self._recorder.channel_name, self.head)
        self._committed, self._closed = 0, False
        self._callbacks: list[Callable[[int], None]] = []
        try:
            with self._typed_errors():
                self._recorder.create_table()
            self._committed = self.head()
        except BaseException:
            self.close()
            raise

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
        return self._reader.head()

    def wait(self, after: int, timeout: float) -> int:
        """As the port says. Woken by commits of any process, `wake` and `close`; looks for itself now and then."""
        deadline, wakes = monotonic() + timeout, self._bell.wakes
        while True:
            heard = self._bell.position
            head = heard if heard > after else self.head()
            remaining = deadline - monotonic()
            if head > after or remaining <= 0 or self._bell.wakes != wakes:
                return head
            self._bell.wait(after, remaining, wakes)
            if self._closed:
                return max(head, self._bell.position)

    def wake(self) -> None:
        """Let everybody who waits return now."""
        self._bell.wake()

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
        self._check_open()
        with self._typed_errors(), self._datastore.transaction(commit=True) as cursor:
            self._recorder.put_mark(cursor, mark, closed=closed)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Nobody, in whatever process, appends inside the block: they wait, and give up with StoreUnavailable.

        Raises StoreUnavailable at its end where the server may have let somebody in, as after a restart.
        """
        parameters, session = self._datastore.parameters, self._datastore.session
        with self._typed_errors(), connect(parameters, session) as conn, conn.cursor() as cursor:
            self._recorder.freeze(cursor)
            yield
            cursor.execute("SELECT 1")

    def verify(self, progress: Progress | None = None) -> int:
        """Recompute every leaf and check every number; how many events are right. Raises CorruptStore.

        progress: called with (events checked, events in all) now and then.
        """
        return self._reader.verify(progress)

    def checkpoint(self) -> bool:
        """Nothing to do: rows of the log are never changed or deleted, and the server's WAL holds its ciphertext."""
        self._check_open()
        return True

    def stats(self) -> dict[str, int]:
        """Counters since opening, as `writer.Counters`; and the last position that this process committed."""
        return {**self._writer.counters.as_dict(), "position": self._committed}

    def close(self) -> None:
        """Let the running commit finish, then end all connections. Idempotent; later calls raise StoreClosed."""
        with self._group.exclusive():
            if self._closed:
                return
            self._closed = True
            self._storage.close()
        self._bell.close()
        self._datastore.close()

    def __enter__(self) -> PostgresEventLog:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _commit(self, requests: Sequence[Request]) -> None:
        self._check_open()
        self._committed = self._writer.commit(requests)
        self._bell.ring(self._committed)

    @contextmanager
    def _reading(self) -> Iterator[Cursor[Any]]:
        self._check_open()
        with self._typed_errors(), self._datastore.reading() as cursor:
            yield cursor

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, PersistenceError) as error:
            self._check_open()
            self._datastore.forget_idle()
            raise typed(error) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._group.exclusive():
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the log was closed: open it anew") from None


def has_events(url: str, schema: str) -> bool:
    """Whether this database holds a log with an event in it. Raises InvalidInput, StoreUnavailable."""
    try:
        with connect(parameters(url), {}) as sql:
            table = f"{schema_name(schema)}.stored_events"
            if sql.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
                return False
            return sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
    except psycopg.Error as error:
        raise typed(error) from error

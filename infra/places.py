"""What is kept beside a log, in the same store: how far its readers are, and which erasures are not finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.settings import Settings
from mnemolog.projections.private import made_private

FILE = "places.db"


class DatabasePlaces:
    """Implements `consumers.relay.Places` in a SQLite file or a PostgreSQL schema; made if it is not there."""

    def __init__(
        self, path: Path | None = None, *, connect: Callable[[], Any] | None = None, schema: str = ""
    ):
        if connect is None:
            assert path is not None
            self._engine = create_engine(f"sqlite:///{made_private(path)}")
            event.listen(self._engine, "connect", _durable)
        else:
            self._engine = create_engine("postgresql+psycopg://", creator=connect, pool_pre_ping=True)
        self._table = Table(
            "places",
            MetaData(schema=schema or None),
            Column("name", String, primary_key=True),
            Column("place", LargeBinary, nullable=False),
        )
        try:
            with self._begun() as conn:
                self._table.create(conn, checkfirst=True)
        except (StoreUnavailable, IntegrityError):
            if not self._is_there():  # else another process made it at this moment
                raise

    def load(self, name: str) -> bytes | None:
        """Raises StoreUnavailable."""
        with self._begun() as conn:
            found = conn.execute(select(self._table.c.place).where(self._table.c.name == name)).scalar()
        return None if found is None else bytes(found)

    def all(self) -> dict[str, bytes]:
        """Every place by its name. Raises StoreUnavailable."""
        with self._begun() as conn:
            return {name: bytes(place) for name, place in conn.execute(select(self._table))}

    def save(self, name: str, before: bytes | None, now: bytes) -> bool:
        """As the port says. Raises StoreUnavailable."""
        table = self._table
        try:
            with self._begun() as conn:
                if before is None:
                    conn.execute(insert(table).values(name=name, place=now))
                    return True
                was = (table.c.name == name) & (table.c.place == before)
                return bool(conn.execute(update(table).where(was).values(place=now)).rowcount)
        except IntegrityError:
            return False

    def remove(self, name: str) -> None:
        """Nothing happens where it is not there. Raises StoreUnavailable."""
        with self._begun() as conn:
            conn.execute(delete(self._table).where(self._table.c.name == name))

    def close(self) -> None:
        self._engine.dispose()

    def _is_there(self) -> bool:
        with self._begun() as conn:
            return inspect(conn).has_table(self._table.name, schema=self._table.schema)

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as conn:
                yield conn
        except IntegrityError:
            raise
        except DBAPIError as error:
            said = str(error.orig).partition("\n")[0]
            raise StoreUnavailable(
                f"the place of a reader cannot be kept now ({said}): see to the disk or the database, then retry"
            ) from error


@contextmanager
def opened_places(settings: Settings) -> Iterator[DatabasePlaces]:
    """Those of the log that these settings name."""
    url = settings.database_url
    if url is None:
        places = DatabasePlaces(settings.data / FILE)
    else:
        connect = _connecting(url.get_secret_value())
        places = DatabasePlaces(connect=connect, schema=settings.database_schema)
    try:
        yield places
    finally:
        places.close()


def _connecting(url: str) -> Callable[[], Any]:
    import psycopg

    from mnemolog.infra.postgres.connecting import parameters

    options = parameters(url)
    return lambda: psycopg.connect(**options)


def _durable(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=5000")

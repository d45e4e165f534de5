"""Where readers of the log keep how far they are: one row each, changed by compare-and-set."""

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
    event,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from mnemolog.domain.errors import StoreUnavailable
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
        with self._begun() as conn:
            self._table.create(conn, checkfirst=True)

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

    def close(self) -> None:
        self._engine.dispose()

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


def _durable(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=5000")

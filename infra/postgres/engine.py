"""The pool of connections under the views."""

from __future__ import annotations

from typing import Any, cast

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, create_engine, event

from mnemolog.infra.postgres.bulk import copy_rows
from mnemolog.infra.postgres.connecting import connect
from mnemolog.infra.postgres.privileges import Roles
from mnemolog.infra.postgres.walls import SETTING
from mnemolog.projections.bulk import BULK_INSERT
from mnemolog.projections.confining import CONFINE


def driver_of(conn: Connection) -> psycopg.Connection[Any]:
    """The connection of psycopg below."""
    return cast("psycopg.Connection[Any]", conn.connection.driver_connection)


def _confined(conn: Connection, role: str, tenant: str | None) -> None:
    """Step down to the role that sees one tenant, or back up, until the transaction ends."""
    driver_of(conn).execute(
        "SELECT set_config('role', %s, true), set_config(%s, %s, true)",
        ("none" if tenant is None else role, SETTING, tenant or ""),
    )


def view_engine(settings: dict[str, Any], session: dict[str, str], schema: str) -> Engine:
    """schema: of the views; roles go by its name."""
    reader = Roles.of(schema.removesuffix("_views")).reader
    # We begin transactions ourselves, in the same round trip as the locks.
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: connect(settings, session), pool_size=4, max_overflow=28
    )

    @event.listens_for(engine, "connect")
    def prepare(driver: Any, record: Any) -> None:
        record.info[BULK_INSERT] = copy_rows
        # Where the roles were not set up in this database, or this one is not to step down, there is no second wall.
        may = driver.execute(
            "SELECT pg_has_role(oid, 'MEMBER') AND has_schema_privilege(oid, %s, 'USAGE') FROM pg_roles "
            "WHERE rolname = %s",
            (schema, reader),
        ).fetchone()
        if may == (True,):
            record.info[CONFINE] = lambda conn, tenant: _confined(conn, reader, tenant)

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def unlogged(_: Any, __: Any, statement: str, values: Any, ___: Any, ____: Any) -> tuple[str, Any]:
        if statement.lstrip().startswith("CREATE TABLE"):
            statement = statement.replace("CREATE TABLE", "CREATE UNLOGGED TABLE", 1)
        return statement, values

    @event.listens_for(engine, "reset")
    def reset(connection: Any, _: Any, __: Any) -> None:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()

    return engine

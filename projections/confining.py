"""A read that concerns one tenant asks the database to hold everybody else's rows back, where it can do that."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

CONFINE: Final = "mnemolog.confine"
"""In the `info` of a connection: what does it, called with the connection and a tenant's id, or None for all."""


def confine(conn: Connection, tenant: str | None) -> None:
    """From here to the end of the transaction only rows of this tenant are seen; None: of all again."""
    hook = conn.info.get(CONFINE)
    if hook is not None:
        hook(conn, tenant)

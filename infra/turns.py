"""Turns among machines: where several share a log, what one of them does at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from mnemolog.infra.settings import Settings


def among_machines(settings: Settings, name: str, patience: float) -> AbstractContextManager[None]:
    """No other machine with this log is inside, by the name. A log in files is on one machine.

    patience: seconds to wait for another one. Raises StoreInUse then, StoreUnavailable where the database is away.
    """
    if settings.database_url is None:
        return nullcontext()
    from mnemolog.infra.postgres.connecting import turn

    url, schema = settings.database_url.get_secret_value(), settings.database_schema
    return turn(url, f"{schema}/{name}", patience, needed=False)

"""Connections to PostgreSQL: their settings, texts with NUL, and our errors for the driver's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from zlib import crc32

import psycopg
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.types.string import StrBinaryDumper, StrDumper, StrDumperUnknown

from mnemolog.domain.errors import (
    CorruptStore,
    InvalidInput,
    MnemologError,
    StoreMoved,
    StoreUnavailable,
)

_DEFAULTS: Final = {
    "connect_timeout": 10,
    "application_name": "mnemolog",
    # A peer that vanished without a word is noticed within a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
CLOSED: Final = "MN001"
"""The state of the error by which the log refuses appends because it was moved."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,40}\Z")
_NUL, _ESCAPE, _ESCAPE_BYTES = "\x00", "\ue000", "\ue000".encode()
"""PostgreSQL stores no NUL. It travels as U+E000 '0', and U+E000 itself, for private use, as U+E000 '1'."""


def parameters(url: str) -> dict[str, Any]:
    """The parameters of a connection url (or key=value text), with ours where it says nothing.

    Raises InvalidInput, without the url, which may hold a password.
    """
    try:
        return {**_DEFAULTS, **conninfo_to_dict(url)}
    except psycopg.ProgrammingError:
        raise InvalidInput("not a PostgreSQL url: use postgresql://user@host:port/database") from None


def shown(url: str) -> str:
    """Where a url leads, without who goes there: no user, no password."""
    found = parameters(url)
    host, port = found.get("host") or "local", found.get("port") or "5432"
    return f"postgresql://{host}:{port}/{found.get('dbname') or ''}"


def schema_name(name: str) -> str:
    """The name, if it can be one of a schema without quotes. Raises InvalidInput."""
    if not _NAME.match(name):
        raise InvalidInput(f"a schema is named by up to 41 lower-case letters, digits and _, not {name!r}")
    return name


def connect(settings: dict[str, Any], session: dict[str, str]) -> Connection[Any]:
    """A configured connection, or none left open."""
    conn: Connection[Any] = psycopg.connect(**settings)
    try:
        configure(conn, session)
    except BaseException:
        conn.close()
        raise
    return conn


def configure(conn: Connection[Any], settings: dict[str, str]) -> None:
    """Autocommit, text with NUL, and the settings of the session."""
    conn.autocommit = True
    adapt_text(conn)
    settings = {"default_transaction_isolation": "read committed", **settings}
    conn.execute(
        "SELECT " + ",".join(["set_config(%s, %s, false)"] * len(settings)),
        [word for setting in settings.items() for word in setting],
    )


@contextmanager
def turn(url: str, name: str, patience: float = 60.0) -> Iterator[None]:
    """Only one process is inside, by the name. Raises StoreUnavailable after `patience` seconds."""
    try:
        with connect(parameters(url), {"lock_timeout": f"{int(patience * 1000)}ms"}) as conn:
            conn.execute("SELECT pg_advisory_lock(%s, 2)", (crc32(name.encode()) - (1 << 31),))
            yield
    except psycopg.Error as error:
        raise typed(error, "another process does not get done, or the database is away") from error


def adapt_text(conn: Connection[Any]) -> None:
    """Let texts with NUL through."""
    for dumper in (_Text, _BinaryText, _UnknownText):
        conn.adapters.register_dumper(str, dumper)
    for name in ("text", "varchar"):
        conn.adapters.register_loader(name, _TextLoader)
        conn.adapters.register_loader(name, _BinaryTextLoader)


def typed(error: Exception, what: str = "the log cannot be read") -> MnemologError:
    """Our error for one of the driver or of the pool. Raises nothing; never holds a value that was written."""
    state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None) or ""
    if state == CLOSED:
        return StoreMoved("this memory was moved: open it where it is now")
    # Class 42: no such table, not allowed; class XX: damaged.
    if state[:2] == "XX":
        return CorruptStore(f"{what}, it is damaged ({state}): verify the store")
    if state[:2] == "42":
        return StoreUnavailable(f"{what} ({state}): check schema and privileges")
    said = str(error).partition("\n")[0]
    return StoreUnavailable(
        f"{what} now ({said}): see that PostgreSQL runs there and has room, then retry with the same key"
    )


def _escaped(text: str) -> str:
    if _NUL in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ESCAPE + "1").replace(_NUL, _ESCAPE + "0")
    return text


class _Text(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escaped(obj))


class _UnknownText(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escaped(obj))


class _BinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escaped(obj))


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        text = raw.decode()
        if _ESCAPE_BYTES in raw:
            return text.replace(_ESCAPE + "0", _NUL).replace(_ESCAPE + "1", _ESCAPE)
        return text


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY

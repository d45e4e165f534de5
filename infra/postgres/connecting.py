"""Connections to PostgreSQL: their settings, texts with NUL, and our errors for the driver's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final
from zlib import crc32

import psycopg
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.types.string import StrBinaryDumper, StrDumper, StrDumperUnknown

from mnemolog.domain.errors import (
    CorruptStore,
    InvalidInput,
    MnemologError,
    StoreInUse,
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
_AWAY: Final = (
    "check that PostgreSQL runs and lets you in, and the url (MNEMOLOG_DATABASE_URL, MNEMOLOG_VIEWS_URL, "
    "MNEMOLOG_KEYS_URL)"
)
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
def turn(url: str, name: str, patience: float = 60.0, *, needed: bool = True) -> Iterator[None]:
    """Only one process is inside, by the name.

    patience: seconds to wait for another one. needed: whether it matters that nobody else came in until the end.
    Raises StoreInUse where another process does not get done, StoreUnavailable where the database is away; also at
    the end, where the lock was lost with its connection: somebody else may have been inside as well.
    """
    place = crc32(name.encode()) - (1 << 31), 2
    try:
        conn = connect(parameters(url), {"lock_timeout": f"{max(1, int(patience * 1000))}ms"})
    except psycopg.Error as error:
        raise typed(error, "no turn can be taken") from error
    with closing(conn):
        try:
            conn.execute("SELECT pg_advisory_lock(%s, %s)", place)
        except psycopg.errors.LockNotAvailable:
            raise StoreInUse("another process does not get done: retry when it has finished") from None
        except psycopg.Error as error:
            raise typed(error, "no turn can be taken") from error
        yield
        if needed:
            _check_held(conn, place)


def _check_held(conn: Connection[Any], place: tuple[int, int]) -> None:
    """Let go of a lock of this session. Raises StoreUnavailable where it was not held any more."""
    try:
        held = conn.execute("SELECT pg_advisory_unlock(%s, %s)", place).fetchone() == (True,)
    except psycopg.Error:
        held = False
    if not held:
        raise StoreUnavailable("the connection was lost, and with it the turn: repeat the call")


def adapt_text(conn: Connection[Any]) -> None:
    """Let texts with NUL through."""
    for dumper in (_Text, _BinaryText, _UnknownText):
        conn.adapters.register_dumper(str, dumper)
    for name in ("text", "varchar"):
        conn.adapters.register_loader(name, _TextLoader)
        conn.adapters.register_loader(name, _BinaryTextLoader)


def let_text_be(adapters: AdaptersMap) -> None:
    """Texts go as they are, in a third of the time: for who passes rows through `escaped` beforehand."""
    adapters.register_dumper(str, StrBinaryDumper)


def escaped(row: Sequence[Any]) -> list[Any]:
    """The same values; texts as they can be stored."""
    return [_escaped(value) if isinstance(value, str) else value for value in row]


def must_be_escaped(texts: Iterable[str | None]) -> bool:
    """Whether one of them cannot be stored as it is. All at once, since hardly one ever is."""
    together = "".join(filter(None, texts))
    return _NUL in together or _ESCAPE in together


def is_gone(error: BaseException | None) -> bool:
    """Whether there is no connection, or none any more."""
    # 08: connection exceptions; 57P: the server is told to stop, or starts; what it never heard of has no state.
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "")[:3] in ("", "080", "57P")


def typed(error: BaseException, what: str = "the log cannot be read") -> MnemologError:
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
    if is_gone(error) or is_gone(error.__cause__):
        return StoreUnavailable(f"{what} now ({said}): {_AWAY}, then retry with the same key")
    return StoreUnavailable(f"{what} now ({said}): free it, then retry with the same key")


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

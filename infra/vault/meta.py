"""What every key store keeps beside its rows: its format, its numbers, and its own keys under the root key."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from mnemolog.domain.errors import CorruptStore, KeysMissing
from mnemolog.infra.vault.rootkey import RootKeyProvider
from mnemolog.infra.vault.wrapping import Wrapping, fingerprint

FORMAT: Final = 1


class KeyConnection(Protocol):
    """A connection inside a transaction. Statements have `?` for values, as SQLite's."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """A cursor that can be iterated and fetched from."""

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        """The same statement for each row."""


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """What the root key opens first; read again whenever the root key was rotated."""

    wrapping: Wrapping
    directory: bytes
    fences: bytes


class KeyDatabase(Protocol):
    """Where the rows of a key store are."""

    @property
    def path(self) -> Path:
        """The file; for a server a name below no folder of this machine."""

    @property
    def copies(self) -> str:
        """Where wrapped bytes stay that were deleted here, until the root key is rotated; empty for nowhere."""

    @property
    def root(self) -> RootKeyProvider: ...

    @property
    def keys(self) -> StoreKeys: ...

    def read(self) -> AbstractContextManager[KeyConnection]:
        """A snapshot of the store."""

    def write(self) -> AbstractContextManager[KeyConnection]:
        """A transaction that is durable when the block ends, or did not happen. One at a time."""

    def destroy(self) -> AbstractContextManager[tuple[KeyConnection, list[bytes]]]:
        """A write that destroys: the block adds to the list which stored secrets it deleted."""

    def generation(self) -> int:
        """A number that grows with every destruction, in this process or another; cheap to ask."""

    def rekey(self, connection: KeyConnection, root: bytes) -> StoreKeys:
        """Put the store's own secrets under another root key; the caller re-wraps every row with the result."""

    def settle(self, connection: KeyConnection) -> None:
        """Finish a rotation that was cut off; only inside `write`."""

    def close(self) -> None:
        """Idempotent."""

    def abandon(self) -> None:
        """In a forked child: let go of what belongs to the parent."""


def get_meta(connection: KeyConnection, name: str) -> bytes:
    """Raises CorruptStore when the entry is not there."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise CorruptStore(f"the key store lacks its entry {name!r}: restore it from a backup")
    return bytes(row[0])


def put_meta(connection: KeyConnection, name: str, value: bytes) -> None:
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def get_number(connection: KeyConnection, name: str) -> int:
    return int.from_bytes(get_meta(connection, name), "big")


def put_number(connection: KeyConnection, name: str, value: int) -> None:
    put_meta(connection, name, value.to_bytes(8, "big"))


def put_first_meta(connection: KeyConnection, root: bytes, *, fences: bytes | None = None) -> StoreKeys:
    """Fill the meta rows of an empty store; its keys. fences: the key of fences that are taken over."""
    store_id = secrets.token_bytes(16)
    put_number(connection, "format", FORMAT)
    put_meta(connection, "store", store_id)
    put_number(connection, "next_leaf", 0)
    put_number(connection, "generation", 0)
    put_number(connection, "unscrubbed", 0)
    keys = StoreKeys(Wrapping(root, store_id), secrets.token_bytes(32), fences or secrets.token_bytes(32))
    _put_store_keys(connection, keys)
    return keys


def _put_store_keys(connection: KeyConnection, keys: StoreKeys) -> None:
    put_meta(connection, "root", keys.wrapping.fingerprint)
    put_meta(connection, "directory_key", keys.wrapping.wrap("meta:directory", keys.directory))
    put_meta(connection, "fence_key", keys.wrapping.wrap("meta:fences", keys.fences))


def load_store_keys(connection: KeyConnection, root: RootKeyProvider) -> StoreKeys:
    """Raises KeysMissing where the root key is another store's."""
    wrapping = Wrapping(_find_root(connection, root), get_meta(connection, "store"))
    return StoreKeys(
        wrapping,
        wrapping.unwrap("meta:directory", get_meta(connection, "directory_key")),
        wrapping.unwrap("meta:fences", get_meta(connection, "fence_key")),
    )


def _find_root(connection: KeyConnection, root: RootKeyProvider) -> bytes:
    """The current key or, when a rotation was cut off between commit and settling, the staged one."""
    wanted, store_id = get_meta(connection, "root"), get_meta(connection, "store")
    staged = root.staged()
    if staged is not None and fingerprint(staged, store_id) == wanted:
        return staged
    current = root.fetch()
    if fingerprint(current, store_id) != wanted:
        raise KeysMissing(
            f"this root key ({root.kind}) does not open the key store: provide the one that does"
        )
    return current


def rekey(connection: KeyConnection, known: StoreKeys, root: bytes) -> StoreKeys:
    """Put the store's own secrets under another root key."""
    wrapping = Wrapping(root, get_meta(connection, "store"))
    # A new directory key, so that not even the lookups in a stale copy can be tested for known names.
    keys = StoreKeys(wrapping, secrets.token_bytes(32), known.fences)
    _put_store_keys(connection, keys)
    return keys


def settle(connection: KeyConnection, root: RootKeyProvider) -> None:
    """The store's fingerprint says which root key counts."""
    if root.staged() is not None:
        root.settle(_find_root(connection, root))

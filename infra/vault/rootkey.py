"""Where the root key lives: the one secret that opens the key store.

A provider is asked for the key, and helps to change it without a moment at which a crash would lock the store:
the new key is staged beside the old one, the store commits to it, then the provider settles on it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
from pathlib import Path
from typing import Final, Protocol

from mnemolog.domain.errors import InvalidInput, KeysMissing

ROOT_KEY_BYTES: Final = 32
_DRAFT: Final = ".draft-"


class RootKeyProvider(Protocol):
    """The port of a root key; a key management service can implement it."""

    @property
    def kind(self) -> str:
        """The sort of place, for status: "file", "environment", ..."""

    def fetch(self) -> bytes:
        """The 32-byte key. Raises KeysMissing."""

    def create(self) -> bytes:
        """Make the first key, durably, and return it; where one cannot be made, `fetch` it."""

    def staged(self) -> bytes | None:
        """The key that a rotation prepared and has not settled on, if any."""

    def stage(self, new: bytes) -> None:
        """Keep `new` durably beside the current key, replacing one that was staged before."""

    def settle(self, current: bytes) -> None:
        """Make `current`, which is the fetched or the staged key, the only one. May be repeated."""

    def warnings(self, data_dir: Path) -> tuple[str, ...]:
        """What an operator should know about this place."""


def generate_root_key() -> bytes:
    """A fresh random root key."""
    return secrets.token_bytes(ROOT_KEY_BYTES)


def encode_root_key(key: bytes) -> str:
    """The text form (base64) that files and environment variables hold."""
    return base64.b64encode(key).decode()


def decode_root_key(text: str | bytes) -> bytes:
    """The inverse of `encode_root_key`. Raises InvalidInput."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != ROOT_KEY_BYTES:
        raise InvalidInput("a root key is 32 bytes in base64: make one with `openssl rand -base64 32`")
    return key


class EnvironmentRootKey:
    """A root key handed over as a value, mostly from an environment variable.

    Rotation needs the new value from the caller, who must also set the variable before the next start.
    """

    kind = "environment"

    def __init__(self, value: str | None, variable: str = "MNEMOLOG_ROOT_KEY") -> None:
        self._variable = variable
        self._key = decode_root_key(value) if value else None
        self._staged: bytes | None = None

    def fetch(self) -> bytes:
        if self._key is None:
            raise KeysMissing(f"{self._variable} is not set: set it to the root key of this store")
        return self._key

    def create(self) -> bytes:
        return self.fetch()

    def staged(self) -> bytes | None:
        return self._staged

    def stage(self, new: bytes) -> None:
        self._staged = new

    def settle(self, current: bytes) -> None:
        self._key, self._staged = current, None

    def warnings(self, data_dir: Path) -> tuple[str, ...]:
        return ()


class FileRootKey:
    """A root key in a file of its own that only its owner may read."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next = path.with_name(path.name + ".next")

    def fetch(self) -> bytes:
        try:
            key = _read(self.path)
        except PermissionError:
            raise KeysMissing(f"the root key in {self.path} is not readable: run as its owner") from None
        if key is None:
            raise KeysMissing(f"no root key in {self.path}: restore the file, or set MNEMOLOG_ROOT_KEY_FILE")
        return key

    def create(self) -> bytes:
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._install(generate_root_key(), self.path, replace=False)
        return self.fetch()

    def staged(self) -> bytes | None:
        return _read(self._next)

    def stage(self, new: bytes) -> None:
        self._install(new, self._next, replace=True)

    def settle(self, current: bytes) -> None:
        if _read(self.path) == current:
            _shred(self._next)
            self._next.unlink(missing_ok=True)
        else:
            _shred(self.path)
            os.replace(self._next, self.path)
        self._drop_drafts()
        sync_directory(self.path.parent)

    def warnings(self, data_dir: Path) -> tuple[str, ...]:
        found = []
        if self.loose_permissions:
            found.append(f"others may read the root key: chmod 600 {self.path}")
        if self.inside(data_dir):
            found.append(
                "the root key lies in the data directory: whoever copies the directory can read it all"
            )
        return tuple(found)

    @property
    def loose_permissions(self) -> bool:
        """Whether anyone but the owner has a right to the file."""
        return self.path.exists() and bool(self.path.stat().st_mode & 0o077)

    def inside(self, data_dir: Path) -> bool:
        """Whether a copy of the data directory would carry the key along."""
        return self.path.resolve().is_relative_to(data_dir.resolve())

    def _install(self, key: bytes, target: Path, *, replace: bool) -> None:
        """Write whole and synced under another name first: `target` is never seen half-written."""
        draft = target.with_name(f"{self.path.name}{_DRAFT}{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            _write(file.fileno(), encode_root_key(key).encode() + b"\n")
        if replace:
            os.replace(draft, target)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(draft, target)
            draft.unlink()
        sync_directory(target.parent)

    def _drop_drafts(self) -> None:
        # Only unlinked, never overwritten: a draft may be a second name of the key's own file.
        for path in self.path.parent.iterdir():
            if path.name.startswith(self.path.name + _DRAFT):
                path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make created, renamed and removed names of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes | None:
    try:
        return decode_root_key(path.read_bytes())
    except (FileNotFoundError, InvalidInput):
        return None


def _shred(path: Path) -> None:
    """Overwrite in place before the name goes; copy-on-write media may still keep the old block."""
    if path.exists():
        with path.open("r+b") as file:
            _write(file.fileno(), bytes(path.stat().st_size))


def _write(descriptor: int, data: bytes) -> None:
    os.write(descriptor, data)
    os.fsync(descriptor)

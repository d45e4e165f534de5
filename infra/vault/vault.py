"""The vault: seals what is written, opens what is read, and forgets what must be forgotten."""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mnemolog.domain.errors import CorruptStore, ErasedScope, InvalidInput
from mnemolog.domain.scope import ANY, Scope, ScopeIds
from mnemolog.infra.vault.rootkey import RootKeyProvider, generate_root_key
from mnemolog.infra.vault.store import BLOCK, KeyStore
from mnemolog.infra.vault.subjects import Subject
from mnemolog.infra.vault.wrapping import NONCE_BYTES

SEAL_OVERHEAD: Final = NONCE_BYTES + 16
"""How many bytes longer a sealed text is than its plaintext."""

_FIRST_BLOCK: Final = 1 << 16
_RUN: Final = 64
"""How many leaf numbers a subject takes at once."""
_CACHED_SUBJECTS: Final = 4_096
_CACHED_SCOPES: Final = 1 << 16
_NEVER: Final = -1
_NOTHING: Final = iter(())

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class VaultStatus:
    """The state of the keys, for operators; holds no secret and no name."""

    root_key: str
    warnings: tuple[str, ...]
    subjects: int
    nodes: int
    names: int
    next_leaf: int
    fences: int
    refusals: int


class Vault:
    """Thread-safe. After a fork only the parent can use it: the child gets StoreClosed and opens its own.

    When other processes share the key store, call `refresh` before a batch to learn what they destroyed.
    """

    def __init__(self, store: KeyStore, *, block: int = BLOCK) -> None:
        self._store = store
        self._block, self._next_block = block, min(block, _FIRST_BLOCK)
        # Each leaf key is meant for one message. The nonce still never repeats in a process and starts at
        # random, because a key store restored from an old backup hands out leaf numbers a second time.
        self._nonces = count(secrets.randbits(8 * NONCE_BYTES - 1))
        self._reset_locks()
        self._leaves = range(0)
        self._fences: Mapping[bytes, int] = {}
        self._forget()
        self.refresh()
        _vaults.add(self)

    def resolve(self, scope: Scope, *, create: bool) -> ScopeIds | None:
        """Random ids for the external names of a scope; None when one is unknown and not to be created."""
        ids = self._scopes.get(scope)
        return ids if ids is not None else self._resolve(scope, create)

    def knows(self, scope: Scope) -> bool:
        """Whether the ids of this scope are at hand."""
        return scope in self._scopes

    def introduce(self, scopes: Collection[Scope]) -> None:
        """Make the ids of several scopes in one commit."""
        with self._lock:
            for scope, ids in self._store.introduce(scopes).items():
                _remember(self._scopes, scope, ids, _CACHED_SCOPES)

    def names(self, ids: ScopeIds) -> Scope:
        """External names for display; an id whose name is gone stands for itself."""
        return Scope(**{level: rid if rid == ANY else self.name(rid) or rid for level, rid in ids.present()})

    def name(self, rid: str) -> str | None:
        """The external name behind a random id, None when it is gone."""
        return self._store.name(rid)

    def place(self, rid: str) -> ScopeIds | None:
        """The ids of the levels that a session is one within, None when its name is gone."""
        return self._store.place(rid)

    def subject_id(self, tenant: str, external: str, *, create: bool) -> str | None:
        """The random id of a person named by the writer, in a tenant given by its random id."""
        return self._store.subject_id(tenant, external, create=create)

    def sessions(self, rid: str) -> tuple[str, ...]:
        """The random ids of a user's (or a tenant's) sessions that the directory knows."""
        return self._store.sessions(rid)

    def next_leaf(self, subject: str = "") -> int:
        """A leaf number that was never used and never will be again, after a crash neither.

        `subject` is who will seal with it: numbers in a row share most of their path in its tree.
        """
        number = next(self._runs.get(subject, _NOTHING), None)
        return number if number is not None else self._start_run(subject)

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
        """Seal one message under a fresh leaf of all its subjects; `SEAL_OVERHEAD` bytes longer.

        Raises ErasedScope when one of the subjects, or the leaf, was destroyed.
        """
        return self._encrypt(self._require(self._key(subjects, leaf)), plaintext, aad)

    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None:
        """The plaintext, or None when a key was destroyed. Raises CorruptStore when it was changed."""
        key = self._key(subjects, leaf)
        return None if key is None else _decrypt(key, ciphertext, aad)

    def seal_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, data: bytes, aad: bytes
    ) -> bytes:
        """Seal chunk `index` of `total` of one large body; all chunks share a leaf, each has a key of its own."""
        key = self._require(self._key(subjects, leaf))
        return self._encrypt(_chunk_key(key, index, total), data, aad)

    def open_chunk(
        self, subjects: Sequence[str], leaf: int, index: int, total: int, ciphertext: bytes, aad: bytes
    ) -> bytes | None:
        """As `open`; a chunk at another place, or of a body of another length, does not open."""
        key = self._key(subjects, leaf)
        return None if key is None else _decrypt(_chunk_key(key, index, total), ciphertext, aad)

    def keyed_hash(self, subject: str, purpose: bytes, data: bytes, size: int = 16) -> bytes:
        """A hash that nobody can test guesses against once the subject is destroyed.

        `purpose` (at most 16 bytes) separates uses. Raises ErasedScope when the subject is gone.
        """
        found = self._subjects.get(subject)
        if found is None:
            with self._lock:
                found = self._subject(subject)
        if found is None:
            raise ErasedScope("the subject of this hash was erased")
        return blake2b(data, key=found.hash_key, person=purpose, digest_size=size).digest()

    def destroy_leaves(self, leaves: Mapping[str, Iterable[int | range]]) -> None:
        """Destroy single leaves or ranges, by subject, in one commit."""
        with self._destroying():
            self._store.destroy_leaves(leaves)

    def destroy_subject(self, rid: str, *, before_us: int) -> None:
        """Destroy a subject: its tree, its hash key, its name, and the names of its sessions.

        Fences stay: the name is refused for events that occurred before `before_us` (UTC microseconds), its
        sessions for ever. A tenant takes all of its users along. May be repeated.
        """
        with self._destroying():
            self._store.destroy_subject(rid, before_us=before_us)

    def fence_session(self, names: Scope) -> None:
        """Refuse every later event of this session, given by its external names."""
        with self._destroying():
            self._store.fence_session(names)

    def is_fenced(self, names: Scope, occurred_at_us: int) -> bool:
        """Whether an event of this scope (external names) and time (UTC microseconds) must be refused."""
        return bool(self._fences) and occurred_at_us < self._fenced_until(names)

    def count_refusal(self, names: Scope) -> None:
        """Count an event that `is_fenced` refused, at the strongest of its fences."""
        marks = [found for found in self._store.marks(names) if found in self._fences]
        if marks:
            self._store.count_refusal(max(marks, key=self._fences.__getitem__))

    def refusals(self) -> int:
        """How many events the fences have refused."""
        return self._store.counts().refusals

    def refresh(self) -> None:
        """Drop what is cached when keys were destroyed or fences set, by this process or another."""
        with self._lock:
            if self._store.changed():
                # Swapped whole: `is_fenced` reads it without the lock and must never see it empty.
                self._fences = self._store.fences()
                self._forget()

    def rotate_root(self, new: bytes | None = None) -> None:
        """Change the root key; stale copies of the key store do not open with the new one.

        Without `new` a random key is made, which only a provider that can keep one (a file, a KMS) supports.
        """
        if new is None and self._store.root.kind == "environment":
            raise InvalidInput("pass the new root key: an environment variable cannot be changed from here")
        self._store.rotate(generate_root_key() if new is None else new)

    @property
    def copies(self) -> str:
        """Where wrapped keys stay after their destruction, until the root key is rotated; empty for nowhere."""
        return self._store.copies

    def root_fingerprint(self) -> str:
        """Tells the store's root keys apart, and tells nothing about them."""
        return self._store.root_fingerprint()

    def generation(self) -> int:
        """A number that grows with every destruction of keys, in this process or another."""
        return self._store.generation()

    def check_origin(self, other: Vault) -> None:
        """Raise AnotherLog, or InvalidInput, where `take_over` would."""
        self._store.check_origin(other._store)

    def take_over(self, other: Vault) -> None:
        """Hold exactly the keys, names and fences of the other vault, under this one's root key.

        Raises AnotherLog where this one holds keys that did not come from the other one.
        """
        with self._destroying():
            self._leaves = range(0)
            self._store.take_over(other._store)

    def status(self) -> VaultStatus:
        counts, root = self._store.counts(), self._store.root
        return VaultStatus(
            root_key=root.kind,
            warnings=root.warnings(self._store.path.parent),
            subjects=counts.subjects,
            nodes=counts.nodes,
            names=counts.names,
            next_leaf=counts.next_leaf,
            fences=counts.fences,
            refusals=counts.refusals,
        )

    def close(self) -> None:
        """Let go of all keys. Idempotent; every later call raises StoreClosed."""
        self._shut(self._store.close)

    @contextmanager
    def _destroying(self) -> Iterator[None]:
        # Also when the call fails after its commit: a destroyed key may not stay in a cache.
        with self._lock:
            try:
                yield
            finally:
                self.refresh()

    def _shut(self, release: Callable[[], None]) -> None:
        with self._lock:
            self._forget()
            self._leaves = range(0)
            release()

    def _after_fork(self) -> None:
        # A thread of the parent may have held the locks; and a leaf number must not be used on both sides.
        self._reset_locks()
        self._shut(self._store.abandon)

    def _reset_locks(self) -> None:
        self._lock = threading.RLock()
        self._reserving = threading.Lock()

    def _forget(self) -> None:
        self._subjects: dict[str, Subject | None] = {}
        self._runs: dict[str, Iterator[int]] = {}
        self._scopes: dict[Scope, ScopeIds] = {}
        self._fenced: dict[Scope, int] = {}

    def _resolve(self, scope: Scope, create: bool) -> ScopeIds | None:
        with self._lock:
            ids = self._store.resolve(scope, create=create)
            if ids is not None and not scope.has_any:
                _remember(self._scopes, scope, ids, _CACHED_SCOPES)
        return ids

    def _start_run(self, subject: str) -> int:
        with self._reserving:
            if not self._leaves:
                # Short-lived processes take small blocks: numbers that a process did not use are lost.
                self._leaves = self._store.reserve(self._next_block)
                self._next_block = min(self._block, 4 * self._next_block)
            run, self._leaves = iter(self._leaves[:_RUN]), self._leaves[_RUN:]
            number = next(run)
            _remember(self._runs, subject, run, _CACHED_SUBJECTS)
        return number

    def _key(self, subjects: Sequence[str], leaf: int) -> bytes | None:
        with self._lock:
            if len(subjects) == 1:
                return self._leaf(subjects[0], leaf)
            if not subjects:
                raise InvalidInput("a sealed text has at least one subject")
            names = sorted(set(subjects))
            keys = [self._leaf(name, leaf) for name in names]
        return keys[0] if len(keys) == 1 else _joint_key(names, keys)

    def _leaf(self, rid: str, leaf: int) -> bytes | None:
        subject = self._subject(rid)
        return None if subject is None else subject.tree.leaf(leaf)

    def _subject(self, rid: str) -> Subject | None:
        try:
            return self._subjects[rid]
        except KeyError:
            # Random ids never come back, so that a subject is gone may be cached as well.
            found = self._store.subject(rid)
            return _remember(self._subjects, rid, found, _CACHED_SUBJECTS)

    def _require(self, key: bytes | None) -> bytes:
        if key is None:
            raise ErasedScope("a subject of this text was erased: it cannot be sealed any more")
        return key

    def _encrypt(self, key: bytes, plaintext: bytes, aad: bytes) -> bytes:
        nonce = next(self._nonces).to_bytes(NONCE_BYTES, "big")
        return nonce + AESGCM(key).encrypt(nonce, plaintext, aad)

    def _fenced_until(self, names: Scope) -> int:
        until = self._fenced.get(names)
        if until is None:
            with self._lock:
                until = max(self._fences.get(found, _NEVER) for found in self._store.marks(names))
                _remember(self._fenced, names, until, _CACHED_SCOPES)
        return until


def open_vault(path: Path, root: RootKeyProvider, *, create: bool, block: int = BLOCK) -> Vault:
    """Open the key store at `path`; errors as `KeyStore.open`."""
    return Vault(KeyStore.open(path, root, create=create), block=block)


_vaults: weakref.WeakSet[Vault] = weakref.WeakSet()


def _close_in_child() -> None:
    for vault in list(_vaults):
        vault._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _joint_key(names: Sequence[str], keys: Sequence[bytes | None]) -> bytes | None:
    """One key from the same leaf of several trees: without any one of them it is gone."""
    joint = blake2b(b"mnemolog/joint", digest_size=32)
    for name, key in zip(names, keys, strict=True):
        if key is None:
            return None
        joint.update(b"%d:%b" % (len(name), name.encode()) + key)
    return joint.digest()


def _chunk_key(key: bytes, index: int, total: int) -> bytes:
    place = index.to_bytes(8, "big") + total.to_bytes(8, "big")
    return blake2b(key + b"mnemolog/chunk" + place, digest_size=32).digest()


def _decrypt(key: bytes, ciphertext: bytes, aad: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:], aad)
    except (InvalidTag, ValueError):
        raise CorruptStore("a sealed text does not have the bytes that were written") from None


def _remember(cache: dict[_K, _V], key: _K, value: _V, limit: int) -> _V:
    if len(cache) >= limit:
        cache.pop(next(iter(cache)))
    cache[key] = value
    return value

"""The key store: one small file with every secret, all of them under the root key.

Each method is one transaction, durable when it returns. What destroys also scrubs the file: no byte of a
destroyed secret, wrapped or not, is left in it or in its journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from mnemolog.domain.errors import AnotherLog, InvalidInput
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.vault import directory, fences, subjects
from mnemolog.infra.vault.database import Database
from mnemolog.infra.vault.meta import (
    KeyConnection,
    KeyDatabase,
    StoreKeys,
    get_meta,
    get_number,
    put_first_meta,
    put_number,
)
from mnemolog.infra.vault.rootkey import ROOT_KEY_BYTES, RootKeyProvider
from mnemolog.infra.vault.subjects import Subject
from mnemolog.infra.vault.tree import LEAVES

BLOCK: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """What the file holds, for status."""

    subjects: int
    nodes: int
    names: int
    fences: int
    refusals: int
    next_leaf: int


class KeyStore:
    """Thread-safe; several processes may have the file open. Open it with `KeyStore.open`."""

    def __init__(self, database: KeyDatabase) -> None:
        self._database = database
        self._generation = -1

    @classmethod
    def open(cls, path: Path, root: RootKeyProvider, *, create: bool) -> Self:
        """Open the store, or make it when `create` says that there is no log yet that needs its keys.

        Raises KeysMissing when the file or the root key is absent, or the root key is another store's.
        """
        return cls(Database(path, root, create=create))

    @property
    def path(self) -> Path:
        return self._database.path

    @property
    def root(self) -> RootKeyProvider:
        return self._database.root

    @property
    def copies(self) -> str:
        """As `KeyDatabase.copies`."""
        return self._database.copies

    def root_fingerprint(self) -> str:
        """Tells root keys of this store apart, and tells nothing about them."""
        return self._meta("root").hex()

    def _meta(self, name: str) -> bytes:
        with self._database.read() as connection:
            return get_meta(connection, name)

    def reserve(self, count: int = BLOCK) -> range:
        """Leaf numbers that nobody else gets, in this process or another, after a crash or not."""
        if count < 1:
            raise InvalidInput(f"reserve at least one leaf number, not {count}")
        with self._database.write() as connection:
            start = get_number(connection, "next_leaf")
            if start + count > LEAVES:
                raise InvalidInput("the key trees have no leaves left: export into a new store")
            put_number(connection, "next_leaf", start + count)
        return range(start, start + count)

    def subject(self, rid: str) -> Subject | None:
        """The keys of a subject, or None when they were destroyed."""
        with self._database.read() as connection:
            return subjects.load_subject(connection, self._keys.wrapping, rid)

    def resolve(self, scope: Scope, *, create: bool) -> ScopeIds | None:
        """The random ids of a scope; all new names and keys of a call are one commit."""
        if create and scope.has_any:
            raise InvalidInput("a write names every level of its scope: ANY is for reads")
        with self._database.read() as connection:
            found = directory.resolve(connection, self._keys, scope, create=False)
        if found is not None or not create:
            return found
        with self._database.write() as connection:
            return directory.resolve(connection, self._keys, scope, create=True)

    def introduce(self, scopes: Collection[Scope]) -> dict[Scope, ScopeIds]:
        """The random ids of several scopes, made if new; one commit."""
        found: dict[Scope, ScopeIds] = {}
        with self._database.write() as connection:
            for scope in scopes:
                ids = directory.resolve(connection, self._keys, scope, create=True)
                assert ids is not None
                found[scope] = ids
        return found

    def subject_id(self, tenant: str, external: str, *, create: bool) -> str | None:
        """The random id of a person, by the tenant's random id and the person's external id."""
        with self._database.read() as connection:
            found = directory.subject_id(connection, self._keys, tenant, external, create=False)
        if found is not None or not create:
            return found
        with self._database.write() as connection:
            return directory.subject_id(connection, self._keys, tenant, external, create=True)

    def name(self, rid: str) -> str | None:
        """The external name behind a random id."""
        with self._database.read() as connection:
            entry = directory.find_entry(connection, self._keys, rid)
        return entry.external if entry else None

    def place(self, rid: str) -> ScopeIds | None:
        """The ids of the levels that a random id stands under, None when its name is gone."""
        with self._database.read() as connection:
            entry = directory.find_entry(connection, self._keys, rid)
        return ScopeIds(Scope.of(entry.parents)) if entry and entry.parents else None

    def sessions(self, rid: str) -> tuple[str, ...]:
        """The random ids of a user's (or a tenant's) sessions."""
        with self._database.read() as connection:
            entries = directory.entries_of(connection, self._keys, rid)
        return tuple(entry.rid for entry in entries if entry.level == "session")

    def destroy_leaves(self, leaves: Mapping[str, Iterable[int | range]]) -> None:
        """Destroy leaves of several subjects in one commit; subjects that are gone do not matter."""
        with self._database.destroy() as (connection, gone):
            for rid, numbers in leaves.items():
                gone += subjects.puncture_subject(connection, self._keys.wrapping, rid, numbers)

    def destroy_subject(self, rid: str, *, before_us: int) -> None:
        """Destroy a user's or tenant's keys and names, and everyone's in a tenant; leave fences behind."""
        with self._database.destroy() as (connection, gone):
            entries = directory.entries_of(connection, self._keys, rid)
            for entry in entries:
                self._fence_entry(connection, entry, before_us)
            for entry in entries:
                gone += directory.remove_entry(connection, entry.rid)
            for doomed in {rid, *(entry.rid for entry in entries)}:
                gone += subjects.drop_subject(connection, doomed)

    def fence_session(self, names: Scope) -> None:
        """Refuse every further event of a session, given by external names."""
        if names.session is None:
            raise InvalidInput("a session fence needs a scope with a session")
        with self._database.destroy() as (connection, _):
            fences.put_fence(connection, "session", fences.mark(self._keys.fences, "session", names), None)

    def fences(self) -> dict[bytes, int]:
        """All fences: mark to the time before which it refuses, UTC microseconds."""
        with self._database.read() as connection:
            return fences.load_fences(connection)

    def marks(self, names: Scope) -> tuple[bytes, ...]:
        """The marks that could fence an event of this scope (external names)."""
        return tuple(fences.marks(self._keys.fences, names))

    def count_refusal(self, mark: bytes) -> None:
        """Count one refused event at a fence."""
        with self._database.write() as connection:
            fences.count_refusal(connection, mark)

    def generation(self) -> int:
        """A number that grows with every destruction, in this process or another."""
        return self._database.generation()

    def changed(self) -> bool:
        """Whether keys or fences were destroyed or set, here or elsewhere, since the last call."""
        generation = self._database.generation()
        changed = generation != self._generation
        self._generation = generation
        return changed

    def rotate(self, new_root: bytes) -> None:
        """Put everything under another root key, then forget the old one.

        A crash at any point leaves a store that opens: the new root key is durable before the commit that
        needs it, and the fingerprint in that commit tells the next opening which of the two counts.
        """
        if len(new_root) != ROOT_KEY_BYTES:
            raise InvalidInput(f"a root key is {ROOT_KEY_BYTES} bytes, not {len(new_root)}")
        with self._database.destroy() as (connection, gone):
            self._database.settle(connection)
            self.root.stage(new_root)
            old, new = self._keys, self._database.rekey(connection, new_root)
            _replace(connection, old, connection, new, gone)
        with self._database.write() as connection:
            self._database.settle(connection)

    def check_origin(self, other: KeyStore) -> None:
        """Raise AnotherLog where this one holds keys that did not come from the other; InvalidInput: they are one."""
        if other is self or other._meta("store") == self._meta("store"):
            raise InvalidInput("source and target have the same key store: give the target one of its own")
        with other._database.read(), self._database.read() as connection:
            # The key of fences is made at random once, and goes along with every move.
            if _count(connection, "subjects") and other._keys.fences != self._keys.fences:
                raise AnotherLog("the target's key store holds the keys of another log: name an empty one")

    def take_over(self, other: KeyStore) -> None:
        """Hold exactly what the other store holds, under the root key of this one; what this one held is destroyed.

        Raises AnotherLog where this one holds keys that did not come from the other one.
        """
        self.check_origin(other)
        with other._database.read() as given, self._database.destroy() as (connection, gone):
            old, generation = other._keys, get_number(connection, "generation")
            # A new id of the store, so that everybody who has it open reads its keys again.
            new = put_first_meta(connection, self.root.fetch(), fences=old.fences)
            put_number(connection, "generation", generation)
            put_number(connection, "next_leaf", get_number(given, "next_leaf"))
            _replace(given, old, connection, new, gone)
            fences.replace_fences(connection, fences.all_fences(given))

    def counts(self) -> StoreCounts:
        with self._database.read() as connection:
            return StoreCounts(
                subjects=_count(connection, "subjects"),
                nodes=_count(connection, "nodes"),
                names=_count(connection, "directory"),
                fences=_count(connection, "fences"),
                refusals=fences.refusals(connection),
                next_leaf=get_number(connection, "next_leaf"),
            )

    def close(self) -> None:
        self._database.close()

    def abandon(self) -> None:
        """Let go of everything in a forked child, without touching the parent's file locks."""
        self._database.abandon()

    @property
    def _keys(self) -> StoreKeys:
        return self._database.keys

    def _fence_entry(self, connection: KeyConnection, entry: directory.Entry, before_us: int) -> None:
        if entry.level not in ("tenant", "user", "session"):
            return
        names = directory.external_scope(connection, self._keys, entry)
        if names is not None:
            until = None if entry.level == "session" else before_us
            found = fences.mark(self._keys.fences, entry.level, names)
            fences.put_fence(connection, entry.level, found, until)


def _replace(
    given: KeyConnection, old: StoreKeys, connection: KeyConnection, new: StoreKeys, gone: list[bytes]
) -> None:
    """Put all keys and names of `given` under `new`, in the place of all that were there."""
    keys, names = (
        subjects.rewrapped_subjects(given, old.wrapping, new.wrapping),
        directory.all_entries(given, old),
    )
    gone += subjects.replace_subjects(connection, keys)
    gone += directory.replace_entries(connection, new, names)


def _count(connection: KeyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

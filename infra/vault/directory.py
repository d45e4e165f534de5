"""The directory of external names: the only place where an e-mail or customer number meets its random id."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from mnemolog.domain.scope import ANY, LEVELS, RECORD_LEVELS, Scope, ScopeIds
from mnemolog.infra.vault.meta import KeyConnection, StoreKeys
from mnemolog.infra.vault.subjects import create_subject
from mnemolog.infra.vault.wrapping import Wrapping

SUBJECT_LEVELS: Final = ("tenant", "user")
"""The levels whose random ids own keys."""

_PARENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "tenant": (),
    "organization": ("tenant",),
    "user": ("tenant",),
    "project": ("tenant",),
    "agent": ("tenant",),
    "session": RECORD_LEVELS,
}
_COLUMNS: Final = 'rid, level, tenant, organization, "user", project, agent'


@dataclass(frozen=True, slots=True)
class Entry:
    """One name: its random id, its level, and the random ids of the levels that it is unique within."""

    rid: str
    level: str
    parents: Mapping[str, str]
    external: str


def resolve(connection: KeyConnection, keys: StoreKeys, scope: Scope, *, create: bool) -> ScopeIds | None:
    """The random ids of a scope's names; unknown names are added, or else make the answer None."""
    ids: dict[str, str] = {}
    for level, external in scope.present():
        rid = external if external == ANY else _find_or_add(connection, keys, level, ids, external, create)
        if rid is None:
            return None
        ids[level] = rid
    return ScopeIds(Scope(**ids))


def subject_id(
    connection: KeyConnection, keys: StoreKeys, tenant: str, external: str, *, create: bool
) -> str | None:
    """The random id of a person in a tenant (given by its random id), who may be no scope's user."""
    return _find_or_add(connection, keys, "user", {"tenant": tenant}, external, create)


def find_entry(connection: KeyConnection, keys: StoreKeys, rid: str) -> Entry | None:
    return next(_entries(connection, keys, "rid = ?", rid), None)


def entries_of(connection: KeyConnection, keys: StoreKeys, rid: str) -> list[Entry]:
    """The names that go with a subject: a user's sessions, or everything in a tenant; itself first."""
    own = _entries(connection, keys, "rid = ?", rid)
    return [*own, *_entries(connection, keys, '"user" = ? OR tenant = ?', rid, rid)]


def external_scope(connection: KeyConnection, keys: StoreKeys, entry: Entry) -> Scope | None:
    """The names of an entry and its parents; None when one of them is no longer known."""
    names = {entry.level: entry.external}
    for level, rid in entry.parents.items():
        parent = find_entry(connection, keys, rid)
        if parent is None:
            return None
        names[level] = parent.external
    return Scope(**names)


def remove_entry(connection: KeyConnection, rid: str) -> list[bytes]:
    """Forget a name; returns the stored secrets that must be in the file no more."""
    rows = connection.execute("DELETE FROM directory WHERE rid = ? RETURNING name, lookup", (rid,)).fetchall()
    return [secret for row in rows for secret in row]


def all_entries(connection: KeyConnection, keys: StoreKeys) -> list[Entry]:
    """Every name that the store knows."""
    return list(_entries(connection, keys, "true"))


def replace_entries(connection: KeyConnection, keys: StoreKeys, entries: Sequence[Entry]) -> list[bytes]:
    """Store these names instead of all others; returns the stored secrets that must be in the file no more."""
    gone = connection.execute("DELETE FROM directory RETURNING name, lookup").fetchall()
    for entry in entries:
        _insert(connection, keys, entry, _lookup(keys.directory, entry.level, entry.parents, entry.external))
    return [secret for row in gone for secret in row]


def _find_or_add(
    connection: KeyConnection,
    keys: StoreKeys,
    level: str,
    ids: Mapping[str, str],
    external: str,
    create: bool,
) -> str | None:
    parents = {parent: ids[parent] for parent in _PARENTS[level] if parent in ids}
    lookup = _lookup(keys.directory, level, parents, external)
    row = connection.execute("SELECT rid FROM directory WHERE lookup = ?", (lookup,)).fetchone()
    if row is not None:
        return str(row[0])
    if not create:
        return None
    entry = Entry(_new_rid(connection), level, parents, external)
    _insert(connection, keys, entry, lookup)
    if level in SUBJECT_LEVELS:
        create_subject(connection, keys.wrapping, entry.rid)
    return entry.rid


def _insert(connection: KeyConnection, keys: StoreKeys, entry: Entry, lookup: bytes) -> None:
    parents = [entry.parents.get(level) for level in LEVELS[:-1]]
    connection.execute(
        f"INSERT INTO directory ({_COLUMNS}, lookup, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (entry.rid, entry.level, *parents, lookup, _wrap_name(keys.wrapping, entry)),
    )


def _new_rid(connection: KeyConnection) -> str:
    while True:
        rid = secrets.token_hex(8)
        if connection.execute("SELECT 1 FROM directory WHERE rid = ?", (rid,)).fetchone() is None:
            return rid


def _entries(connection: KeyConnection, keys: StoreKeys, where: str, *values: str) -> Iterator[Entry]:
    query = f"SELECT {_COLUMNS}, name FROM directory WHERE {where}"
    for rid, level, *parents, name in connection.execute(query, values).fetchall():
        known = {above: value for above, value in zip(LEVELS, parents, strict=False) if value is not None}
        external = keys.wrapping.unwrap(_identity(rid), name).decode("utf-8", "surrogatepass")
        yield Entry(rid, level, known, external)


def _lookup(key: bytes, level: str, parents: Mapping[str, str], external: str) -> bytes:
    # Random ids hold no separator, so the text is unambiguous whatever the external name holds.
    place = "|".join([level, *(parents.get(parent, "") for parent in _PARENTS[level]), external])
    return blake2b(place.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()


def _wrap_name(wrapping: Wrapping, entry: Entry) -> bytes:
    return wrapping.wrap(_identity(entry.rid), entry.external.encode("utf-8", "surrogatepass"))


def _identity(rid: str) -> str:
    return f"name:{rid}"

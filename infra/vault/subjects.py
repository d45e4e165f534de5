"""The secrets of subjects in the key store: the nodes of the key tree, and the key for keyed hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mnemolog.infra.vault.meta import KeyConnection
from mnemolog.infra.vault.tree import KEY_BYTES, ROOT, KeyTree, Node
from mnemolog.infra.vault.wrapping import Wrapping


@dataclass(frozen=True, slots=True)
class Subject:
    """What is left of one subject's keys."""

    tree: KeyTree
    hash_key: bytes


@dataclass(frozen=True, slots=True)
class SubjectRows:
    """The rows of all subjects, wrapped."""

    hash_keys: Sequence[tuple[str, bytes]]
    nodes: Sequence[tuple[str, int, int, bytes]]


def create_subject(connection: KeyConnection, wrapping: Wrapping, rid: str) -> None:
    hash_key = wrapping.wrap(_hash_identity(rid), secrets.token_bytes(KEY_BYTES))
    connection.execute("INSERT INTO subjects VALUES (?, ?)", (rid, hash_key))
    _insert_nodes(connection, wrapping, rid, [(ROOT, secrets.token_bytes(KEY_BYTES))])


def load_subject(connection: KeyConnection, wrapping: Wrapping, rid: str) -> Subject | None:
    """None when the subject was destroyed."""
    row = connection.execute("SELECT hash_key FROM subjects WHERE rid = ?", (rid,)).fetchone()
    if row is None:
        return None
    nodes = connection.execute("SELECT height, prefix, secret FROM nodes WHERE rid = ?", (rid,))
    tree = KeyTree(
        {
            (node := Node(height, prefix)): wrapping.unwrap(_node_identity(rid, node), secret)
            for height, prefix, secret in nodes
        }
    )
    return Subject(tree, wrapping.unwrap(_hash_identity(rid), row[0]))


def puncture_subject(
    connection: KeyConnection, wrapping: Wrapping, rid: str, destroyed: Iterable[int | range]
) -> list[bytes]:
    """Destroy leaves of one subject; returns the stored secrets that must be in the file no more."""
    subject = load_subject(connection, wrapping, rid)
    if subject is None:
        return []
    change = subject.tree.puncture(destroyed)
    gone = [
        row[0]
        for node in change.deleted
        for row in connection.execute(
            "DELETE FROM nodes WHERE rid = ? AND height = ? AND prefix = ? RETURNING secret", (rid, *node)
        ).fetchall()
    ]
    _insert_nodes(connection, wrapping, rid, change.inserted.items())
    return gone


def drop_subject(connection: KeyConnection, rid: str) -> list[bytes]:
    """Destroy all keys of a subject; returns the stored secrets that must be in the file no more."""
    nodes = connection.execute("DELETE FROM nodes WHERE rid = ? RETURNING secret", (rid,)).fetchall()
    keys = connection.execute("DELETE FROM subjects WHERE rid = ? RETURNING hash_key", (rid,)).fetchall()
    return [row[0] for row in nodes + keys]


def rewrapped_subjects(connection: KeyConnection, old: Wrapping, new: Wrapping) -> SubjectRows:
    """All keys of a store as they are to be stored under another root."""
    nodes = connection.execute("SELECT rid, height, prefix, secret FROM nodes").fetchall()
    hash_keys = connection.execute("SELECT rid, hash_key FROM subjects").fetchall()

    def again(identity: str, secret: bytes) -> bytes:
        return new.wrap(identity, old.unwrap(identity, secret))

    return SubjectRows(
        [(rid, again(_hash_identity(rid), key)) for rid, key in hash_keys],
        [(rid, h, p, again(_node_identity(rid, Node(h, p)), secret)) for rid, h, p, secret in nodes],
    )


def replace_subjects(connection: KeyConnection, rows: SubjectRows) -> list[bytes]:
    """Store these keys instead of all others; returns the stored secrets that must be in the file no more."""
    nodes = connection.execute("DELETE FROM nodes RETURNING secret").fetchall()
    hash_keys = connection.execute("DELETE FROM subjects RETURNING hash_key").fetchall()
    connection.executemany("INSERT INTO subjects VALUES (?, ?)", rows.hash_keys)
    connection.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?)", rows.nodes)
    return [row[0] for row in nodes + hash_keys]


def _insert_nodes(
    connection: KeyConnection, wrapping: Wrapping, rid: str, nodes: Iterable[tuple[Node, bytes]]
) -> None:
    rows = ((rid, *node, wrapping.wrap(_node_identity(rid, node), key)) for node, key in nodes)
    connection.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?)", rows)


def _node_identity(rid: str, node: Node) -> str:
    return f"node:{rid}:{node.height}:{node.prefix}"


def _hash_identity(rid: str) -> str:
    return f"hash:{rid}"

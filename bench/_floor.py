"""What the numbers are held against: the same work in bare sqlite3, without anything that Mnemolog promises."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from mnemolog.domain.lexical import Analyzer
from mnemolog.infra.log.codec import Sealer

Row = tuple[str, int, str, str | None, bytes]
"""Stream, version, topic, key and the stored bytes of one event."""

BATCH: Final = 1_000
_COPIED: Final = "SELECT originator_id, originator_version, topic, key, state FROM stored_events"


def rows_of(log: Path, after: int, count: int) -> list[Row]:
    """Events as the log stores them."""
    with sqlite3.connect(log) as conn:
        return conn.execute(f"{_COPIED} WHERE position>? LIMIT ?", (after, count)).fetchall()


class BareLog:
    """The columns and unique indexes of the log, a hash per row, WAL, and an fsync per commit."""

    def __init__(self, path: Path) -> None:
        self._conn = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE events (position INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,"
            " version INTEGER NOT NULL, topic TEXT NOT NULL, key TEXT, leaf BLOB NOT NULL, state BLOB NOT NULL)",
            "CREATE UNIQUE INDEX by_version ON events (stream, version)",
            "CREATE UNIQUE INDEX by_key ON events (key) WHERE key IS NOT NULL",
        ):
            self._conn.execute(statement)

    def append(self, rows: Sequence[Row]) -> None:
        """Insert in one transaction."""
        self._conn.execute("BEGIN IMMEDIATE")
        self._conn.executemany(
            "INSERT INTO events (stream, version, topic, key, leaf, state) VALUES (?,?,?,?,?,?)",
            [(*row[:4], sha256(row[4]).digest(), row[4]) for row in rows],
        )
        self._conn.execute("COMMIT")

    def close(self) -> None:
        self._conn.close()


def fold(log: Path, view: Path, sealer: Sealer, analyzer: Analyzer) -> int:
    """Read the log in batches, open and tokenise each body, insert a row and its tokens; how many were opened."""
    source, target = sqlite3.connect(log), sqlite3.connect(view, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=NORMAL",
        "CREATE TABLE texts (position INTEGER PRIMARY KEY, event_id TEXT NOT NULL, at TEXT NOT NULL,"
        " text TEXT NOT NULL)",
        "CREATE VIRTUAL TABLE words USING fts5(terms, content='', columnsize=0, tokenize='ascii')",
    ):
        target.execute(statement)
    opened = 0
    for batch in _batches(source):
        rows = [_opened(sealer, position, state) for position, state in batch]
        words = [(row[0], " ".join(analyzer.document(row[3]))) for row in rows]
        target.execute("BEGIN IMMEDIATE")
        target.executemany("INSERT INTO texts VALUES (?,?,?,?)", rows)
        target.executemany("INSERT INTO words (rowid, terms) VALUES (?,?)", words)
        target.execute("COMMIT")
        opened += len(rows)
    source.close()
    target.close()
    return opened


def _batches(source: sqlite3.Connection) -> Iterator[list[tuple[int, bytes]]]:
    position = 0
    while batch := source.execute(
        "SELECT position, state FROM stored_events WHERE position>? ORDER BY position LIMIT ?",
        (position, BATCH),
    ).fetchall():
        position = batch[-1][0]
        yield batch


def _opened(sealer: Sealer, position: int, state: bytes) -> tuple[int, str, str, str]:
    end = 4 + int.from_bytes(state[:4], "big")
    raw: dict[str, Any] = orjson.loads(state[4:end])
    body: dict[str, Any] = {}
    if raw["p"]:
        leaf, subjects = raw["p"][0]
        plaintext = sealer.open(subjects, leaf, state[end + 4 :], state[4:end])
        body = orjson.loads(plaintext) if plaintext else {}
    return position, raw["i"], raw["o"], body.get("content") or body.get("output") or ""


class PlainSealer:
    """Seals nothing: for the price of sealing, and for benchmarks only."""

    def __init__(self) -> None:
        self._leaf = 0

    def next_leaf(self, subject: str) -> int:
        self._leaf += 1
        return self._leaf

    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes:
        return plaintext

    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None:
        return ciphertext

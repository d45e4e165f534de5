"""`SqliteLexicalIndex`: scope-first BM25 on FTS5.

Each indexed term begins with its scope's number, so that a look-up touches one scope's postings only, and the
statistics are those of the asked scopes. FTS5's own `bm25()` counts the whole table and is not used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import orjson
from sqlalchemy import Connection

from mnemolog.domain.errors import CorruptStore, InvalidInput
from mnemolog.domain.lexical import Matches, Term, bm25, ranked
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.postings import Postings

_LOOKUPS_PER_STATEMENT = 20_000
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


class SqliteLexicalIndex:
    """A lexical index named `name`, one of any number in a database file. See `projections.lexical`."""

    def __init__(self, name: str) -> None:
        if not _NAME.match(name):
            raise InvalidInput(f"an index name is lower-case letters, digits and _, not {name!r}")
        self.name = name
        self._fts, self._vocabulary = f"{name}_fts", f"{name}_vocab"
        self._docs, self._scopes = f"{name}_docs", f"{name}_scopes"

    def create(self, conn: Connection) -> None:
        """Make the tables where they are absent."""
        for statement in (
            # Contentless: the tokens are stored once, as an index, and never as text.
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._fts} USING fts5(terms, content='', columnsize=0,"
            " tokenize='ascii')",
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._vocabulary} USING fts5vocab('{self._fts}', 'instance')",
            f"CREATE TABLE IF NOT EXISTS {self._docs} (doc INTEGER PRIMARY KEY, scope INTEGER NOT NULL,"
            " length INTEGER NOT NULL, checksum INTEGER NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {self._scopes} (scope INTEGER PRIMARY KEY, docs INTEGER NOT NULL,"
            " tokens INTEGER NOT NULL)",
        ):
            conn.exec_driver_sql(statement)

    def drop(self, conn: Connection) -> None:
        """Remove the tables."""
        for table in (self._vocabulary, self._fts, self._docs, self._scopes):
            conn.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def add(self, conn: Connection, docs: Iterable[LexicalDocument]) -> None:
        """Index new documents. To change one, remove it first."""
        docs = list(docs)
        if not docs:
            return
        texts = [(doc, _text(scope, tokens)) for doc, scope, tokens in docs]
        rows = [
            (doc, scope, len(tokens), crc32(text.encode()))
            for (doc, scope, tokens), (_, text) in zip(docs, texts, strict=True)
        ]
        conn.exec_driver_sql(f"INSERT INTO {self._docs} VALUES (?, ?, ?, ?)", rows)
        conn.exec_driver_sql(f"INSERT INTO {self._fts} (rowid, terms) VALUES (?, ?)", texts)
        self._count(conn, docs, 1)

    def remove(self, conn: Connection, docs: Sequence[LexicalDocument]) -> int:
        """Remove documents, given with the tokens they were added with; absent ones are passed over.

        FTS5 trusts the tokens it is given, and wrong ones would break the index silently: hence the checksum.
        """
        stored = self._stored(conn, [doc for doc, _, _ in docs])
        present = list({doc.doc: doc for doc in docs if doc.doc in stored}.values())
        texts = [(doc, _text(scope, tokens)) for doc, scope, tokens in present]
        for (doc, scope, tokens), (_, text) in zip(present, texts, strict=True):
            if stored[doc] != (scope, len(tokens), crc32(text.encode())):
                raise CorruptStore(
                    f"document {doc} of {self.name} was indexed with other tokens: rebuild the view"
                )
        if present:
            conn.exec_driver_sql(
                f"INSERT INTO {self._fts} ({self._fts}, rowid, terms) VALUES ('delete', ?, ?)", texts
            )
            conn.exec_driver_sql(f"DELETE FROM {self._docs} WHERE doc = ?", [(doc,) for doc, _ in texts])
            self._count(conn, present, -1)
        return len(present)

    def matches(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Matches:
        """Postings of the terms and the statistics of exactly these scopes."""
        scopes = sorted(set(scopes))
        docs, tokens = self._statistics(conn, scopes)
        terms = list(dict.fromkeys(terms))
        counts: list[Counter[int]] = [Counter() for _ in terms]
        for place, found in self._instances(conn, scopes, terms) if docs else ():
            counts[place].update(found)
        lengths = self.lengths(conn, list({doc for times in counts for doc in times}))
        return Matches(docs, tokens, dict(zip(terms, counts, strict=True)), lengths)

    def postings(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Postings:
        """The same as arrays, by the places of the terms, without lengths."""
        from mnemolog.projections.postings import counted

        scopes = sorted(set(scopes))
        docs, tokens = self._statistics(conn, scopes)
        terms = list(dict.fromkeys(terms))
        found: list[int] = []
        numbers: list[int] = []
        for place, some in self._instances(conn, scopes, terms) if docs else ():
            found += some
            numbers += [place] * len(some)
        return counted(docs, tokens, numbers, found)

    def both(
        self, other: LexicalIndex, conn: Connection, scopes: Sequence[int], terms: Sequence[str]
    ) -> tuple[Postings, Postings]:
        """`postings` of this index and of another one."""
        return self.postings(conn, scopes, terms), other.postings(conn, scopes, terms)

    def lengths(self, conn: Connection, docs: Sequence[int]) -> dict[int, int]:
        """How many tokens each of these documents has; absent ones are left out."""
        if not docs:
            return {}
        sql = (
            "SELECT json_group_array(d.doc), json_group_array(d.length)"
            f" FROM json_each(?) k CROSS JOIN {self._docs} d WHERE d.doc = k.value"
        )
        # One row of arrays: each row that is fetched costs more than what it holds.
        found, lengths = conn.exec_driver_sql(sql, (_json(docs),)).one()
        return dict(zip(orjson.loads(found), orjson.loads(lengths), strict=True))

    def search(
        self,
        conn: Connection,
        scopes: Sequence[int],
        query: Sequence[Term],
        newness: Callable[[int], int] = int,
        limit: int | None = None,
    ) -> list[tuple[int, float]]:
        """All documents of these scopes with a term of the query and their BM25, best first."""
        found = self.matches(conn, scopes, [term for term, _ in query])
        return ranked(bm25(found, query), newness, limit)

    def optimize(self, conn: Connection) -> None:
        """Merge everything, so that no trace of a removed document is left in live pages."""
        conn.exec_driver_sql(f"INSERT INTO {self._fts} ({self._fts}) VALUES ('optimize')")

    def _instances(
        self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]
    ) -> Iterator[tuple[int, list[int]]]:
        """For each term and scope: which term, and its documents, each as often as it stands there."""
        # The terms come first: one index look-up per key, never a scan of the vocabulary.
        sql = (
            f"SELECT k.key % ?, (SELECT json_group_array(v.doc) FROM {self._vocabulary} v"
            " WHERE v.term = k.value) FROM json_each(?) k"
        )
        some = max(1, _LOOKUPS_PER_STATEMENT // max(1, len(terms)))
        for at in range(0, len(scopes), some):
            asked = [f"{scope:x}z{term}" for scope in scopes[at : at + some] for term in terms]
            for place, found in conn.exec_driver_sql(sql, (len(terms), _json(asked))).fetchall():
                if found != "[]":
                    yield place, orjson.loads(found)

    def _statistics(self, conn: Connection, scopes: Sequence[int]) -> tuple[int, int]:
        sql = (
            f"SELECT coalesce(sum(docs), 0), coalesce(sum(tokens), 0) FROM {self._scopes}"
            " WHERE scope IN (SELECT value FROM json_each(?))"
        )
        docs, tokens = conn.exec_driver_sql(sql, (_json(scopes),)).one()
        return docs, tokens

    def _stored(self, conn: Connection, docs: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        sql = f"SELECT doc, scope, length, checksum FROM {self._docs} WHERE doc IN (SELECT value FROM json_each(?))"
        return {row[0]: (row[1], row[2], row[3]) for row in conn.exec_driver_sql(sql, (_json(docs),))}

    def _count(self, conn: Connection, docs: Sequence[LexicalDocument], sign: int) -> None:
        numbers, tokens = Counter[int](), Counter[int]()
        for _, scope, words in docs:
            numbers[scope] += sign
            tokens[scope] += sign * len(words)
        conn.exec_driver_sql(
            f"INSERT INTO {self._scopes} VALUES (?, ?, ?) ON CONFLICT (scope)"
            " DO UPDATE SET docs = docs + excluded.docs, tokens = tokens + excluded.tokens",
            [(scope, numbers[scope], tokens[scope]) for scope in numbers],
        )
        if sign < 0:
            conn.exec_driver_sql(
                f"DELETE FROM {self._scopes} WHERE scope = ? AND docs = 0", [(scope,) for scope in numbers]
            )


def _text(scope: int, tokens: Sequence[str]) -> str:
    prefix = f"{scope:x}z"
    return prefix + f" {prefix}".join(tokens) if tokens else ""


def _json(values: Sequence[int] | Sequence[str]) -> str:
    return orjson.dumps(values).decode()

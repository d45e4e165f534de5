"""`PostgresLexicalIndex`: scope-first BM25 on a table of postings.

A posting begins with its scope's number, so that a look-up touches one scope's postings only. Words stand in it as 64
bits of their hash: half the size, twice as quick, and no word is left in an index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from zlib import crc32

from sqlalchemy import Connection

from mnemolog.domain.errors import CorruptStore, InvalidInput
from mnemolog.domain.lexical import Matches, Term, bm25, ranked
from mnemolog.infra.postgres.bulk import copy_into, copy_packed
from mnemolog.projections.lexical import LexicalDocument, LexicalIndex

if TYPE_CHECKING:  # brings numpy along
    from mnemolog.projections.postings import Postings

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_ROW = [
    ("columns", ">i2"),
    *(("b1", ">i4"), ("term", ">i8")),
    *(("b2", ">i4"), ("doc", ">i8")),
    *(("b3", ">i4"), ("scope", ">i4")),
    *(("b4", ">i4"), ("times", ">i4")),
]
"""A posting as COPY takes it: how many columns there are, then bytes and value of each."""


class PostgresLexicalIndex:
    """A lexical index named `name`, one of any number in a view. See `projections.lexical`."""

    def __init__(self, name: str) -> None:
        if not _NAME.match(name):
            raise InvalidInput(f"an index name is lower-case letters, digits and _, not {name!r}")
        self.name = name
        self._postings, self._docs, self._scopes = f"{name}_postings", f"{name}_docs", f"{name}_scopes"

    def create(self, conn: Connection) -> None:
        """Make the tables where they are absent."""
        for statement in (
            f"CREATE TABLE IF NOT EXISTS {self._postings} (term bigint NOT NULL, doc bigint NOT NULL, scope integer"
            " NOT NULL, times integer NOT NULL, PRIMARY KEY (scope, term, doc))",
            f"CREATE TABLE IF NOT EXISTS {self._docs} (doc bigint PRIMARY KEY, scope integer NOT NULL,"
            " length integer NOT NULL, checksum bigint NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {self._scopes} (scope integer PRIMARY KEY, docs bigint NOT NULL,"
            " tokens bigint NOT NULL)",
        ):
            conn.exec_driver_sql(statement)

    def drop(self, conn: Connection) -> None:
        """Remove the tables."""
        for table in (self._postings, self._docs, self._scopes):
            conn.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def add(self, conn: Connection, docs: Sequence[LexicalDocument]) -> None:
        """Index new documents. To change one, remove it first."""
        if not docs:
            return
        copy_into(
            conn,
            f"COPY {self._docs} (doc, scope, length, checksum) FROM STDIN (FORMAT BINARY)",
            ("int8", "int4", "int4", "int8"),
            [(doc, scope, len(tokens), _checksum(tokens)) for doc, scope, tokens in docs],
        )
        copy_packed(
            conn,
            f"COPY {self._postings} (term, doc, scope, times) FROM STDIN (FORMAT BINARY)",
            [_packed(docs)],
        )
        self._count(conn, docs, 1)

    def remove(self, conn: Connection, docs: Sequence[LexicalDocument]) -> int:
        """Remove documents, given with the tokens they were added with; absent ones are passed over."""
        stored = self._stored(conn, [doc for doc, _, _ in docs])
        present = list({doc.doc: doc for doc in docs if doc.doc in stored}.values())
        for doc, scope, tokens in present:
            if stored[doc] != (scope, len(tokens), _checksum(tokens)):
                raise CorruptStore(
                    f"document {doc} of {self.name} was indexed with other tokens: rebuild the view"
                )
        if present:
            places = [
                (scope, _hashed(term), doc)
                for doc, scope, tokens in present
                for term in dict.fromkeys(tokens)
            ]
            scopes, terms, numbers = (
                (list(column) for column in zip(*places, strict=True)) if places else ([],) * 3
            )
            conn.exec_driver_sql(
                f"DELETE FROM {self._postings} p USING unnest(%s::integer[], %s::bigint[], %s::bigint[])"
                " AS gone (scope, term, doc) WHERE p.scope = gone.scope AND p.term = gone.term AND p.doc = gone.doc",
                (scopes, terms, numbers),
            )
            conn.exec_driver_sql(f"DELETE FROM {self._docs} WHERE doc = ANY(%s)", ([d.doc for d in present],))
            self._count(conn, present, -1)
        return len(present)

    def matches(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Matches:
        """Postings of the terms and the statistics of exactly these scopes."""
        scopes = sorted(set(scopes))
        docs, tokens = self._statistics(conn, scopes)
        terms = list(dict.fromkeys(terms))
        counts: dict[int, dict[int, int]] = {_hashed(term): {} for term in terms}
        lengths: dict[int, int] = {}
        for term, doc, times, length in self._found(conn, scopes, list(counts)):
            counts[term][doc] = times
            lengths[doc] = length
        return Matches(docs, tokens, {term: counts[_hashed(term)] for term in terms}, lengths)

    def postings(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Postings:
        """The same as arrays, by the places of the terms, without lengths."""
        return _postings(conn, [self], scopes, terms)[0]

    def both(
        self, other: LexicalIndex, conn: Connection, scopes: Sequence[int], terms: Sequence[str]
    ) -> tuple[Postings, Postings]:
        """`postings` of this index and of another one, in one statement."""
        assert isinstance(other, PostgresLexicalIndex)
        mine, others = _postings(conn, [self, other], scopes, terms)
        return mine, others

    def _posted(self, number: int) -> str:
        """Two values and three arrays. number: of the index in its statement."""
        return (
            f"({self._sums}) s{number}, (SELECT array_agg(place), array_agg(doc), array_agg(times) FROM"
            f" (SELECT k.place - 1 AS place, p.doc, p.times FROM {self._postings} p"
            " JOIN unnest(%s::bigint[]) WITH ORDINALITY AS k (term, place) ON k.term = p.term"
            f" WHERE p.scope = ANY(%s) ORDER BY k.place, p.doc) AS found) a{number}"
        )

    def lengths(self, conn: Connection, docs: Sequence[int]) -> dict[int, int]:
        """How many tokens each of these documents has; absent ones are left out."""
        sql = f"SELECT doc, length FROM {self._docs} WHERE doc = ANY(%s)"
        return {row[0]: row[1] for row in conn.exec_driver_sql(sql, (list(docs),))}

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
        """Forget the words that were hashed here. What was deleted leaves the tables when they are rewritten."""
        _hashed.cache_clear()

    def _found(self, conn: Connection, scopes: Sequence[int], terms: Sequence[int]) -> Sequence[Any]:
        """Term, document, how often, length of the document; in the order in which documents were numbered."""
        if not scopes or not terms:
            return []
        sql = (
            f"SELECT p.term, p.doc, p.times, d.length FROM {self._postings} p JOIN {self._docs} d ON d.doc = p.doc"
            " WHERE p.scope = ANY(%s) AND p.term = ANY(%s) ORDER BY p.doc"
        )
        return conn.exec_driver_sql(sql, (list(scopes), list(terms))).fetchall()

    def _statistics(self, conn: Connection, scopes: Sequence[int]) -> tuple[int, int]:
        docs, tokens = conn.exec_driver_sql(self._sums, (list(scopes),)).one()
        return docs, tokens

    @property
    def _sums(self) -> str:
        return (
            "SELECT coalesce(sum(docs), 0)::bigint, coalesce(sum(tokens), 0)::bigint"
            f" FROM {self._scopes} WHERE scope = ANY(%s)"
        )

    def _stored(self, conn: Connection, docs: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        if not docs:
            return {}
        sql = f"SELECT doc, scope, length, checksum FROM {self._docs} WHERE doc = ANY(%s)"
        return {row[0]: (row[1], row[2], row[3]) for row in conn.exec_driver_sql(sql, (list(docs),))}

    def _count(self, conn: Connection, docs: Sequence[LexicalDocument], sign: int) -> None:
        numbers, tokens = Counter[int](), Counter[int]()
        for _, scope, words in docs:
            numbers[scope] += sign
            tokens[scope] += sign * len(words)
        scopes = sorted(numbers)
        conn.exec_driver_sql(
            f"INSERT INTO {self._scopes} AS s SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])"
            " ON CONFLICT (scope) DO UPDATE SET docs = s.docs + excluded.docs, tokens = s.tokens + excluded.tokens",
            (scopes, [numbers[scope] for scope in scopes], [tokens[scope] for scope in scopes]),
        )
        if sign < 0:
            conn.exec_driver_sql(f"DELETE FROM {self._scopes} WHERE scope = ANY(%s) AND docs = 0", (scopes,))


def _postings(
    conn: Connection, indexes: Sequence[PostgresLexicalIndex], scopes: Sequence[int], terms: Sequence[str]
) -> list[Postings]:
    from mnemolog.projections.postings import posted

    scopes = sorted(set(scopes))
    values = (scopes, [_hashed(term) for term in terms], scopes) * len(indexes)
    asked = ", ".join(index._posted(number) for number, index in enumerate(indexes))
    row = list(conn.exec_driver_sql(f"SELECT * FROM {asked}", values).one())
    return [
        posted(docs, tokens, *(column or [] for column in columns))
        for docs, tokens, *columns in (row[at : at + 5] for at in range(0, len(row), 5))
    ]


def _checksum(tokens: Sequence[str]) -> int:
    return crc32(" ".join(tokens).encode())


def _packed(docs: Sequence[LexicalDocument]) -> bytes:
    """All postings of these documents, in the order of their index: to fill it costs the server a third less."""
    import numpy as np

    terms, times, sizes = list[int](), list[int](), list[int]()
    for _, _, tokens in docs:
        counts = Counter(tokens)
        terms.extend(map(_hashed, counts))
        times.extend(counts.values())
        sizes.append(len(counts))
    doc, scope = (np.repeat([each[at] for each in docs], sizes) for at in (0, 1))
    term = np.array(terms, np.int64)
    order = np.lexsort((doc, term, scope))
    rows = np.empty(len(terms), _ROW)
    rows["columns"], rows["term"], rows["times"] = 4, term[order], np.array(times, np.int32)[order]
    rows["doc"], rows["scope"] = doc[order], scope[order]
    for bytes_of, column in {"b1": "term", "b2": "doc", "b3": "scope", "b4": "times"}.items():
        rows[bytes_of] = rows.dtype[column].itemsize
    return rows.tobytes()


@lru_cache(maxsize=65_536)
def _hashed(term: str) -> int:
    """64 bits of a term. Two terms of one scope that share them are rarer than a damaged disk."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big", signed=True)

"""`PostgresLexicalIndex`: scope-first BM25 on a table of postings.

A posting begins with its scope's number, so that a look-up touches one scope's postings only. Words stand in it as 64
bits of their hash: half the size, twice as quick, and no word is left in an index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final
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
_AT_ONCE: Final = 500
"""Documents whose postings are sent together: the server enters them while the next ones are made."""
_HASHES: Final = 65_536
"""How many hashes of words are remembered."""


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

    def add(self, conn: Connection, docs: Iterable[LexicalDocument]) -> None:
        """Index new documents. To change one, remove it first."""
        added: list[tuple[int, int, int, int]] = []
        packed = _packed_all(docs, added)
        first = next(packed, None)
        if first is None:
            return
        copy_packed(
            conn,
            f"COPY {self._postings} (term, doc, scope, times) FROM STDIN (FORMAT BINARY)",
            chain((first,), packed),
        )
        copy_into(
            conn,
            f"COPY {self._docs} (doc, scope, length, checksum) FROM STDIN (FORMAT BINARY)",
            ("int8", "int4", "int4", "int8"),
            added,
        )
        self._count(conn, [(scope, length) for _, scope, length, _ in added], 1)

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
                (scope, _hashed[term], doc)
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
            self._count(conn, [(scope, len(tokens)) for _, scope, tokens in present], -1)
        return len(present)

    def matches(self, conn: Connection, scopes: Sequence[int], terms: Sequence[str]) -> Matches:
        """Postings of the terms and the statistics of exactly these scopes."""
        scopes = sorted(set(scopes))
        docs, tokens = self._statistics(conn, scopes)
        terms = list(dict.fromkeys(terms))
        counts: dict[int, dict[int, int]] = {_hashed[term]: {} for term in terms}
        lengths: dict[int, int] = {}
        for term, doc, times, length in self._found(conn, scopes, list(counts)):
            counts[term][doc] = times
            lengths[doc] = length
        return Matches(docs, tokens, {term: counts[_hashed[term]] for term in terms}, lengths)

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
        _hashed.clear()

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

    def _count(self, conn: Connection, docs: Sequence[tuple[int, int]], sign: int) -> None:
        """docs: scope and length of each."""
        numbers, tokens = Counter[int](), Counter[int]()
        for scope, length in docs:
            numbers[scope] += sign
            tokens[scope] += sign * length
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
    values = (scopes, [_hashed[term] for term in terms], scopes) * len(indexes)
    asked = ", ".join(index._posted(number) for number, index in enumerate(indexes))
    row = list(conn.exec_driver_sql(f"SELECT * FROM {asked}", values).one())
    return [
        posted(docs, tokens, *(column or [] for column in columns))
        for docs, tokens, *columns in (row[at : at + 5] for at in range(0, len(row), 5))
    ]


def _checksum(tokens: Sequence[str]) -> int:
    return crc32(" ".join(tokens).encode())


def _packed_all(docs: Iterable[LexicalDocument], added: list[tuple[int, int, int, int]]) -> Iterator[bytes]:
    """The postings of some documents after the other; the rows of the documents are noted in `added`."""
    rest = iter(docs)
    while some := list(islice(rest, _AT_ONCE)):
        added += [(doc, scope, len(tokens), _checksum(tokens)) for doc, scope, tokens in some]
        yield _packed(some)


def _packed(docs: Sequence[LexicalDocument]) -> bytes:
    """All postings of these documents, in the order of their index: to fill it costs the server a third less."""
    import numpy as np

    numbers, scopes, tokens = zip(*docs, strict=True)
    words = list(chain.from_iterable(tokens))
    terms, term = np.unique(
        np.fromiter(map(_hashed.__getitem__, words), np.int64, len(words)), return_inverse=True
    )
    number, scope = np.array(numbers, np.int64), np.array(scopes, np.int64)
    order = np.lexsort((number, scope))
    number, scope = number[order], scope[order]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rank = np.cumsum(np.concatenate(([0], scope[1:] != scope[:-1])))
    # A document's place tells its scope, too: one number for scope, term and document.
    at = np.repeat(place, [len(each) for each in tokens])
    posting, times = np.unique((rank[at] * len(terms) + term) * len(docs) + at, return_counts=True)
    posting, at = np.divmod(posting, len(docs))
    rows = np.empty(len(at), _ROW)
    rows["columns"], rows["term"], rows["times"] = 4, terms[posting % max(1, len(terms))], times
    rows["doc"], rows["scope"] = number[at], scope[at]
    for bytes_of, column in {"b1": "term", "b2": "doc", "b3": "scope", "b4": "times"}.items():
        rows[bytes_of] = rows.dtype[column].itemsize
    return rows.tobytes()


class _Hashes(dict[str, int]):
    """Term → 64 bits of it. Two terms of one scope that share them are rarer than a damaged disk."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _HASHES:
            self.clear()
        found = int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big", signed=True)
        self[term] = found
        return found


_hashed: Final = _Hashes()

"""`ServerIndex`: the `VectorIndex` in a Qdrant server, for any number of reading processes and one that fills it.

Each generation is a collection of its own; an alias names the one that is searched. What a collection holds is said by
a point in it that no search can find: it has neither scope nor vector. A key of a scope is made with the space, so
that a question of another space finds nothing, whatever the alias names by now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from mnemolog.domain.errors import CorruptStore, StoreClosed, StoreInUse, StoreUnavailable
from mnemolog.domain.scope import ScopeIds
from mnemolog.infra.index.points import (
    FOUND,
    INDEXED,
    VECTOR,
    WHOLE,
    hits,
    named,
    payload_of,
    point_id,
    scope_key,
    wanted,
)
from mnemolog.projections.embedding import QueryVector, SpaceMismatch
from mnemolog.projections.vectors import Changes, Dropped, Kind, StoredVector

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter, Record

_CHUNK: Final = 1000
_CHECKED: Final = 32
"""Removed points of a call whose vectors are searched for afterwards."""
_POINTER: Final = "6f1c5b0a-9b0e-5d3b-8a64-706f696e7465"
_FRESH: Final = 0.5
"""Seconds that a reader trusts what it has read of the pointer."""


@dataclass(frozen=True, slots=True)
class _Pointer:
    """What a collection holds. dirty: bytes of removed points may be in it."""

    space: str
    dimensions: int
    identity: str
    flushed: int = 0
    dirty: bool = False
    erased_to: int = 0


def connect(url: str, key: str | None = None, timeout: int = 30) -> QdrantClient:
    """A client of the server at this url. key: its API key; timeout: seconds per request."""
    from qdrant_client import QdrantClient

    return QdrantClient(url=url, api_key=key, timeout=timeout, check_compatibility=False)


class ServerIndex:
    """An index under a name of this server.

    turn: entered by whoever changes it, one process at a time: what is late must not bring back what was removed.
    Raises StoreUnavailable where the server is away or refuses.
    """

    def __init__(
        self,
        client: QdrantClient,
        name: str,
        turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._client, self._name, self._turn = client, name, turn
        self._inside = False
        self._lock, self._closed = RLock(), False
        self._next: str | None = None
        self._known: tuple[float, str | None, _Pointer | None] = (0.0, None, None)

    @property
    def space(self) -> str | None:
        """The space that it holds; None while it was never filled."""
        pointer = self._live()[1]
        return pointer.space if pointer else None

    def is_begun(self) -> bool:
        """Whether there is one by now; asks the server."""
        return self._live(fresh=True)[1] is not None

    @property
    def identity(self) -> str | None:
        """The identity of the rows that it was filled from."""
        pointer = self._live()[1]
        return pointer.identity if pointer else None

    @property
    def flushed(self) -> int:
        """The change number up to which the server has it."""
        with self._server():
            pointer = self._read(self._next) if self._next else self._live()[1]
        return pointer.flushed if pointer else 0

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Nobody else changes it inside. Raises StoreInUse where another one does not get done, StoreUnavailable."""
        with self._lock:
            if self._inside:
                yield
                return
            with self._turn():
                self._inside, self._known = True, (0.0, None, None)
                try:
                    yield
                finally:
                    self._inside = False

    def begin(self, space: str, dimensions: int, identity: str) -> None:
        """Start an empty collection beside the present one; `apply` fills it, `activate` switches searches to it."""
        with self._server():
            self._next = self._create(_Pointer(space, dimensions, identity))

    def apply(self, changes: Changes) -> None:
        """Remove and store, each waited for. Repeating it changes nothing."""
        with self._server():
            name, pointer = (self._next, self._read(self._next)) if self._next else self._live(fresh=True)
            if name is None or pointer is None:
                raise CorruptStore("the vector index was not begun: begin it with a space")
            if changes.dropped and not pointer.dirty:
                pointer = self._write(name, replace(pointer, dirty=True))
            self._remove(name, pointer.space, changes.dropped)
            self._store(name, pointer.space, changes.stored)
            self._write(name, replace(pointer, flushed=changes.change))

    def activate(self) -> None:
        """Let searches see the collection that was begun, at once, and drop the one before."""
        from qdrant_client import models

        with self._server():
            if self._next is None:
                return
            # To create alone overwrites; to delete and create is not undone where the second half fails.
            create = models.CreateAlias(collection_name=self._next, alias_name=self._name)
            self._client.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])
            self._next = None
            self._drop_all_but(self._live(fresh=True)[0])

    def compact(self, erased_to: int = 0) -> None:
        """Copy what is left into a new collection, so that nothing of what was removed is on the server's disk.

        erased_to: the position up to which the log's erasures have been applied.
        """
        with self._server():
            name, pointer = self._live(fresh=True)
            if name is None or pointer is None:
                return
            upto = max(pointer.erased_to, erased_to)
            if pointer.dirty:
                self._next = self._create(replace(pointer, dirty=False, erased_to=upto))
                self._copy(name, self._next)
                self.activate()
            elif upto > pointer.erased_to:
                self._write(name, replace(pointer, erased_to=upto))

    def search(
        self, query: QueryVector, scopes: Collection[ScopeIds], k: int, kind: Kind
    ) -> list[tuple[int, float]]:
        """(log position, cosine) of the k nearest vectors of these scopes, best first; of passages, their numbers.

        Raises SpaceMismatch.
        """
        with self._server():
            pointer = self._live()[1]
            if pointer is None:
                raise SpaceMismatch("an empty index", query.space)
            query.require(pointer.space)
            if not scopes:
                return []
            answer = self._client.query_points(
                self._name,
                query=query.values.tolist(),
                using=VECTOR,
                query_filter=_inside(pointer.space, scopes, kind),
                limit=k,
                with_payload=list(FOUND),
            )
        return hits(answer.points, kind)

    def points(self) -> dict[tuple[int, Kind, int], int]:
        """(log position, kind, part) → change number of every point, to be compared with the rows."""
        with self._server():
            name = self._live(fresh=True)[0]
            return {} if name is None else dict(named(r.payload or {}) for r in self._records(name))

    def holding(self, positions: Sequence[int]) -> int:
        """How many points it has of the events at these positions, found by their ids or by a filter."""
        with self._server():
            name, pointer = self._live(fresh=True)
            if name is None or pointer is None:
                return 0
            ids = [point_id(pointer.space, kind, at) for at in positions for kind in WHOLE]
            held = {str(one.id) for some in _chunks(ids) for one in self._client.retrieve(name, some)}
            return max(len(held), self._count(name, positions))

    def close(self) -> None:
        """Let go of the server. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._client.close()

    # Collections -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _server(self) -> Iterator[None]:
        """One call at a time, with errors of ours."""
        with self._lock:
            if self._closed:
                raise StoreClosed("the vector index was closed: open it anew")
            try:
                yield
            except (CorruptStore, SpaceMismatch, StoreInUse, StoreUnavailable):
                raise
            except Exception as error:  # the client raises whatever it met
                what = type(error).__name__
                raise StoreUnavailable(
                    f"the vector server cannot be used ({what}): start it, retry"
                ) from error

    def _live(self, fresh: bool = False) -> tuple[str | None, _Pointer | None]:
        """The collection behind the alias, and what it holds."""
        with self._server():
            read, name, pointer = self._known
            if fresh or not read or time.monotonic() - read > _FRESH:
                aliases = self._client.get_aliases().aliases
                name = next((one.collection_name for one in aliases if one.alias_name == self._name), None)
                pointer = None if name is None else self._read(name)
                self._known = time.monotonic(), name, pointer
            return name, pointer

    def _read(self, collection: str) -> _Pointer | None:
        found = self._client.retrieve(collection, [_POINTER])
        return _Pointer(**(found[0].payload or {})["pointer"]) if found else None

    def _write(self, collection: str, pointer: _Pointer) -> _Pointer:
        from qdrant_client import models

        point = models.PointStruct(id=_POINTER, vector={}, payload={"pointer": asdict(pointer)})
        self._client.upsert(collection, [point], wait=True)
        self._known = (0.0, None, None)
        return pointer

    def _collections(self) -> dict[str, int]:
        """Every collection of ours → its generation."""
        found = self._client.get_collections().collections
        parts = [(one.name, one.name.removeprefix(f"{self._name}.").split(".")) for one in found]
        return {
            name: int(rest[1])
            for name, rest in parts
            if name.startswith(f"{self._name}.") and len(rest) == 2 and rest[1].isdigit()
        }

    def _create(self, pointer: _Pointer) -> str:
        """An empty collection of a new generation; what an earlier attempt left is dropped."""
        from qdrant_client import models

        self._drop_all_but(self._live(fresh=True)[0])
        generation = max(self._collections().values(), default=0) + 1
        space = blake2b(pointer.space.encode(), digest_size=4).hexdigest()
        name = f"{self._name}.{space}.{generation}"
        self._client.create_collection(
            name,
            # Rows hold unit vectors, so the dot product is their cosine, and is left as it is.
            vectors_config={
                VECTOR: models.VectorParams(size=pointer.dimensions, distance=models.Distance.DOT)
            },
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
            optimizers_config=models.OptimizersConfigDiff(
                deleted_threshold=0.0, vacuum_min_vector_number=100
            ),
            wal_config=models.WalConfigDiff(wal_capacity_mb=1),
        )
        for field in INDEXED:
            keyword = models.KeywordIndexParams(
                type=models.KeywordIndexType.KEYWORD, is_tenant=field == "tenant"
            )
            self._client.create_payload_index(name, field, keyword, wait=True)
        self._client.create_payload_index(name, "position", models.PayloadSchemaType.INTEGER, wait=True)
        self._write(name, pointer)
        return name

    def _drop_all_but(self, live: str | None) -> None:
        for name in self._collections():
            if name != live:
                self._client.delete_collection(name)

    # Points ----------------------------------------------------------------------------------------------------------

    def _store(self, collection: str, space: str, rows: Sequence[StoredVector]) -> None:
        """Delete first, then insert: what is overwritten in place would stay in the segment."""
        for some in _chunks(rows):
            points = [_point(space, row) for row in some]
            self._delete(collection, [str(point.id) for point in points])
            self._client.upsert(collection, points, wait=True)

    def _remove(self, collection: str, space: str, gone: Sequence[Dropped]) -> None:
        """Remove points, and look that they are gone: by id, by filter, and by their vectors."""
        for some in _chunks(gone):
            ids = [point_id(space, one.kind, one.position, one.part) for one in some]
            there = self._client.retrieve(collection, ids, with_vectors=True)
            if there:
                self._delete(collection, [str(one.id) for one in there])
                self._check_gone(collection, there)

    def _delete(self, collection: str, ids: Sequence[str]) -> None:
        from qdrant_client import models

        self._client.delete(collection, models.PointIdsList(points=list(ids)), wait=True)

    def _check_gone(self, collection: str, removed: Sequence[Record]) -> None:
        from qdrant_client import models

        ids = [one.id for one in removed]
        theirs = models.Filter(must=[models.HasIdCondition(has_id=ids)])
        left = len(self._client.retrieve(collection, ids))
        left += self._client.count(collection, count_filter=theirs, exact=True).count
        for one in removed[:_CHECKED]:
            vectors: Any = one.vector
            near = self._client.query_points(collection, query=vectors[VECTOR], using=VECTOR, limit=1)
            left += sum(hit.id == one.id for hit in near.points)
        if left:
            raise CorruptStore("the vector server still has points that it was told to remove: build it anew")

    def _count(self, collection: str, positions: Sequence[int]) -> int:
        from qdrant_client import models

        total = 0
        for some in _chunks(positions):
            match = models.MatchAny(any=list(some))
            inside = models.Filter(must=[models.FieldCondition(key="position", match=match)])
            total += self._client.count(collection, count_filter=inside, exact=True).count
        return total

    def _copy(self, old: str, new: str) -> None:
        from qdrant_client import models

        records = self._records(old, with_vectors=True)
        while some := list(islice(records, _CHUNK)):
            vectors: list[Any] = [one.vector or {} for one in some]
            points = [
                models.PointStruct(id=one.id, vector=vector, payload=one.payload)
                for one, vector in zip(some, vectors, strict=True)
            ]
            self._client.upsert(new, points, wait=True)

    def _records(self, collection: str, with_vectors: bool = False) -> Iterator[Record]:
        offset: Any = None
        while True:
            records, offset = self._client.scroll(
                collection, limit=_CHUNK, offset=offset, with_payload=True, with_vectors=with_vectors
            )
            yield from (record for record in records if record.id != _POINTER)
            if offset is None:
                return


def _point(space: str, row: StoredVector) -> Any:
    from qdrant_client import models

    return models.PointStruct(
        id=point_id(space, row.kind, row.place.position, row.part),
        vector={VECTOR: row.values.tolist()},
        payload={**payload_of(row), "scope": _key(space, row.scope)},
    )


def _inside(space: str, scopes: Collection[ScopeIds], kind: Kind) -> Filter:
    from qdrant_client import models

    return models.Filter(
        must=[
            models.FieldCondition(key=key, match=models.MatchAny(any=values))
            for key, values in wanted(scopes, kind, lambda scope: _key(space, scope)).items()
        ]
    )


def _key(space: str, scope: ScopeIds) -> str:
    return blake2b(f"{space}/{scope_key(scope)}".encode(), digest_size=12).hexdigest()


def _chunks(values: Sequence[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(values), _CHUNK):
        yield list(values[at : at + _CHUNK])

"""`EdgeIndex`: the `VectorIndex` of the leading process, over shards of Qdrant Edge.

Its own write-ahead log is off, for that keeps what was removed. So what is on disk is what was flushed: the pointer
file says up to which change that is. A process that died while it changed shards may have left any part of the change
there, and repeating it is not always taken; so the pointer says beforehand that shards are being changed, and an index
left so is made anew from its rows.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import orjson

from mnemolog.domain.errors import CorruptStore, StoreClosed, StoreInUse
from mnemolog.domain.scope import ScopeIds, owner
from mnemolog.infra.index.points import (
    FOUND,
    INDEXED,
    VECTOR,
    WHOLE,
    Scored,
    hits,
    named,
    payload_of,
    point_id,
    wanted,
)
from mnemolog.projections.embedding import QueryVector, SpaceMismatch
from mnemolog.projections.private import private
from mnemolog.projections.vectors import Changes, Kind, StoredVector

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, Point

SHARDS: Final = 8
"""One owner's compaction rewrites about an eighth of the index. A shard is made when its first point comes."""
FORMAT: Final = 1
_POINTER: Final = "current.json"
# In kilobytes. A graph is built only far above what a scope holds; below it every search is exact.
_INDEXING_THRESHOLD: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class _Pointer:
    """What is on disk.

    made: shards that have points; dirty: those that hold bytes of removed vectors; changing: shards are being changed;
    erased_to: up to which position of the log no byte of what was erased is left.
    """

    space: str
    dimensions: int
    identity: str
    generation: int
    flushed: int
    width: int = SHARDS
    made: tuple[int, ...] = ()
    dirty: tuple[int, ...] = ()
    changing: bool = False
    erased_to: int = 0
    format: int = FORMAT


@dataclass(slots=True)
class _Generation:
    """One set of shards, open."""

    pointer: _Pointer
    folder: Path
    shards: dict[int, EdgeShard]

    def shard_of(self, scope: ScopeIds) -> int:
        digest = blake2b(owner(scope).encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") % self.pointer.width

    def shard(self, number: int) -> EdgeShard:
        if number not in self.shards:
            self.shards[number] = _create(self.folder / str(number), self.pointer.dimensions)
        return self.shards[number]

    def close(self) -> None:
        for shard in self.shards.values():
            shard.close()


class EdgeIndex:
    """A folder of this process alone. Raises StoreInUse where another one has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._release = _lock(self._folder / "lock")
        self._lock, self._closed, self._pid = RLock(), False, os.getpid()
        self._next: _Generation | None = None
        try:
            self._live = self._open_live()
        except BaseException:
            self._release()
            raise

    @property
    def space(self) -> str | None:
        """The space that it holds; None while it was never filled."""
        return self._live.pointer.space if self._live else None

    @property
    def identity(self) -> str | None:
        """The identity of the rows that it was filled from."""
        return self._live.pointer.identity if self._live else None

    @property
    def flushed(self) -> int:
        """The change number up to which it is on disk."""
        return self._filling().pointer.flushed if self._live or self._next else 0

    def exclusively(self) -> AbstractContextManager[None]:
        """The folder's lock sees to that."""
        return nullcontext()

    def begin(self, space: str, dimensions: int, identity: str) -> None:
        """Start an empty index beside the present one; `apply` fills it, `activate` switches searches to it."""
        with self._lock:
            self._check_open()
            self._abandon()
            before = self._live.pointer if self._live else None
            number = 1 + (before.generation if before else 0)
            # What is filled in now was clean before the index was: rows are erased first.
            clean = before.erased_to if before else 0
            pointer = _Pointer(space, dimensions, identity, number, 0, erased_to=clean)
            folder = self._folder / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            self._next = _Generation(pointer, folder, {})

    def apply(self, changes: Changes) -> None:
        """Remove and store, and flush. Repeating it changes nothing."""
        with self._lock:
            self._check_open()
            generation = self._filling()
            pointer = generation.pointer
            gone, added = _by_shard(generation, changes)
            self._put(generation, replace(pointer, changing=True))
            for number in sorted({*gone, *added}):
                if number in generation.shards or number in added:
                    _update(generation.shard(number), gone.get(number, []), added.get(number, []))
            made = tuple(sorted(generation.shards))
            dirty = tuple(sorted({*pointer.dirty, *gone} & {*made}))
            self._put(generation, replace(pointer, flushed=changes.change, made=made, dirty=dirty))

    def activate(self) -> None:
        """Let searches see the index that was begun, at once, and drop the one before."""
        with self._lock:
            self._check_open()
            if self._next is None:
                return
            old, self._live, self._next = self._live, self._next, None
            _write_pointer(self._folder / _POINTER, self._live.pointer)
            if old is not None:
                old.close()
                shutil.rmtree(self._folder / str(old.pointer.generation), ignore_errors=True)

    def compact(self, erased_to: int = 0) -> None:
        """Rewrite the shards that have removed vectors in them, so that their bytes are gone.

        erased_to: the position up to which the log's erasures have been applied.
        """
        with self._lock:
            self._check_open()
            live = self._live
            if live is None:
                return
            pointer = live.pointer
            upto = max(pointer.erased_to, erased_to)
            if not pointer.dirty and pointer.erased_to == upto:
                return
            self._put(live, replace(pointer, changing=True))
            for number in pointer.dirty:
                _optimise(live.shards[number])
            self._put(live, replace(pointer, dirty=(), erased_to=upto))

    def search(
        self, query: QueryVector, scopes: Collection[ScopeIds], k: int, kind: Kind
    ) -> list[tuple[int, float]]:
        """(log position, cosine) of the k nearest vectors of these scopes, best first; of passages, their numbers.

        Raises SpaceMismatch.
        """
        with self._lock:
            self._check_open()
            live = self._live
            if live is None:
                raise SpaceMismatch("an empty index", query.space)
            query.require(live.pointer.space)
            by_shard: dict[int, list[ScopeIds]] = {}
            for scope in scopes:
                by_shard.setdefault(live.shard_of(scope), []).append(scope)
            found = [
                hit
                for number, some in by_shard.items()
                if number in live.shards
                for hit in _search(live.shards[number], query, some, k, kind)
            ]
        return hits(found, kind)[:k]

    def points(self) -> dict[tuple[int, Kind, int], int]:
        """(log position, kind, part) → change number of every point, to be compared with the rows."""
        with self._lock:
            self._check_open()
            shards = self._live.shards.values() if self._live else ()
            payloads = [values for shard in shards for values in _payloads(shard)]
        return dict(map(named, payloads))

    def holding(self, positions: Sequence[int]) -> int:
        """How many points it has of the events at these positions."""
        with self._lock:
            self._check_open()
            live = self._live
            if live is None or not positions:
                return 0
            ids: list[Any] = [point_id(live.pointer.space, kind, at) for at in positions for kind in WHOLE]
            return sum(
                len(shard.retrieve(ids[at : at + 1000], with_payload=False, with_vector=False))
                for shard in live.shards.values()
                for at in range(0, len(ids), 1000)
            ) + sum(_passages_of(shard, positions) for shard in live.shards.values())

    def close(self) -> None:
        """Let go of the folder. What was not flushed is filled in again. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for generation in (self._live, self._next):
                if generation is not None:
                    generation.close()
            self._release()

    def _filling(self) -> _Generation:
        generation = self._next or self._live
        if generation is None:
            raise CorruptStore("the vector index was not begun: begin it with a space")
        return generation

    def _put(self, generation: _Generation, pointer: _Pointer) -> None:
        generation.pointer = pointer
        if generation is self._live:
            _write_pointer(self._folder / _POINTER, pointer)

    def _abandon(self) -> None:
        if self._next is not None:
            self._next.close()
            shutil.rmtree(self._folder / str(self._next.pointer.generation), ignore_errors=True)
            self._next = None

    def _open_live(self) -> _Generation | None:
        """The index that the pointer names; None where there is none, or it is damaged: it is then made anew."""
        pointer = _read_pointer(self._folder / _POINTER)
        if pointer is not None and pointer.changing:
            pointer = None
        for folder in self._folder.iterdir():
            if folder.is_dir() and (pointer is None or folder.name != str(pointer.generation)):
                shutil.rmtree(folder, ignore_errors=True)
        if pointer is None:
            return None
        folder = self._folder / str(pointer.generation)
        try:
            return _Generation(
                pointer, folder, {n: _load(folder / str(n)) for n in _kept(folder, pointer.made)}
            )
        except Exception:  # the library raises whatever it met
            return None

    def _check_open(self) -> None:
        if self._closed or self._pid != os.getpid():
            raise StoreClosed("the vector index was closed, or this is a fork of its process: open it anew")


def _by_shard(
    generation: _Generation, changes: Changes
) -> tuple[dict[int, list[str]], dict[int, list[Point]]]:
    """Ids to remove and points to store, each by the shard of its owner."""
    space = generation.pointer.space
    gone: dict[int, list[str]] = {}
    added: dict[int, list[Point]] = {}
    for one in changes.dropped:
        ids = gone.setdefault(generation.shard_of(one.scope), [])
        ids.append(point_id(space, one.kind, one.position, one.part))
    for row in changes.stored:
        added.setdefault(generation.shard_of(row.scope), []).append(_point(space, row))
    return gone, added


def _kept(folder: Path, made: Sequence[int]) -> Sequence[int]:
    """The shards that the pointer knows; one that a crash left without it is removed."""
    names = {str(number) for number in made}
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path)
    return made


def _point(space: str, row: StoredVector) -> Point:
    from qdrant_edge import Point

    id = point_id(space, row.kind, row.place.position, row.part)
    return Point(id, {VECTOR: row.values.tolist()}, payload_of(row))


def _update(shard: EdgeShard, gone: list[str], added: list[Point]) -> None:
    """Delete first, then insert: what is overwritten in place would stay in the segment."""
    from qdrant_edge import UpdateOperation

    removed: list[Any] = [*gone, *(point.id for point in added)]
    shard.update(UpdateOperation.delete_points(removed))
    if added:
        shard.update(UpdateOperation.upsert_points(added))
    shard.flush()


def _optimise(shard: EdgeShard) -> None:
    """Rewrite its segments without what was removed."""
    shard.optimize()
    shard.flush()


def _search(
    shard: EdgeShard, query: QueryVector, scopes: Sequence[ScopeIds], k: int, kind: Kind
) -> Sequence[Scored]:
    from qdrant_edge import Query, QueryRequest

    nearest = Query.Nearest(query.values.tolist(), using=VECTOR)
    inside = _filter(scopes, kind)
    return shard.query(QueryRequest(limit=k, query=nearest, filter=inside, with_payload=list(FOUND)))


def _passages_of(shard: EdgeShard, positions: Sequence[int]) -> int:
    """How many points of passages there are of these events; how many parts each has is not known here."""
    from qdrant_edge import CountRequest, FieldCondition, Filter, MatchAny

    total = 0
    for at in range(0, len(positions), 1000):
        some = MatchAny(list(positions[at : at + 1000]))
        kind = FieldCondition(key="kind", match=MatchAny([Kind.PASSAGE.name]))
        inside = Filter(must=[kind, FieldCondition(key="position", match=some)])
        total += shard.count(CountRequest(filter=inside, exact=True))
    return total


def _payloads(shard: EdgeShard) -> Iterator[dict[str, Any]]:
    from qdrant_edge import ScrollRequest

    offset: Any = None
    while True:
        records, offset = shard.scroll(ScrollRequest(offset=offset, limit=1000, with_payload=True))
        yield from (record.payload or {} for record in records)
        if offset is None:
            return


def _filter(scopes: Sequence[ScopeIds], kind: Kind) -> Filter:
    from qdrant_edge import FieldCondition, Filter, MatchAny

    asked = wanted(scopes, kind).items()
    return Filter(must=[FieldCondition(key=key, match=MatchAny(values)) for key, values in asked])


def _create(folder: Path, dimensions: int) -> EdgeShard:
    from qdrant_edge import (
        Distance,
        EdgeConfig,
        EdgeOptimizersConfig,
        EdgeShard,
        EdgeVectorParams,
        KeywordIndexParams,
        UpdateOperation,
    )

    folder.mkdir(mode=0o700, parents=True)
    # Rows hold unit vectors, so the dot product is their cosine, and is left as it is.
    config = EdgeConfig(
        vectors={VECTOR: EdgeVectorParams(size=dimensions, distance=Distance.Dot)},
        optimizers=EdgeOptimizersConfig(
            deleted_threshold=0.0,
            vacuum_min_vector_number=0,
            default_segment_number=1,
            indexing_threshold=_INDEXING_THRESHOLD,
        ),
        max_search_threads=1,
        wal_enabled=False,
    )
    shard = EdgeShard.create(str(folder), config)
    for name in INDEXED:
        index = KeywordIndexParams(is_tenant=name == "tenant")
        shard.update(UpdateOperation.create_field_index(name, index))
    shard.flush()
    return shard


def _load(folder: Path) -> EdgeShard:
    from qdrant_edge import EdgeShard

    return EdgeShard.load(str(folder))


def erased_to(folder: Path) -> int | None:
    """Up to which position of the log an index, which another process has, holds nothing erased; None for no index."""
    pointer = _read_pointer(folder / _POINTER)
    return None if pointer is None else pointer.erased_to


def _read_pointer(path: Path) -> _Pointer | None:
    try:
        values = orjson.loads(path.read_bytes())
        pointer = _Pointer(**{**values, **{name: tuple(values[name]) for name in ("made", "dirty")}})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return pointer if pointer.format == FORMAT else None


def _write_pointer(path: Path, pointer: _Pointer) -> None:
    beside = path.with_suffix(".new")
    with open(beside, "wb", opener=private) as file:
        file.write(orjson.dumps(asdict(pointer)))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _lock(path: Path) -> Callable[[], None]:
    """Without the library's write-ahead log there is no lock of its own, and a second writer loses points."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreInUse(f"another process has the vector index {path.parent}: use that process") from None
    return lambda: _unlock(descriptor)


def _unlock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)

"""`StoredVectors`: the `VectorRows`, over the tables of a SQLite file or of a PostgreSQL schema.

A vector is kept as 16-bit floats: half the bytes, and a cosine that is off by some 1e-5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from mnemolog.domain.passages import PARTS, place_of
from mnemolog.domain.scope import ScopeIds
from mnemolog.infra.vectors.carrying import carry
from mnemolog.infra.vectors.database import Database
from mnemolog.infra.vectors.erasing import apply_erasures, chunks, fences_of, marks
from mnemolog.infra.vectors.numbers import (
    SAME,
    find_scopes,
    get_number,
    levels_of,
    make_scopes,
    next_change,
    put_number,
    scope_from,
    space_of,
)
from mnemolog.infra.vectors.statements import Connection, VectorDatabase
from mnemolog.projections.embedding import Floats, SpaceMismatch
from mnemolog.projections.vectors import (
    Batch,
    Changes,
    Dropped,
    ErasureReader,
    Kind,
    Made,
    Outcome,
    Place,
    Slice,
    Source,
    Stage,
    Stamp,
    StoredVector,
    Window,
)

_SCOPE_LEVELS: Final = 'c.tenant, c.organization, c."user", c.project'
_PROGRESS: Final = {Stage.TEXTS: "position", Stage.PASSAGES: "passages"}
"""The column of each stage in `spaces`."""
_PROGRESS_OF: Final = {
    stage: f"SELECT {column} FROM spaces WHERE name = ?" for stage, column in _PROGRESS.items()
}


_TOGETHER: Final = 100
"""Sessions that are asked about in one statement."""


def sqlite_vectors(path: Path) -> StoredVectors:
    """The rows of a file, which is made if missing."""
    return StoredVectors(Database(path))


class StoredVectors:
    """One store, shared by all projection versions. Several processes may read it; one worker at a time writes."""

    def __init__(self, database: VectorDatabase) -> None:
        self._database = database

    @property
    def identity(self) -> str:
        """A random name of these rows."""
        return f"{self._database.number('identity'):x}"

    def close(self) -> None:
        """Close every connection. Idempotent."""
        self._database.close()

    def take_over(self, other: StoredVectors) -> int:
        """Hold exactly what the other one holds; how many vectors. Bytes of what was held before go with `purge`."""
        return carry(other._database, self._database)

    # Spaces ------------------------------------------------------------------------------------------------------

    def open_space(self, space: str, dimensions: int) -> int:
        """Make the space known; how far in the log it is embedded. Raises SpaceMismatch for other dimensions."""
        with self._database.write() as conn:
            query = "INSERT INTO spaces (name, dimensions, position) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
            conn.execute(query, (space, dimensions))
            _, stored, position = _required(conn, space)
        if stored != dimensions:
            raise SpaceMismatch(f"{space} ({stored} dimensions)", f"{space} ({dimensions} dimensions)")
        return position

    def spaces(self) -> dict[str, int]:
        """Every space and how far in the log it is embedded."""
        return dict(self._database.ask("SELECT name, position FROM spaces ORDER BY number"))

    def position(self, space: str, stage: Stage = Stage.TEXTS) -> int:
        """How far in the log this stage of the space is embedded."""
        found = self._database.ask(_PROGRESS_OF[stage], (space,))
        return int(found[0][0]) if found else 0

    def drop_space(self, space: str) -> int:
        """Remove every vector of the space; how many there were."""
        with self._database.write() as conn:
            found = space_of(conn, space)
            if found is None:
                return 0
            next_change(conn)
            for table in ("dropped", "due"):
                conn.execute(f"DELETE FROM {table} WHERE space = ?", (found[0],))
            conn.execute("DELETE FROM spaces WHERE number = ?", (found[0],))
            return int(conn.execute("DELETE FROM vectors WHERE space = ?", (found[0],)).rowcount)

    # What the worker asks ------------------------------------------------------------------------------------------

    def tails(self, sessions: Collection[str], upto: int) -> Mapping[str, Sequence[Place]]:
        """The last two turns of each session up to a position, the older first."""
        last = (
            "SELECT * FROM (SELECT session, position, event_id FROM sources WHERE session = ? AND record IS NULL"
            " AND position <= ? ORDER BY position DESC LIMIT 2) AS last"
        )
        found: dict[str, list[Place]] = {session: [] for session in sessions}
        for some in chunks(sorted(found), _TOGETHER):
            values = [value for session in some for value in (session, upto)]
            for session, *place in self._database.ask(" UNION ALL ".join([last] * len(some)), values):
                found[session].append(Place(*place))
        return {session: sorted(places, key=lambda one: one.position) for session, places in found.items()}

    def due(self, space: str, upto: int, limit: int) -> Sequence[Window]:
        """Windows that an erasure took and that are to be made anew from what is left up to a position."""
        near = "SELECT {}(position) FROM sources WHERE session = s.session AND record IS NULL AND position"
        query = (
            "SELECT s.position, s.event_id, b.position, b.event_id, a.position, a.event_id"
            " FROM due d JOIN sources s ON s.position = d.position"
            f" LEFT JOIN sources b ON b.position = ({near.format('max')} < s.position)"
            f" LEFT JOIN sources a ON a.position = ({near.format('min')} > s.position AND position <= ?)"
            " WHERE d.space = (SELECT number FROM spaces WHERE name = ?) ORDER BY d.position LIMIT ?"
        )
        return [_window(*row) for row in self._database.ask(query, (upto, space, limit))]

    def count_due(self, space: str) -> int:
        """How many windows wait to be made anew."""
        query = "SELECT count(*) FROM due WHERE space = (SELECT number FROM spaces WHERE name = ?)"
        return int(self._database.ask(query, (space,))[0][0])

    def commit(self, batch: Batch, erasures: ErasureReader) -> Outcome:
        """Store a batch and its position in one transaction, in which the log's erasures are looked at first."""
        with self._database.write() as conn:
            number = _required(conn, batch.space)[0]
            if _progress(conn, batch.space, batch.stages[0]) != batch.after:
                return Outcome(False)
            _take_in(conn, erasures)
            for column in map(_PROGRESS.__getitem__, batch.stages):
                moved = f"UPDATE spaces SET {column} = ? WHERE number = ? AND {column} = ?"
                conn.execute(moved, (batch.position, number, batch.after))
            settled = [(number, position) for position in batch.settled]
            conn.executemany("DELETE FROM due WHERE space = ? AND position = ?", settled)
            _insert_sources(conn, batch.sources)
            fenced, rows = _new_vectors(conn, number, batch.made)
            self._database.insert_vectors(conn, rows)
            return Outcome(True, fenced)

    def erase(self, erasures: ErasureReader) -> int:
        """Apply what was erased since the last look; how far the log was looked at."""
        events, upto = erasures(self._database.number("erasures"))
        if not events:
            return upto  # the next batch notes how far that is
        with self._database.write() as conn:
            return _take_in(conn, erasures)

    def purge(self) -> bool:
        """Rewrite the file so that no removed byte is left. False: a reader was in the way, so purge again later."""
        return self._database.vacuum()

    # What readers and indexes ask ------------------------------------------------------------------------------------

    def change(self) -> int:
        """The number of the last write or removal in any space."""
        return self._database.number("change")

    def slice(self, space: str, scope: ScopeIds, kind: Kind, since: Stamp) -> Slice:
        """The rows of this scope that are new since a stamp, or all where something was removed since."""
        with self._database.read() as conn:
            dimensions, at = _at(conn, space, scope, kind)
            if at is None:
                return _sliced([], dimensions, Stamp(0, 0), True)
            last = "(SELECT coalesce(max(change), 0) FROM {} WHERE space = ? AND scope = ? AND kind = ?)"
            both = f"SELECT {last.format('vectors')}, {last.format('dropped')}"
            stamp = Stamp(*conn.execute(both, (*at, *at)).fetchone())
            whole = since.written < 0 or stamp.removed != since.removed
            query = (
                f"SELECT {_listed(kind)}, vector FROM vectors"
                " WHERE space = ? AND scope = ? AND kind = ? AND change > ?"
            )
            rows = conn.execute(query, (*at, -1 if whole else since.written)).fetchall()
            return _sliced(rows, dimensions, stamp, whole)

    def changes(self, space: str, after: int, limit: int) -> Changes:
        """What was stored and removed behind a change number, at most `limit` stored vectors at a time."""
        with self._database.read() as conn:
            found = space_of(conn, space)
            if found is None:
                return Changes((), (), after)
            query = (
                f"SELECT v.change, v.kind, v.position, s.event_id, {_SCOPE_LEVELS}, s.session, s.record, s.origin,"
                " s.occurred_us, v.part, v.vector FROM vectors v JOIN sources s ON s.position = v.position"
                " JOIN scopes c ON c.number = v.scope WHERE v.space = ? AND v.change > ? ORDER BY v.change LIMIT ?"
            )
            stored = [_stored(row) for row in conn.execute(query, (found[0], after, limit))]
            upto = stored[-1].change if len(stored) == limit else get_number(conn, "change")
            query = (
                f"SELECT d.change, d.kind, d.position, d.part, {_SCOPE_LEVELS} FROM dropped d"
                " JOIN scopes c ON c.number = d.scope WHERE d.space = ? AND d.change > ? AND d.change <= ?"
            )
            gone = [
                Dropped(change, Kind(kind), position, scope_from(*levels), part)
                for change, kind, position, part, *levels in conn.execute(query, (found[0], after, upto))
            ]
        return Changes(gone, stored, upto)

    def standing(
        self, space: str, scopes: Collection[ScopeIds], kind: Kind, positions: Sequence[int]
    ) -> set[int]:
        """Those of the positions (of passages: the numbers) that have a vector of this kind in one of these scopes."""
        standing: set[int] = set()
        with self._database.read() as conn:
            found, inside = space_of(conn, space), set(find_scopes(conn, scopes))
            if found is None:
                return standing
            for some in chunks(positions):
                events = some if kind is not Kind.PASSAGE else sorted({place_of(one)[0] for one in some})
                wanted = f"position IN ({marks(events)}) AND kind = ? AND space = ?"
                query = f"SELECT {_listed(kind)}, scope FROM vectors WHERE {wanted}"
                rows = conn.execute(query, [*events, int(kind), found[0]])
                standing |= {listed for listed, scope in rows if scope in inside}
        return standing & set(positions)

    def count(self, space: str, scopes: Collection[ScopeIds], kind: Kind) -> int:
        """How many vectors of this kind these scopes have."""
        query = "SELECT count(*) FROM vectors WHERE space = ? AND scope = ? AND kind = ?"
        with self._database.read() as conn:
            found = space_of(conn, space)
            if found is None:
                return 0
            numbers = find_scopes(conn, scopes)
            return sum(conn.execute(query, (found[0], n, int(kind))).fetchone()[0] for n in numbers)

    def largest(self) -> int:
        """How many events, or passages, the scope has that has most."""
        counts = (
            "SELECT count(*) FROM sources GROUP BY scope ORDER BY 1 DESC LIMIT 1",
            f"SELECT count(*) FROM vectors WHERE kind = {Kind.PASSAGE:d} GROUP BY scope ORDER BY 1 DESC LIMIT 1",
        )
        with self._database.read() as conn:
            found = [conn.execute(query).fetchone() for query in counts]
        return max(int(row[0]) if row else 0 for row in found)

    def sample(self, space: str, scope: ScopeIds, kind: Kind, limit: int) -> Floats:
        """The first vectors of a scope, float32 (n, dimensions), to know their spread by."""
        query = (
            "SELECT position, vector FROM vectors WHERE space = ? AND scope = ? AND kind = ?"
            " ORDER BY change LIMIT ?"
        )
        with self._database.read() as conn:
            dimensions, at = _at(conn, space, scope, kind)
            rows = [] if at is None else conn.execute(query, (*at, limit)).fetchall()
            return _sliced(rows, dimensions, Stamp(), False).vectors

    def sample_mark(self, space: str, scope: ScopeIds, kind: Kind, limit: int) -> tuple[int, int]:
        """What `sample` is known by: how many vectors it has, and the sum of their change numbers.

        A removed one is followed by one with a greater number, or by none.
        """
        query = (
            "SELECT count(*), coalesce(sum(change), 0) FROM (SELECT change FROM vectors"
            " WHERE space = ? AND scope = ? AND kind = ? ORDER BY change LIMIT ?) AS first"
        )
        with self._database.read() as conn:
            _, at = _at(conn, space, scope, kind)
            count, total = (0, 0) if at is None else conn.execute(query, (*at, limit)).fetchone()
            return int(count), int(total)

    def holding(self, positions: Sequence[int]) -> int:
        """How many rows hold something of the events at these positions, as middle or as neighbour."""
        total = 0
        places = (
            ("vectors", "position"),
            ("vectors", "before"),
            ("vectors", "after"),
            ("sources", "position"),
        )
        with self._database.read() as conn:
            for some in chunks(positions):
                for table, column in places:
                    query = f"SELECT count(*) FROM {table} WHERE {column} IN ({marks(some)})"
                    total += conn.execute(query, some).fetchone()[0]
        return total

    def dump(self, space: str) -> list[tuple[object, ...]]:
        """Every vector of the space as (position, kind, before, after, digest, bytes, part), ordered."""
        query = (
            "SELECT position, kind, before, after, digest, vector, part FROM vectors"
            " WHERE space = (SELECT number FROM spaces WHERE name = ?) ORDER BY position, kind, part"
        )
        with self._database.read() as conn:
            return [tuple(row) for row in conn.execute(query, (space,))]


def _required(conn: Connection, space: str) -> tuple[int, int, int]:
    found = space_of(conn, space)
    if found is None:
        raise SpaceMismatch("the stored spaces", space)
    return found


def _at(conn: Connection, space: str, scope: ScopeIds, kind: Kind) -> tuple[int, tuple[int, int, int] | None]:
    """The dimensions of the space, and the numbers of space, scope and kind; None where nothing is known of them."""
    query = (
        f"SELECT s.number, s.dimensions, c.number FROM spaces s LEFT JOIN scopes c ON {SAME} WHERE s.name = ?"
    )
    found = conn.execute(query, (*levels_of(scope), space)).fetchone()
    if found is None:
        return 0, None
    number, dimensions, inside = found
    return dimensions, None if inside is None else (number, inside, int(kind))


def _progress(conn: Connection, space: str, stage: Stage) -> int | None:
    found = conn.execute(_PROGRESS_OF[stage], (space,)).fetchone()
    return None if found is None else int(found[0])


def _listed(kind: Kind) -> str:
    """What a vector goes by, as `Kind.listed`."""
    return f"position * {PARTS} + part" if kind is Kind.PASSAGE else "position"


def _take_in(conn: Connection, erasures: ErasureReader) -> int:
    before = get_number(conn, "erasures")
    events, upto = erasures(before)
    apply_erasures(conn, events)
    if upto != before:
        put_number(conn, "erasures", upto)
    return upto


def _insert_sources(conn: Connection, sources: Sequence[Source]) -> None:
    fenced = fences_of(conn, {name for source in sources for name in _names(source)})
    sources = [source for source in sources if fenced.isdisjoint(_names(source))]
    numbers = make_scopes(conn, {source.scope for source in sources})
    rows = [
        (
            source.place.position,
            source.place.event_id,
            numbers[source.scope],
            source.session,
            source.record,
            source.origin,
            source.occurred_us,
        )
        for source in sources
    ]
    conn.executemany("INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
    about = [(subject, source.place.position) for source in sources for subject in source.subjects]
    conn.executemany("INSERT INTO subjects VALUES (?, ?) ON CONFLICT DO NOTHING", about)


def _names(source: Source) -> list[str]:
    session = source.session if source.record is None else None
    names = (source.place.event_id, source.scope.user, session, *source.subjects)
    return [name for name in names if name]


def _new_vectors(conn: Connection, space: int, made: Sequence[Made]) -> tuple[int, list[tuple[Any, ...]]]:
    """How many vectors are refused, as something they are built from is gone; and the rows of those to be stored."""
    alive = _alive(conn, {place.position for each in made for place in each.window.members})
    fenced, wanted = 0, dict[tuple[int, int, int], tuple[int, Made]]()
    due: list[tuple[int, int]] = []
    for each in made:
        centre = each.window.centre.position
        if all(place.position in alive for place in each.window.members):
            wanted[centre, int(each.kind), each.part] = alive[centre], each
            continue
        fenced += 1
        if centre in alive and each.kind is Kind.WINDOW:
            due.append((space, centre))
    conn.executemany("INSERT INTO due VALUES (?, ?) ON CONFLICT DO NOTHING", due)
    fresh = _fresh(conn, space, wanted)
    return fenced, [
        _row(space, number, *each) for number, each in enumerate(fresh, next_change(conn, len(fresh)))
    ]


def _fresh(
    conn: Connection, space: int, wanted: dict[tuple[int, int, int], tuple[int, Made]]
) -> list[tuple[int, Made]]:
    """A vector from the same texts stays; one from others takes the place of the old one, which is deleted."""
    old: list[tuple[int, ...]] = []
    for some in chunks(sorted({key[0] for key in wanted})):
        # The sign keeps SQLite from walking through the whole space.
        query = f"SELECT position, kind, part, digest FROM vectors WHERE position IN ({marks(some)}) AND +space = ?"
        for position, kind, part, digest in conn.execute(query, [*some, space]).fetchall():
            key = position, kind, part
            if key not in wanted:
                continue
            if wanted[key][1].digest == digest:
                del wanted[key]
            else:
                old.append((*key, space))
    same = "position = ? AND kind = ? AND part = ? AND space = ?"
    conn.executemany(f"DELETE FROM vectors WHERE {same}", old)
    return list(wanted.values())


def _row(space: int, change: int, scope: int, made: Made) -> tuple[Any, ...]:
    window = made.window
    near = [place.position if place else None for place in (window.before, window.after)]
    at = (space, scope, int(made.kind), change, window.centre.position)
    return (*at, *near, made.digest, _packed(made.values), made.part)


def _alive(conn: Connection, positions: Collection[int]) -> dict[int, int]:
    """Position → scope number of the sources that are there."""
    query = "SELECT position, scope FROM sources WHERE position IN ({})"
    rows = (conn.execute(query.format(marks(some)), some) for some in chunks(sorted(positions)))
    return {position: scope for some in rows for position, scope in some}


def _window(position: int, event_id: str, *near: Any) -> Window:
    before, after = (None if at is None else Place(at, event) for at, event in (near[:2], near[2:]))
    return Window(Place(position, event_id), before, after)


def _packed(values: Floats) -> bytes:
    return values.astype(np.float16).tobytes()


def _unpacked(raw: bytes) -> Floats:
    return np.frombuffer(raw, dtype=np.float16).astype(np.float32)


def _sliced(rows: Sequence[tuple[int, bytes]], dimensions: int, stamp: Stamp, whole: bool) -> Slice:
    vectors = _unpacked(b"".join(raw for _, raw in rows)).reshape(len(rows), dimensions)
    positions = np.fromiter((position for position, _ in rows), dtype=np.int64, count=len(rows))
    return Slice(positions, vectors, stamp, whole)


def _stored(row: tuple[Any, ...]) -> StoredVector:
    change, kind, position, event_id, *levels, session, record, origin, occurred_us, part, raw = row
    place, scope = Place(position, event_id), scope_from(*levels)
    return StoredVector(
        change, Kind(kind), place, scope, session, record, origin, occurred_us, _unpacked(raw), part
    )


__all__ = ["StoredVectors", "sqlite_vectors"]

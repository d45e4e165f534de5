"""One behaviour of rows in a file and in PostgreSQL, and of the index in Edge, in the client's local mode, in a server.

The server is the one at MNEMOLOG_TEST_QDRANT_URL, with MNEMOLOG_TEST_QDRANT_KEY; without it the local mode must do,
which speaks the same API.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from vector_fakes import FakeLog, WordHashes, World, of_user

from mnemolog.consumers.embedding import EmbeddingWorker, erasures_of
from mnemolog.consumers.indexing import IndexFiller
from mnemolog.domain.errors import CorruptStore, StoreClosed, StoreUnavailable
from mnemolog.infra.index import EdgeIndex
from mnemolog.infra.index.server import ServerIndex, connect
from mnemolog.infra.vectors import StoredVectors, sqlite_vectors
from mnemolog.projections.dense import DenseScan
from mnemolog.projections.embedding import QueryVector, embed_query
from mnemolog.projections.vectors import Batch, Kind, Stage, Stamp
from postgres_world import new_schema
from support import require_module

URL, KEY = os.environ.get("MNEMOLOG_TEST_QDRANT_URL"), os.environ.get("MNEMOLOG_TEST_QDRANT_KEY")
INDEXES = [
    "edge",
    "local",
    pytest.param(
        "server",
        marks=[pytest.mark.qdrant, pytest.mark.skipif(URL is None, reason="no MNEMOLOG_TEST_QDRANT_URL")],
    ),
]
Open = Callable[[], Any]


def client(kind: str) -> Any:
    require_module("qdrant_client", "pip install 'mnemolog[qdrant]'")
    if kind == "server":
        assert URL is not None
        return connect(URL, KEY)
    from qdrant_client import QdrantClient

    return QdrantClient(":memory:")


@pytest.fixture(params=INDEXES)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """An empty index of each kind."""
    made: Any
    if request.param == "edge":
        made = EdgeIndex(tmp_path / "edge")
    else:
        made = ServerIndex(client(request.param), f"test-{uuid4().hex[:8]}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        yield made
    if request.param == "server":
        made.begin("", 1, "")  # leaves nothing behind but an empty collection
        made.activate()
    made.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredVectors]:
    """Empty rows of each kind."""
    if request.param == "sqlite":
        made = sqlite_vectors(tmp_path / "rows.db")
    else:
        from mnemolog.infra.postgres.vectors import postgres_vectors

        made = postgres_vectors(request.getfixturevalue("postgres_url"), new_schema())
    yield made
    made.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Two users' turns, one event of them erased, and all of it embedded."""
    made = make_world()
    made.talk(*(f"turn {n} about {'budgets' if n % 3 else 'holidays'}" for n in range(25)))
    made.talk(*(f"회의 {n} 예산" for n in range(25)), user="u2", session="s2")
    made.worker.catch_up()
    made.log.erase_events(made.log.rows[7])
    made.worker.catch_up()
    return made


def ask(world: World, text: str = "turn 7 about budgets") -> QueryVector:
    return embed_query(world.embedder, text)


def filler(world: World, index: Any) -> IndexFiller:
    return IndexFiller(world.rows, index, world.embedder.space, world.embedder.dimensions, 20)


def embedding(log: FakeLog, rows: StoredVectors, world: World) -> EmbeddingWorker:
    return EmbeddingWorker(log, rows, world.embedder, batch_size=8)


def test_rows_are_the_same_wherever_they_are(rows: StoredVectors, world: World) -> None:
    """The same log gives the same vectors, changes and scores, with an erasure in the middle."""
    worker = embedding(world.log, rows, world)
    worker.catch_up()
    space = world.embedder.space
    assert rows.dump(space) == world.dump() and len(world.dump()) == 98
    changes = rows.changes(space, 0, 1000)
    assert len(changes.stored) == 98 and changes.change == rows.change()
    scan = DenseScan(rows, space)
    for kind in (Kind.TURN, Kind.WINDOW):
        mine, theirs = (each.search(ask(world), [of_user()], 10, kind) for each in (scan, world.scan))
        assert mine == theirs and len(mine) == 10
    assert rows.holding([8]) == 0 and rows.count(space, [of_user("u2")], Kind.TURN) == 25
    assert not worker.step() and rows.purge()


QUESTIONS: dict[str, Callable[[StoredVectors, World, str], Any]] = {
    "open_space": lambda rows, world, space: rows.open_space(space, world.embedder.dimensions),
    "spaces": lambda rows, world, space: rows.spaces(),
    "position": lambda rows, world, space: [rows.position(space, stage) for stage in Stage],
    "tails": lambda rows, world, space: rows.tails(["s1", "s2", "s9"], 30),
    "due": lambda rows, world, space: rows.due(space, 30, 5),
    "count_due": lambda rows, world, space: rows.count_due(space),
    "commit": lambda rows, world, space: rows.commit(Batch(space, -1, 60), erasures_of(world.log)),
    "erase": lambda rows, world, space: rows.erase(erasures_of(world.log)),
    "change": lambda rows, world, space: rows.change(),
    "slice": lambda rows, world, space: [
        (each.positions.tolist(), each.vectors.tolist(), each.stamp, each.whole)
        for scope in (of_user(), of_user("nobody"))
        for since in (Stamp(), Stamp(40, 0))
        for each in [rows.slice(space, scope, Kind.TURN, since)]
    ],
    "changes": lambda rows, world, space: [
        sorted(map(repr, found))
        for found in (rows.changes(space, 9, 70).dropped, rows.changes(space, 9, 70).stored)
    ],
    "standing": lambda rows, world, space: rows.standing(space, [of_user()], Kind.WINDOW, range(60)),
    "count": lambda rows, world, space: [rows.count(space, [of_user()], kind) for kind in Kind],
    "largest": lambda rows, world, space: rows.largest(),
    "sample": lambda rows, world, space: [
        rows.sample(space, scope, Kind.TURN, 5).tolist() for scope in (of_user(), of_user("nobody"))
    ],
    "sample_mark": lambda rows, world, space: [
        rows.sample_mark(space, scope, Kind.TURN, 5) for scope in (of_user(), of_user("nobody"))
    ],
    "holding": lambda rows, world, space: rows.holding(range(60)),
    "dump": lambda rows, world, space: rows.dump(space),
    "purge": lambda rows, world, space: rows.purge(),
    "drop_space": lambda rows, world, space: (rows.drop_space(space), rows.spaces()),
}


def test_every_question_has_one_answer_wherever_rows_are(rows: StoredVectors, world: World) -> None:
    """Each public method, of rows that hold the same: none has a statement that one database does not take."""
    assert rows.take_over(world.rows) == 98
    assert rows.identity == world.rows.identity
    for name, ask_for in QUESTIONS.items():
        for space in (world.embedder.space, "another space"):
            if space in world.rows.spaces() or name not in ("open_space", "commit"):
                assert ask_for(rows, world, space) == ask_for(world.rows, world, space), name
    asked = {*QUESTIONS, "take_over", "identity", "close"}
    assert asked == {name for name in vars(StoredVectors) if not name.startswith("_")}


def test_erasing_reaches_rows_wherever_they_are(rows: StoredVectors, world: World) -> None:
    """What names the subject goes, with the windows that hold it; late vectors of it are refused."""
    worker = embedding(world.log, rows, world)
    worker.catch_up()
    world.log.erase_subject("u1")
    worker.erase()
    assert rows.holding(list(range(1, 26))) == 0
    worker.catch_up()
    assert {row[0] for row in rows.dump(world.embedder.space)} == set(range(26, 51))


def test_two_workers_commit_a_batch_once(rows: StoredVectors, world: World) -> None:
    """The commit that comes second is refused whole."""
    first, second = (embedding(world.log, rows, world) for _ in range(2))
    world.embedder.before = lambda _: (setattr(world.embedder, "before", lambda _: None), second.step())
    first.step()
    first.catch_up()
    assert rows.dump(world.embedder.space) == world.dump()


def test_an_embedding_in_flight_does_not_outlive_an_erasure(rows: StoredVectors, index: Any) -> None:
    """A09: what was begun before an erasure and lands after it is refused; rows and index hold nothing of it."""
    log, embedder = FakeLog(), WordHashes()
    for n in range(6):
        log.turn(f"turn {n}", f"u{n % 2}", session=f"s{n % 2}")
    worker = EmbeddingWorker(log, rows, embedder, batch_size=8)
    follower = IndexFiller(rows, index, embedder.space, embedder.dimensions, 20)
    embedder.before = lambda _: (setattr(embedder, "before", lambda _: None), log.erase_subject("u1"))
    worker.catch_up()
    follower.catch_up()
    theirs = [2, 4, 6]
    assert rows.holding(theirs) == index.holding(theirs) == 0
    assert {at for at, _, _ in index.points()} == {1, 3, 5}


def test_every_index_gives_the_hits_of_the_scan(index: Any, world: World) -> None:
    """Same rows, same hits: the same positions with the same cosines, whoever keeps the index."""
    filler(world, index).catch_up()
    assert {(at, int(kind)) for at, kind, _ in index.points()} == world.stored()
    for scopes in ([of_user()], [of_user("u2")], [of_user(), of_user("u2")]):
        for kind in (Kind.TURN, Kind.WINDOW):
            exact, found = (part.search(ask(world), scopes, 10, kind) for part in (world.scan, index))
            assert [score for _, score in found] == pytest.approx([score for _, score in exact], abs=1e-5)
            assert len(found) == 10
    assert index.search(ask(world), [of_user("nobody")], 5, Kind.TURN) == []
    assert index.search(ask(world), [], 5, Kind.TURN) == []


def test_an_index_follows_erasures_and_is_purged(index: Any, world: World) -> None:
    """Removed points are found neither by id nor by filter nor by vector; a purge keeps what is left as it was."""
    follower = filler(world, index)
    follower.catch_up()
    before = index.search(ask(world), [of_user()], 3, Kind.TURN)
    assert index.holding([9]) == 2
    world.log.erase_events(world.log.rows[8])
    world.worker.erase()
    follower.catch_up()
    assert index.holding([9]) == 0
    after = index.search(ask(world), [of_user()], 30, Kind.TURN)
    assert 9 not in dict(after) and len(after) == 23
    index.compact(52)
    assert index.search(ask(world), [of_user()], 30, Kind.TURN) == after
    assert follower.lag() == 0 and before != after[:3]
    world.worker.catch_up()
    follower.catch_up()
    assert {(at, int(kind)) for at, kind, _ in index.points()} == world.stored()


def test_filling_twice_adds_nothing(index: Any, world: World) -> None:
    """Ids of points are deterministic, and an index of other rows is made anew."""
    filler(world, index).catch_up()
    index.apply(world.rows.changes(world.embedder.space, 0, 1000))
    assert len(index.points()) == 98 and index.identity == world.rows.identity
    filler(world, index).rebuild()
    assert len(index.points()) == 98


def test_readers_of_a_server_follow_the_alias(world: World) -> None:
    """A second process searches through a purge and a rebuild of the first without a missing hit."""
    shared = client("local")
    writer, reader = ServerIndex(shared, "shared"), ServerIndex(shared, "shared")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        follower = filler(world, writer)
        follower.catch_up()
        expected = reader.search(ask(world), [of_user()], 5, Kind.TURN)
        world.log.erase_events(world.log.rows[40])
        world.worker.erase()
        follower.purge()
        assert reader.search(ask(world), [of_user()], 5, Kind.TURN) == expected
        follower.rebuild()
        assert reader.search(ask(world), [of_user()], 5, Kind.TURN) == expected
    assert len(shared.get_collections().collections) == 1


def test_a_server_that_keeps_what_was_removed_is_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletion is not believed but looked at."""
    local = client("local")
    index = ServerIndex(local, "lazy")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        follower = filler(world, index)
        follower.catch_up()
    monkeypatch.setattr(local, "delete", lambda *_, **__: None)
    world.log.erase_events(world.log.rows[8])
    world.worker.erase()
    with pytest.raises(CorruptStore, match="build it anew"):
        follower.catch_up()


def test_a_server_that_is_away_is_typed() -> None:
    """The error says what to do; a closed index says that it is closed."""
    require_module("qdrant_client", "pip install 'mnemolog[qdrant]'")
    index = ServerIndex(connect("http://127.0.0.1:19189"), "away")
    with pytest.raises(StoreUnavailable, match="start it"):
        index.points()
    index.close()
    with pytest.raises(StoreClosed):
        index.points()

"""Erasure and scope over vectors and their index: promises 4 and 8, with an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embedding_fakes import Bigrams, embedding_memory
from face_world import ACME, U1, U2, forms, open_memory, texts
from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings
from mnemolog.projections.vectors import Kind
from support import files_below

SECRET = "zyxwombatqk"
NEIGHBOURS = (U2, Scope("acme", user="u-1", project="other", session="s-1"), Scope("other", user="u-1"))
QUERIES = ("when does the walrus deploy", "배포는 금요일", "report format walrus", "yesterday's walrus")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """With an index, however small the scopes are."""
    settings = Settings.load(durability="os", exact_up_to=0)
    with embedding_memory(tmp_path / "data", settings=settings) as opened:
        yield opened


def fill(memory: Memory) -> None:
    for number in range(15):
        memory.record_turn(U1, role="user", content=f"the walrus deploys on friday {number}")
        memory.record_turn(U1, role="assistant", content=f"배포는 금요일에 합니다 {number}")
        memory.remember(U1, f"report {number} has the walrus format")


def move_in(memory: Memory) -> None:
    for scope in NEIGHBOURS:
        turn = {"type": "turn", "scope": scope, "role": "user"}
        memory.record_batch([{**turn, "content": f"walrus friday 배포 kumquat {n}"} for n in range(200)])
        memory.remember(scope, "the kumquat report format walrus")


def digits(memory: Memory) -> str:
    """Every score, signal and place of every hit."""
    return repr(
        [
            (hit.text, hit.score.hex(), {name: value.hex() for name, value in hit.signals.items()})
            for query in QUERIES
            for hit in memory.recall(U1, query, k=1000, history=True)
        ]
    )


def test_promise_4_a_neighbour_changes_no_digit_of_any_signal(tmp_path: Path) -> None:
    """With vectors too, scores, signals and order are the same with and without neighbours, whoever came first."""
    with embedding_memory(tmp_path / "alone") as alone, embedding_memory(tmp_path / "late") as late:
        fill(alone)
        before = digits(alone)
        move_in(alone)
        assert digits(alone) == before
        move_in(late)
        fill(late)
        assert digits(late) == before
    with embedding_memory(tmp_path / "alone") as again:
        assert digits(again) == before


def test_i05_what_is_sent_again_has_no_second_vector(memory: Memory) -> None:
    """A turn that is delivered twice, and an index that is filled twice, leave one point for each vector."""
    for _ in range(2):
        memory.record_turn(U1, role="user", content="the walrus", key="once")
        memory.recall(U1, "walrus")
    points = memory._store.vectors._index.points()
    assert sorted(kind for _, kind, _ in points) == [Kind.TURN, Kind.WINDOW]
    memory.operations.rebuild("index")
    assert memory._store.vectors._index.points() == points


def widened(raw: bytes) -> bytes:
    """A vector as the index keeps it."""
    return np.frombuffer(raw, np.float16).astype(np.float32).tobytes()


@pytest.mark.parametrize("what", ["event", "record", "session", "subject"])
def test_promise_8_no_vector_is_left_of_what_was_erased(memory: Memory, what: str) -> None:
    """Vectors, the neighbours' windows, index and bytes of an erased text are gone; neighbours get new windows."""
    memory.record_turn(U1, role="user", content="before it")
    turn = memory.record_turn(U1, role="user", content=f"the {SECRET} turn")
    memory.record_turn(U1, role="user", content="behind it")
    note = memory.remember(U1, f"the {SECRET} note", evidence=[turn.event_id])
    memory.record_turn(U2, role="user", content="the neighbour")
    memory.recall(U1, SECRET)
    vectors = memory._store.vectors
    stored = {
        row[5] for row in vectors._rows.dump(vectors._open().embedder.space) if turn.position in row[:4]
    }
    assert len(stored) >= 2
    target = {"event": turn.event_id, "record": note.record_id, "session": "s-1", "subject": "u-1"}[what]
    receipt = memory.erase(ACME if what == "subject" else U1, **{what: target}).apply()
    assert receipt.complete
    found = {store.store: (store.found > 0, store.readable) for store in receipt.stores}
    assert found["vectors"] == found["index"] == (True, 0)
    assert SECRET not in repr(memory.recall(U1, SECRET, k=50, history=True))
    for path, content in files_below(memory.path):
        indexed = "index" in path.relative_to(memory.path).parts
        wanted = map(widened, stored) if indexed else [*stored, *forms(SECRET)]
        assert not any(raw in content for raw in wanted), path
    points = {position for position, *_ in vectors._index.points()}
    assert turn.position not in points and note.position not in points
    left = texts(memory, U1, "it", kinds=["turn"])
    assert set(left) == ({"before it", "behind it"} if what in ("event", "record") else set())
    assert texts(memory, U2, "neighbour") == ["the neighbour"]


def test_a09_an_embedding_begun_before_an_erasure_does_not_land(tmp_path: Path) -> None:
    """What was being embedded while its text was erased leaves no vector, and the erasure does not wait for it."""
    embedder = Bigrams()
    with open_memory(tmp_path / "data", embedder=embedder) as memory:
        memory.record_turn(U1, role="user", content="stays")
        turn = memory.record_turn(U1, role="user", content=f"the {SECRET} turn")
        receipts = []

        def erase(texts: object) -> None:
            embedder.before = lambda texts: None
            receipts.append(memory.erase(U1, event=turn.event_id).apply())

        embedder.before = erase
        memory.operations.embed()
        memory.operations.embed()
        assert [receipt.complete for receipt in receipts] == [True]
        assert memory._store.vectors.holding([turn.position]) == {"vectors": 0}
        assert texts(memory, U1, SECRET) == ["stays"]


def test_an_erasure_reaches_vectors_without_their_embedder(tmp_path: Path) -> None:
    """A store that was filled with an embedder and is opened without one is cleaned all the same."""
    with embedding_memory(tmp_path / "data", settings=Settings.load(exact_up_to=0)) as memory:
        turn = memory.record_turn(U1, role="user", content=SECRET)
        memory.recall(U1, SECRET)
    with open_memory(tmp_path / "data") as memory:
        receipt = memory.erase(U1, event=turn.event_id).apply()
        assert receipt.complete
        stores = {store.store: store.readable for store in receipt.stores}
        assert stores["vectors"] == 0 and stores["index"] == 0


def test_a_rebuild_embeds_nothing(tmp_path: Path) -> None:
    """Views that are built anew find the vectors that are there; the scores are the same to the last digit."""
    embedder = Bigrams()
    with embedding_memory(tmp_path / "data", embedder) as memory:
        fill(memory)
        before, count = digits(memory), len(embedder.texts)
        for name in ("turns", "curated"):
            memory.operations.rebuild(name, batch_size=7)
        assert digits(memory) == before
        assert len(embedder.texts) == count + len(QUERIES)

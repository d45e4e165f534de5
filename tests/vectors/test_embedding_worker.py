"""The worker: what it embeds, once, in order, and never past an erasure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from projection_fakes import Notes, runner_over
from vector_fakes import FakeLog, WordHashes, World, bytes_of, of_user

from mnemolog.consumers.embedding import NEIGHBOUR_CHARACTERS
from mnemolog.consumers.vectorising import Vectorising
from mnemolog.domain.events import MemoryCorrected, MemoryStated, TurnRecorded
from mnemolog.infra.index import EdgeIndex
from mnemolog.infra.vectors import StoredVectors
from mnemolog.projections.embedding import SpaceMismatch
from mnemolog.projections.vectors import Kind


def windows(world: World) -> dict[int, tuple[object, object]]:
    """Middle → (before, after) of every window."""
    return {row[0]: (row[2], row[3]) for row in world.dump() if row[1] == Kind.WINDOW}  # type: ignore[misc]


def test_every_turn_has_a_vector_alone_and_with_its_neighbours(world: World) -> None:
    """A turn leaves two vectors; its window holds the turns beside it in the same session, and no others."""
    world.talk("one", "two")
    world.talk("elsewhere", session="s2")
    world.talk("three")
    world.worker.catch_up()
    assert world.stored() == {(p, k) for p in (1, 2, 3, 4) for k in (Kind.TURN, Kind.WINDOW)}
    assert windows(world) == {1: (None, 2), 2: (1, 4), 3: (None, None), 4: (2, None)}


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6), batch=st.integers(1, 9))
def test_batches_change_nothing(
    sizes: list[int], batch: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever arrives together, and however large the batches are, the same rows are there in the end."""
    worlds = [World(tmp_path_factory.mktemp("w"), batch=size) for size in (batch, 100)]
    live, at_once = worlds
    count = 0
    for size in sizes:
        for _ in range(size):
            count += 1
            live.talk(f"turn {count}", session=f"s{count % 2}")
        live.worker.catch_up()
    at_once.log.rows = live.log.rows
    at_once.worker.catch_up()
    assert [row[:5] for row in live.dump()] == [row[:5] for row in at_once.dump()]
    for world in worlds:
        world.close()


def test_the_speaker_is_named_once(world: World) -> None:
    """A turn is embedded with its author; its window too, with the texts of the neighbours and without their names."""
    world.log.turn("shall we go to Busan?", author="Kim")
    world.log.turn("yes, in May", author="Lee")
    world.worker.catch_up()
    assert set(world.embedder.texts) == {
        "Kim: shall we go to Busan?",
        "Lee: yes, in May",
        "Kim: shall we go to Busan?\nyes, in May",
        "Lee: shall we go to Busan?\nyes, in May",
    }


def test_long_texts_are_cut(world: World) -> None:
    """A huge output costs no more than its first characters."""
    world.talk("x" * 100_000, "y " * 100_000)
    world.worker.catch_up()
    assert max(map(len, world.embedder.texts)) <= 2 * NEIGHBOUR_CHARACTERS + 1


def test_statements_are_embedded_by_their_events(world: World) -> None:
    """What a record says now and said before each have a vector, at the position of the event that said it."""
    world.log.add(MemoryStated("the budget is 48M won"), session=None)
    world.log.add(MemoryCorrected("the budget is 52M won"), session=None)
    world.worker.catch_up()
    assert world.stored() == {(1, Kind.RECORD), (2, Kind.RECORD)}
    scores = world.scan.scores(query(world, "the budget is 52M won"), [of_user()], Kind.RECORD).mapping()
    assert scores[2] == pytest.approx(1, abs=1e-3) and scores[1] < 0.99


def test_system_prompts_and_empty_texts_have_no_vector(world: World) -> None:
    """Nothing is embedded that nobody said."""
    world.log.add(TurnRecorded("system", "you are an agent"))
    world.talk("   ")
    assert world.worker.catch_up() == 2
    assert world.dump() == []


def test_restarts_neither_lose_nor_double(make_world: Callable[..., World]) -> None:
    """Another worker goes on where the last one committed, and embeds nothing again."""
    first = make_world()
    first.talk(*(f"turn {n}" for n in range(20)))
    first.worker.step()
    log, texts = first.log, list(first.embedder.texts)
    second = make_world(log=log)
    second.worker.catch_up()
    assert len(second.stored()) == 40
    alone = [text for text in texts + second.embedder.texts if "\n" not in text]
    assert sorted(alone) == sorted(f"turn {n}" for n in range(20))
    assert not second.worker.step()


def test_a_second_worker_loses_its_batch_and_harms_nothing(world: World) -> None:
    """Of two workers in one space the slower one's commit is refused, so that nothing is stored twice."""
    world.talk("one", "two", "three")
    rival = World.__new__(World)
    rival.worker = type(world.worker)(world.log, world.rows, WordHashes(), batch_size=8)
    world.embedder.before = lambda texts: (
        setattr(world.embedder, "before", lambda _: None),
        rival.worker.step(),
    )
    world.worker.step()
    assert len(world.dump()) == 6
    assert world.worker.lag().position == 3


def test_a_rebuild_embeds_nothing(world: World, tmp_path: Path) -> None:
    """Vectors belong to no projection version: building one anew asks the embedder for nothing."""
    world.talk("one", "two")
    world.worker.catch_up()
    runner = runner_over(world.log, tmp_path / "views", Notes())
    asked = len(world.embedder.texts)
    runner.rebuild("notes")
    world.worker.catch_up()
    assert len(world.embedder.texts) == asked


def test_the_index_is_rebuilt_without_the_embedder(world: World) -> None:
    """The index is filled from rows, so losing it costs no embedding."""
    world.talk(*(f"turn {n}" for n in range(30)))
    world.worker.catch_up()
    asked = len(world.embedder.texts)
    world.filler.rebuild()
    world.filler.rebuild()
    assert world.indexed() == world.stored()
    assert len(world.embedder.texts) == asked


@pytest.mark.parametrize("how", ["event", "subject"])
def test_a09_an_embedding_that_an_erasure_overtook_is_not_stored(world: World, how: str) -> None:
    """A batch that was being embedded when its text was erased commits without it, and without its windows."""
    world.talk("keep this", "the secret is 7741", "keep that")
    world.log.turn("about somebody else", "u2", session="s2")

    def erase(texts: Sequence[str]) -> None:
        world.embedder.before = lambda texts: None
        if how == "event":
            world.log.erase_events(world.log.rows[1])
        else:
            world.log.erase_subject("u1")

    world.embedder.before = erase
    world.worker.step()
    gone = [2] if how == "event" else [1, 2, 3]
    assert any("7741" in text for text in world.embedder.texts)
    assert world.rows.holding(gone) == 0
    assert world.worker.lag().fenced > 0
    world.worker.catch_up()
    world.filler.catch_up()
    expected = {1: (None, 3), 3: (1, None), 4: (None, None)} if how == "event" else {4: (None, None)}
    assert windows(world) == expected
    assert world.indexed() == world.stored()
    assert not any(position in gone for position, _ in world.indexed())


def test_an_erasure_does_not_wait_for_the_backlog(world: World) -> None:
    """Removing is not behind embedding: it works while most of the log is still to be embedded."""
    world.talk(*(f"turn {n}" for n in range(40)))
    world.worker.step()
    world.log.erase_events(world.log.rows[2])
    assert world.worker.erase() == 41
    assert world.rows.holding([3]) == 0
    assert world.worker.lag().lag > 30


def test_neighbours_of_an_erased_text_get_new_windows(world: World) -> None:
    """A window that held an erased text goes at once; the next step makes it from what is left."""
    world.talk("one", "two", "three", "four")
    world.worker.catch_up()
    world.log.erase_events(world.log.rows[1])
    world.worker.erase()
    assert windows(world) == {4: (3, None)}
    assert world.worker.lag().due == 2
    world.worker.catch_up()
    assert windows(world) == {1: (None, 3), 3: (1, 4), 4: (3, None)}
    assert world.worker.lag().due == 0
    assert "one\nthree" in world.embedder.texts


def test_erased_vectors_leave_no_bytes(world: World) -> None:
    """After the purge neither the rows nor the index hold the vector of an erased text, alone or in a window."""
    world.talk(
        *(f"neutral words {n}" for n in range(5)),
        "the secret is 7741",
        *(f"other words {n}" for n in range(5)),
    )
    world.talk("a neighbour", user="u2", session="s2")
    world.worker.catch_up()
    world.filler.catch_up()
    held = [row[5] for row in world.dump() if 6 in (row[0], row[2], row[3])]
    kept = [row[5] for row in world.dump() if row[0] == 12]
    wide = [np.frombuffer(raw, np.float16).astype(np.float32).tobytes() for raw in held]  # type: ignore[call-overload]
    assert len(held) == 4 and all(any(raw in file for file in bytes_of(world.folder)) for raw in wide)
    world.log.erase_events(world.log.rows[5])
    world.worker.catch_up()
    world.filler.purge()
    assert world.rows.purge()
    assert world.rows.holding([6]) == 0
    found = bytes_of(world.folder)
    assert not any(raw in file for raw in [*held, *wide] for file in found)
    assert all(any(raw in file for file in found) for raw in kept)
    assert world.indexed() == world.stored()


def test_a_subject_named_by_the_writer_is_erased_too(world: World) -> None:
    """What others said about a person goes with the person; what they said besides stays."""
    world.log.turn("Kim is on leave", "u1", subjects=("u1", "kim"))
    world.log.turn("the budget is fixed", "u1")
    world.worker.catch_up()
    world.log.erase_subject("kim")
    world.worker.catch_up()
    assert world.stored() == {(2, Kind.TURN), (2, Kind.WINDOW)}


def test_another_dimension_under_the_same_name_is_refused(world: World) -> None:
    """A space keeps the dimensions that it began with."""
    with pytest.raises(SpaceMismatch):
        world.rows.open_space(world.embedder.space, 12)


def test_a_failing_embedder_is_tried_again(world: World) -> None:
    """The background thread counts a failure, waits, and goes on; nothing is skipped."""
    failures = [ValueError("text must not be kept"), None]

    def fail(texts: Sequence[str]) -> None:
        error = failures.pop(0) if failures else None
        if error is not None:
            raise error

    world.embedder.before = fail
    world.talk("one", "two")
    vectors = Vectorising(world.log, Stored(world), lambda: world.embedder)
    (background,) = vectors.backgrounds
    background.start()
    for _ in range(200):
        if world.worker.lag().lag == 0:
            break
        world.log.wait(99, 0.05)
    background.stop()
    trouble = vectors.troubles()["vectors"]
    assert world.worker.lag().lag == 0 and trouble.crashes == 1
    assert "must not" not in (trouble.last_error or "")
    assert len(world.stored()) == 4


class Stored:
    """The files of a world, which are open."""

    def __init__(self, world: World) -> None:
        self.world = world

    def rows(self, *, make: bool) -> StoredVectors:
        return self.world.rows

    def index(self, *, make: bool) -> EdgeIndex:
        return self.world.index


def query(world: World, text: str) -> object:
    from mnemolog.projections.embedding import embed_query

    return embed_query(world.embedder, text)


__all__ = ["FakeLog"]


def test_a_batch_looks_at_its_own_rows_only(world: World) -> None:
    """No statement of a commit walks through all vectors, however many there are."""
    said: list[str] = []
    with world.rows._database.write() as conn:
        conn.set_trace_callback(said.append)
    world.talk("one", "two", "three")
    world.worker.catch_up()
    world.talk("four")
    world.worker.catch_up()
    plans = [
        (statement, row[3])
        for statement in said
        if statement.startswith(("SELECT", "DELETE", "UPDATE")) and " vectors" in statement
        for row in world.rows._database.ask(f"EXPLAIN QUERY PLAN {statement}")
    ]
    walks = [
        plan for plan in plans if plan[1].startswith("SCAN vectors") or plan[1].endswith("KEY (space=?)")
    ]
    assert plans and not walks

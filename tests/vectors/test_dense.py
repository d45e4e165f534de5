"""Scores: exact, of the scope alone, the same from scan and index, and never across spaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from vector_fakes import WordHashes, World, of_user

from mnemolog.domain.errors import StoreInUse
from mnemolog.infra.index import EdgeIndex, edge
from mnemolog.projections import dense
from mnemolog.projections.dense import DenseScan, nearest
from mnemolog.projections.embedding import QueryVector, SpaceMismatch, embed_query
from mnemolog.projections.vectors import Changes, Kind
from support import files_below


def ask(world: World, text: str = "turn 7 about budgets") -> QueryVector:
    return embed_query(world.embedder, text)


def filled(world: World, turns: int = 40, user: str = "u1") -> World:
    world.talk(
        *(f"turn {n} about {'budgets' if n % 3 else 'holidays'}" for n in range(turns)),
        user=user,
        session=user,
    )
    world.worker.catch_up()
    world.filler.catch_up()
    return world


@pytest.mark.parametrize("kind", [Kind.TURN, Kind.WINDOW])
def test_scan_and_index_agree(world: World, kind: Kind) -> None:
    """The exact scan and the index give the same nearest vectors with the same cosines."""
    filled(filled(world), user="u2")
    for scopes in ([of_user()], [of_user("u2")], [of_user(), of_user("u2")]):
        exact, indexed = (part.search(ask(world), scopes, 10, kind) for part in (world.scan, world.index))
        assert [score for _, score in indexed] == pytest.approx([score for _, score in exact], abs=1e-5)
        assert len(exact) == 10


def test_scores_cover_the_whole_scope_and_nothing_else(world: World) -> None:
    """Every turn of the scope has its cosine; no other scope's position appears."""
    filled(filled(world), user="u2")
    scores = world.scan.scores(ask(world), [of_user()], Kind.TURN).mapping()
    assert sorted(scores) == list(range(1, 41))
    assert scores[8] == pytest.approx(1, abs=1e-3)
    assert world.scan.scores(ask(world), [], Kind.TURN).mapping() == {}
    assert world.scan.scores(ask(world), [of_user("nobody")], Kind.TURN).mapping() == {}
    assert world.index.search(ask(world), [of_user("nobody")], 5, Kind.TURN) == []


def test_a_huge_neighbour_changes_no_digit(make_world: Callable[..., World]) -> None:
    """The scores of a scope are the same to the last digit with and without other scopes, cached or loaded."""
    world = filled(make_world(), turns=30)
    before = world.scan.scores(ask(world), [of_user()], Kind.TURN).mapping()
    filled(world, turns=300, user="huge")
    after = world.scan.scores(ask(world), [of_user()], Kind.TURN).mapping()
    fresh = DenseScan(world.rows, world.embedder.space).scores(ask(world), [of_user()], Kind.TURN).mapping()
    assert before == after == fresh
    assert len(world.index.search(ask(world), [of_user()], 10, Kind.TURN)) == 10


def test_what_is_in_memory_follows_the_rows(world: World) -> None:
    """New turns, remade windows and erasures show in the next score, as in a scan that begins anew."""
    query = ask(world)
    for step in range(12):
        world.talk(f"turn {step} about budgets")
        if step == 6:
            world.log.erase_events(world.log.rows[2])
        world.worker.catch_up()
        for kind in (Kind.TURN, Kind.WINDOW):
            kept = world.scan.scores(query, [of_user()], kind).mapping()
            fresh = DenseScan(world.rows, world.embedder.space).scores(query, [of_user()], kind).mapping()
            assert kept == fresh
    assert 3 not in kept and len(kept) == 11


def test_a_sample_that_is_kept_follows_the_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spread is that of a sample just read: after turns came, windows were remade, turns were erased."""
    monkeypatch.setattr(dense, "SAMPLED", 12)
    monkeypatch.setattr(dense, "SAMPLES", 2)
    filled(filled(world, 10), 3, user="u2")
    read, sample = list[int](), world.rows.sample
    monkeypatch.setattr(world.rows, "sample", lambda *given: (read.append(1), sample(*given))[1])

    def check() -> None:
        for kind in (Kind.TURN, Kind.WINDOW):
            anew = DenseScan(world.rows, world.embedder.space).spread(ask(world), [of_user()], kind)
            read.clear()
            assert world.scan.spread(ask(world), [of_user()], kind) == anew

    check()
    check()
    assert not read
    filled(world, 5, user="u2")
    check()
    assert not read
    filled(world, 4)
    check()
    world.log.erase_events(world.log.rows[2])
    world.worker.catch_up()
    check()
    world.scan.forget()
    assert not world.scan._samples


def test_memory_is_bounded(world: World) -> None:
    """Scopes that were not asked for lately leave the memory."""
    for user in ("u1", "u2", "u3"):
        filled(world, 20, user)
    scan = DenseScan(world.rows, world.embedder.space, cache_bytes=2 * 20 * (64 * 4 + 8))
    for user in ("u1", "u2", "u3", "u1"):
        assert len(scan.scores(ask(world), [of_user(user)], Kind.TURN).positions) == 20
    assert len(scan._held) == 2


def test_spaces_never_mix(world: World) -> None:
    """A query of one space is refused by the scan and by the index of another."""
    filled(world)
    foreign = embed_query(WordHashes("words@2/64/l2"), "turn 7")
    for part in (world.scan, world.index):
        with pytest.raises(SpaceMismatch):
            part.search(foreign, [of_user()], 5, Kind.TURN)


def test_another_space_gets_vectors_and_an_index_of_its_own(make_world: Callable[..., World]) -> None:
    """Another embedder begins from the start of the log; the index is switched when it is whole."""
    old = filled(make_world())
    log, before = old.log, old.dump()
    new = make_world(log=log, embedder=WordHashes("words@2/64/l2"))
    assert new.index.space == "words@1/64/l2"
    new.worker.catch_up()
    assert new.rows.dump("words@1/64/l2") == before
    assert [row[:5] for row in new.dump()] == [row[:5] for row in before]
    new.filler.catch_up()
    assert new.index.space == "words@2/64/l2"
    assert new.index.search(ask(new), [of_user()], 1, Kind.TURN)[0][0] == 8
    assert new.rows.drop_space("words@1/64/l2") == len(before)
    assert new.rows.dump("words@1/64/l2") == [] and len(new.dump()) == len(before)


def test_a_late_index_is_checked_against_the_rows(world: World) -> None:
    """A hit whose row is gone does not count."""
    filled(world)
    search = partial(nearest, world.rows, world.index, ask(world), [of_user()], 3, Kind.TURN)
    assert 8 in search().positions
    world.log.erase_events(world.log.rows[7])
    world.worker.erase()
    assert len(search().positions) == 2 and 8 not in search().positions


def test_repeating_changes_adds_no_points(world: World) -> None:
    """Points have deterministic ids: what is filled in twice is there once."""
    filled(world)
    changes = world.rows.changes(world.embedder.space, 0, 1000)
    world.index.apply(Changes(changes.dropped, changes.stored, changes.change))
    assert world.indexed() == world.stored()
    assert len(world.index.search(ask(world), [of_user()], 100, Kind.TURN)) == 40


def test_payloads_hold_no_text(world: World) -> None:
    """A point says where it belongs and when it was, by ids, and holds nothing of what was said."""
    filled(world)
    files = b"".join(content for _, content in files_below(world.folder))
    assert b"budgets" not in files and b"holidays" not in files


def test_an_index_belongs_to_one_process(world: World) -> None:
    """Without a lock a second writer would lose points silently."""
    with pytest.raises(StoreInUse):
        EdgeIndex(world.folder / "index")


def test_a_damaged_index_is_made_anew(make_world: Callable[..., World]) -> None:
    """The index is disposable: where it cannot be read it is filled from the rows."""
    world = filled(make_world())
    log = world.log
    world.close()
    for path in (world.folder / "index").rglob("segment.json"):
        path.write_bytes(b"{")
    again = make_world(log=log)
    assert again.index.space is None
    again.filler.catch_up()
    assert again.indexed() == again.stored()


@pytest.mark.parametrize("when", ["apply", "compact"])
def test_an_index_left_in_a_change_is_made_anew(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A process that dies between a shard's change and the pointer's leaves an index that is not trusted."""
    world = filled(make_world())
    world.log.erase_events(world.log.rows[2])
    world.worker.erase()

    def die(*_: object) -> None:
        raise SystemExit("killed here")

    monkeypatch.setattr(edge, "_update" if when == "apply" else "_optimise", die)
    with pytest.raises(SystemExit):
        world.filler.purge()
    monkeypatch.undo()
    log = world.log
    world.close()
    again = make_world(log=log)
    assert again.index.space is None
    again.filler.catch_up()
    assert again.indexed() == again.stored()


def test_an_index_made_anew_is_as_clean_as_the_one_before(world: World) -> None:
    """Up to where erasures have left its bytes is known after a rebuild, too: nobody waits for another one."""
    world.talk("one", "two")
    world.worker.catch_up()
    world.filler.catch_up()
    world.index.compact(7)
    world.index.begin(world.embedder.space, world.embedder.dimensions, "another")
    world.index.activate()
    assert edge.erased_to(world.folder / "index") == 7


def test_an_index_ahead_of_its_rows_is_made_anew(make_world: Callable[..., World]) -> None:
    """Rows from an older copy come with numbers that the index has seen otherwise: it starts again."""
    world = filled(make_world())
    log = world.log
    world.close()
    for path in world.folder.glob("vectors.db*"):
        path.unlink()
    again = make_world(log=log)
    again.worker.step()
    again.filler.catch_up()
    assert again.indexed() == again.stored()


def test_vectors_are_kept_at_half_precision(world: World) -> None:
    """A stored vector differs from the embedder's by less than a thousandth, and its cosine by far less."""
    filled(world)
    exact = world.embedder.embed(["turn 7 about budgets"])[0]
    (score,) = [s for p, s in world.scan.search(ask(world), [of_user()], 1, Kind.TURN) if p == 8]
    assert score == pytest.approx(float(np.dot(exact, exact)), abs=2e-4)

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.vault.tree import DEPTH, LEAVES, ROOT, KeyTree, Node, Puncture

SECRET = hashlib.sha256(b"secret").digest()
SMALL = 64  # leaves that the property tests look at; the tree above them has its full depth

near = st.integers(0, SMALL - 1)
far = st.integers(0, LEAVES - 1)
ranges = st.tuples(near, st.integers(0, 40)).map(lambda it: range(it[0], it[0] + it[1]))
punctures = st.lists(st.lists(st.one_of(near, far, ranges), max_size=4), max_size=5)


def fresh() -> KeyTree:
    return KeyTree({ROOT: SECRET})


def stored(nodes: dict[Node, bytes], change: Puncture) -> dict[Node, bytes]:
    kept = {node: key for node, key in nodes.items() if node not in change.deleted}
    return kept | dict(change.inserted)


def destroyed_in(sequence: list[list[int | range]]) -> set[int]:
    items = (item for step in sequence for item in step)
    return {n for item in items for n in (item if isinstance(item, range) else [item])}


@settings(max_examples=150, deadline=None)
@given(sequence=punctures, order=st.permutations(range(SMALL + 40)))
def test_a_puncture_destroys_its_leaves_and_changes_no_other(
    sequence: list[list[int | range]], order: list[int]
) -> None:
    """After any punctures the other leaves have their first keys, in the live tree and in the stored one."""
    whole, live, rows = fresh(), fresh(), {ROOT: SECRET}
    for step in sequence:
        live.leaf(order[0])
        rows = stored(rows, live.puncture(step))
    gone = destroyed_in(sequence)
    assert rows == live.nodes
    for tree in (live, KeyTree(rows)):
        assert [tree.leaf(n) for n in order] == [None if n in gone else whole.leaf(n) for n in order]
    assert all(live.leaf(n) is None for n in gone)


@settings(max_examples=150, deadline=None)
@given(sequence=punctures)
def test_what_remains_covers_each_leaf_at_most_once_and_stays_small(
    sequence: list[list[int | range]],
) -> None:
    """No node that is left lies above a destroyed leaf, and a punctured run costs at most two paths."""
    tree = fresh()
    for step in sequence:
        tree.puncture(step)
    gone = destroyed_in(sequence)
    assert not any(n in node.leaves for node in tree.nodes for n in gone)
    spans = sorted((node.leaves.start, node.leaves.stop) for node in tree.nodes)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert sum(stop - start for start, stop in spans) == LEAVES - len(gone)
    assert len(tree.nodes) <= 1 + 2 * DEPTH * sum(len(step) for step in sequence)


def test_no_key_material_of_a_destroyed_leaf_stays_reachable() -> None:
    """The cached path is dropped by a puncture: neither the leaf nor any node above it is held."""
    tree = fresh()
    key = tree.leaf(77)
    above = {key, *tree._path} - {b""}
    tree.puncture([77])
    assert not above & {*tree._path, *tree.nodes.values()}


def test_leaves_are_all_different_keys() -> None:
    """Neighbours and far leaves have unrelated 32-byte keys."""
    tree = fresh()
    keys = [tree.leaf(n) for n in (0, 1, 2, 3, LEAVES // 2, LEAVES - 1)]
    assert len(set(keys)) == 6 and all(key is not None and len(key) == 32 for key in keys)


def test_a_whole_tree_can_be_destroyed_as_a_range() -> None:
    """Destroying everything leaves no node."""
    tree = fresh()
    assert tree.puncture([range(LEAVES)]) == Puncture((ROOT,), {})
    assert tree.leaf(0) is None


@pytest.mark.parametrize("number", [-1, LEAVES])
def test_numbers_outside_of_the_tree_are_refused(number: int) -> None:
    """A number without a leaf is an input error, not a destroyed leaf."""
    with pytest.raises(InvalidInput):
        fresh().leaf(number)
    with pytest.raises(InvalidInput):
        fresh().puncture([number])
    tree = fresh()
    tree.leaf(3)
    with pytest.raises(InvalidInput):
        tree.leaf(number)

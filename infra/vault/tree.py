"""A puncturable key tree: 2**40 leaf keys from one secret, any of which can be destroyed for good.

After Goldreich, Goldwasser and Micali, "How to construct random functions" (1986): each child is a keyed hash
of its parent. Whoever holds a node can derive every leaf below it and nothing else, so a leaf is destroyed by
replacing the stored node above it with the siblings along the way down to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from mnemolog.domain.errors import InvalidInput

DEPTH: Final = 40
LEAVES: Final = 1 << DEPTH
KEY_BYTES: Final = 32

# BLAKE2b is indifferentiable from a random oracle, so hashing secret || tag with a secret of fixed length is a
# PRF; it compresses one block where BLAKE2's own keyed mode compresses two, and so is twice as fast.
_TAGS: Final = (b"mnemolog/tree/0", b"mnemolog/tree/1")


class Node(NamedTuple):
    """The place of a tree node: it covers the leaves whose number, shifted right by `height`, is `prefix`."""

    height: int
    prefix: int

    @property
    def leaves(self) -> range:
        return range(self.prefix << self.height, (self.prefix + 1) << self.height)


ROOT: Final = Node(DEPTH, 0)


@dataclass(frozen=True, slots=True)
class Puncture:
    """What a puncture changes in storage; both halves belong into one transaction."""

    deleted: tuple[Node, ...]
    inserted: Mapping[Node, bytes]


class KeyTree:
    """The nodes that are left of one subject's tree. Not thread-safe: the caller holds a lock."""

    __slots__ = ("_at", "_nodes", "_path", "_top")

    def __init__(self, nodes: Mapping[Node, bytes]) -> None:
        self._nodes = dict(nodes)
        self._path: list[bytes] = []
        self._at, self._top = 0, -1
        self._forget_path()

    @property
    def nodes(self) -> Mapping[Node, bytes]:
        return self._nodes

    def leaf(self, number: int) -> bytes | None:
        """The 32-byte key of a leaf, or None when it was destroyed.

        The path to the last leaf is kept, so only the levels that differ from it are hashed again: two a leaf
        in order, eight when a hundred trees take turns.
        """
        height = (number ^ self._at).bit_length()
        if height > self._top or number < 0:
            if not self._enter(number):
                return None
            height = self._top
        path = self._path
        key = path[height]
        for level in range(height - 1, -1, -1):
            key = blake2b(key + _TAGS[number >> level & 1], digest_size=KEY_BYTES).digest()
            path[level] = key
        self._at = number
        return key

    def puncture(self, destroyed: Iterable[int | range]) -> Puncture:
        """Destroy leaves, given as numbers or ranges with step 1; those destroyed before do not matter."""
        self._forget_path()
        before = self._nodes
        self._nodes = dict(before)
        for item in destroyed:
            numbers = item if isinstance(item, range) else range(item, item + 1)
            _check(numbers)
            self._destroy(numbers)
        gone = tuple(node for node in before if node not in self._nodes)
        new = {node: key for node, key in self._nodes.items() if node not in before}
        return Puncture(gone, new)

    def _destroy(self, numbers: range) -> None:
        for node in self._touched(numbers):
            self._nodes.update(_remains(node, self._nodes.pop(node), numbers))

    def _touched(self, numbers: range) -> list[Node]:
        if len(numbers) == 1:
            node = self._cover(numbers.start)
            return [node] if node else []
        return [node for node in self._nodes if _overlap(node.leaves, numbers)]

    def _cover(self, number: int) -> Node | None:
        for height in range(DEPTH + 1):
            node = Node(height, number >> height)
            if node in self._nodes:
                return node
        return None

    def _enter(self, number: int) -> bool:
        """Start the path anew at the stored node above a leaf; False when there is none."""
        _check(range(number, number + 1))
        node = self._cover(number)
        if node is None:
            return False
        self._top = node.height
        self._path[node.height] = self._nodes[node]
        return True

    def _forget_path(self) -> None:
        # The path holds ancestors of destroyed leaves: nothing of it may outlive a puncture.
        self._path = [b""] * (DEPTH + 1)
        self._at, self._top = 0, -1


def _check(numbers: range) -> None:
    if numbers and not (numbers.step == 1 and numbers.start >= 0 and numbers.stop <= LEAVES):
        raise InvalidInput(f"leaf numbers lie between 0 and {LEAVES - 1}, ranges have step 1, not {numbers}")


def _overlap(left: range, right: range) -> bool:
    return max(left.start, right.start) < min(left.stop, right.stop)


def _remains(node: Node, key: bytes, destroyed: range) -> Iterator[tuple[Node, bytes]]:
    """The highest nodes below `node` that cover exactly its leaves outside of `destroyed`."""
    leaves = node.leaves
    if not _overlap(leaves, destroyed):
        yield node, key
    elif not (destroyed.start <= leaves.start and leaves.stop <= destroyed.stop):
        for bit, tag in enumerate(_TAGS):
            child = Node(node.height - 1, node.prefix << 1 | bit)
            yield from _remains(child, blake2b(key + tag, digest_size=KEY_BYTES).digest(), destroyed)

"""A second look at everything that is stored: hashes, numbers, and that columns say what the envelope says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final

from mnemolog.domain.errors import CorruptStore
from mnemolog.infra.log.codec import Codec, leaf_hash
from mnemolog.infra.log.storage import Statements

Progress = Callable[[int, int], None]
_PAGE: Final = 2_000


def verify(statements: Statements, cursor: Any, codec: Codec, progress: Progress | None = None) -> int:
    """Check all events up to the head; how many they are. Raises CorruptStore naming the first bad position."""
    position, head = 0, statements.head(cursor)
    if statements.allocated(cursor) < head:
        raise CorruptStore(f"position {head} was never given out: events were put in by hand")
    versions: dict[str, int] = {}
    while position < head:
        for row in statements.rows(cursor, position, min(_PAGE, head - position)):
            _check(row, position, versions, codec)
            position += 1
        if progress is not None:
            progress(position, head)
    if statements.allocated(cursor) > statements.head(cursor):
        raise CorruptStore(f"the events behind position {statements.head(cursor)} are gone")
    return head


def tree_head(leaves: Iterable[bytes]) -> bytes:
    """The root of the Merkle tree over these leaf hashes (RFC 6962, section 2.1)."""
    whole: list[tuple[int, bytes]] = []
    for leaf in leaves:
        level, node = 0, leaf
        while whole and whole[-1][0] == level:
            level, node = level + 1, _parent(whole.pop()[1], node)
        whole.append((level, node))
    if not whole:
        return sha256().digest()
    head = whole.pop()[1]
    while whole:
        head = _parent(whole.pop()[1], head)
    return head


def _parent(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def _check(row: tuple[Any, ...], before: int, versions: dict[str, int], codec: Codec) -> None:
    position, stream, version, topic, key, leaf, state = row
    if position != before + 1:
        raise CorruptStore(f"position {before + 1} is missing")
    if leaf_hash(state) != leaf:
        raise CorruptStore(f"the hash of position {position} does not match what is stored there")
    if version != versions.get(stream, 0) + 1:
        raise CorruptStore(f"position {position} breaks the count of versions in its stream")
    versions[stream] = version
    envelope = codec.decode(position, state, bodies=False).envelope
    if (envelope.stream, envelope.version, envelope.topic, envelope.key) != (stream, version, topic, key):
        raise CorruptStore(f"the columns of position {position} differ from its envelope")

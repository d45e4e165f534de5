"""What a move notes in a log: where it went, or that it is still on its way. It keeps everybody else out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import orjson

from mnemolog.domain.errors import StoreMoved

ARRIVING: Final = "arriving"
MOVED: Final = "moved"


@dataclass(frozen=True, slots=True)
class Mark:
    """state: ARRIVING in a target that is not complete, MOVED in a source that was left.

    other: the other end of the move. step: what a target is at, or was at when it was interrupted.
    """

    state: str
    other: str
    step: str = ""

    def dump(self) -> str:
        return orjson.dumps(asdict(self)).decode()


def read_mark(text: str | None) -> Mark | None:
    """The mark of a log, if it has one."""
    return None if text is None else Mark(**orjson.loads(text))


def check_mark(text: str | None) -> None:
    """Raises StoreMoved where a log has a mark."""
    mark = read_mark(text)
    if mark is None:
        return
    if mark.state == MOVED:
        raise StoreMoved(f"this memory was moved to {mark.other}: open it there, or move it back")
    raise StoreMoved(
        f"the move of {mark.other} into this memory was interrupted at its step {mark.step!r}: "
        "run the same `mnemolog move` again, it goes on from there"
    )

"""Views rebuilt by processes of their own: folding then uses every core, and readers keep theirs.

Of a log that is folded in seconds this process takes its share, while another one is still starting.

A process takes one view after the other: it reads a name a line, folds, and answers with a line for each step. It is
one more process on the data directory, so that all that is promised of several processes holds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import orjson
from pydantic import SecretStr

from mnemolog.domain.errors import RebuildRefused, StoreUnavailable
from mnemolog.infra.compose import open_store
from mnemolog.infra.settings import Settings

_COMMAND: Final = (sys.executable, "-c", "from mnemolog.infra.rebuilding import serve; serve()")

Progress = Callable[[str, int, int], None]
"""Called with (view, events done, events in all), from several threads."""


def rebuild_in_processes(
    path: Path,
    settings: Settings,
    names: Sequence[str],
    processes: int,
    batch_size: int | None,
    progress: Progress,
    here: Callable[[str], None] | None = None,
    *,
    force: bool = False,
) -> None:
    """Rebuild these views, the first named first. Raises StoreUnavailable where one could not be, RebuildRefused.

    here: rebuilds a view in this process, whose thread then is one more to take views, and begins with the first.
    """
    how = {"batch_size": batch_size, "force": force}
    order = {"path": str(path.resolve()), "settings": _plain(settings), **how}
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in names:
        waiting.put(name)
    first = waiting.get_nowait() if here else None
    with ThreadPoolExecutor(processes) as pool:
        runs = [pool.submit(_work, orjson.dumps(order), waiting, progress) for _ in range(processes)]
        with suppress(Empty):
            while here and first:
                here(first)
                first = waiting.get_nowait()
    for run in runs:
        run.result()


def _work(order: bytes, waiting: SimpleQueue[str], progress: Progress) -> None:
    """One process, until no view waits."""
    with suppress(Empty):
        name = waiting.get_nowait()
        try:
            with subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                assert child.stdin is not None
                assert child.stdout is not None
                _say(child.stdin, order)
                while True:
                    _say(child.stdin, name.encode())
                    _follow(name, child.stdout, progress)
                    name = waiting.get_nowait()
        except BrokenPipeError:
            raise _ended(name) from None


def _follow(name: str, answers: IO[bytes], progress: Progress) -> None:
    """Read what the process says of a view until it is done."""
    for line in answers:
        answer = orjson.loads(line)
        if "lacks" in answer:
            raise RebuildRefused(name, [tuple(one) for one in answer["lacks"]])
        if "failed" in answer:
            raise StoreUnavailable(
                f"view {name!r} could not be rebuilt ({answer['failed']}): see the disk, retry"
            )
        progress(name, *answer["at"])
        if answer["done"]:
            return
    raise _ended(name)


def _ended(name: str) -> StoreUnavailable:
    return StoreUnavailable(f"the process that was to rebuild view {name!r} was ended: retry")


def serve() -> None:
    """What the other process does."""
    given = orjson.loads(sys.stdin.buffer.readline())
    with open_store(Path(given["path"]), Settings.load(**given["settings"]), create=False) as store:
        store.begin(False, lambda: None)
    try:
        for line in sys.stdin.buffer:
            name, head = line.decode().strip(), store.log.head()
            try:
                tell = lambda at, of: _tell(at=(at, of), done=False)  # noqa: E731
                store.runner.rebuild(name, given["batch_size"], tell, force=given["force"])
                _tell(at=(head, head), done=True)
            except RebuildRefused as error:
                _tell(lacks=error.events)
            except Exception as error:
                _tell(failed=f"{type(error).__name__}: {error}")
    finally:
        store.close()


def _tell(**answer: Any) -> None:
    _say(sys.stdout.buffer, orjson.dumps(answer))


def _say(to: IO[bytes], line: bytes) -> None:
    to.write(line + b"\n")
    to.flush()


def _plain(settings: Settings) -> dict[str, Any]:
    """As JSON can carry it, secrets readable: it goes through a pipe and nowhere else."""
    values = {name: getattr(settings, name) for name in type(settings).model_fields}
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else _text(value)
        for name, value in values.items()
        if value is not None
    }


def _text(value: Any) -> Any:
    return str(value.resolve()) if isinstance(value, Path) else value

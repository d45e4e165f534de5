"""Moves a memory in a process of its own, which kills itself at a step: `moving_child.py FROM SETTINGS TO SETTINGS N`.

A step is before and after each mark on a log, and each time that progress is told. With N = 0 it goes to the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemolog.infra import moving
from mnemolog.infra.log.sqlite import SqliteEventLog
from mnemolog.infra.postgres.log import PostgresEventLog
from mnemolog.infra.settings import Settings
from mnemolog.moving import move


class Steps:
    """Counts, and does `act` at the chosen step."""

    def __init__(self, last: int, act: Callable[[], None]) -> None:
        self.done, self._last, self._act = 0, last, act

    def step(self, *_: Any) -> None:
        self.done += 1
        if self.done == self._last:
            self._act()

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            self.step()
            answer = function(*given, **more)
            self.step()
            return answer

        return call


def count(steps: Steps, patch: Callable[[Any, str, Any], None]) -> None:
    """Let the marks on logs be steps, and the log travel in small pages."""
    for log in (SqliteEventLog, PostgresEventLog):
        patch(log, "put_mark", steps.around(log.put_mark))
    patch(moving, "_PAGE", 15)


if __name__ == "__main__":
    source, given, target, taken, last = sys.argv[1:]
    steps = Steps(int(last), lambda: os.kill(os.getpid(), signal.SIGKILL))
    count(steps, setattr)
    ends: list[Any] = [Settings.load(**json.loads(text)) for text in (given, taken)]
    move(Path(source), Path(target), settings=ends[0], to_settings=ends[1], progress=steps.step)

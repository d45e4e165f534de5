"""Imports a file in a process of its own and says on its output what was acknowledged: `import_child.py DATA FILE`.

With a third argument N it kills itself at the Nth step: before and after each append, before and after each place.
Going over what is there already is no step, so that each run comes further than the one before it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import mnemolog.infra.importers as importers
from mnemolog import Memory, Receipt


class Steps:
    """Counts the steps of an import and ends the process at the chosen one."""

    def __init__(self, last: int) -> None:
        self.left = last

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Telling:
    """A memory that tells each receipt as soon as it has it."""

    def __init__(self, memory: Memory, steps: Steps) -> None:
        self._memory, self._steps = memory, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        if name in ("path", "principal", "wait"):
            return found

        def call(*given: Any, **fields: Any) -> Any:
            self._steps.step()
            answer = found(*given, **fields)
            receipts = answer if isinstance(answer, list) else [answer]
            if receipts and all(isinstance(each, Receipt) and each.duplicate for each in receipts):
                self._steps.left += 1
                return answer
            said = [[each.event_id, each.position] for each in receipts if isinstance(each, Receipt)]
            os.write(1, (json.dumps(said) + "\n").encode())
            self._steps.step()
            return answer

        return call


def main(data: str, file: str, last: int) -> None:
    steps = Steps(last)
    save = importers.save

    def slow_save(*given: Any) -> None:
        steps.step()
        save(*given)
        steps.step()

    importers.save = slow_save
    with Memory.open(data) as memory:
        os.write(1, b'"ready"\n')
        importers.import_files(Telling(memory, steps), [file], batch=10)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else -1)

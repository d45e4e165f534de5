"""Erases in a process and a data directory of its own: `erasing_child.py FOLDER SETTINGS TARGETS [STEP]`.

Plans all of them, reads a line, applies one plan after the other, and writes what came of each as a line of JSON. It is
killed where it comes to the step, if one is named.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings


def dying(step: str) -> None:
    if step in sys.argv[4:]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, given, targets = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    settings: Any = Settings.load(**given)
    with Memory.open(Path(folder), settings=settings) as memory:
        plans = [memory.erase(Scope(**levels), **target) for levels, target in targets]
        print("ready", flush=True)
        sys.stdin.readline()
        for plan in plans:
            receipt = plan.apply(dying)
            left = [one.store for one in receipt.stores if one.readable or one.due]
            told = {"what": str(receipt.what), "events": receipt.events, "left": left}
            told["removed"] = {one.store: one.removed for one in receipt.stores}
            print(json.dumps(told), flush=True)

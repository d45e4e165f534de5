"""Faults of a whole deployment: `python bench/chaos.py [--minutes N] [--seed S] [--events E]`.

On a PostgreSQL server and a broker of its own: a relay and two workers are killed (kill -9), frozen past their session
and woken, the broker and the server are killed and restarted, messages come twice and in another order, partitions are
added; all under load, by the seed. Every few faults the writing stops, and it is looked whether every event that was
acknowledged is in the log once, and whether all views are as one process makes them of the same log. Exits with 1
where not.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

from _measure import machine
from _servers import servers

from cluster_chaos import Chaos

ROUND = 7
"""Faults between two looks."""


def run(minutes: float, seed: int, events: int) -> int:
    """How many faults there were. Raises AssertionError where something was lost, doubled or differs."""
    random, ends, faults = Random(seed), time.monotonic() + minutes * 60, 0
    with servers() as there, there.deployment(partitions=3) as deployment:
        chaos = Chaos(deployment, there.database, seed, tell=lambda text: print(f"  {text}", flush=True))
        with deployment.memory() as memory:
            while not faults or time.monotonic() < ends:
                names = list(Chaos.FAULTS)
                random.shuffle(names)
                for name in names[:ROUND]:
                    if faults and time.monotonic() >= ends:
                        break
                    chaos.harm(memory, name, events)
                    faults += 1
                chaos.check(memory, Path(deployment.folder) / f"embedded-{faults}")
                print(
                    f"{faults} faults, {len(chaos.said)} events: 0 lost, 0 doubled, views equal", flush=True
                )
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=100, help="written during each fault")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    try:
        run(arguments.minutes, arguments.seed, arguments.events)
    except AssertionError as error:
        sys.exit(f"seed {arguments.seed}: {error}")


if __name__ == "__main__":
    main()

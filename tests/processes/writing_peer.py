"""A process that writes until it is killed, and tells of every write that was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from embedding_fakes import WordHashes  # noqa: E402
from mnemolog import Memory, Scope  # noqa: E402


def main() -> None:
    path, name = sys.argv[1], sys.argv[2]
    memory = Memory.open(path, embedder=WordHashes())
    scope = Scope("acme", user=name, session="s")
    shared = Scope("acme", user="all", project="common")
    print("ready", flush=True)
    for n in range(100_000):
        receipt = memory.record_turn(scope, role="user", content=f"turn {n} of {name}", key=f"{name}/{n}")
        print(receipt.event_id, flush=True)
        note = memory.remember(shared, f"value {n} of {name}", slot=("shared", "value"))
        print(note.event_id, flush=True)
        found = memory.recall(scope, f"turn {n} of {name}", k=1_000)
        assert receipt.event_id in {event for hit in found for event in hit.event_ids}, n


if __name__ == "__main__":
    main()

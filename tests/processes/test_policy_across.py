"""A policy that one process adopts decides in all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from face_world import U1, contents, open_memory

READER = """
import json, sys
from pathlib import Path
from face_world import U1, contents, open_memory
with open_memory(Path(sys.argv[1])) as memory:
    print("open", flush=True)
    for line in sys.stdin:
        if document := json.loads(line):
            memory.operations.adopt_policy(document)
        print(json.dumps([contents(memory, U1), memory.operations.dump_hash("curated")]), flush=True)
"""


def adopting(kind: str) -> str:
    return f"version: 1\nmemory: {{kinds: [{kind}]}}\n"


def test_every_process_reads_under_the_policy_adopted_last(tmp_path: Path) -> None:
    """Whoever adopts it, leader or not: the others read the view that was folded under it, and fold on with it."""
    data, tests = tmp_path / "data", Path(__file__).parent.parent
    with open_memory(data) as memory:
        memory.record_turn(U1, role="user", content="I live in Daejeon. I prefer tea.")
        memory.operations.extract()
        command = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tests)!r})\n{READER}",
            str(data),
        ]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            out, stdin = other.stdout, other.stdin

            def ask(document: str | None = None) -> Any:
                stdin.write(json.dumps(document) + "\n")
                stdin.flush()
                return json.loads(out.readline())

            assert out.readline() == "open\n"
            memory.operations.adopt_policy(adopting("preference"))
            mine = [contents(memory, U1), memory.operations.dump_hash("curated")]
            assert ask() == mine == [["I prefer tea"], mine[1]]
            assert ask(adopting("fact"))[0] == contents(memory, U1) == ["I live in Daejeon"]
            memory.record_turn(U1, role="user", content="My editor is vim.")
            memory.operations.extract()
            assert ask()[0] == contents(memory, U1) == ["I live in Daejeon", "My editor is vim"]
            stdin.close()

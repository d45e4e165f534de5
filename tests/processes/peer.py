"""Another process on the same directory: evaluates an expression a line, and answers with JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from traceback import format_exception
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from embedding_fakes import WordHashes  # noqa: E402
from face_world import U1, U2, contents, texts  # noqa: E402
from mnemolog import Memory, Scope  # noqa: E402


def main() -> None:
    path, background = sys.argv[1], sys.argv[2] == "background"
    memory = Memory.open(path, background=background, embedder=WordHashes())
    names: dict[str, Any] = {"memory": memory, "Scope": Scope, "U1": U1, "U2": U2, "texts": texts}
    names |= {"contents": contents, "path": path}
    print(json.dumps(memory.operations.status().leads), flush=True)
    for line in sys.stdin:
        try:
            answer = {"value": eval(line, names)}
        except Exception as error:
            answer = {"error": type(error).__name__, "text": "".join(format_exception(error))}
        print(json.dumps(answer, default=str), flush=True)
    memory.close()


if __name__ == "__main__":
    main()

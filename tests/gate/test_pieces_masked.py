"""Pieces of a large text show and embed nothing that only its whole tells to be secret."""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path

import pytest

from embedding_fakes import WordHashes, embedding_memory
from mnemolog import Memory, Scope

SCOPE = Scope("acme", user="u-1", project="billing", session="s-1")
LINES = [b64encode(random.Random(7).randbytes(48 * 40)).decode()[at : at + 64] for at in range(0, 2_560, 64)]
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
FILLER = "\n".join(f"machine {number}: all well, 점검 완료" for number in range(1_500))
LARGE, SMALL = FILLER, FILLER[:3_000]
"""One goes to the blob store, the other stays in its event."""


def told(memory: Memory, *queries: str) -> str:
    """All that reads tell when asked for these."""
    every = [hit.text for query in queries for hit in memory.recall(SCOPE, query, k=50)]
    every += [memory.context(SCOPE, query, budget=8_000).text for query in queries]
    return "\n".join(every)


@pytest.mark.parametrize("around", [SMALL, LARGE], ids=["in its event", "in the blob store"])
@pytest.mark.parametrize("looked", [False, True], ids=["before the worker", "behind it"])
def test_no_line_of_a_key_is_told_or_embedded(tmp_path: Path, around: str, looked: bool) -> None:
    """A line from the middle of a private key looks like nothing; the lines around the passage say what it is."""
    embedder, middle = WordHashes(), len(around) // 2
    with embedding_memory(tmp_path / "m", embedder) as memory:
        output = f"{around[:middle]}\n{KEY}\n{around[middle:]}"
        memory.record_tool_result(SCOPE, name="cat", output=output)
        if looked:
            memory.operations.run_workers()
        else:
            memory.operations.embed()
        text = told(memory, LINES[5], LINES[30], "machine 700", "점검")
    seen = [line for line in LINES if line in text]
    sent = [line for line in LINES if any(line in each for each in embedder.texts if each not in LINES)]
    assert not seen and not sent and "machine" in text


@pytest.mark.parametrize(("label", "value"), [("password: ", "tr0ub4dor&3xyz"), ("비밀번호는 ", "k9!mQ2zzp")])
@pytest.mark.parametrize("around", [SMALL, LARGE], ids=["in its event", "in the blob store"])
def test_a_label_in_the_passage_before_counts(tmp_path: Path, label: str, value: str, around: str) -> None:
    """Wherever a passage ends: between the word that says so and the secret, too."""
    embedder = WordHashes()
    with embedding_memory(tmp_path / "m", embedder) as memory:
        for lead in range(340, 410, 6):
            memory.record_tool_result(SCOPE, name="cat", output=f"{'x' * lead} {label}{value} end\n{around}")
        memory.operations.embed()
        text = told(memory, f"{value} end", "password", "비밀번호")
    assert value not in text
    assert not any(value in each for each in embedder.texts if not each.startswith(value))


def test_a_preview_shows_no_part_of_a_key(memory: Memory) -> None:
    """What an event keeps of a large output ends in the middle of a key and begins again in another."""
    output = f"{KEY}\n{LARGE}\n{KEY}"
    receipt = memory.record_tool_result(SCOPE, name="cat", output=output)
    shown = memory.get(SCOPE, receipt.event_id)
    assert not [line for line in LINES if line in str(shown)]
    memory.operations.run_workers()
    assert not [line for line in LINES if line in str(memory.get(SCOPE, receipt.event_id))]

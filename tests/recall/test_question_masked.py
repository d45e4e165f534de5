"""A question goes to the embedder as a text does: without what is hidden in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding_fakes import WordHashes, embedding_memory
from mnemolog import Scope


@pytest.mark.parametrize("query", ["where is 900101-1234568 used?", "주민번호 900101-1234568 어디에 썼지?"])
def test_no_identifier_of_a_question_reaches_the_embedder(tmp_path: Path, query: str) -> None:
    """An endpoint reads neither what is stored nor what is asked."""
    embedder, scope = WordHashes(), Scope("acme", user="u-1", session="s-1")
    with embedding_memory(tmp_path / "m", embedder) as memory:
        memory.record_turn(scope, role="user", content="The form asks for a number")
        memory.operations.embed()
        before = len(embedder.texts)
        memory.recall(scope, query)
        memory.context(scope, query, budget=500)
        asked = embedder.texts[before:]
    assert len(asked) == 2
    assert not any("1234568" in text for text in asked)


@pytest.mark.parametrize("before", range(1_984, 2_000, 3))
def test_no_part_of_a_secret_at_the_cut_reaches_the_embedder(tmp_path: Path, before: int) -> None:
    """A long text is cut behind what is hidden in it, not through it."""
    embedder, scope = WordHashes(), Scope("acme", user="u-1", session="s-1")
    lead = ("word " * 400)[: before - 1] + " "
    with embedding_memory(tmp_path / "m", embedder) as memory:
        memory.record_turn(scope, role="user", content=f"{lead}AKIAIOSFODNN7EXAMPLE and more")
        memory.operations.embed()
    assert embedder.texts and not any("AKIA" in text for text in embedder.texts)

"""Nothing shows what is to be hidden, wherever the scanner and the view are when a read begins."""

from __future__ import annotations

from typing import Any

import pytest

from face_world import U1
from mnemolog import Memory
from mnemolog.projections import turns_view

CARD, PHONE = "4111 1111 1111 1111", "010-1234-5678"
SAID = f"the walrus pays by card {CARD}, 전화는 {PHONE}"


def shown(memory: Memory, at_least: int | None) -> str:
    hits = memory.recall(U1, "walrus", at_least=at_least)
    context = memory.context(U1, "walrus", budget=800, at_least=at_least)
    assert hits
    return context.text + "".join(hit.text for hit in hits)


def test_an_older_position_shows_nothing_that_was_found_since(memory: Memory) -> None:
    """The scanner is past the turn, and the read asks for the turn alone."""
    said = memory.record_turn(U1, role="user", content=SAID)
    for at_least in (said.position, None):
        assert CARD not in shown(memory, at_least) and PHONE not in shown(memory, at_least)
        memory._store.gate.scanning.catch_up()
    text = shown(memory, said.position)
    assert "walrus" in text and CARD not in text and PHONE not in text


def test_a_scanner_that_gets_done_during_a_read_changes_nothing_in_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read began on a view without the finding, so it goes on looking for itself."""
    memory.record_turn(U1, role="user", content=SAID)
    read = turns_view.at

    def overtaken(*given: Any) -> Any:
        rows = read(*given)
        memory._store.gate.scanning.catch_up()
        return rows

    monkeypatch.setattr(turns_view, "at", overtaken)
    (hit,) = memory.recall(U1, "walrus")
    assert "walrus" in hit.text and CARD not in hit.text and PHONE not in hit.text


def test_a_finding_that_is_set_aside_hides_all_the_same(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the view cannot fold what was found, reads look for themselves."""
    turns = memory._store.turns
    memory.record_turn(U1, role="user", content=SAID)
    memory.recall(U1, "walrus")

    def fails(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(turns, "_hide", fails)
    memory._store.gate.scanning.catch_up()
    text = shown(memory, None)
    assert memory.operations.parked("turns")
    assert "walrus" in text and CARD not in text and PHONE not in text

"""The example with which the Python face is introduced, run as it is written."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of the example works and gives what its comment promises."""
    monkeypatch.chdir(tmp_path)
    when = datetime.fromisoformat("2026-03-02T09:14:00+09:00")
    messages = [
        {"role": "user", "content": "How do reports go out?"},
        {"role": "assistant", "content": "As Excel files."},
    ]

    from mnemolog import Memory, Principal, Scope

    with Memory.open("./data") as memory:
        scope = Scope(tenant="acme", user="u-17", project="billing", session="s-1")
        memory.record_turn(
            scope, role="user", content="Reports, please", author="Min", occurred_at=when, key="run-9/turn-1"
        )
        memory.record_messages(scope, messages)
        memory.record_tool_call(scope, name="read_file", arguments={"path": "a.py"}, call_id="c-1")
        memory.record_tool_result(scope, call_id="c-1", output="print(1)", source=("file:a.py", "v3"))
        note = memory.remember(scope, "Reports go out as Excel", slot=("report", "format"), kind="preference")
        memory.correct(scope, note.record_id, "Reports go out as PDF", reason="asked", expected_version=1)
        hits = memory.recall(scope, "which format for reports?", k=10)
        context = memory.context(scope, "draft the report", budget=2000)
        plan = memory.erase(Scope(tenant="acme"), subject="u-17", reason="asked")
        planned = dict(plan.counts)
        receipt = plan.apply()

        assert memory.records(scope) == []
        me = Principal("u-18", role="user", scopes=(Scope("acme", user="u-18"),))
        assert memory.acting_as(me).recall(Scope("acme", user="u-18"), "reports") == []

    assert "Reports go out as PDF" in {hit.text for hit in hits if hit.record_id == note.record_id}
    best = hits[0]
    assert best.score == max(hit.score for hit in hits)
    assert best.signals and best.event_ids and best.occurred_at
    assert "Excel" not in {hit.text for hit in hits if hit.record_id}
    assert "Reports go out as PDF" in context.text
    assert context.messages == [{"role": "user", "content": context.text}]
    assert context.receipt.tokens <= 2000
    assert planned == {
        "TurnRecorded": 3, "ToolCalled": 1, "ToolReturned": 1, "MemoryStated": 1, "MemoryCorrected": 1,
    }  # fmt: skip
    assert receipt.complete
    assert {store.store for store in receipt.stores} >= {"log", "blobs", "view turns", "view curated"}

"""What Prometheus may scrape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from face_world import open_memory
from mnemolog import Memory, Principal, Scope
from mnemolog.domain.errors import AccessDenied
from mnemolog.domain.principal import Role
from mnemolog.infra.metrics import exposition, samples

SECRET = "a text of somebody"
SCOPE = Scope("acme", user="ada", session="one")


def numbers(memory: Memory) -> dict[Any, float]:
    """Name, and the values of the labels (in the order of their names, without versions) → value."""
    found = {}
    for one in samples(exposition(memory)):
        labels = [value for name, value in sorted(one["labels"].items()) if name != "version"]
        found[one["name"].removeprefix("mnemolog_"), *labels] = one["value"]
    return found


def test_the_numbers_are_those_of_the_store(tmp_path: Path) -> None:
    """Events by topic, reads by action, and how far each view is, as another program parses them."""
    with open_memory(tmp_path) as memory:
        for number in range(3):
            memory.record_turn(SCOPE, role="user", content=f"{SECRET} {number}")
        memory.context(SCOPE, "one", budget=500)
        memory.recall(SCOPE, SECRET)
        memory.recall(SCOPE, "two")
        before = numbers(memory)
        assert before["events_total", "TurnRecorded"] == 3
        assert before["log_position",] == memory.operations.status().head
        assert before["reads_total", "context"] == 1
        assert before["view_lag_events", "access"] == 0
        memory.operations.catch_up()
        assert numbers(memory)["view_position", "turns"] == memory.operations.status().head


def test_a_parked_event_shows(tmp_path: Path) -> None:
    """What a view could not fold, and what waits behind it, are numbers to alert on."""
    with open_memory(tmp_path) as memory:
        memory.record_turn(SCOPE, role="user", content="one")
        view = memory._store.turns
        fold = view.fold

        def failing(*given: Any) -> None:
            raise ValueError("no")

        view.fold = failing  # type: ignore[method-assign]
        memory.record_turn(SCOPE, role="user", content="two")
        memory.record_turn(SCOPE, role="user", content="three")
        memory.operations.catch_up()
        view.fold = fold  # type: ignore[method-assign]
        found = numbers(memory)
        assert found["view_parked_events", "turns"] + found["view_waiting_events", "turns"] >= 2
        assert found["view_parked_events", "catalog"] == 0


def test_the_gate_is_counted(tmp_path: Path) -> None:
    """Candidates by what became of them and why, what waits and for how long, and what people decided."""
    with open_memory(tmp_path) as memory:
        memory.record_turn(SCOPE, role="user", content="I live in Porto. My password is hunter2.")
        memory.record_turn(SCOPE, role="user", content="I live in Porto.")
        memory.record_tool_result(SCOPE, output="The deadline is now 3 May.", name="web")
        memory.record_tool_result(SCOPE, output="The budget is now 40k.", name="web")
        memory.operations.extract()
        held, _ = memory.review.list(SCOPE)
        before = numbers(memory)
        assert before["candidates", "admitted"] == 1 and before["candidates", "evidence"] == 1
        assert before["candidates", "log only"] == 1 and before["merged_candidates",] == 1
        assert before["candidate_reasons", "holds a secret", "log only"] == 1
        assert before["quarantine_waiting",] == 2 and before["quarantine_oldest_seconds",] > 0
        assert before["view_lag_events", "extraction"] == 0
        memory.review.edit(SCOPE, held.record_id, "The deadline is 3 May.")
        after = numbers(memory)
        assert after["quarantine_waiting",] == 1 and after["people_acts", "edited"] == 1
        status = memory.operations.status().gate
        assert status.waiting == 1 and status.reasons["log only"]["holds a secret"] == 1


def test_no_text_is_in_them(tmp_path: Path) -> None:
    """Names and texts of persons are in no metric, and the format is Prometheus' own."""
    with open_memory(tmp_path) as memory:
        memory.record_turn(SCOPE, role="user", content=SECRET)
        memory.remember(SCOPE, f"{SECRET} to remember")
        memory.record_tool_result(SCOPE, output=f"The budget is now {SECRET}.", name="web")
        memory.operations.extract()
        text = exposition(memory).decode()
        assert SECRET not in text and "ada" not in text and "acme" not in text
        families = list(text_string_to_metric_families(text))
        assert all(family.name.startswith("mnemolog_") and family.documentation for family in families)
        assert {family.type for family in families} == {"gauge", "counter"}


def test_only_who_may_inspect_sees_them(tmp_path: Path) -> None:
    """An agent has no business with the numbers of a whole store."""
    with open_memory(tmp_path) as memory:
        agent = memory.acting_as(Principal("sol", Role.AGENT, scopes=(Scope("acme"),)))
        with pytest.raises(AccessDenied):
            exposition(agent)

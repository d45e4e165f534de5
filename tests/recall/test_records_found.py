"""A record that recall finds stands as every other read says it does."""

from __future__ import annotations

import pytest

from face_world import U1, agent
from mnemolog import Memory
from mnemolog.results import MemoryRecord


@pytest.mark.parametrize("words", ["report format", "보고서 형식"])
def test_found_records_stand_as_they_are_read(memory: Memory, words: str) -> None:
    """Status, version and evidence of what is current, superseded, outranked, disputed or says the same twice."""
    slot = ("report", "format")
    first = memory.remember(U1, f"{words}: Excel", slot=slot)
    memory.remember(U1, f"{words}: CSV", slot=slot)
    memory.correct(U1, first.record_id, f"{words}: PDF")
    memory.remember(U1, f"{words}: PDF", slot=slot)
    memory.acting_as(agent()).remember(U1, f"{words}: Word", slot=slot)
    doubted = memory.remember(U1, f"{words}: at noon")
    memory.dispute(U1, doubted.record_id)
    hits = memory.recall(U1, words, k=50, history=True, kinds=["fact"])
    read = {record.record_id: record for record in memory.records(U1, history=True)}
    assert {hit.record_id for hit in hits} == set(read)
    statuses = {"current", "superseded", "outranked", "disputed", "duplicate"}
    assert {hit.status for hit in hits} == statuses
    for hit in hits:
        record: MemoryRecord = read[str(hit.record_id)]
        assert (hit.status, hit.version, hit.event_ids) == (record.status, record.version, record.event_ids)

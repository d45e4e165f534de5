"""Complaints about revision, duplicates and merging elsewhere, and what is right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from face_world import U1, agent, contents, rebuilt_hashes, texts
from mnemolog import Memory, Receipt, Tier
from mnemolog.errors import VersionConflict

HOME = ("Min", "home address")


def test_a_contradiction_supersedes_and_keeps_the_link(memory: Memory) -> None:
    """B01: the new statement of a slot is current; the old one is kept, superseded and linked."""
    slot = ("Min", "shellfish")
    old = memory.remember(U1, "I eat shellfish", slot=slot)
    new = memory.remember(U1, "No shellfish any more, allergy", slot=slot)
    assert contents(memory, U1) == ["No shellfish any more, allergy"]
    before, after = memory.get(U1, old.record_id), memory.get(U1, new.record_id)
    assert (before.status, before.superseded_by) == ("superseded", new.record_id)
    assert after.supersedes == old.record_id
    assert before.content == "I eat shellfish"


def test_saying_it_twice_adds_evidence(memory: Memory) -> None:
    """B02: the same statement in two events is one record with two pieces of evidence."""
    one = memory.remember(U1, "Lunch is at noon")
    two = memory.remember(U1, "  lunch is  at noon. ")
    (record,) = memory.records(U1)
    assert record.event_ids == (one.event_id, two.event_id)
    assert len(texts(memory, U1, "lunch")) == 1


def test_unrelated_korean_facts_stay_two(memory: Memory) -> None:
    """B03: two Korean statements about different things are two records, both current."""
    said = ["주말에는 등산을 가요", "매운 음식은 못 먹어요"]
    for text in said:
        memory.remember(U1, text)
    assert sorted(contents(memory, U1)) == sorted(said)
    assert texts(memory, U1, "등산")[0] == said[0]
    assert texts(memory, U1, "매운 음식")[0] == said[1]


def test_recall_gives_the_new_and_history_both(memory: Memory) -> None:
    """B04: default recall and context hold only the newer value; history holds both, in order."""
    slot = ("Min", "diet")
    memory.remember(U1, "vegetarian since 2020", slot=slot)
    new = memory.remember(U1, "had steak, not vegetarian now", slot=slot)
    assert texts(memory, U1, "vegetarian") == ["had steak, not vegetarian now"]
    assert len(texts(memory, U1, "vegetarian", history=True)) == 2
    assert "since 2020" not in memory.context(U1, "vegetarian", budget=1000).text
    steps = memory.history(U1, new.record_id)
    assert [step.content for step in steps] == ["vegetarian since 2020", "had steak, not vegetarian now"]


def test_one_slot_however_its_name_is_written(memory: Memory) -> None:
    """B06: a slot is found by its normalised key, whatever the case and spacing, and holds one value."""
    for number, entity in enumerate(("KDHA", "kdha", " KDHA ", "ＫＤＨＡ")):
        memory.remember(U1, f"KDHA has {number} members", slot=(entity, "Members"))
    assert contents(memory, U1) == ["KDHA has 3 members"]
    assert len(memory.records(U1, history=True)) == 4


def test_only_the_corrected_note_changes(memory: Memory) -> None:
    """B08: of five similar notes, correcting the one that ranks best changes that note alone."""
    notes = [memory.remember(U1, f"deploy note {'deploy ' * number}number {number}") for number in range(5)]
    best = memory.recall(U1, "deploy")[0]
    assert best.record_id is not None
    before = {note.record_id: memory.get(U1, note.record_id).content for note in notes}
    memory.correct(U1, best.record_id, "deploy only on Fridays")
    after = {note.record_id: memory.get(U1, note.record_id).content for note in notes}
    assert {rid for rid in before if before[rid] != after[rid]} == {best.record_id}
    assert after[best.record_id] == "deploy only on Fridays"


def test_every_read_shows_the_same_version(memory: Memory) -> None:
    """B09: right after an update, get, records, recall and context agree on text and version."""
    note = memory.remember(U1, "The build takes ten minutes")
    memory.correct(U1, note.record_id, "The build takes four minutes")
    record = memory.get(U1, note.record_id)
    (listed,) = memory.records(U1)
    (hit,) = memory.recall(U1, "build minutes")
    context = memory.context(U1, "build minutes", budget=1000)
    assert record == listed
    assert {record.content, hit.text} == {"The build takes four minutes"}
    assert {record.version, hit.version, context.receipt.entries[0]["version"]} == {2}
    assert "four minutes" in context.text and "ten minutes" not in context.text


def test_the_corrected_wording_is_out_of_recall(memory: Memory) -> None:
    """B10: a corrected value is excluded, not ranked down, even where its wording is the query."""
    note = memory.remember(U1, "ssh port is 22")
    memory.correct(U1, note.record_id, "now 49222")
    assert "ssh port is 22" not in texts(memory, U1, "ssh port is 22")
    assert texts(memory, U1, "49222") == ["now 49222"]
    assert contents(memory, U1) == ["now 49222"]


def test_only_the_same_slot_is_replaced(memory: Memory) -> None:
    """B11: a new home address replaces the home address and leaves the office address alone."""
    memory.remember(U1, "Hangang-daero 1", slot=HOME)
    memory.remember(U1, "Teheran-ro 2", slot=("Min", "office address"))
    memory.remember(U1, "Jungang-ro 3", slot=HOME)
    assert set(contents(memory, U1)) == {"Teheran-ro 2", "Jungang-ro 3"}


def test_a_correction_outlasts_rebuilds_and_agents(memory: Memory) -> None:
    """B12: a person's 2 % stays over an agent's later 3 %, in the live views and in those built anew."""
    bot = memory.acting_as(agent())
    note = bot.remember(U1, "The fee is 3 %", slot=("plan", "fee"))
    memory.correct(U1, note.record_id, "The fee is 2 %", reason="contract")
    again = bot.remember(U1, "The fee is 3 %", slot=("plan", "fee"))
    other = bot.remember(U1, "The fee is 5 %", slot=("plan", "fee"))
    assert again.record_id == note.record_id
    assert contents(memory, U1) == ["The fee is 2 %"]
    rebuilt_hashes(memory, 1)
    assert contents(memory, U1) == ["The fee is 2 %"]
    assert memory.get(U1, other.record_id).status == "outranked"
    assert memory.get(U1, note.record_id).trust is Tier.OPERATOR


def test_of_two_parallel_supersedes_one_wins(memory: Memory) -> None:
    """B14: two changes that expect the same version: one is appended, the other gets VersionConflict."""
    note = memory.remember(U1, "version one")
    memory.correct(U1, note.record_id, "version two", expected_version=1)
    memory.correct(U1, note.record_id, "version three", expected_version=2)

    def change(text: str) -> Receipt | VersionConflict:
        try:
            return memory.correct(U1, note.record_id, text, expected_version=3)
        except VersionConflict as conflict:
            return conflict

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(change, ["left", "right"]))
    won = [result for result in results if isinstance(result, Receipt)]
    lost = [result for result in results if isinstance(result, VersionConflict)]
    assert [receipt.version for receipt in won] == [4]
    assert [(conflict.expected, conflict.actual) for conflict in lost] == [(3, 4)]
    assert memory.get(U1, note.record_id).version == 4


def test_an_expected_version_holds_for_every_act(memory: Memory) -> None:
    """B14: remember, retract, confirm and dispute refuse a version that the record has left behind."""
    note = memory.remember(U1, "version one")
    memory.confirm(U1, note.record_id, expected_version=1)
    for act in (memory.retract, memory.confirm, memory.dispute):
        with pytest.raises(VersionConflict):
            act(U1, note.record_id, expected_version=1)
    with pytest.raises(VersionConflict):
        memory.remember(U1, "version one", expected_version=1)

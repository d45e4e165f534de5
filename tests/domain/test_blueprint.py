"""The blueprint: which records guide the work on a project, in Korean and English."""

from __future__ import annotations

from typing import Any

import pytest

from mnemolog.domain.blueprint import MOST, OF_ONE_ASPECT, Aspect, aspect_of, blueprint
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Record, Status


def record(text: str, number: int = 1, **more: Any) -> tuple[Record, str]:
    defaults: dict[str, Any] = {"trust": Tier.USER_STATED, "order_us": number}
    return Record(f"r{number}", 1, Status.CURRENT, 1, number, **(defaults | more)), text


@pytest.mark.parametrize(
    ("content", "aspect"),
    [
        ("The goal of Heron is to settle invoices within a day", Aspect.GOAL),
        ("헤론의 목표는 하루 안에 정산하는 것이다", Aspect.GOAL),
        ("We decided to use PostgreSQL", Aspect.DECISION),
        ("데이터베이스는 PostgreSQL로 결정했다", Aspect.DECISION),
        ("Min owns the billing service", Aspect.OWNER),
        ("정산 담당은 민수", Aspect.OWNER),
        ("The deadline is 3 May", Aspect.DEADLINE),
        ("제출 마감은 5월 3일", Aspect.DEADLINE),
        ("Tests must pass before a merge", Aspect.REQUIREMENT),
        ("배포 전에 반드시 시험을 통과해야 한다", Aspect.REQUIREMENT),
        ("The office has a red door", None),
        ("사무실 문은 빨갛다", None),
    ],
)
def test_what_a_record_guides(content: str, aspect: Aspect | None) -> None:
    """Goals, decisions, owners, deadlines and requirements are told by their words."""
    assert aspect_of("fact", content) is aspect


def test_a_procedure_is_one_by_its_kind() -> None:
    """How something is done guides the work, in whatever words."""
    assert aspect_of("procedure", "Tag, then push") is Aspect.PROCEDURE
    assert aspect_of("procedure", "태그를 달고 올린다") is Aspect.PROCEDURE
    assert aspect_of("episode", "Tag, then push") is None


def test_rules_and_references_are_no_part() -> None:
    """Constraints and references stand in a context of their own accord."""
    said = "We decided to use PostgreSQL"
    assert blueprint([record(said, kind="constraint"), record(said, kind="reference")]) == []


def test_only_what_people_stand_behind_guides() -> None:
    """A decision that an agent or a tool states is memory, and no blueprint."""
    said = "We decided to use PostgreSQL"
    given = [record(said, at, trust=tier) for at, tier in enumerate(Tier)]
    assert {one.trust for one, _ in blueprint(given)} <= {tier for tier in Tier if tier >= Tier.USER_INFERRED}
    assert blueprint([record(said, trust=Tier.AGENT), record(said, trust=Tier.UNTRUSTED_TOOL)]) == []


def test_the_order_is_by_aspect_then_trust_then_newness() -> None:
    """The same whatever the order of the records; no aspect takes more than its part."""
    given = [record(f"We decided {n}", n) for n in range(9)]
    given += [record("The goal is to settle", 20), record("The owner is Min", 30, trust=Tier.OPERATOR)]
    given.append(record("We decided first", 0, trust=Tier.SYSTEM_OF_RECORD))
    found = [text for _, text in blueprint(given)]
    assert found == [
        "The goal is to settle", "We decided first", "We decided 8", "We decided 7", "We decided 6", "The owner is Min"
    ]  # fmt: skip
    assert blueprint(given[::-1]) == blueprint(given)
    assert len(found) - 2 == OF_ONE_ASPECT and len(found) <= MOST

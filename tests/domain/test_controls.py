"""The rule at each control point, by its name: every reason has one, and every field that it names is in the policy."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mnemolog.domain.controls import Seen, at_the_gate
from mnemolog.domain.gate.admission import Decision, Reason
from mnemolog.domain.gate.findings import Sort
from mnemolog.domain.policy import GatePolicy, Policy
from mnemolog.domain.principal import Tier
from mnemolog.infra.policies import parse_policy
from mnemolog.infra.policy_schema import written

POLICY: Policy = parse_policy(
    """
version: 1
memory: {extractor: rules-9, confirm: [fact], kinds: [fact, episode]}
personal: {phone: block, email: keep}
trust: {tools: {crm: trusted_tool}}
topics: {health: {rule: conditional, words: [allergy]}, work: {rule: allowed, words: [office]}}
systems: {crm: {attributes: [address], verify: CRM}}
"""
)
SECTIONS = "memory|trust|burst|topics|personal|consent|reading|systems"


def seen(**given: Any) -> Seen:
    fixed: dict[str, Any] = {
        "decision": Decision.ADMIT, "reasons": (), "trust": Tier.USER_STATED, "kind": "fact", "extractor": "rules-9",
        "topic": "health", "slot": ("user", "address"), "sorts": (Sort.PHONE, Sort.CARD), "role": "user",
    }  # fmt: skip
    return Seen("r", "e", **{**fixed, **given})


def fields(rule: str) -> list[list[str]]:
    """The fields of a policy document that the rule names, as paths."""
    named = re.findall(rf"(?:\A|, )((?:{SECTIONS})[\w.]*)", rule)
    return [each.split(".") for each in named]


def is_field(path: list[str]) -> bool:
    at: Any = written(POLICY)
    for name in path:
        if not isinstance(at, dict) or name not in at:
            return False
        at = at[name]
    return True


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_names_the_rule_that_decided(reason: Reason) -> None:
    """A field of the policy that is there, or a rule in words; it is told once, and nothing after a stop passes."""
    told = list(at_the_gate(seen(decision=Decision.REJECT, reasons=(reason.value,)), POLICY.gate))
    mine = [one for one in told if one.detail.startswith(reason.value)]
    assert len(mine) == 1
    assert mine[0].rule and mine[0].result != "passed"
    assert [path for one in told for path in fields(one.rule) if not is_field(path)] == []
    if mine[0].result == "stopped":
        assert told[-1] == mine[0]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, "trust.ceilings.user: user_stated"),
        ({"role": "tool", "who": "crm", "trust": Tier.TRUSTED_TOOL}, "trust.tools.crm: trusted_tool"),
        ({"role": "tool", "who": "web", "trust": Tier.UNTRUSTED_TOOL}, "origin of what it rests on"),
        ({}, "trust.floors.fact: trusted_tool"),
        ({"kind": "episode"}, "trust.floors.episode: trusted_tool"),
        ({"sorts": (Sort.EMAIL,)}, "personal.email: keep"),
        ({"reasons": (Reason.IDENTIFIER.value,)}, "personal.phone: block"),
        ({"reasons": (Reason.IDENTIFIER_MASKED.value,)}, "personal.card: redact"),
        ({}, "topics.health.rule: conditional"),
        ({"reasons": (Reason.OWNED.value,)}, "systems.crm.attributes"),
        ({"reasons": (Reason.ASKED_FIRST.value,)}, "memory.confirm: fact"),
        ({"reasons": (Reason.ASKED_FIRST.value,), "kind": "episode"}, "memory.confirm_explicit: true"),
    ],
)
def test_a_rule_is_told_with_its_value(given: dict[str, Any], rule: str) -> None:
    """As it stands in the policy that decided."""
    assert rule in [one.rule for one in at_the_gate(seen(**given), POLICY.gate)]


def test_what_is_stated_needs_no_floor() -> None:
    """A statement passes no extractor and no floor; what a person decides about it is told last."""
    points = [one.point for one in at_the_gate(seen(extractor=None), GatePolicy())]
    assert points == ["extract", "origin", "secrets", "instructions", "topic"]
    held = seen(decision=Decision.ADMIT, reasons=(Reason.LOW_TRUST.value, Reason.APPROVED.value))
    assert [one.result for one in at_the_gate(held, GatePolicy())][-1] == "admitted"


@pytest.mark.parametrize(("decision", "result"), [(Decision.REJECT, "stopped"), (Decision.CONFIRM, "held")])
def test_what_was_rejected_before_is_stopped_or_asked_about(decision: Decision, result: str) -> None:
    """As the voice that says it again has a right to be heard."""
    told = list(at_the_gate(seen(decision=decision, reasons=(Reason.REJECTED_BEFORE.value,)), GatePolicy()))
    assert (told[-1].point, told[-1].rule, told[-1].result) == ("people", "people decide", result)

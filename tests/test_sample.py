"""The sample week and the documented event file agree."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from typing import Any

from support import ROOT

FORMAT = (ROOT / "docs" / "import-format.md").read_text()
LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "examples" / "sample_week.jsonl").read_text().splitlines()
]
COMMON = {"type", "scope", "occurred_at", "key"}
FIELDS = {
    "session_opened": {"timezone", "title"},
    "turn": {"role", "content", "author"},
    "tool_call": {"name", "arguments", "call_id"},
    "tool_result": {"output", "error", "call_id", "name", "source"},
    "feedback": {"target", "rating", "comment"},
    "session_closed": set(),
    "remember": {
        "content", "kind", "slot", "valid_from", "valid_to", "expires_at", "sensitivity", "subjects", "id",
    },
    "correct": {"record", "content", "reason"},
    "confirm": {"record", "reason"},
    "dispute": {"record", "reason"},
    "retract": {"record", "reason"},
}  # fmt: skip


def test_every_type_and_field_is_documented() -> None:
    """What the sample uses is what the format describes."""
    documented = set(re.findall(r"`(\w+)`", FORMAT))
    assert {*FIELDS, *COMMON, *(field for fields in FIELDS.values() for field in fields)} <= documented


def test_every_line_has_the_documented_form() -> None:
    """Each line has the common fields, no unknown ones, a tenant and a time with an offset."""
    for line in LINES:
        assert COMMON <= line.keys() <= COMMON | FIELDS[line["type"]], line["key"]
        assert line["scope"]["tenant"], line["key"]
        assert datetime.fromisoformat(line["occurred_at"]).tzinfo, line["key"]
        if line["type"] == "tool_result":
            assert ("output" in line) != ("error" in line), line["key"]


def test_lines_are_unique_and_in_order() -> None:
    """Keys are unique and time does not run backwards."""
    assert max(Counter(line["key"] for line in LINES).values()) == 1
    times = [datetime.fromisoformat(line["occurred_at"]) for line in LINES]
    assert times == sorted(times)


def test_references_lead_backwards_within_the_tenant() -> None:
    """A line names only records and keys of earlier lines of its tenant."""
    known: set[tuple[str, str]] = set()
    for line in LINES:
        tenant = line["scope"]["tenant"]
        for field in ("record", "target"):
            assert field not in line or (tenant, line[field]) in known, line["key"]
        known |= {(tenant, line["key"]), (tenant, line.get("id", ""))}


def test_every_type_occurs() -> None:
    """The sample shows each type of line at least once."""
    assert {line["type"] for line in LINES} == set(FIELDS)


def test_the_week_has_what_the_demo_tells() -> None:
    """Seven days, two users, a neighbour, a changed decision, and a datum that only its person's lines hold."""
    assert len({line["occurred_at"][:10] for line in LINES}) == 7
    assert {(line["scope"]["tenant"], line["scope"].get("user")) for line in LINES} >= {
        ("hanul", "min"),
        ("hanul", "dana"),
        ("bluefin", "jude"),
    }
    deploy = [
        line for line in LINES if line.get("slot") == ["deploy", "day"] and line["scope"]["tenant"] == "hanul"
    ]
    assert len(deploy) == 2
    with_code = [line for line in LINES if "K-7741" in json.dumps(line)]
    assert len(with_code) >= 3
    assert {line["scope"]["user"] for line in with_code} == {"dana"}

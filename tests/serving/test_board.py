"""The board for Grafana: what it draws is what the roles tell."""

from __future__ import annotations

import json
import re

from support import ROOT

BOARD = json.loads((ROOT / "docs" / "grafana" / "mnemolog.json").read_text())
ROLES = ROOT / "infra" / "roles"


def told() -> set[str]:
    """Every name of a metric in the roles, with the ends that its kind brings."""
    source = "\n".join(path.read_text() for path in [*ROLES.glob("*.py"), ROOT / "infra" / "serving.py"])
    plain = set(re.findall(r'"(mnemolog_[a-z_]+)"', source))
    ingest = {f"mnemolog_ingest_{name}" for name in re.findall(r'^ +\("([a-z_]+)", "', source, re.M)}
    process = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    return plain | {f"{name}_total" for name in plain | ingest} | process


def test_every_panel_draws_metrics_that_there_are() -> None:
    """A name that no role tells would be an empty panel."""
    drawn = {
        name
        for panel in BOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:mnemolog|process)_[a-z_]+", target["expr"])
    }
    assert drawn and drawn <= told()


def test_every_metric_of_a_cluster_has_a_panel() -> None:
    """Head, relay lag, lag per view and partition, rates, dead letters, parked, rebalances, rebuilds."""
    text = json.dumps(BOARD)
    for name in (
        "log_head", "relay_lag", "partition_lag", "ingest_appended", "ingest_dead_letters", "projection_parked",
        "worker_rebalances", "producer_rebuilds",
    ):  # fmt: skip
        assert f"mnemolog_{name}" in text


def test_panels_have_numbers_and_places_of_their_own() -> None:
    """No two panels have one id or lie on each other."""
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(set(places)) == len(places)

"""Every role of docker-compose.yml as a plain process, with the environment that it has there, on real servers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from cluster_world import Deployment
from kafka_world import until
from mnemolog import Memory, Scope
from mnemolog.infra.settings import Settings
from mnemolog.kafka import IngestProducer
from served import Served
from support import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
ROLES = {name: one for name, one in SERVICES.items() if one.get("command", [""])[0] == "serve"}
NO_SERVER = ("MNEMOLOG_QDRANT_URL", "mnemolog_qdrant_key")
"""Without a Qdrant server vectors are compared one by one."""


@pytest.fixture
def secrets(deployment: Deployment, tmp_path: Path) -> Path:
    """The folder of secrets, with urls that lead to the servers of the test."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    values = {
        "mnemolog_database_url": deployment.database,
        "mnemolog_keys_url": deployment.database,
        "mnemolog_root_key": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMyE=",
    }
    for name in {one for role in ROLES.values() for one in role["secrets"]} - set(NO_SERVER):
        (folder / name).write_text(values[name])
    return folder


def test_one_event_goes_all_the_way(
    deployment: Deployment, secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the ingest topic into the log, the events topic, the views and the vectors; then all drain."""
    there = {"MNEMOLOG_KAFKA": deployment.environment["MNEMOLOG_KAFKA"], "MNEMOLOG_SECRETS": str(secrets)}
    apart = {
        "MNEMOLOG_KAFKA_PREFIX": deployment.kafka.prefix,
        "MNEMOLOG_DATABASE_SCHEMA": deployment.schema,
    }
    monkeypatch.delenv("MNEMOLOG_EMBEDDER", raising=False)
    for service in ROLES.values():
        environment = {**service["environment"], **there, **apart}
        for _ in range(service.get("deploy", {}).get("replicas", 1)):
            values = {key: value for key, value in environment.items() if key not in NO_SERVER}
            deployment.roles.append(Served(service["command"][1], tmp_path / "data", **values))
    for role in deployment.roles:
        role.ready()
    scope = Scope("acme", user="u-1", project="billing", session="s-1")
    with IngestProducer(there["MNEMOLOG_KAFKA"], prefix=deployment.kafka.prefix) as producer:
        told = {"role": "user", "content": "the budget for Busan is 48M won"}
        producer.send("turn", scope, key="k-1", occurred_at=datetime(2026, 3, 2, 9, tzinfo=UTC), **told)
    for key, value in {**SERVICES["relay"]["environment"], **there, **apart}.items():
        if key not in NO_SERVER:
            monkeypatch.setenv(key, value)
    with Memory.open(Settings.load(data=tmp_path / "data"), background=False) as memory:
        deployment.settled(memory)
        until(lambda: [hit.text for hit in memory.recall(scope, "Busan budget")], "the turn in recall")
        embedder = deployment.roles[list(ROLES).index("embedder") + 1]  # behind two workers
        embedder.until(lambda: embedder.metric('mnemolog_projection_lag{projection="vectors"}') == 0)
        hits = memory.recall(scope, "how much money is there for the trip to the sea?")
        # What was extracted from it may be a record by now, which says the same.
        assert [hit.text for hit in hits if hit.kind == "turn"] == ["the budget for Busan is 48M won"]
    assert [role.terminate() for role in deployment.roles] == [0] * (len(ROLES) + 1)

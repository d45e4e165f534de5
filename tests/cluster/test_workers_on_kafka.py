"""Log, relay, topic, workers, views: the whole chain, against real servers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cluster_world import Deployment, assert_as_embedded, say, store_of
from kafka_world import until
from mnemolog import Scope

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def test_promise_3_workers_make_the_views_that_one_process_makes(
    deployment: Deployment, tmp_path: Path
) -> None:
    """Two workers share the partitions; a reader sees what they fold; an erasure reaches every partition."""
    deployment.serve("relay").ready()
    workers = [deployment.serve("worker").ready() for _ in range(2)]
    with deployment.memory() as memory:
        say(memory, Random(1), 120)
        deployment.settled(memory)
        scope = Scope("acme", user="u-1", project="billing")
        assert memory.recall(scope, "Busan budget", at_least=store_of(memory).log.head())
        erased = memory.record_turn(scope, role="user", content="the secret word is quixotic")
        deployment.settled(memory)
        receipt = memory.erase(scope, event=erased.event_id).apply()
        assert receipt.complete, receipt
        say(memory, Random(2), 60)
        deployment.settled(memory)
        assert not any("quixotic" in hit.text for hit in memory.recall(scope, "quixotic"))
        assert_as_embedded(memory, tmp_path / "embedded")
    shared = [each.metric("mnemolog_worker_partitions") for each in workers]
    until(lambda: sum(each.metric("mnemolog_worker_partitions") for each in workers) == 3, f"{shared}")
    assert all(each.metric("mnemolog_worker_folded_total") > 0 for each in workers)
    assert [each.terminate() for each in workers] == [0, 0]

"""Log, relay, topic, workers, views: the whole chain, against real servers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from cluster_world import Deployment, assert_as_embedded, say, store_of
from kafka_world import until
from mnemolog import Principal, Role, Scope
from mnemolog.errors import AccessDenied
from mnemolog.kafka import CurrentRecords

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
        assert not any(store.readable for store in receipt.stores), receipt
        # Wrapped keys stay in the server's WAL until the root key changes; nothing else is left to do.
        assert {store.store for store in receipt.stores if store.due} == {"keys"}
        say(memory, Random(2), 60)
        deployment.settled(memory)
        assert not any("quixotic" in hit.text for hit in memory.recall(scope, "quixotic"))
        assert_as_embedded(memory, tmp_path / "embedded")
    shared = [each.metric("mnemolog_worker_partitions") for each in workers]
    until(lambda: sum(each.metric("mnemolog_worker_partitions") for each in workers) == 3, f"{shared}")
    assert all(each.metric("mnemolog_worker_folded_total") > 0 for each in workers)
    assert [each.terminate() for each in workers] == [0, 0]


def test_promise_4_scopes_hold_through_the_chain(deployment: Deployment) -> None:
    """C01, C02, C03: users with one session id, projects of one user, and tenants see nothing of each other."""
    deployment.serve("relay").ready()
    deployment.serve("worker").ready()
    one = Scope("acme", user="u-1", project="billing", session="s-1")
    others = [
        replace(one, user="u-2"),
        replace(one, project="travel"),
        replace(one, tenant="globex"),
    ]
    with deployment.memory() as memory:
        memory.record_turn(one, role="user", content="the budget is 48M won")
        memory.remember(one, "the budget is 48M won", slot=("budget", "amount"))
        for other in others:
            memory.record_turn(other, role="user", content="the budget of somebody else")
            memory.remember(other, "the budget of somebody else", slot=("budget", "amount"))
        deployment.settled(memory)
        for scope in (one, *others):
            mine = "48M" if scope is one else "somebody"
            hits = memory.recall(scope, "budget")
            assert hits and all(mine in hit.text for hit in hits), scope
            assert [record.content for record in memory.records(scope)] == [hits[0].text]
            assert ("48M" in str(memory.context(scope, "budget", budget=500))) == (scope is one)
        records = deployment.serve("records").ready()
        records.until(lambda: records.metric("mnemolog_records_sent_total") == 4)
        with CurrentRecords(memory) as current:
            until(lambda: current.refresh(1) + len(current.records(one)) > 1, "the copy")
            for scope in (one, *others):
                copies = [record.content for record in current.records(scope)]
                assert copies == [record.content for record in memory.records(scope)]
        stranger = memory.acting_as(Principal("x", Role.AGENT, (Scope("globex"),)))
        with pytest.raises(AccessDenied):
            stranger.recall(one, "budget")


def test_a_worker_without_partitions_stands_by(deployment: Deployment) -> None:
    """More workers than partitions: the one that has none is ready, too, and takes over when the other is gone."""
    deployment.partitions = 1
    deployment.serve("relay").ready()
    workers = [deployment.serve("worker").ready() for _ in range(2)]
    shares = [each.metric("mnemolog_worker_partitions") for each in workers]
    assert sorted(shares) == [0, 1]
    workers[shares.index(1)].kill()
    other = workers[shares.index(0)]
    other.until(lambda: other.metric("mnemolog_worker_partitions") == 1)
    with deployment.memory() as memory:
        memory.record_turn(Scope("acme", user="u-1"), role="user", content="still folded")
        deployment.settled(memory)

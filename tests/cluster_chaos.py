"""Faults of a deployment, by seed, under a bounded load; and what must hold afterwards."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

from cluster_world import Deployment, assert_as_embedded, store_of
from mnemolog import Memory, Scope
from mnemolog.errors import ProjectionStalled, StoreUnavailable
from mnemolog.infra.postgres.cluster import Cluster
from mnemolog.infra.roles.kafka import on_kafka

PEOPLE = 8


class Chaos:
    """A relay and two workers that are harmed while somebody writes. said: keys of what was acknowledged."""

    def __init__(
        self,
        deployment: Deployment,
        database: Cluster,
        seed: int,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.deployment, self.database, self.random = deployment, database, Random(seed)
        self.tell, self.said = tell, list[str]()
        self.relay = deployment.serve("relay").ready()
        self.workers = [deployment.serve("worker").ready() for _ in range(2)]

    FAULTS = (
        "kill_worker",
        "freeze_worker",
        "kill_broker",
        "kill_relay",
        "redeliver",
        "add_partition",
        "kill_postgres",
    )

    def harm(self, memory: Memory, fault: str, many: int = 60) -> None:
        """Do a fault while somebody writes so many events."""
        self.tell(f"{fault}: {len(self.said)} events so far")
        writer = Thread(target=self._write, args=(memory, many, self.random.randrange(1 << 30)))
        writer.start()
        try:
            getattr(self, fault)()
        finally:
            writer.join()

    def check(self, memory: Memory, folder: Path) -> None:
        """Nothing is lost, nothing is there twice, and the views are as one process makes them."""
        self.deployment.settled(memory, 180)
        log = store_of(memory).log
        keys = [e.envelope.key for e in log.read(0, 1_000_000, bodies=False).events if e.envelope.key]
        assert len(keys) == len(set(keys)) == len(self.said), (len(keys), len(set(keys)), len(self.said))
        assert_as_embedded(memory, folder)

    # Faults ------------------------------------------------------------------------------------------------------

    def kill_worker(self) -> None:
        """kill -9 in the middle of its work; another one comes."""
        number = self._some_worker()
        time.sleep(self.random.random())
        self.workers[number].kill()
        time.sleep(self.random.random())
        self.workers[number] = self.deployment.serve("worker").ready()

    def freeze_worker(self) -> None:
        """It stands still until others have its partitions, and then goes on as if nothing had been."""
        number = self._some_worker()
        frozen, other = self.workers[number], self.workers[1 - number]
        frozen.process.send_signal(signal.SIGSTOP)
        try:
            count = self._partitions()
            other.until(lambda: other.metric("mnemolog_worker_partitions") == count)
            time.sleep(self.random.random())
        finally:
            frozen.process.send_signal(signal.SIGCONT)
        frozen.ready()

    def kill_broker(self) -> None:
        """It is away for some seconds."""
        broker = self.deployment.kafka.broker
        broker.kill()
        time.sleep(1 + 3 * self.random.random())
        broker.up()

    def kill_postgres(self) -> None:
        """A crash empties the views, which are then built anew, by all workers together."""
        self.database.kill()
        time.sleep(1 + 2 * self.random.random())
        self.database.up()

    def kill_relay(self) -> None:
        """What it had sent since it last kept its place is sent again."""
        time.sleep(self.random.random())
        self.relay.kill()
        self.relay = self.deployment.serve("relay").ready()

    def redeliver(self) -> None:
        """Messages are in the topic once more, in another order."""
        kafka = self.deployment.kafka
        topic = kafka.topics.events
        for partition, messages in kafka.read(topic).items():
            if messages:
                again = self.random.choices([message.value for message in messages], k=40)
                kafka.send(topic, again, partition=partition)

    def add_partition(self) -> None:
        """The next epoch: workers drain to it, then owners are placed anew."""
        with on_kafka(self.deployment.settings) as kafka:
            kafka.partitions(kafka.partitions().partitions + 1)

    # Load ----------------------------------------------------------------------------------------------------------

    def _some_worker(self) -> int:
        return self.random.randrange(len(self.workers))

    def _partitions(self) -> int:
        with on_kafka(self.deployment.settings) as kafka:
            return kafka.partitions().partitions

    def _write(self, memory: Memory, many: int, seed: int) -> None:
        random = Random(seed)
        for _ in range(many):
            user, key = f"u-{random.randrange(PEOPLE)}", f"k{len(self.said)}"
            scope = Scope("acme", user=user, project="billing", session=f"{user}-s{random.randrange(3)}")
            self._acknowledged(_act(memory, scope, random, key))
            self.said.append(key)
            time.sleep(0.02)

    def _acknowledged(self, act: Callable[[], Any]) -> None:
        """As any client does it: with the same key until it is acknowledged."""
        deadline = time.monotonic() + 90
        while True:
            try:
                act()
                return
            except (StoreUnavailable, ProjectionStalled):
                assert time.monotonic() < deadline, "nothing can be written any more"
                time.sleep(0.2)


def _act(memory: Memory, scope: Scope, random: Random, key: str) -> Callable[[], Any]:
    number = random.randrange(1000)
    if random.random() < 0.75:
        text = f"budget {number} for Busan, 예산 {number}만원"
        return lambda: memory.record_turn(scope, role="user", content=text, key=key)
    slot = ("budget", f"item {number % 5}")
    return lambda: memory.remember(scope, f"The budget is {number}", slot=slot, key=key)

"""A deployment on one machine: `python bench/cluster.py [--seconds S] [--events N] [--only SECTION ...]`.

latency: milliseconds from `IngestProducer.send` until the event is found by words in `recall`, at 200 events a second:
ingest → log → relay → worker → views, embedder off. Floor: kafka-python alone, the same bytes sent and received.
fold: events a second that one worker and two fold from the topic into all views, behind a log that is full. Floor: a
bare fold, which reads the same messages and copies their bytes into one table with a checkpoint.
cpu: CPU milliseconds of every role for 1,000 events, from both.

All in one run, on a server with fsync and a broker of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from threading import Event, Thread
from typing import Any, Final

import _data
import psycopg
from _measure import machine, percentile, table, verdict
from _servers import Deployment, Servers, servers

from cluster_world import store_of
from mnemolog import Memory, Scope
from mnemolog.kafka import IngestProducer
from served import Served

RATE: Final = 200
SAMPLED: Final = 40
"""One event of so many is looked for."""
PEOPLE: Final = 40
SECTIONS: Final = ("latency", "fold")
_CPU = "process_cpu_seconds_total"
Cpu = dict[str, float]


def latency(there: Servers, seconds: float, events: int, cpu: list[tuple[object, ...]]) -> None:
    with there.deployment() as deployment:
        roles = {name: deployment.serve(name).ready() for name in ("relay", "ingest", "worker")}
        with deployment.memory() as memory:
            warm = Looking(memory)
            _send(deployment, warm, 2.0, "warm")
            warm.done(30)
            before = _cpu(roles)
            looking = Looking(memory)
            sent = _send(deployment, looking, seconds, "run")
            found = looking.done(60)
            cpu += _cost("at 200 a second", before, _cpu(roles), sent)
        floor = _bare_latency(deployment, seconds / 4)
    p50, p95 = (percentile(found, share) * 1000 for share in (0.5, 0.95))
    rows = [
        ("through everything", f"{p50:.0f}", f"{p95:.0f}", f"{verdict(p95, 1000, lower_is_better=True)}"),
        ("kafka-python alone", *(f"{percentile(floor, share) * 1000:.0f}" for share in (0.5, 0.95)), ""),
    ]
    table(f"{RATE} events a second, {sent} events: ms until found", ("", "p50", "p95", "goal"), rows)
    if looking.lost:
        print(f"  NOT FOUND in a minute: {looking.lost} of {len(found) + looking.lost}")


class Looking:
    """Asks `recall` for the oldest sampled event until it is there, then for the next."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._waiting = memory, list[tuple[float, Scope, str]]()
        self._found, self._ended = list[float](), Event()
        self.lost = 0
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def expect(self, scope: Scope, word: str) -> None:
        self._waiting.append((time.perf_counter(), scope, word))

    def done(self, patience: float) -> list[float]:
        """Seconds that each took."""
        self._ended.set()
        self._thread.join(patience)
        self.lost = len(self._waiting)
        return self._found

    def _run(self) -> None:
        while self._waiting or not self._ended.is_set():
            if not self._waiting:
                time.sleep(0.005)
                continue
            since, scope, word = self._waiting[0]
            if any(word in hit.text for hit in self._memory.recall(scope, word, k=1)):
                self._found.append(time.perf_counter() - since)
                self._waiting.pop(0)
            else:
                time.sleep(0.005)


def _send(deployment: Deployment, looking: Looking, seconds: float, name: str) -> int:
    """Steadily, a twentieth of a second at a time."""
    servers, prefix = deployment.environment["MNEMOLOG_KAFKA"], deployment.kafka.prefix
    turns, number, started = _data.turns(PEOPLE, prefix=name), 0, time.perf_counter()
    with IngestProducer(servers, prefix=prefix) as producer:
        while (now := time.perf_counter() - started) < seconds:
            while number < now * RATE:
                turn, word = next(turns), f"xq{name}{number}"
                told = {"role": turn["role"], "content": f"{turn['content']} {word}"}
                at = datetime.now(UTC)
                if number % SAMPLED == 0:
                    looking.expect(turn["scope"], word)
                producer.send("turn", turn["scope"], key=turn["key"], occurred_at=at, **told)
                number += 1
            producer.flush()
            time.sleep(0.02)
    return number


def _bare_latency(deployment: Deployment, seconds: float) -> list[float]:
    """Sent and received by the client alone."""
    from kafka import KafkaConsumer, KafkaProducer

    topic, found = deployment.kafka.topics.ingest, list[float]()
    consumer = KafkaConsumer(topic, **deployment.kafka.connection, auto_offset_reset="latest", group_id=None)
    consumer.poll(timeout_ms=2000)
    producer, number, started = KafkaProducer(**deployment.kafka.connection), 0, time.perf_counter()
    body = b"x" * 400
    while (now := time.perf_counter() - started) < seconds:
        while number < now * RATE:
            producer.send(topic, b"%f " % time.perf_counter() + body)
            number += 1
        producer.flush()
        for messages in consumer.poll(timeout_ms=20).values():
            arrived = time.perf_counter()
            found += [arrived - float(message.value.split(b" ", 1)[0]) for message in messages]
    producer.close(timeout=5)
    consumer.close()
    return found


def fold(there: Servers, seconds: float, events: int, cpu: list[tuple[object, ...]]) -> None:
    rates: list[tuple[object, ...]] = []
    with there.deployment() as deployment:
        for workers in (1, 2):
            with _folded(deployment, workers, events // workers) as (rate, before, after, many):
                goal = verdict(rate, 2000) if workers == 1 else ""
                rates.append((f"{workers} worker{'s' * (workers > 1)}, {many} events", f"{rate:,.0f}", goal))
                cpu += _cost(f"fold, {workers}", before, after, many)
        bare, read = _bare_fold(deployment, there)
        rates.append((f"bare fold, {read} messages", f"{bare:,.0f}", ""))
    table("events folded a second, into all views", ("", "events/s", "goal"), rates)


@contextmanager
def _folded(deployment: Deployment, workers: int, events: int) -> Iterator[tuple[float, Cpu, Cpu, int]]:
    """Fill log and topic while nobody folds; then let workers catch up."""
    relay = deployment.serve("relay").ready()
    idle = deployment.serve("worker").ready()
    with deployment.memory() as memory:
        deployment.settled(memory)
        idle.terminate()
        first = store_of(memory).log.head()
        turns = islice(_data.turns(PEOPLE, prefix=f"fold{workers}"), events)
        while batch := list(islice(turns, 500)):
            memory.record_batch(batch)
        head = store_of(memory).log.head()
        relay.until(lambda: relay.metric("mnemolog_relay_lag") == 0)
        roles = {f"worker {n}": deployment.serve("worker") for n in range(workers)}
        rate = _catch_up(memory, first, head)
        yield rate, dict.fromkeys(roles, 0.0), _cpu(roles), head - first
    for role in (relay, *roles.values()):
        role.terminate()


def _catch_up(memory: Memory, first: int, head: int) -> float:
    """Events a second from the first batch that is seen to the last, by the slowest view."""
    runner, begun = store_of(memory).runner, 0.0
    at = start = first
    while at < head:
        time.sleep(0.02)
        at = min(lag.position for lag in runner.lag())
        if not begun and at > first:
            begun, start = time.perf_counter(), at
    return (head - start) / max(time.perf_counter() - begun, 1e-9)


def _bare_fold(deployment: Deployment, there: Servers) -> tuple[float, int]:
    from kafka import KafkaConsumer, TopicPartition

    url = there.database.status().url
    assert url is not None
    consumer = KafkaConsumer(**deployment.kafka.connection, enable_auto_commit=False)
    topic = deployment.kafka.topics.events
    parts = [TopicPartition(topic, one) for one in consumer.partitions_for_topic(topic) or ()]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    ends, done, many = consumer.end_offsets(parts), dict[int, int](), 0
    with psycopg.connect(url) as conn:
        conn.execute("CREATE UNLOGGED TABLE bare (partition int, position bigint, state bytea)")
        conn.execute("CREATE UNLOGGED TABLE bare_checkpoint (partition int PRIMARY KEY, position bigint)")
        conn.commit()
        started = time.perf_counter()
        while any(consumer.position(part) < ends[part] for part in parts):
            for part, messages in consumer.poll(timeout_ms=500, max_records=1000).items():
                many += len(messages)
                with conn.cursor() as cursor, cursor.copy("COPY bare FROM STDIN") as copy:
                    for message in messages:
                        copy.write_row((part.partition, message.offset, message.value))
                done[part.partition] = messages[-1].offset
                conn.execute(
                    "INSERT INTO bare_checkpoint VALUES (%s, %s) ON CONFLICT (partition) DO UPDATE SET"
                    " position = excluded.position",
                    (part.partition, messages[-1].offset),
                )
                conn.commit()
        took = time.perf_counter() - started
        conn.execute("DROP TABLE bare, bare_checkpoint")
    consumer.close()
    return many / took, many


def _cpu(roles: dict[str, Served]) -> Cpu:
    return {name: role.metric(_CPU) for name, role in roles.items()}


def _cost(when: str, before: Cpu, after: Cpu, events: int) -> list[tuple[object, ...]]:
    each = {name: (after[name] - before[name]) * 1e6 / events for name in after}
    return [(f"{name}, {when}", f"{cost:.0f}") for name, cost in each.items()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    arguments = parser.parse_args()
    print(machine())
    cpu: list[tuple[object, ...]] = []
    sections: dict[str, Any] = {"latency": latency, "fold": fold}
    with servers() as there:
        for name in arguments.only:
            sections[name](there, arguments.seconds, arguments.events, cpu)
    table("CPU milliseconds of a role for 1,000 events", ("role", "ms"), cpu)


if __name__ == "__main__":
    main()

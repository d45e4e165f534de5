"""`mnemolog serve relay` and `serve ingest`, as an operator runs them, and the commands about their topics."""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from face_world import U1
from kafka_world import Kafka, until
from mnemolog import Memory, Scope
from mnemolog.consumers.messages import EventMessage
from mnemolog.domain.errors import AnotherLog, InvalidInput, StoreUnavailable
from mnemolog.infra.cli.app import app
from mnemolog.infra.roles import opening
from mnemolog.infra.roles.kafka import on_kafka
from mnemolog.infra.settings import Settings
from mnemolog.infra.vault.vault import _vaults
from mnemolog.kafka import IngestProducer
from postgres_world import new_schema
from served import Served

Serve = Callable[..., Served]
WHEN = datetime(2026, 3, 9, 9, 14, tzinfo=UTC)


class Chain:
    """What a reader of the events topic has taken."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka

    def positions(self) -> list[int]:
        """Each event once; fails where the chain has a gap."""
        taken: set[int] = set()
        for messages in self.kafka.read(self.kafka.topics.events).values():
            checkpoint = 0
            for message in (EventMessage.decode(one.value) for one in messages):
                if message.position > checkpoint:
                    assert message.previous <= checkpoint, "the chain has a gap"
                    checkpoint = message.position
                    taken.add(message.position)
        return sorted(taken)


@pytest.fixture
def run(kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command; its exit code, and its stdout as JSON."""
    for name, value in {**kafka.environment, "MNEMOLOG_KAFKA_PARTITIONS": "2"}.items():
        monkeypatch.setenv(name, value)

    def running(*arguments: str) -> tuple[int, list[Any]]:
        done = CliRunner().invoke(app, [*arguments, "--json", "--data", str(tmp_path / "data")])
        return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]

    return running


def produce(kafka: Kafka, count: int, first: int = 0, key: str | None = None) -> None:
    with IngestProducer(kafka.connection["bootstrap_servers"][0], key=key, prefix=kafka.prefix) as producer:
        for number in range(first, first + count):
            scope = Scope("acme", user=f"u-{number % 5}", session=f"s-{number % 5}")
            text = f"turn {number}"
            producer.send("turn", scope, key=str(number), occurred_at=WHEN, role="user", content=text)


def turns(data: Path) -> list[str]:
    with Memory.open(data, background=False) as memory:
        return [one.event.content for one in memory.log(limit=5000, topics={"TurnRecorded"})]  # type: ignore[union-attr]


@pytest.mark.postgres
@pytest.mark.slow
def test_the_same_over_a_log_in_postgresql(
    kafka: Kafka, serve: Serve, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, keys, views and the relay's place are in the database, and a relay elsewhere goes on from there."""
    database = {
        "MNEMOLOG_DATABASE_URL": postgres_url,
        "MNEMOLOG_KEYS_URL": postgres_url,
        "MNEMOLOG_DATABASE_SCHEMA": new_schema() + "_k",
        "MNEMOLOG_ROOT_KEY": base64.b64encode(bytes(32)).decode(),
    }
    ingest = serve("ingest", **database).ready()
    produce(kafka, 30)
    relay = serve("relay", **database).ready()
    relay.until(partial(is_level, relay))
    assert relay.terminate() == 0
    ingest.until(lambda: ingest.metric("mnemolog_ingest_appended_total") == 30)
    with IngestProducer(kafka.connection["bootstrap_servers"][0], prefix=kafka.prefix) as producer:
        producer.send("remember", U1, key="r", occurred_at=WHEN, content="Reports go out as PDF.")
    records = serve("records", **database).ready()
    records.until(lambda: records.metric("mnemolog_records_sent_total") == 1)
    assert (ingest.terminate(), records.terminate()) == (0, 0)
    relay = serve("relay", "elsewhere", **database).ready()
    relay.until(lambda: relay.metric("mnemolog_relay_lag") == 0)
    for name, value in database.items():
        monkeypatch.setenv(name, value)
    assert len(turns(tmp_path / "data")) == 30
    assert Chain(kafka).positions()[-1] == relay.metric("mnemolog_log_head")


@pytest.mark.slow
def test_roles_that_are_killed_lose_nothing_and_double_nothing(
    kafka: Kafka, serve: Serve, tmp_path: Path
) -> None:
    """I08, I09: kill -9 of ingest, relay and broker while events flow: each event is there once, in order."""
    for round in range(2):
        ingest, relay = serve("ingest").ready(), serve("relay").ready()
        produce(kafka, 300, 300 * round)
        until(partial(has_begun, ingest), "ingest has begun")
        ingest.kill()
        relay.kill()
        if round == 1:
            kafka.broker.kill()
            kafka.broker.up()
    ingest, relay = serve("ingest").ready(), serve("relay").ready()
    ingest.until(lambda: len(turns(tmp_path / "data")) >= 600)
    relay.until(lambda: relay.metric("mnemolog_relay_lag") == 0)
    found = [int(text.split()[1]) for text in turns(tmp_path / "data")]
    assert sorted(found) == list(range(600))
    for user in range(5):
        own = [number for number in found if number % 5 == user]
        assert own == sorted(own)
    assert (ingest.terminate(), relay.terminate()) == (0, 0)
    with Memory.open(tmp_path / "data", background=False) as memory:
        assert Chain(kafka).positions() == [one.position for one in memory.log(limit=5000)]


def is_level(relay: Served) -> bool:
    return relay.metric("mnemolog_relay_lag") == 0


def has_begun(ingest: Served) -> bool:
    return ingest.metric("mnemolog_ingest_messages_total") > 0


def test_from_a_runtime_to_the_events_topic_with_two_of_each_role(
    kafka: Kafka, serve: Serve, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Topics are made, what is sent sealed is recalled; a second ingest shares, a second relay stands by."""
    (key,) = run("topics", "key")[1]
    roles = [serve(name).ready() for name in ("ingest", "relay", "ingest", "relay")]
    produce(kafka, 100, key=key["key"])
    with IngestProducer(kafka.connection["bootstrap_servers"][0], prefix=kafka.prefix) as producer:
        producer.send("turn", U1, key="1", occurred_at=WHEN, role="user", content="invoice on Friday")
    until(
        lambda: sum(role.metric("mnemolog_ingest_appended_total") for role in roles[::2]) == 101, "all is in"
    )
    until(lambda: any(map(is_level, roles[1::2])), "all is relayed")
    assert all(role.terminate() == 0 for role in roles)
    assert sorted(turns(tmp_path / "data")) == sorted(
        ["invoice on Friday", *(f"turn {number}" for number in range(100))]
    )
    with Memory.open(tmp_path / "data", background=False) as memory:
        assert Chain(kafka).positions() == [one.position for one in memory.log(limit=500)]
        assert [hit.text for hit in memory.recall(U1, "invoice")] == ["invoice on Friday"]


def test_topics_are_made_and_grown_by_command(run: Callable[..., Any]) -> None:
    """Status tells of what is not there; create makes it, twice the same; more partitions are the next epoch."""
    assert run("init")[0] == 0
    assert run("topics", "status")[0] == 9
    code, (made,) = run("topics", "create")
    assert (code, len(made["made"]), made["epoch"], made["partitions"]) == (0, 5, 1, 2)
    code, (again,) = run("topics", "create")
    assert (code, again["made"], again["epoch"]) == (0, [], 1)
    assert run("topics", "create", "--partitions", "3")[1][0]["epoch"] == 2
    assert run("topics", "create", "--partitions", "2")[0] == 2
    code, topics = run("topics", "status")
    assert code == 0
    assert {one["name"].partition(".")[2]: one["partitions"] for one in topics}["events"] == 3


def test_topics_of_no_memory_are_not_made(kafka: Kafka, run: Callable[..., Any], tmp_path: Path) -> None:
    """A mistyped folder is no new memory, and no topic is left behind by it."""
    for command in (("topics", "create"), ("topics", "status"), ("dlq", "list")):
        assert run(*command)[0] == 3
    assert not (tmp_path / "data").exists()
    assert kafka.admin().status()[0].partitions == 0


def test_topics_of_another_log_are_refused(kafka: Kafka, run: Callable[..., Any], tmp_path: Path) -> None:
    """Whoever comes second learns of it in every role and command that would write; a moved log is still the same."""
    assert [run(*command)[0] for command in (("init",), ("topics", "create"))] == [0, 0]
    mine = kafka.settings(data=tmp_path / "data")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    with on_kafka(mine.having(data=tmp_path / "copy")) as kafka_of_copy:
        assert kafka_of_copy.create_topics()[1] == []
    other = mine.having(data=tmp_path / "other")
    Memory.open(other, background=False).close()
    for role in ("relay", "ingest", "records"):
        with pytest.raises(AnotherLog, match="MNEMOLOG_KAFKA_PREFIX"), opening(role, other)():
            pass
    with on_kafka(other) as kafka_of_other, pytest.raises(AnotherLog), kafka_of_other.letters():
        pass


def test_the_key_is_made_once_and_rotated(run: Callable[..., Any]) -> None:
    """The same key each time, until a new one is asked for; the old one opens until it is dropped."""
    (first,), (second,) = run("topics", "key")[1], run("topics", "key")[1]
    (new,) = run("topics", "key", "--new")[1]
    (alone,) = run("topics", "key", "--drop-old")[1]
    assert first == second
    assert (new["keys"], alone["keys"]) == (2, 1)
    assert first["key"] != new["key"] == alone["key"]


def test_dead_letters_by_command(kafka: Kafka, serve: Serve, run: Callable[..., Any], tmp_path: Path) -> None:
    """List, show, replay and dismiss; the exit code says whether any waits."""
    ingest = serve("ingest").ready()
    line = {
        "type": "turn",
        "scope": {"session": "s"},
        "content": "누구의 말인가",
        "occurred_at": WHEN.isoformat(),
    }
    kafka.send(kafka.topics.ingest, [b"{", orjson.dumps(line)], partition=0)
    ingest.until(lambda: ingest.metric("mnemolog_ingest_dead_letters_total") == 2)
    code, letters = run("dlq", "list")
    assert (code, [letter["code"] for letter in letters]) == (9, ["invalid", "invalid"])
    code, (shown,) = run("dlq", "show", letters[1]["id"])
    assert (shown["size"], shown["owners"]) == (len(orjson.dumps(line)), [])
    assert "누구" not in str(shown)
    assert (
        json.loads(run("dlq", "show", letters[1]["id"], "--text")[1][0]["text"])["content"] == "누구의 말인가"
    )
    assert run("dlq", "show", "nothing/0/0")[0] == 3
    assert run("dlq", "dismiss")[0] == 2
    assert run("dlq", "dismiss", letters[0]["id"])[0] == 0
    assert run("dlq", "replay", "--all")[1] == [{"replayed": [letters[1]["id"]]}]
    ingest.until(lambda: ingest.metric("mnemolog_ingest_dead_letters_total") == 3)
    assert len(run("dlq", "list")[1]) == 1
    assert len(run("dlq", "list", "--all")[1]) == 3


@pytest.mark.parametrize("role", ["ingest", "records"])
def test_a_role_on_kafka_opens_the_stores_once_and_folds_nothing(
    kafka: Kafka, tmp_path: Path, role: str
) -> None:
    """No thread of its own keeps up views, it leaves the lead to others, and all parts share the keys."""
    settings = kafka.settings(data=tmp_path / "data")
    before = set(_vaults)
    with opening(role, settings)():
        assert len(set(_vaults) - before) == 1
        assert [one.name for one in threading.enumerate() if one.name.startswith("mnemolog-")] == []
        with Memory.open(settings) as other:
            assert other.operations.health().leads


def test_what_topics_are_made_with(kafka: Kafka) -> None:
    """What runtimes send is not kept much longer than its day: only closed segments are deleted."""
    kafka.admin().create(1, 1)
    assert kafka.admin().segment_seconds(kafka.topics.ingest) <= 3600


def test_without_a_broker_a_role_is_to_be_opened_later(tmp_path: Path) -> None:
    """No server, or none that answers: the error that `serve` waits for, and the one that it does not."""
    settings = Settings.load(data=tmp_path / "data", kafka="127.0.0.1:9")
    for role in ("relay", "ingest", "records"):
        with pytest.raises(StoreUnavailable), opening(role, settings)():
            pass
        with pytest.raises(InvalidInput), opening(role, Settings.load(data=tmp_path / "data"))():
            pass

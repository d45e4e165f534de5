"""How Kafka is spoken to, by settings, and a broker that cannot be run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_world import Kafka
from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.kafka.cluster import Broker, is_installed
from mnemolog.infra.kafka.connecting import check_reachable, connection
from mnemolog.infra.kafka.consuming import GroupSource
from mnemolog.infra.settings import Settings


def test_servers_and_credentials_become_the_clients_options(tmp_path: Path) -> None:
    """Several servers; SASL with a user and a password, TLS with an authority of one's own."""
    settings = Settings.load(
        kafka="one:9092, two:9093",
        kafka_security="SASL_SSL",
        kafka_user="mnemolog",
        kafka_password="secret",
        kafka_ca_file=tmp_path / "ca.pem",
    )
    options = connection(settings)
    assert options["bootstrap_servers"] == ["one:9092", "two:9093"]
    assert (options["sasl_mechanism"], options["sasl_plain_password"]) == ("SCRAM-SHA-512", "secret")
    assert options["ssl_cafile"] == str(tmp_path / "ca.pem")
    assert "secret" not in repr(settings)
    plain = connection(Settings.load(kafka="one:9092"))
    assert not any(name.startswith(("sasl", "ssl")) for name in plain)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"kafka": "one"},
        {"kafka": "one:9092,two"},
        {"kafka": "one:9092", "kafka_security": "SASL_SSL"},
        {"kafka": "one:9092", "kafka_security": "TLS"},
        {"kafka": "one:9092", "kafka_prefix": "a b"},
        {"kafka": "one:9092", "kafka_partitions": 0},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    """No servers, no port, no password, no such protocol, no such topic name."""
    with pytest.raises(InvalidInput):
        connection(Settings.load(**wrong))


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    """Before a client is made that would wait for it."""
    with pytest.raises(StoreUnavailable):
        check_reachable({"bootstrap_servers": ["127.0.0.1:9", "[::1]:9"]})


def test_a_topic_that_is_not_there_is_unavailable(kafka: Kafka) -> None:
    """Neither a reader nor whoever widens it waits for it in silence: the error names the command."""
    source = GroupSource(kafka.connection, kafka.topics.ingest, kafka.prefix)
    with pytest.raises(StoreUnavailable, match="topics create"):
        source.poll(0.1, 10)
    with pytest.raises(StoreUnavailable, match="topics create"):
        kafka.admin().widen(kafka.topics.events, 3)


def test_lag_is_what_was_not_read(kafka: Kafka) -> None:
    """It goes down as messages are read."""
    kafka.admin().create(1, 1)
    kafka.send(kafka.topics.ingest, [b"%d" % number for number in range(10)])
    source = GroupSource(kafka.connection, kafka.topics.ingest, kafka.prefix)
    try:
        assert len(source.poll(10, 4)) == 4
        assert source.lag == 6
        assert [message.value for message in source.poll(10, 10)] == [b"%d" % n for n in range(4, 10)]
        assert source.lag == 0
    finally:
        source.close()


def test_without_java_the_broker_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is fetched."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not is_installed()
    with pytest.raises(StoreUnavailable, match="apt-get install"):
        Broker(tmp_path / "broker").up()


def test_a_process_that_has_the_number_of_a_broker_is_not_one(tmp_path: Path) -> None:
    """After a crash of the machine the number may be anybody's: it is neither shown nor ended."""
    (tmp_path / "broker.pid").write_text(str(os.getpid()))
    broker = Broker(tmp_path)
    assert broker.status().pid is None
    broker.kill()


def test_a_broker_is_started_once(kafka: Kafka) -> None:
    """Up while it runs changes nothing, also by another object on its folder."""
    state = kafka.broker.status()
    assert state.pid is not None
    assert kafka.broker.up() == Broker(kafka.broker.folder).up() == state

"""A role whose broker or database is away says so once, is not ready meanwhile, and says once that it works again."""

from __future__ import annotations

import signal
import socket
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from mnemolog.infra import reaching
from mnemolog.infra.reaching import Server, Watch
from mnemolog.infra.roles.servers import servers_of
from mnemolog.infra.serving import Metric
from mnemolog.infra.serving import serve as run_role
from mnemolog.infra.settings import Settings
from served import free_port


class Listening:
    """A server that only takes connections, and can be away."""

    def __init__(self) -> None:
        self.port, self._socket = free_port(), socket.socket()
        self.up()

    @property
    def server(self) -> Server:
        return Server("Kafka", (("127.0.0.1", self.port),))

    def up(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", self.port))

    def down(self) -> None:
        self._socket.close()


def looked(watch: Watch) -> None:
    for _ in range(3):
        watch.probe()
        watch.look()


def test_it_is_told_once_that_a_server_is_away_and_once_that_it_is_back() -> None:
    """However often it is looked: one line with what is tried, and one line at the end."""
    server, said, trouble = Listening(), list[str](), list[str]()
    watch = Watch("relay", [server.server], lambda: trouble[0] if trouble else None, said.append)
    looked(watch)
    assert (said, watch.away) == ([], ())
    server.down()
    looked(watch)
    trouble.append("StoreUnavailable in producing.py:62 send")
    looked(watch)
    assert said == [f"relay: Kafka at 127.0.0.1:{server.port} cannot be reached: it goes on trying"]
    server.up()
    looked(watch)
    assert len(said) == 1, "the role has not got on yet"
    trouble.clear()
    looked(watch)
    assert said[1:] == ["relay: working again"]
    server.down()


def test_a_server_that_takes_connections_and_no_more_is_told_of_too() -> None:
    """What keeps the role from its work is told with its place and the servers, once."""
    server, said, trouble = Listening(), list[str](), ["StoreUnavailable in consuming.py:80 poll"]
    watch = Watch("ingest", [server.server], lambda: trouble[0] if trouble else None, said.append)
    looked(watch)
    trouble[0] = "StoreUnavailable in consuming.py:99 commit"
    looked(watch)
    trouble.clear()
    looked(watch)
    assert said == [
        "ingest: cannot go on (StoreUnavailable in consuming.py:80 poll, "
        f"Kafka at 127.0.0.1:{server.port}): it goes on trying",
        "ingest: working again",
    ]
    server.down()


def test_servers_are_named_without_secrets() -> None:
    """Hosts and ports of what a role needs: no user, no password, each once; a socket by its path."""
    pytest.importorskip("psycopg")
    settings = Settings.load(
        database_url="postgresql://writer:hunter2@db.example:6432/memory",
        keys_url="postgresql://keys:s3cret@/keys?host=/run/postgresql",
        kafka="127.0.0.1:9092, [::1]:9093",
        kafka_security="SASL_SSL",
        kafka_user="u",
        kafka_password="p4ss",
    )
    told = [str(one) for one in servers_of("relay", settings)]
    assert told == [
        "Kafka at 127.0.0.1:9092, ::1:9093",
        "PostgreSQL at db.example:6432",
        "PostgreSQL at /run/postgresql/.s.PGSQL.5432",
    ]
    assert [str(one) for one in servers_of("embedder", settings)] == told[1:]
    assert servers_of("projections", Settings.load()) == []


class Idle:
    """A role with nothing to do."""

    name = "relay"

    def run(self, stop: Event) -> None:
        assert stop.wait(30)

    def ready(self) -> bool:
        return True

    def trouble(self) -> str | None:
        return None

    def metrics(self) -> list[Metric]:
        return []


@contextmanager
def idle():  # type: ignore[no-untyped-def]
    yield Idle()


def readiness(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def until(port: int, status: int) -> None:
    deadline = time.monotonic() + 20
    while readiness(port) != status:
        assert time.monotonic() < deadline, f"not {status} in time"
        time.sleep(0.05)


def test_an_idle_role_is_not_ready_while_its_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing to send and would not notice: the page turns red, and green again when the broker is back."""
    monkeypatch.setattr(reaching, "_EVERY", 0.1)
    monkeypatch.setattr(reaching, "_TICK", 0.05)
    server, port, said, seen = Listening(), free_port(), list[str](), list[int]()

    def come_and_go() -> None:
        try:
            for status, change in ((200, server.down), (503, server.up), (200, server.down)):
                until(port, status)
                seen.append(status)
                change()
        finally:
            signal.raise_signal(signal.SIGTERM)

    Thread(target=come_and_go).start()
    run_role("relay", idle, health_port=port, say=said.append, servers=[server.server])
    assert seen == [200, 503, 200]
    away, back = f"relay: {server.server} cannot be reached: it goes on trying", "relay: working again"
    assert [line for line in said if line in (away, back)][:2] == [away, back]

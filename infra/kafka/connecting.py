"""How we connect to Kafka, and our errors for the client's."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.settings import Settings

_CONNECT_SECONDS: Final = 3.0


def connection(settings: Settings) -> dict[str, Any]:
    """The options of every kafka-python client. Raises InvalidInput where no servers are set."""
    if settings.kafka is None:
        raise InvalidInput("no Kafka: name its servers with MNEMOLOG_KAFKA, as in 127.0.0.1:9092")
    servers = [server.strip() for server in settings.kafka.split(",")]
    if not all(server.rpartition(":")[2].isdigit() for server in servers):
        raise InvalidInput(
            "MNEMOLOG_KAFKA: write host:port, as in 127.0.0.1:9092, with commas between servers"
        )
    options: dict[str, Any] = {
        "bootstrap_servers": servers,
        "client_id": "mnemolog",
        # The default of 30 s is how long a broker that is back would still wait for us.
        "reconnect_backoff_max_ms": 1000,
        "bootstrap_timeout_ms": 5000,
        "security_protocol": settings.kafka_security,
    }
    if settings.kafka_security.endswith("SSL") and settings.kafka_ca_file is not None:
        options["ssl_cafile"] = str(settings.kafka_ca_file)
    if settings.kafka_security.startswith("SASL"):
        assert settings.kafka_password is not None
        options |= {
            "sasl_mechanism": settings.kafka_sasl,
            "sasl_plain_username": settings.kafka_user,
            "sasl_plain_password": settings.kafka_password.get_secret_value(),
        }
    return options


def unavailable(what: str, error: Exception) -> StoreUnavailable:
    """Our error for one of the client's."""
    return StoreUnavailable(f"{what} now ({type(error).__name__}): see that Kafka runs, then retry")


def check_reachable(connection: Mapping[str, Any]) -> None:
    """Raises StoreUnavailable where no server answers.

    A client that is made meanwhile would wait, fail, and leave its sockets to the collector.
    """
    for server in connection["bootstrap_servers"]:
        host, _, port = server.rpartition(":")
        with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
            return
    servers = ", ".join(connection["bootstrap_servers"])
    raise StoreUnavailable(
        f"no Kafka server answers at {servers}: start it, or set MNEMOLOG_KAFKA, then retry"
    )

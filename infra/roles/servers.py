"""The servers that a role needs."""

from __future__ import annotations

from typing import Final

from mnemolog.infra.kafka.connecting import connection
from mnemolog.infra.reaching import Server
from mnemolog.infra.settings import Settings

ON_KAFKA: Final = frozenset({"relay", "ingest", "records", "worker"})
"""Roles that need Kafka; all need the databases that the settings name."""


def servers_of(role: str, settings: Settings) -> list[Server]:
    """The servers that the role needs; without users and passwords. Raises InvalidInput for what names none."""
    found: list[Server] = []
    if role in ON_KAFKA and settings.kafka is not None:
        pairs = [each.rpartition(":") for each in connection(settings)["bootstrap_servers"]]
        found.append(Server("Kafka", tuple((host.strip("[]"), int(port)) for host, _, port in pairs)))
    for url in (settings.database_url, settings.views_database, settings.keys_url):
        if url is not None:
            addresses = _of_database(url.get_secret_value())
            found += [Server("PostgreSQL", addresses)] if addresses else []
    return list(dict.fromkeys(found))


def _of_database(url: str) -> tuple[tuple[str, int], ...]:
    """None where the client's own defaults say it."""
    from mnemolog.infra.postgres.connecting import parameters  # an extra

    given = parameters(url)
    hosts = str(given.get("hostaddr") or given.get("host") or "").split(",")
    ports = str(given.get("port") or "5432").split(",") * len(hosts)
    pairs = [(host, int(port or 5432)) for host, port in zip(hosts, ports, strict=False) if host]
    return tuple(
        (f"{host}/.s.PGSQL.{port}", 0) if host.startswith("/") else (host, port) for host, port in pairs
    )

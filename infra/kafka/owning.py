"""Which log the topics of a prefix belong to. The first message of their topic `log` says so, for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemolog.consumers.messages import Topics
from mnemolog.consumers.relay import Outgoing
from mnemolog.domain.errors import AnotherLog
from mnemolog.infra.kafka.consuming import read_all
from mnemolog.infra.kafka.producing import Producing


def check_owner(connection: Mapping[str, Any], topics: Topics, log_id: str) -> bool:
    """Whether they are known to be this log's. Raises AnotherLog where they are another one's, StoreUnavailable."""
    first = next((one.key.decode() for one in read_all(connection, topics.log) if one.key), None)
    if first not in (None, log_id):
        raise AnotherLog(
            f"the topics {topics.prefix}.* belong to another log: give this one a prefix of its own with"
            " MNEMOLOG_KAFKA_PREFIX, or delete them if that log is gone"
        )
    return first is not None


def claim(connection: Mapping[str, Any], topics: Topics, log_id: str) -> None:
    """Let topics that are nobody's be this log's. Of two that do so at once one is the first. Raises as above."""
    if check_owner(connection, topics, log_id):
        return
    producing = Producing(connection)
    try:
        producing.send(topics.log, [Outgoing(0, log_id.encode(), b"1")])
    finally:
        producing.close()
    check_owner(connection, topics, log_id)

"""Turns that processes take at something, by a lock in the database."""

from __future__ import annotations

import pytest

from mnemolog.domain.errors import StoreInUse, StoreUnavailable
from postgres_world import new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.infra.postgres.connecting import turn  # noqa: E402

pytestmark = pytest.mark.postgres


def end_other_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
            " AND objid = 2"
        )


def fail(url: str) -> None:
    end_other_connections(url)
    raise KeyError


def test_one_at_a_time_is_inside(postgres_url: str) -> None:
    """Who waits in vain is told so; another name is another turn."""
    name = new_schema()
    with turn(postgres_url, name):
        with pytest.raises(StoreInUse, match="does not get done"), turn(postgres_url, name, 0.0):
            pass
        with turn(postgres_url, new_schema(), 0.0):
            pass
    with turn(postgres_url, name, 0.0):
        pass


def test_a_turn_that_was_lost_is_noticed_at_its_end(postgres_url: str) -> None:
    """Unless it does not matter; and never in place of what went wrong inside."""
    name = new_schema()
    with pytest.raises(StoreUnavailable, match="repeat the call"), turn(postgres_url, name):
        end_other_connections(postgres_url)
    with turn(postgres_url, name, needed=False):
        end_other_connections(postgres_url)
    with pytest.raises(KeyError), turn(postgres_url, name):
        fail(postgres_url)
    with turn(postgres_url, name, 0.0):
        pass


def test_a_database_that_is_away_is_typed() -> None:
    """Before anything is done."""
    with pytest.raises(StoreUnavailable, match="no turn"), turn("postgresql://nobody@127.0.0.1:9/none", "x"):
        raise AssertionError

"""Tables of an older release are brought up to date; those of a newer one are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from face_world import U1, dump_hashes, open_memory
from log_support import PlainSealer
from mnemolog.errors import CorruptStore, StoreUnavailable
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.settings import Settings
from postgres_world import new_database, new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.infra.postgres.log import PostgresEventLog  # noqa: E402
from mnemolog.infra.postgres.privileges import privileges  # noqa: E402
from mnemolog.infra.postgres.views import PostgresViews  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


@pytest.fixture
def sql(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
def kept(postgres_url: str) -> Settings:
    return Settings.load(database_url=postgres_url, database_schema=new_schema(), durability="os")


def as_the_first_release_left_it(sql: psycopg.Connection[Any], schema: str) -> None:
    """Without what later versions added, and without a row that says which version it is."""
    for table in (f"{schema}.layout", f"{schema}.marks", f"{schema}_views.layout"):
        sql.execute(f"DROP TABLE {table}")
    sql.execute(f"DROP FUNCTION {schema}_views.wall(text)")
    sql.execute(f"DROP POLICY own_tenant ON {schema}.stored_events")
    sql.execute(f"DROP FUNCTION {schema}.stored_events_tenant(bytea)")
    sql.execute(f"DROP FUNCTION {schema}.stored_events_closed()")
    for function in ("lock", "append"):
        made = sql.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = %s::regnamespace AND proname = %s",
            (schema, f"stored_events_{function}"),
        )
        for (name,) in made.fetchall():
            sql.execute(f"DROP FUNCTION {name}")
    sql.execute(f"ALTER TABLE {schema}.stored_events DISABLE ROW LEVEL SECURITY")
    found = sql.execute(
        "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_policies WHERE schemaname LIKE %s",
        (f"{schema}\\_views\\_%",),
    )
    for (table,) in found.fetchall():
        sql.execute(f"DROP POLICY IF EXISTS own_tenant ON {table}")
        sql.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")


def shape(sql: psycopg.Connection[Any], schema: str) -> list[Any]:
    """Columns, indexes, policies, functions, triggers and versions of all schemas of a store."""
    queries = (
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema LIKE %s",
        "SELECT schemaname, indexdef FROM pg_indexes WHERE schemaname LIKE %s",
        "SELECT schemaname, tablename, policyname, cmd, qual FROM pg_policies WHERE schemaname LIKE %s",
        "SELECT n.nspname, c.relname, c.relrowsecurity, c.relpersistence FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname LIKE %s AND relkind IN ('r', 'S')",
        "SELECT n.nspname, p.proname, p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
        "WHERE n.nspname LIKE %s",
        "SELECT trigger_schema, trigger_name, event_manipulation FROM information_schema.triggers "
        "WHERE trigger_schema LIKE %s",
    )
    found: list[Any] = [sorted(sql.execute(query, (f"{schema}%",)).fetchall()) for query in queries]
    for each in (schema, f"{schema}_views"):
        found.append(sql.execute(f"SELECT version FROM {each}.layout").fetchall())
    return found


def test_a_store_of_the_first_release_becomes_what_a_new_one_is(
    tmp_path: Path, kept: Settings, sql: psycopg.Connection[Any]
) -> None:
    """Opening it is all: tables, walls and versions are as in a store made today, and its events as they were."""
    with open_memory(tmp_path / "data", settings=kept) as memory:
        memory.remember(U1, "from before")
        hashes, before = dump_hashes(memory), shape(sql, kept.database_schema)
    as_the_first_release_left_it(sql, kept.database_schema)
    with open_memory(tmp_path / "data", settings=kept) as memory:
        assert dump_hashes(memory) == hashes
        assert memory.operations.verify_log() == 1
    assert shape(sql, kept.database_schema) == before


def test_only_the_owner_changes_older_tables(tmp_path: Path, kept: Settings, postgres_url: str) -> None:
    """The writer is told to let the owner open it first; then it goes on."""
    postgres_url, schema = new_database(postgres_url), kept.database_schema
    with open_memory(tmp_path / "data", settings=kept.having(database_url=postgres_url)) as memory:
        memory.remember(U1, "from before")
    with psycopg.connect(postgres_url, autocommit=True) as sql:
        sql.execute(privileges(schema))
        sql.execute(f"UPDATE {schema}.layout SET version = 1")
    url = postgres_url.replace("postgres@", f"{schema}_writer@")
    with pytest.raises(StoreUnavailable, match="as their owner"):
        PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema)
    owner = postgres_url.replace("postgres@", f"{schema}_owner@")
    for role in (owner, url):
        with PostgresEventLog(role, PlainSealer(), SystemClock(), schema=schema) as log:
            assert log.head() == 1


@pytest.mark.parametrize("what", ["log", "views"])
def test_tables_of_a_newer_release_are_refused(
    tmp_path: Path, kept: Settings, postgres_url: str, sql: psycopg.Connection[Any], what: str
) -> None:
    """An old program does not write into what it does not know."""
    with open_memory(tmp_path / "data", settings=kept):
        pass
    schema = kept.database_schema + ("_views" if what == "views" else "")
    sql.execute(f"UPDATE {schema}.layout SET version = 99")
    with pytest.raises(CorruptStore, match="update it"):
        open_memory(tmp_path / "data", settings=kept)
    if what == "views":
        with pytest.raises(CorruptStore):
            PostgresViews(postgres_url, schema=schema)

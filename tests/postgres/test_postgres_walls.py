"""Roles and row-level security: whoever comes with a statement of his own sees the rows of one tenant, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from face_world import VIEWS, dump_hashes, open_memory
from mnemolog import ANY, Memory, Scope, _views
from mnemolog.domain.scope import ScopeIds
from mnemolog.errors import StoreUnavailable
from mnemolog.infra.settings import Settings
from mnemolog.projections.scopes import ScopeTable
from postgres_world import new_database, new_schema
from summaries_world import SMALL, session_of, worker
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

from mnemolog.infra.postgres.privileges import Roles, key_privileges, privileges  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]

TENANTS = ("acme", "bolt")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def fill(memory: Memory) -> None:
    """The same for each tenant: every view has rows of both, its side tables too."""
    for tenant in TENANTS:
        scope = Scope(tenant, user="u-1", project="p", session="s-1")
        memory.open_session(scope, title=f"{tenant} session")
        turn = memory.record_turn(scope, role="user", content=f"{tenant} budget 예산", subjects=("u-9",))
        memory.record_turn(scope, role="assistant", content=f"{tenant} answers " * 300)
        memory.feedback(scope, turn.event_id, "up", comment=tenant)
        note = memory.remember(scope, f"{tenant} reports as PDF", evidence=[turn.event_id])
        memory.correct(scope, note.record_id, f"{tenant} reports as text", reason="asked")
        memory.set_state(scope, "task", {"tenant": tenant})
        memory.context(scope, "budget", budget=300)
        memory.recall(scope, "budget")
        for number in range(8):
            memory.record_turn(scope, role="user", content=f"{tenant} says {number}")
        assert worker(memory, rule=SMALL).summarise(session_of(memory, scope))
    memory._store.accesses.flush()
    memory.operations.catch_up()


@dataclass(frozen=True)
class Deployment:
    """A memory of two tenants whose roles are set up."""

    url: str
    path: Path
    roles: Roles
    tenants: dict[str, str]
    tables: list[str]

    def connect(self, role: str, tenant: str | None = None) -> psycopg.Connection[Any]:
        conn = psycopg.connect(self.url.replace("postgres@", f"{role}@"), autocommit=True)
        if tenant is not None:
            conn.execute("SELECT set_config('mnemolog.tenant', %s, false)", (tenant,))
        return conn

    def settings(self, role: str) -> Settings:
        url = self.url.replace("postgres@", f"{role}@")
        return Settings.load(database_url=url, database_schema=schema_of(self.roles), durability="os")


def schema_of(roles: Roles) -> str:
    return roles.owner.removesuffix("_owner")


@pytest.fixture(scope="module")
def deployed(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    postgres_url = new_database(postgres_url)
    path, schema = tmp_path_factory.mktemp("walls") / "data", new_schema()
    given = Settings.load(database_url=postgres_url, database_schema=schema, durability="os")
    with open_memory(path, settings=given) as memory:
        fill(memory)
        resolve = memory._store.vault.resolve
        ids = {name: resolve(Scope(name), create=False) for name in TENANTS}
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        for _ in range(2):  # as after an upgrade
            conn.execute(privileges(schema))
        found = conn.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname LIKE %s ORDER BY 1",
            (f"{schema}\\_views\\_%",),
        ).fetchall()
    tables = [f"{schema}.stored_events", *(name for (name,) in found)]
    return Deployment(
        postgres_url, path, Roles.of(schema), {n: each.tenant for n, each in ids.items() if each}, tables
    )


@pytest.fixture(params=TENANTS)
def reader(request: pytest.FixtureRequest, deployed: Deployment) -> Iterator[psycopg.Connection[Any]]:
    with deployed.connect(deployed.roles.reader, deployed.tenants[request.param]) as conn:
        yield conn


def rows(conn: psycopg.Connection[Any], table: str) -> set[Any]:
    return set(conn.execute(f"SELECT t::text FROM {table} t").fetchall())


def test_each_tenant_sees_its_own_rows_and_together_they_are_all(deployed: Deployment) -> None:
    """In the log and in every table of every view: nothing is in two tenants' sight, nothing is in nobody's."""
    assert len(deployed.tables) > 35
    full, reader, everybody = 0, deployed.roles.reader, set(deployed.tenants.values())
    with psycopg.connect(deployed.url, autocommit=True) as owner:
        for table in deployed.tables:
            seen = []
            for tenant in everybody:
                with deployed.connect(reader, tenant) as conn:
                    seen.append(rows(conn, table))
            if table.endswith(".checkpoint"):
                continue
            assert not seen[0] & seen[1], table
            assert seen[0] | seen[1] == rows(owner, table), table
            full += all(seen)
    assert full > 30


def test_without_a_tenant_or_with_a_guessed_one_nothing_is_seen(deployed: Deployment) -> None:
    """The setting is absent, empty, a name instead of an id, or a pattern."""
    for tenant in (None, "", "acme", "%", "' OR true --"):
        with deployed.connect(deployed.roles.reader, tenant) as conn:
            for table in deployed.tables:
                if not table.endswith(".checkpoint"):
                    assert rows(conn, table) == set(), table


CROSSINGS = (
    "SELECT text FROM {turns}.turns WHERE text LIKE '%bolt%' OR text LIKE '%acme%'",
    "SELECT count(*) FROM {log}.stored_events",
    "SELECT s.tenant FROM {turns}.scopes s",
    "SELECT t.text FROM {turns}.scopes s JOIN {turns}.turns t ON t.scope = s.number OR true",
    "WITH a AS (SELECT * FROM {curated}.records) SELECT content FROM a UNION ALL SELECT content FROM a",
    "SELECT max(position) FROM {turns}.turns",
    "SELECT term FROM {turns}.turns_lex_postings",
    "SELECT docs, tokens FROM {turns}.turns_lex_scopes",
    "TABLE {curated}.assertions",
)


def test_no_statement_crosses_the_wall(deployed: Deployment, reader: psycopg.Connection[Any]) -> None:
    """Joins, unions, counts, highest numbers, words of the index: all come from the tenant's own rows."""
    row = reader.execute("SELECT current_setting('mnemolog.tenant')").fetchone()
    assert row is not None
    own = next(name for name, tenant in deployed.tenants.items() if tenant == row[0])
    other = next(name for name in TENANTS if name != own)
    places = {table.split(".")[0] for table in deployed.tables}
    schemas = {name: next(p for p in places if f"_views_{name}_" in p) for name in VIEWS}
    with psycopg.connect(deployed.url) as owner:
        for statement in CROSSINGS:
            text = statement.format(log=schema_of(deployed.roles), **schemas)
            found, every = reader.execute(text).fetchall(), owner.execute(text).fetchall()
            assert found
            assert other not in repr(found)
            assert deployed.tenants[other] not in repr(found)
            assert found != every or "max" in text


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET position = 0",
        "DELETE FROM {table}",
        "INSERT INTO {table} SELECT * FROM {table}",
        "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_tenant ON {table}",
        "CREATE TABLE {schema}.mine (x int)",
        "SET ROLE {writer}",
        "SET row_security = off; TABLE {table}",
    ],
)
@pytest.mark.parametrize("role", ["reader", "auditor"])
def test_who_only_reads_changes_nothing(deployed: Deployment, role: str, statement: str) -> None:
    """Neither rows nor tables nor the wall, and no stepping up."""
    with deployed.connect(getattr(deployed.roles, role), deployed.tenants["acme"]) as conn:
        text = statement.format(
            table=deployed.tables[0], schema=schema_of(deployed.roles), writer=deployed.roles.writer
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(text)


def test_the_auditor_sees_all_tenants(deployed: Deployment) -> None:
    """Without a setting, in the log and in every view."""
    with psycopg.connect(deployed.url) as owner, deployed.connect(deployed.roles.auditor) as auditor:
        for table in deployed.tables:
            assert rows(auditor, table) == rows(owner, table)


def test_the_writer_runs_memories_and_new_views_have_the_wall(deployed: Deployment) -> None:
    """It appends for every tenant, erases, and rebuilds; what it builds is as closed as what was there before."""
    with open_memory(deployed.path, settings=deployed.settings(deployed.roles.writer)) as memory:
        scope = Scope("bolt", user="u-2")
        turn = memory.record_turn(scope, role="user", content="bolt grows")
        assert [hit.text for hit in memory.recall(scope, "grows")] == ["bolt grows"]
        hashes = dump_hashes(memory)
        memory.operations.rebuild("turns")
        assert dump_hashes(memory) == hashes
        assert not memory.erase(scope, event=turn.event_id).apply().pending
        assert memory.operations.verify_log() == memory.operations.status().head
        place = memory._store.views._schema_of(memory._store.views.live("turns"))
    with deployed.connect(deployed.roles.reader, deployed.tenants["acme"]) as conn:
        texts = {row[0] for row in conn.execute(f"SELECT text FROM {place}.turns").fetchall()}
    assert texts
    assert all("acme" in text for text in texts)


def test_the_writer_cannot_take_the_log_apart(deployed: Deployment) -> None:
    """It does not own the log: no change of rows, triggers, policies."""
    table = deployed.tables[0]
    with deployed.connect(deployed.roles.writer) as conn:
        for statement in ("DELETE FROM {}", "UPDATE {} SET leaf = ''", "ALTER TABLE {} DISABLE TRIGGER ALL"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement.format(table))


def test_a_reader_runs_no_memory(deployed: Deployment) -> None:
    """Opening needs to write: the error says so, and shows no row."""
    with pytest.raises(StoreUnavailable):
        open_memory(deployed.path, settings=deployed.settings(deployed.roles.reader))


def test_roles_of_another_database_of_the_server_are_not_let_in(deployed: Deployment, tmp_path: Path) -> None:
    """Roles are the server's. Where `privileges` was not run, they see nothing, and nobody steps down to them."""
    schema = schema_of(deployed.roles)
    url = new_database(deployed.url)
    given = Settings.load(database_url=url, database_schema=schema, durability="os")
    scope = Scope("acme", user="u-1")
    with open_memory(tmp_path / "data", settings=given) as memory:
        memory.record_turn(scope, role="user", content="sparrows here")
        assert [hit.text for hit in memory.recall(scope, "sparrows")] == ["sparrows here"]
        place = memory._store.views._schema_of(memory._store.views.live("turns"))
    for role in (deployed.roles.reader, deployed.roles.auditor):
        with psycopg.connect(url.replace("postgres@", f"{role}@"), autocommit=True) as conn:
            for table in (f"{place}.turns", f"{schema}.stored_events"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    conn.execute(f"TABLE {table}")


def test_the_keys_have_a_role_of_their_own(postgres_url: str, tmp_path: Path) -> None:
    """The keeper owns them; the roles of the log's database do not even get in."""
    schema, postgres_url, keys = new_schema(), new_database(postgres_url), new_database(postgres_url)
    given = Settings.load(database_url=postgres_url, database_schema=schema, keys_url=keys, durability="os")
    with open_memory(tmp_path / "data", settings=given) as memory:
        memory.remember(Scope("acme"), "kept")
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute(privileges(schema))
    with psycopg.connect(keys, autocommit=True) as conn:
        conn.execute(key_privileges(schema))
    roles = Roles.of(schema)
    for role in (roles.owner, roles.writer, roles.reader, roles.auditor):
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(keys.replace("postgres@", f"{role}@"))
    theirs = given.model_copy(
        update={
            name: type(given.database_url)(url)
            for name, url in {
                "database_url": postgres_url.replace("postgres@", f"{roles.writer}@"),
                "keys_url": keys.replace("postgres@", f"{schema}_keeper@"),
            }.items()
        }
    )
    with open_memory(tmp_path / "data", settings=theirs) as memory:
        assert [one.content for one in memory.records(Scope("acme"))] == ["kept"]
        memory.operations.rotate_root_key()


def test_a_broken_scope_check_stops_at_the_wall(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall that asks for every scope there is still gets one tenant's rows; without the wall it gets both."""

    def every(table: ScopeTable, conn: Connection, ids: ScopeIds, **_: object) -> dict[int, ScopeIds]:
        return dict.fromkeys(range(1, 50), ids)

    monkeypatch.setattr(ScopeTable, "visible", every)
    scope = Scope("acme", user="u-1", project="p", session="s-1")
    crossed = {}
    for role in (deployed.roles.writer, "postgres"):
        if role == "postgres":
            monkeypatch.setattr(_views, "confine", lambda conn, tenant: None)
        with open_memory(deployed.path, settings=deployed.settings(role)) as memory:
            hits = memory.recall(scope, "budget answers reports", k=50)
            records = memory.records(scope, history=True)
            shown = memory.context(scope, "budget answers reports", budget=3000).text
        crossed[role] = "bolt" in f"{hits}{records}{shown}"
        assert "acme" in f"{hits}{records}"
        assert "acme" in shown
    assert crossed == {deployed.roles.writer: False, "postgres": True}


def test_the_wall_changes_no_answer(deployed: Deployment) -> None:
    """Scores, records, contexts and exports over all tenants: as without roles."""
    scope, answers = Scope("bolt", user="u-1", project="p", session="s-1"), []
    for role in ("postgres", deployed.roles.writer):
        with open_memory(deployed.path, settings=deployed.settings(role)) as memory:
            hits = memory._reader.recall(scope, "budget", 20, now=NOW)
            records = memory.records(scope, history=True, now=NOW)
            everywhere = memory._reader.recall(Scope(ANY, user=ANY, project=ANY), "budget", 20, now=NOW)
            answers.append((hits, records, everywhere))
    assert answers[0] == answers[1]
    assert all(answers[0])

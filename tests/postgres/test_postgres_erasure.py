"""An erasure says what the key store's server keeps of it, and until when."""

from __future__ import annotations

from pathlib import Path

import pytest

from face_world import ACME, U1, U2, VIEWS, dump_hashes, open_memory
from mnemolog import Memory
from mnemolog.infra.postgres.cluster import Cluster
from mnemolog.infra.settings import Settings
from mnemolog.infra.vault import FileRootKey
from mnemolog.infra.vault.wrapping import fingerprint
from postgres_world import new_schema, running_cluster
from support import files_below, require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

import psycopg  # noqa: E402

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


@pytest.fixture(scope="module")
def cluster() -> object:
    """A server of its own, whose WAL is looked into."""
    with running_cluster() as cluster:
        yield cluster


def in_wal(cluster: Cluster, needle: bytes) -> bool:
    return any(needle in content for _, content in files_below(cluster.folder / "data" / "pg_wal"))


def opened(path: Path, cluster: Cluster, schema: str) -> Memory:
    url = cluster.status().url
    kept = Settings.load(database_url=url, keys_url=url, database_schema=schema, durability="os")
    return open_memory(path, settings=kept)


@pytest.mark.parametrize("what", ["event", "subject"])
def test_copies_of_destroyed_keys_are_due_until_the_root_key_changes(
    tmp_path: Path, cluster: Cluster, what: str
) -> None:
    """They are in the WAL indeed; the receipt, `status` and the next openings say so; a rotation ends it."""
    path, schema = tmp_path / "data", new_schema()
    with opened(path, cluster, schema) as memory, psycopg.connect(cluster.status().url or "") as sql:
        memory.record_turn(U2, role="user", content="stays")
        turn = memory.record_turn(U1, role="user", content="to be erased")
        subject = memory._store.vault.subject_id(
            memory._store.vault.resolve(ACME, create=False).tenant, "u-1", create=False
        )
        query = f"SELECT secret FROM {schema}_keys.nodes WHERE rid = %s"
        secrets = [row[0] for row in sql.execute(query, (subject,)).fetchall()]
        sql.rollback()
        erased = {"event": turn.event_id} if what == "event" else {"subject": "u-1"}
        receipt = memory.erase(ACME if what == "subject" else U1, **erased).apply()
        assert sql.execute(query, (subject,)).fetchall() != [(secret,) for secret in secrets]
        keys = receipt.stores[-1]
        assert (keys.store, keys.found, keys.removed, keys.readable, keys.due) == ("keys", 1, 1, 0, True)
        assert not receipt.complete
        assert all(in_wal(cluster, secret) for secret in secrets)
    with opened(path, cluster, schema) as memory:
        head = memory.operations.status().head
        (warning,) = [one for one in memory.operations.status().warnings if "erasure" in one]
        assert "keys rotate" in warning
        (again,) = memory.operations.finish_erasures()
        assert (again.erasure_id, again.complete) == (receipt.erasure_id, False)
        memory.operations.rotate_root_key()
        assert memory.operations.status().pending_erasures == ()
        assert memory.operations.finish_erasures() == []
        assert memory.operations.status().head == head
        assert [hit.text for hit in memory.recall(U2, "stays")] == ["stays"]
        assert memory.operations.verify_log() == memory.operations.status().head
        dump_hashes(memory)


def test_an_opening_does_not_erase_again_what_only_waits(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views are not written anew at each start because a root key was not changed yet."""
    from mnemolog._erasing import Eraser

    path, schema = tmp_path / "data", new_schema()
    with opened(path, cluster, schema) as memory:
        turn = memory.record_turn(U1, role="user", content="to be erased")
        assert memory.erase(U1, event=turn.event_id).apply().pending
    runs: list[object] = []
    run = Eraser.run
    monkeypatch.setattr(Eraser, "run", lambda *given: runs.append(given) or run(*given))
    for _ in range(2):
        with opened(path, cluster, schema) as memory:
            assert runs == []
    root = FileRootKey(path / "root.key")
    before = fingerprint(root.fetch(), b"x" * 16)
    with opened(path, cluster, schema) as memory:
        memory.operations.rotate_root_key()
    assert fingerprint(root.fetch(), b"x" * 16) != before
    assert len(runs) == 1


def test_erasures_that_wait_are_purged_together(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, each view is written anew once; each gets a receipt of its own."""
    from mnemolog.projections.runner import Runner

    path, schema = tmp_path / "data", new_schema()
    purged: list[str] = []
    purge = Runner.purge
    with opened(path, cluster, schema) as memory:
        turns = [memory.record_turn(U1, role="user", content=f"to be erased {n}") for n in range(3)]
        begun = [memory.erase(U1, event=turn.event_id).apply() for turn in turns]
        monkeypatch.setattr(Runner, "purge", lambda runner, name: purged.append(name) or purge(runner, name))
        again = memory.operations.finish_erasures()
        assert sorted(purged) == sorted(VIEWS)
        assert sorted(one.erasure_id for one in again) == sorted(one.erasure_id for one in begun)
        assert [one.events for one in again] == [1, 1, 1]
        memory.operations.rotate_root_key()
        assert len(purged) == 2 * len(VIEWS)
        assert memory.operations.status().pending_erasures == ()

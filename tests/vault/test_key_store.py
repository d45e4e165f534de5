from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mnemolog.domain.errors import CorruptStore, InvalidInput, KeysMissing
from mnemolog.domain.scope import Scope
from mnemolog.infra.vault import FileRootKey, KeyStore
from mnemolog.infra.vault.tree import LEAVES

RESERVE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from mnemolog.infra.vault import FileRootKey, open_vault
folder = Path(sys.argv[1])
vault = open_vault(folder / "keys.db", FileRootKey(folder / "root.key"), create=True, block=10)
print(*[vault.next_leaf() for _ in range(25)], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def open_store(folder: Path, *, create: bool = True) -> KeyStore:
    return KeyStore.open(folder / "keys.db", FileRootKey(folder / "root.key"), create=create)


def wrapped_secrets(store: KeyStore, where: str = "true") -> list[bytes]:
    queries = (
        f"SELECT secret FROM nodes WHERE {where}",
        f"SELECT hash_key FROM subjects WHERE {where}",
        f"SELECT name FROM directory WHERE {where}",
        f"SELECT lookup FROM directory WHERE {where}",
    )
    with store._database.read() as connection:
        return [row[0] for query in queries for row in connection.execute(query).fetchall()]


def found_on_disk(folder: Path, secrets: list[bytes]) -> list[bytes]:
    content = b"".join(path.read_bytes() for path in sorted(folder.glob("keys.db*")))
    return [secret for secret in secrets if secret in content]


def fill(store: KeyStore, users: int) -> list[str]:
    found = []
    for number in range(users):
        ids = store.resolve(Scope("acme", user=f"user{number}", session=f"s{number}"), create=True)
        assert ids is not None and ids.user is not None
        found.append(ids.user)
    return found


def test_keys_are_never_created_silently(tmp_path: Path) -> None:
    """Without leave to create, an absent, empty or root-less store is KeysMissing, and nothing is made."""
    with pytest.raises(KeysMissing):
        open_store(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "keys.db").touch()
    with pytest.raises(KeysMissing):
        open_store(tmp_path, create=False)


def test_a_lost_root_key_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    """Even with leave to create, an existing store without its root key is KeysMissing."""
    open_store(tmp_path).close()
    (tmp_path / "root.key").unlink()
    with pytest.raises(KeysMissing):
        open_store(tmp_path, create=True)
    assert not (tmp_path / "root.key").exists()
    FileRootKey(tmp_path / "root.key").create()
    with pytest.raises(KeysMissing, match="does not open"):
        open_store(tmp_path, create=True)


def test_a_file_that_is_no_key_store_is_corrupt(tmp_path: Path) -> None:
    """Foreign bytes are reported as such and left alone."""
    (tmp_path / "keys.db").write_bytes(b"no database" * 1000)
    with pytest.raises(CorruptStore):
        open_store(tmp_path)


def test_a_row_moved_to_another_subject_does_not_open(tmp_path: Path) -> None:
    """Wrapped secrets are bound to their row."""
    store = open_store(tmp_path)
    first, second = fill(store, 2)
    with store._database.write() as connection:
        connection.execute(
            "UPDATE subjects SET hash_key = (SELECT hash_key FROM subjects WHERE rid = ?) WHERE rid = ?",
            (first, second),
        )
    with pytest.raises(CorruptStore):
        store.subject(second)


def test_reserved_numbers_are_given_once(tmp_path: Path) -> None:
    """Two openings of one store get different numbers; too many are refused."""
    first, second = open_store(tmp_path), open_store(tmp_path)
    assert (first.reserve(10), second.reserve(5), first.reserve(1)) == (
        range(10),
        range(10, 15),
        range(15, 16),
    )
    for count in (0, LEAVES):
        with pytest.raises(InvalidInput):
            first.reserve(count)


def test_numbers_are_never_used_again_after_a_kill(tmp_path: Path) -> None:
    """Three processes that are killed in the middle of their blocks share no number."""
    command = [sys.executable, "-c", RESERVE_AND_DIE, str(tmp_path)]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=False).stdout for _ in range(3)]
    numbers = [int(word) for output in outputs for word in output.split()]
    assert len(numbers) == len(set(numbers)) == 75


def test_a_destroyed_subject_leaves_no_byte_behind(tmp_path: Path) -> None:
    """Of 300 subjects, 100 destroyed ones have no wrapped secret left in the file or its log."""
    store = open_store(tmp_path)
    doomed = fill(store, 300)[::3]
    rids = [rid for user in doomed for rid in (user, *store.sessions(user))]
    secrets = wrapped_secrets(store, "rid IN ({})".format(",".join(f"'{rid}'" for rid in rids)))
    assert len(secrets) == 600 and found_on_disk(tmp_path, secrets) == secrets
    kept = [secret for secret in wrapped_secrets(store) if secret not in set(secrets)]
    for rid in doomed:
        store.destroy_subject(rid, before_us=1)
    assert found_on_disk(tmp_path, secrets) == []
    assert found_on_disk(tmp_path, kept) == kept


def test_destroyed_leaves_leave_no_byte_of_their_nodes_behind(tmp_path: Path) -> None:
    """The node that covered a destroyed leaf is gone from the file and its log."""
    store = open_store(tmp_path)
    rid = fill(store, 1)[0]
    for number in (5, 6, 1000, LEAVES - 1):
        before = set(wrapped_secrets(store))
        store.destroy_leaves({rid: [number], "unknown": [number]})
        gone = before - set(wrapped_secrets(store))
        assert gone and found_on_disk(tmp_path, list(gone)) == []


def test_a_rotation_leaves_no_byte_of_the_old_wrapping_behind(tmp_path: Path) -> None:
    """Every row is wrapped anew and the old bytes are gone."""
    store = open_store(tmp_path)
    fill(store, 50)
    before = wrapped_secrets(store)
    store.rotate(bytes(range(32)))
    assert found_on_disk(tmp_path, before) == []


def test_a_scrub_that_a_crash_prevented_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the process dies between commit and scrub, the next opening cleans the file."""
    store = open_store(tmp_path)
    rid = fill(store, 20)[7]
    secrets = wrapped_secrets(store, f"rid = '{rid}'")
    monkeypatch.setattr(type(store._database), "_scrub", lambda *args, **options: None)
    store.destroy_subject(rid, before_us=1)
    monkeypatch.undo()
    assert found_on_disk(tmp_path, secrets)
    open_store(tmp_path, create=False)
    assert found_on_disk(tmp_path, secrets) == []


def test_external_names_are_nowhere_in_the_files(tmp_path: Path) -> None:
    """Names rest encrypted, and fences hold no text."""
    store = open_store(tmp_path)
    ids = store.resolve(Scope("acme", user="ann@example.org", session="secret-chat"), create=True)
    assert ids is not None and ids.user is not None
    store.destroy_subject(ids.user, before_us=1)
    store.fence_session(Scope("acme", session="other-chat"))
    words = [b"acme", b"ann@example.org", b"secret-chat", b"other-chat"]
    assert found_on_disk(tmp_path, words) == []

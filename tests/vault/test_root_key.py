from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemolog.domain.errors import InvalidInput, KeysMissing
from mnemolog.domain.scope import Scope
from mnemolog.infra.vault import (
    EnvironmentRootKey,
    FileRootKey,
    Vault,
    encode_root_key,
    generate_root_key,
    open_vault,
)

OpenVault = Callable[[], Vault]
SCOPE = Scope("acme", user="ann", session="first")

ROTATE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from mnemolog.infra.vault import FileRootKey, open_vault
folder, steps = Path(sys.argv[1]), int(sys.argv[2])

def die_at(event, args):
    global steps
    watched = event in ("os.rename", "os.remove") or (event == "open" and "root.key" in str(args[0]))
    if watched or event == "sync":
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)

real_sync = os.fsync
def sync(descriptor):
    die_at("sync", ())
    real_sync(descriptor)
vault = open_vault(folder / "keys.db", FileRootKey(folder / "root.key"), create=False)
database = vault._store._database
database._connection.set_trace_callback(lambda statement: die_at("sync", ()))
os.fsync = sync
sys.addaudithook(die_at)
vault.rotate_root()
os._exit(0)
"""


def test_the_key_file_is_private_and_says_where_it_lies(tmp_path: Path) -> None:
    """A new key file has mode 0600; loose rights and a place inside of the data directory are warned about."""
    key = FileRootKey(tmp_path / "data" / "root.key")
    key.create()
    assert key.path.stat().st_mode & 0o777 == 0o600
    assert not key.loose_permissions and key.inside(tmp_path / "data") and not key.inside(tmp_path / "other")
    key.path.chmod(0o644)
    assert len(key.warnings(tmp_path / "data")) == 2


def test_an_existing_key_file_is_never_replaced_by_create(tmp_path: Path) -> None:
    """Creating twice gives the same key."""
    key = FileRootKey(tmp_path / "root.key")
    assert key.create() == key.create() == key.fetch()
    assert os.listdir(tmp_path) == ["root.key"]


def test_rotation_keeps_every_key_and_name(open_again: OpenVault) -> None:
    """What was sealed before a rotation opens after it, and names still resolve to the same ids."""
    vault = open_again()
    ids = vault.resolve(SCOPE, create=True)
    assert ids is not None and ids.user is not None
    sealed = vault.seal([ids.user], 5, b"text", b"aad")
    vault.rotate_root()
    assert vault.open([ids.user], 5, sealed, b"aad") == b"text"
    other = open_again()
    assert other.resolve(SCOPE, create=False) == ids and other.names(ids) == SCOPE
    assert other.open([ids.user], 5, sealed, b"aad") == b"text"


@pytest.mark.parametrize("make_vault", ["sqlite"], indirect=True)
def test_rotation_closes_the_old_key_and_every_stale_copy(tmp_path: Path, open_again: OpenVault) -> None:
    """The old root key does not open the store, and the new one does not open a copy made before."""
    vault = open_again()
    vault.resolve(SCOPE, create=True)
    vault.close()
    old, stale = (tmp_path / "root.key").read_text(), tmp_path / "stale.db"
    shutil.copy(tmp_path / "keys.db", stale)
    vault = open_again()
    vault.rotate_root()
    vault.close()
    with pytest.raises(KeysMissing):
        open_vault(tmp_path / "keys.db", EnvironmentRootKey(old), create=False)
    with pytest.raises(KeysMissing):
        open_vault(stale, FileRootKey(tmp_path / "root.key"), create=False)
    assert sorted(os.listdir(tmp_path)) == ["keys.db", "root.key", "stale.db"]


def test_another_open_process_follows_a_rotation(open_again: OpenVault) -> None:
    """A vault that was open during the rotation reads and writes on under the new key."""
    first, second = open_again(), open_again()
    ids = first.resolve(SCOPE, create=True)
    first.rotate_root()
    assert second.resolve(SCOPE, create=False) == ids
    made = second.resolve(Scope("acme", user="bob"), create=True)
    assert open_again().resolve(Scope("acme", user="bob"), create=False) == made


@pytest.mark.parametrize("make_vault", ["sqlite"], indirect=True)
@pytest.mark.parametrize("steps", [0, 3, 4, 5, 6, 12, 20, *range(32, 51)])
def test_no_kill_during_a_rotation_locks_the_store(tmp_path: Path, open_again: OpenVault, steps: int) -> None:
    """Killed at any statement or file operation of a rotation, the store opens, and can be rotated again."""
    vault = open_again()
    ids = vault.resolve(SCOPE, create=True)
    vault.close()
    subprocess.run([sys.executable, "-c", ROTATE_AND_DIE, str(tmp_path), str(steps)], check=False)
    vault = open_again()
    assert vault.resolve(SCOPE, create=False) == ids
    assert not (tmp_path / "root.key.next").exists()
    vault.rotate_root()
    assert open_again().resolve(SCOPE, create=False) == ids


def test_an_environment_key_is_rotated_to_a_given_value(tmp_path: Path) -> None:
    """The caller must pass the new value, and the old one opens nothing afterwards."""
    old, new = generate_root_key(), generate_root_key()
    vault = open_vault(tmp_path / "keys.db", EnvironmentRootKey(encode_root_key(old)), create=True)
    ids = vault.resolve(SCOPE, create=True)
    with pytest.raises(InvalidInput):
        vault.rotate_root()
    vault.rotate_root(new)
    vault.close()
    vault = open_vault(tmp_path / "keys.db", EnvironmentRootKey(encode_root_key(new)), create=False)
    assert vault.resolve(SCOPE, create=False) == ids
    assert vault.status().root_key == "environment"
    with pytest.raises(KeysMissing):
        open_vault(tmp_path / "keys.db", EnvironmentRootKey(encode_root_key(old)), create=False)


def test_a_malformed_or_absent_environment_key_is_refused(tmp_path: Path) -> None:
    """A value that is not 32 bytes in base64 says how to make one."""
    with pytest.raises(InvalidInput, match="openssl"):
        EnvironmentRootKey("c2hvcnQ=")
    with pytest.raises(KeysMissing):
        open_vault(tmp_path / "keys.db", EnvironmentRootKey(None), create=True)

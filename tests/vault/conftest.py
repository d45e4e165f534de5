from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemolog.infra.vault import FileRootKey, Vault, open_vault

OpenVault = Callable[[], Vault]


@pytest.fixture
def open_again(tmp_path: Path) -> Iterator[OpenVault]:
    """Opens the vault of this test (made at the first call), as another process would."""
    opened: list[Vault] = []

    def open_one() -> Vault:
        path = tmp_path / "keys.db"
        vault = open_vault(path, FileRootKey(tmp_path / "root.key"), create=not path.exists())
        opened.append(vault)
        return vault

    yield open_one
    for vault in opened:
        vault.close()


@pytest.fixture
def vault(open_again: OpenVault) -> Vault:
    return open_again()

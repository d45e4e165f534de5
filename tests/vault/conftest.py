from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemolog.infra.vault import FileRootKey, Vault, open_vault
from postgres_world import new_schema

OpenVault = Callable[[], Vault]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def make_vault(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bool], Vault]:
    """Opens the keys of this test in a file, and in a server; made where `create` says so."""
    root = FileRootKey(tmp_path / "root.key")
    if request.param == "sqlite":
        return lambda create: open_vault(tmp_path / "keys.db", root, create=create)
    url, schema = request.getfixturevalue("postgres_url"), new_schema()

    def in_server(create: bool) -> Vault:
        from mnemolog.infra.postgres.keys import open_postgres_vault

        return open_postgres_vault(url, root, create=create, schema=schema)

    return in_server


@pytest.fixture
def open_again(make_vault: Callable[[bool], Vault]) -> Iterator[OpenVault]:
    """Opens the vault of this test (made at the first call), as another process would."""
    opened: list[Vault] = []

    def open_one() -> Vault:
        opened.append(make_vault(not opened))
        return opened[-1]

    yield open_one
    for vault in opened:
        vault.close()


@pytest.fixture
def vault(open_again: OpenVault) -> Vault:
    return open_again()

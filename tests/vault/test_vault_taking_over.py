"""A vault takes the keys of another one over: in files and in a server, from either to either."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemolog.domain.errors import AnotherLog, InvalidInput, KeysMissing
from mnemolog.domain.scope import Scope
from mnemolog.infra.vault import FileRootKey, Vault, open_vault

ALICE, BOB = Scope("acme", user="alice", session="s"), Scope("acme", user="bob")


def filled(folder: Path) -> tuple[Vault, dict[str, bytes]]:
    """Alice's text can be opened; one of hers and all of Bob's was destroyed."""
    given = open_vault(folder / "given.db", FileRootKey(folder / "given.key"), create=True)
    ids = {scope: given.resolve(scope, create=True) for scope in (ALICE, BOB)}
    texts = {}
    for scope, found in ids.items():
        assert found is not None
        assert found.user is not None
        for leaf in (given.next_leaf(found.user), given.next_leaf(found.user)):
            texts[f"{found.user} {leaf}"] = given.seal([found.user], leaf, scope.encode(), b"aad")
    subject, leaf = list(texts)[1].split()
    given.destroy_leaves({subject: [int(leaf)]})
    given.destroy_subject(str(ids[BOB].user), before_us=1000)  # type: ignore[union-attr]
    return given, texts


def opened(vault: Vault, texts: dict[str, bytes]) -> list[bytes | None]:
    found = []
    for name, sealed in texts.items():
        subject, leaf = name.split()
        found.append(vault.open([subject], int(leaf), sealed, b"aad"))
    return found


def test_the_same_can_be_opened_and_the_same_is_gone(vault: Vault, tmp_path: Path) -> None:
    """Ids, hash keys, fences, leaf numbers; may be repeated; what was destroyed since goes too."""
    given, texts = filled(tmp_path)
    for _ in range(2):
        vault.take_over(given)
        assert opened(vault, texts) == opened(given, texts) == [ALICE.encode(), None, None, None]
        ids = given.resolve(ALICE, create=False)
        assert vault.resolve(ALICE, create=False) == ids
        assert vault.resolve(BOB, create=False) is None
        assert ids is not None
        assert ids.user is not None
        assert vault.keyed_hash(ids.user, b"x", b"y") == given.keyed_hash(ids.user, b"x", b"y")
        assert vault.is_fenced(BOB, 999)
        assert not vault.is_fenced(BOB, 1000)
        assert vault.next_leaf() > given.next_leaf() - 1000
    given.destroy_subject(ids.user, before_us=2000)
    vault.take_over(given)
    assert opened(vault, texts) == [None] * 4
    given.close()


def test_it_stays_so_when_it_is_opened_again(open_again: object, tmp_path: Path) -> None:
    """Under its own root key, also by who had it open before; the other's root key does not open it."""
    assert callable(open_again)
    given, texts = filled(tmp_path)
    vault, other = open_again(), open_again()
    other.resolve(Scope("unknown"), create=False)
    vault.take_over(given)
    for each in (other, open_again()):
        each.refresh()
        assert opened(each, texts) == [ALICE.encode(), None, None, None]
    vault.rotate_root()
    assert opened(vault, texts) == [ALICE.encode(), None, None, None]
    given.close()


def test_keys_of_another_store_are_not_overwritten(vault: Vault, tmp_path: Path) -> None:
    """One that has keys of its own is left as it is; and nobody takes over himself."""
    given, _ = filled(tmp_path)
    ids = vault.resolve(Scope("bolt", user="carol"), create=True)
    for _ in range(2):
        with pytest.raises(AnotherLog):
            vault.take_over(given)
        assert vault.resolve(Scope("bolt", user="carol"), create=False) == ids
    with pytest.raises(InvalidInput, match="same key store"):
        vault.take_over(vault)
    given.close()


def test_the_given_root_key_opens_nothing_of_it(tmp_path: Path) -> None:
    """Every row is wrapped anew."""
    given, _ = filled(tmp_path)
    with pytest.raises(KeysMissing):
        open_vault(tmp_path / "given.db", FileRootKey(tmp_path / "taken.key"), create=False)
    taken = open_vault(tmp_path / "taken.db", FileRootKey(tmp_path / "taken.key"), create=True)
    taken.take_over(given)
    taken.close()
    given.close()
    with pytest.raises(KeysMissing):
        open_vault(tmp_path / "taken.db", FileRootKey(tmp_path / "given.key"), create=False)

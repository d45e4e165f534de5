from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemolog.domain.errors import CorruptStore, ErasedScope, InvalidInput, StoreClosed
from mnemolog.domain.scope import ANY, Scope, ScopeIds
from mnemolog.infra.vault import SEAL_OVERHEAD, Vault
from mnemolog.infra.vault.database import Database

OpenVault = Callable[[], Vault]
FULL = Scope("acme", organization="org", user="ann", project="site", agent="bot", session="monday")


def ids_of(vault: Vault, scope: Scope) -> ScopeIds:
    ids = vault.resolve(scope, create=True)
    assert ids is not None
    return ids


def user_of(vault: Vault, name: str, tenant: str = "acme") -> str:
    return str(ids_of(vault, Scope(tenant, user=name)).user)


def test_names_and_ids_map_both_ways_and_survive(vault: Vault, open_again: OpenVault) -> None:
    """A scope resolves to the same random ids in every opening, and back."""
    ids = ids_of(vault, FULL)
    assert all(len(rid) == 16 and int(rid, 16) >= 0 for _, rid in ids.present())
    assert vault.names(ids) == FULL
    assert open_again().resolve(FULL, create=False) == ids == vault.resolve(FULL, create=True)


def test_unknown_names_are_made_only_when_asked(vault: Vault) -> None:
    """A read of an unknown scope is None and leaves nothing behind."""
    assert vault.resolve(FULL, create=False) is None
    assert vault.status().names == 0


def test_any_passes_through_reads_and_is_refused_in_writes(vault: Vault) -> None:
    """ANY is not a name."""
    ids = ids_of(vault, Scope("acme", user="ann"))
    assert vault.resolve(Scope("acme", user=ANY), create=False) == Scope(ids.tenant, user=ANY)
    with pytest.raises(InvalidInput):
        vault.resolve(Scope("acme", user=ANY), create=True)


@pytest.mark.parametrize("level", ["tenant", "organization", "user", "project"])
def test_equal_session_names_in_different_places_never_meet(vault: Vault, level: str) -> None:
    """A session is unique within everything above it."""
    other = Scope(**(dict(FULL.present()) | {level: "other"}))
    assert ids_of(vault, FULL).session != ids_of(vault, other).session


def test_equal_names_in_two_tenants_are_two_ids(vault: Vault) -> None:
    """Users belong to a tenant; a named subject is the same person as the user of that name."""
    ann, other = user_of(vault, "ann"), user_of(vault, "ann", "rival")
    tenant = ids_of(vault, Scope("acme")).tenant
    assert ann != other
    assert vault.subject_id(tenant, "ann", create=False) == ann
    assert vault.subject_id(tenant, "zoe", create=False) is None
    assert vault.subject_id(tenant, "zoe", create=True) == user_of(vault, "zoe")


@pytest.mark.parametrize("name", ["김민수", "a\x00b", "lone \ud800 surrogate", "tab\tand|bar"])
def test_any_text_is_a_name(vault: Vault, name: str) -> None:
    """Names come back as they were, also those that UTF-8 cannot carry."""
    scope = Scope("acme", user=name)
    assert vault.names(ids_of(vault, scope)) == scope


def test_sealed_text_opens_with_its_keys_and_context_only(vault: Vault) -> None:
    """Another leaf, subject, associated data or a changed byte is CorruptStore."""
    ann, bob, leaf = user_of(vault, "ann"), user_of(vault, "bob"), vault.next_leaf()
    sealed = vault.seal([ann], leaf, b"text", b"aad")
    assert len(sealed) == 4 + SEAL_OVERHEAD
    assert vault.open([ann], leaf, sealed, b"aad") == b"text"
    flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for subject, number, data, aad in (
        (bob, leaf, sealed, b"aad"),
        (ann, leaf + 1, sealed, b"aad"),
        (ann, leaf, flipped, b"aad"),
        (ann, leaf, sealed, b"other"),
        (ann, leaf, b"short", b"aad"),
    ):
        with pytest.raises(CorruptStore):
            vault.open([subject], number, data, aad)


def test_a_shared_text_closes_when_any_of_its_subjects_goes(vault: Vault) -> None:
    """The key of a joint text needs all leaves; the order of the subjects does not matter."""
    ann, bob = user_of(vault, "ann"), user_of(vault, "bob")
    first, second = vault.next_leaf(), vault.next_leaf()
    sealed = [vault.seal([ann, bob], leaf, b"ours", b"") for leaf in (first, second)]
    assert vault.open([bob, ann], first, sealed[0], b"") == b"ours"
    vault.destroy_leaves({bob: [first]})
    assert vault.open([ann, bob], first, sealed[0], b"") is None
    assert vault.open([ann, bob], second, sealed[1], b"") == b"ours"
    vault.destroy_subject(ann, before_us=0)
    assert vault.open([ann, bob], second, sealed[1], b"") is None


def test_a_destroyed_leaf_is_gone_for_good_and_its_neighbours_stay(
    vault: Vault, open_again: OpenVault
) -> None:
    """None, not an error, on reading; ErasedScope on sealing; the next leaf opens as before."""
    ann = user_of(vault, "ann")
    sealed = {leaf: vault.seal([ann], leaf, b"%d" % leaf, b"") for leaf in range(20)}
    vault.destroy_leaves({ann: [3, range(7, 9)]})
    for reader in (vault, open_again()):
        opened = {leaf: reader.open([ann], leaf, data, b"") for leaf, data in sealed.items()}
        assert opened == {leaf: None if leaf in (3, 7, 8) else b"%d" % leaf for leaf in sealed}
        with pytest.raises(ErasedScope):
            reader.seal([ann], 3, b"", b"")


def test_a_destroyed_subject_loses_texts_hashes_and_names(vault: Vault) -> None:
    """Nothing opens, hashes or names it any more; someone else's keys are untouched."""
    ann, bob = user_of(vault, "ann"), user_of(vault, "bob")
    session = ids_of(vault, Scope("acme", user="ann", session="monday"))
    sealed, other = vault.seal([ann], 1, b"hers", b""), vault.seal([bob], 1, b"his", b"")
    vault.destroy_subject(ann, before_us=100)
    vault.destroy_subject(ann, before_us=100)
    assert vault.open([ann], 1, sealed, b"") is None
    assert vault.open([bob], 1, other, b"") == b"his"
    assert vault.name(ann) is None and vault.names(session).session == session.session
    assert vault.resolve(Scope("acme", user="ann"), create=False) is None
    with pytest.raises(ErasedScope):
        vault.keyed_hash(ann, b"use", b"data")
    assert user_of(vault, "ann") != ann


def test_a_destroyed_tenant_takes_its_users_along(vault: Vault) -> None:
    """Users, sessions and projects of the tenant are gone; another tenant stays."""
    ids, rival = ids_of(vault, FULL), user_of(vault, "ann", "rival")
    sealed = vault.seal([str(ids.user)], 1, b"text", b"")
    vault.destroy_subject(ids.tenant, before_us=100)
    assert vault.open([str(ids.user)], 1, sealed, b"") is None
    assert vault.resolve(Scope("acme"), create=False) is None
    assert vault.name(rival) == "ann" and vault.status().names == 2
    assert vault.is_fenced(Scope("acme", user="new"), 99) and vault.is_fenced(FULL, 1 << 60)


def test_fences_refuse_the_past_of_a_person_and_its_sessions_for_ever(
    vault: Vault, open_again: OpenVault
) -> None:
    """The person may come back with new events, but not in an old session; others are free."""
    ann = ids_of(vault, Scope("acme", user="ann", session="monday")).user
    assert not vault.is_fenced(FULL, 0)
    vault.destroy_subject(str(ann), before_us=100)
    for reader in (vault, open_again()):
        for session, at, refused in (("monday", 200, True), ("new", 99, True), ("new", 100, False)):
            assert reader.is_fenced(Scope("acme", user="ann", session=session), at) is refused
        assert not reader.is_fenced(Scope("acme", user="bob", session="monday"), 0)
        assert not reader.is_fenced(Scope("rival", user="ann"), 0)


def test_a_later_erasure_never_weakens_a_fence(vault: Vault) -> None:
    """The latest time counts, whatever the order."""
    for before in (100, 50):
        vault.destroy_subject(user_of(vault, "ann"), before_us=before)
        assert vault.is_fenced(Scope("acme", user="ann"), 99)


def test_refusals_are_counted_once_each(vault: Vault, open_again: OpenVault) -> None:
    """An event behind two fences is one refusal; the count is durable."""
    scope = Scope("acme", user="ann", session="monday")
    vault.destroy_subject(str(ids_of(vault, scope).user), before_us=100)
    vault.count_refusal(scope)
    vault.count_refusal(Scope("acme", user="ann"))
    vault.count_refusal(Scope("acme", user="bob"))
    assert vault.refusals() == open_again().refusals() == 2


def test_a_session_can_be_fenced_alone(vault: Vault) -> None:
    """Only that session of that user is closed."""
    vault.fence_session(Scope("acme", user="ann", session="monday"))
    assert vault.is_fenced(Scope("acme", user="ann", session="monday"), 1 << 60)
    assert not vault.is_fenced(Scope("acme", user="ann", session="tuesday"), 0)
    with pytest.raises(InvalidInput):
        vault.fence_session(Scope("acme", user="ann"))


def test_a_destruction_elsewhere_is_seen_after_a_refresh(vault: Vault, open_again: OpenVault) -> None:
    """Caches of keys, names and fences follow what another process destroyed."""
    other, ann = open_again(), user_of(vault, "ann")
    sealed = other.seal([ann], 1, b"text", b"")
    assert other.resolve(Scope("acme", user="ann"), create=False)
    vault.destroy_subject(ann, before_us=100)
    other.refresh()
    assert other.open([ann], 1, sealed, b"") is None
    assert other.resolve(Scope("acme", user="ann"), create=False) is None
    assert other.is_fenced(Scope("acme", user="ann"), 5)


def test_chunks_open_only_in_their_place(vault: Vault) -> None:
    """A chunk moved, or taken from a body of another length, does not open; destroyed chunks are None."""
    ann, leaf = user_of(vault, "ann"), vault.next_leaf()
    chunks = [vault.seal_chunk([ann], leaf, index, 3, b"%d" % index, b"aad") for index in range(3)]
    opened = [vault.open_chunk([ann], leaf, index, 3, chunk, b"aad") for index, chunk in enumerate(chunks)]
    assert opened == [b"0", b"1", b"2"]
    for index, total in ((1, 3), (0, 2)):
        with pytest.raises(CorruptStore):
            vault.open_chunk([ann], leaf, index, total, chunks[0], b"aad")
    vault.destroy_leaves({ann: [leaf]})
    assert vault.open_chunk([ann], leaf, 0, 3, chunks[0], b"aad") is None


def test_keyed_hashes_differ_by_subject_and_purpose(vault: Vault) -> None:
    """Equal data under another key or purpose has an unrelated hash."""
    ann, bob = user_of(vault, "ann"), user_of(vault, "bob")
    hashes = {vault.keyed_hash(who, use, b"data") for who in (ann, bob) for use in (b"one", b"two")}
    assert len(hashes) == 4 and len(vault.keyed_hash(ann, b"one", b"data", size=32)) == 32


def test_the_same_leaf_never_meets_the_same_nonce(vault: Vault) -> None:
    """Sealing twice under one leaf, as after a restored backup, never repeats a nonce."""
    ann = user_of(vault, "ann")
    assert len({vault.seal([ann], 1, b"text", b"")[:12] for _ in range(1000)}) == 1000


def test_threads_share_a_vault(vault: Vault) -> None:
    """Numbers are unique, names are made once, and every text opens."""

    def work(number: int) -> tuple[int, str, bytes | None]:
        ann, leaf = user_of(vault, f"user{number % 5}"), vault.next_leaf()
        return leaf, ann, vault.open([ann], leaf, vault.seal([ann], leaf, b"text", b""), b"")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(400)))
    assert len({leaf for leaf, _, _ in results}) == 400
    assert len({ann for _, ann, _ in results}) == 5
    assert {text for _, _, text in results} == {b"text"}


def test_a_closed_vault_says_so(vault: Vault) -> None:
    """Every use after close is StoreClosed; closing twice is fine."""
    ann = user_of(vault, "ann")
    vault.close()
    vault.close()
    with pytest.raises(StoreClosed):
        vault.seal([ann], 1, b"", b"")
    with pytest.raises(StoreClosed):
        vault.next_leaf()


def test_a_fork_cannot_use_the_vault_of_its_parent(vault: Vault) -> None:
    """The child gets StoreClosed, so that no leaf is used on both sides; the parent goes on."""
    ann, leaf = user_of(vault, "ann"), vault.next_leaf()
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (vault.next_leaf, lambda: vault.seal([ann], leaf, b"", b"")):
            try:
                use()
            except StoreClosed:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert vault.next_leaf() == leaf + 1


def test_status_counts_and_warns(vault: Vault) -> None:
    """Operators see numbers and the place of the root key, no secret and no name."""
    ids_of(vault, FULL)
    vault.next_leaf()
    status = vault.status()
    assert (status.root_key, status.subjects, status.nodes, status.names) == ("file", 2, 2, 6)
    assert status.next_leaf == 65_536 and status.fences == status.refusals == 0
    beside = any("data directory" in warning for warning in status.warnings)
    assert beside == isinstance(vault._store._database, Database)

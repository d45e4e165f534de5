"""Keys and sealing: a puncturable key tree per subject, a key store, root keys, names and fences."""

from mnemolog.infra.vault.rootkey import (
    EnvironmentRootKey,
    FileRootKey,
    RootKeyProvider,
    decode_root_key,
    encode_root_key,
    generate_root_key,
)
from mnemolog.infra.vault.store import KeyStore
from mnemolog.infra.vault.vault import SEAL_OVERHEAD, Vault, VaultStatus, open_vault

__all__ = [
    "SEAL_OVERHEAD",
    "EnvironmentRootKey",
    "FileRootKey",
    "KeyStore",
    "RootKeyProvider",
    "Vault",
    "VaultStatus",
    "decode_root_key",
    "encode_root_key",
    "generate_root_key",
    "open_vault",
]

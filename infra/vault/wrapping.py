"""How secrets rest in the key store: sealed under the root key, each bound to the row that it belongs to."""

from __future__ import annotations

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mnemolog.domain.errors import CorruptStore

NONCE_BYTES: Final = 12


class Wrapping:
    """AES-256-GCM under a key derived from the root key; the row's identity is authenticated with it."""

    __slots__ = ("_cipher", "_store_id", "fingerprint")

    def __init__(self, root: bytes, store_id: bytes) -> None:
        self._store_id = store_id
        self._cipher = AESGCM(_derive(root, store_id, b"wrap"))
        self.fingerprint = fingerprint(root, store_id)

    def wrap(self, identity: str, secret: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, self._store_id + identity.encode())

    def unwrap(self, identity: str, wrapped: bytes) -> bytes:
        """Raises CorruptStore when the bytes are not what was wrapped for this row."""
        nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, sealed, self._store_id + identity.encode())
        except (InvalidTag, ValueError):
            raise CorruptStore(
                f"the key store's row {identity} is damaged: restore it from a backup"
            ) from None


def fingerprint(root: bytes, store_id: bytes) -> bytes:
    """Tells root keys apart, and tells nothing about them."""
    return _derive(root, store_id, b"fingerprint")[:16]


def _derive(root: bytes, salt: bytes, use: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=salt, info=b"mnemolog/keys/" + use).derive(root)

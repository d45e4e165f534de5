"""Messages sealed to the ingest's public key: X25519, HKDF-SHA256, AES-256-GCM. docs/kafka.md has the form.

The one who seals needs the public key alone. Private keys are in a file; after a rotation the old ones still open what
is in the topics, until they are dropped.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mnemolog.domain.errors import InvalidInput, KeysMissing

MAGIC: Final = b"MNI1"
FILE: Final = "ingest.key"
_INFO: Final = b"mnemolog ingest 1"
_ID: Final = 8
_HEADER: Final = len(MAGIC) + _ID + 32


class IngestKey:
    """The public half: seals."""

    def __init__(self, public: bytes) -> None:
        self.public = public
        self.id = sha256(public).digest()[:_ID]
        try:
            self._key = X25519PublicKey.from_public_bytes(public)
        except ValueError:
            raise InvalidInput(
                "an ingest key is 32 bytes in base64: `mnemolog topics key` prints it"
            ) from None

    @classmethod
    def of(cls, text: str) -> IngestKey:
        """From base64, as `mnemolog topics key` prints it. Raises InvalidInput."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except ValueError as error:
            raise InvalidInput(
                "an ingest key is 32 bytes in base64: `mnemolog topics key` prints it"
            ) from error

    @property
    def text(self) -> str:
        return base64.b64encode(self.public).decode()

    def seal(self, plaintext: bytes) -> bytes:
        """Only the ingest can open it."""
        own = X25519PrivateKey.generate()
        header = MAGIC + self.id + own.public_key().public_bytes_raw()
        key, nonce = _derived(own.exchange(self._key), header)
        return header + AESGCM(key).encrypt(nonce, plaintext, header)


class IngestKeys:
    """The private halves, the one in use first: open what was sealed to any of them."""

    def __init__(self, private: Sequence[bytes]) -> None:
        if not private:
            raise KeysMissing("no ingest key: the file is empty")
        self.private = tuple(private)
        self._keys = {}
        for raw in reversed(self.private):
            key = X25519PrivateKey.from_private_bytes(raw)
            self.current = IngestKey(key.public_key().public_bytes_raw())
            self._keys[self.current.id] = key

    @classmethod
    def load(cls, path: Path, *, create: bool = False) -> IngestKeys:
        """Raises KeysMissing where there is no such file, or it holds something else."""
        try:
            lines = path.read_text().split()
            return cls([base64.b64decode(line, validate=True) for line in lines])
        except FileNotFoundError:
            if not create:
                raise KeysMissing(f"no ingest key in {path}: `mnemolog topics key --new` makes one") from None
        except ValueError:
            raise KeysMissing(f"{path} holds no ingest keys: restore it") from None
        return cls([_fresh()]).saved(path)

    def rotated(self, path: Path) -> IngestKeys:
        """With a new key in front; the old ones still open."""
        return IngestKeys([_fresh(), *self.private]).saved(path)

    def alone(self, path: Path) -> IngestKeys:
        """Without the old ones: what was sealed to them is closed for good."""
        return IngestKeys(self.private[:1]).saved(path)

    def saved(self, path: Path) -> IngestKeys:
        """Durable when this returns."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(base64.b64encode(raw).decode() + "\n" for raw in self.private)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        return self

    def open(self, value: bytes) -> bytes:
        """The plaintext; what was not sealed is its own. Raises InvalidInput for what does not open."""
        if not value.startswith(MAGIC):
            return value
        header = value[:_HEADER]
        key = self._keys.get(value[len(MAGIC) : len(MAGIC) + _ID])
        if key is None:
            raise InvalidInput("sealed to a key that this ingest does not have, or has dropped")
        try:
            other = X25519PublicKey.from_public_bytes(header[len(MAGIC) + _ID :])
            secret, nonce = _derived(key.exchange(other), header)
            return AESGCM(secret).decrypt(nonce, value[_HEADER:], header)
        except (InvalidTag, ValueError):
            raise InvalidInput("the sealed message was changed on its way, or is cut off") from None


def _derived(shared: bytes, header: bytes) -> tuple[bytes, bytes]:
    """Key and nonce, used once: the sender's half of the exchange is made for one message."""
    made = HKDF(hashes.SHA256(), 44, salt=header, info=_INFO).derive(shared)
    return made[:32], made[32:]


def _fresh() -> bytes:
    return X25519PrivateKey.generate().private_bytes_raw()

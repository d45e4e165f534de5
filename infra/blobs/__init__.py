"""Large bodies, sealed: files of a folder, or objects of a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.blobs.folder import FolderStore
from mnemolog.infra.blobs.sealed import BlobStore, ChunkSealer, SealedBlobs, Stored

_SPARED_SECONDS: Final = 86_400.0


def open_blobs(url: str | None, folder: Path, sealer: ChunkSealer) -> SealedBlobs:
    """The blobs at a url or folder that others may share, else those of `folder`, which is the data directory's.

    Raises InvalidInput for another url, and where the extra for it is not installed; StoreUnavailable.
    """
    if url is None:
        return SealedBlobs(FolderStore(folder), sealer)
    return SealedBlobs(_store(url), sealer, spared_seconds=_SPARED_SECONDS)


def _store(url: str) -> BlobStore:
    if not url.startswith("s3:"):
        return FolderStore(Path(url))
    try:
        from mnemolog.infra.blobs.s3 import S3Store
    except ModuleNotFoundError:
        raise InvalidInput("blobs in a bucket need boto3: pip install 'mnemolog[s3]'") from None
    return S3Store(url)


__all__ = ["BlobStore", "ChunkSealer", "FolderStore", "SealedBlobs", "Stored", "open_blobs"]

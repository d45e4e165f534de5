"""Large bodies: sealed files beside the log."""

from mnemolog.infra.blobs.files import ChunkSealer, FileBlobs

__all__ = ["ChunkSealer", "FileBlobs"]

"""Vector rows."""

from mnemolog.infra.vectors.rows import StoredVectors, sqlite_vectors

__all__ = ["StoredVectors", "sqlite_vectors"]

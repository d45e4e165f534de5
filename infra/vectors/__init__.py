"""Vector rows in one SQLite file."""

from mnemolog.infra.vectors.rows import SqliteVectors

__all__ = ["SqliteVectors"]

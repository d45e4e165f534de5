"""The embedded vector index."""

from mnemolog.infra.index.edge import EdgeIndex

__all__ = ["EdgeIndex"]

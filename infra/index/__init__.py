"""The embedded vector index."""

from mnemolog.infra.index.edge import EdgeIndex, erased_to

__all__ = ["EdgeIndex", "erased_to"]

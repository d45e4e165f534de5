"""A memory with summaries and working state, for every test here."""

from summaries_world import memory

__all__ = ["memory"]

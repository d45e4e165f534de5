"""The memory that these tests use."""

from face_world import memory

__all__ = ["memory"]

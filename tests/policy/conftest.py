"""What every test here may ask for."""

from face_world import memory

__all__ = ["memory"]

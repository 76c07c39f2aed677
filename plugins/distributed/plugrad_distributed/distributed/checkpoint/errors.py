"""What is wrong with a checkpoint."""

from __future__ import annotations

__all__ = ["CheckpointError"]


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or what is in a folder is none, or not the one wanted."""

"""The errors of checkpoints."""

from __future__ import annotations

__all__ = ["CheckpointError"]


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or a folder holds no checkpoint, a broken one, or one that
    does not fit."""

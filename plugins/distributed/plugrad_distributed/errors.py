"""What goes wrong between processes, by the names of `torch.distributed`."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistTimeoutError"]


class DistError(RuntimeError):
    """Something went wrong between the processes of a group."""


class DistBackendError(DistError):
    """What carries the bytes failed, or another rank did."""


class DistNetworkError(DistError):
    """The processes cannot reach one another."""


class DistTimeoutError(DistBackendError):
    """An operation did not end in time. The message names the operation, and ranks that are missing
    where the carrier can tell."""
